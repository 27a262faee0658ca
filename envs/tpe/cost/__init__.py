"""Cells, area, clock period, cycles and energy of many designs at once."""
