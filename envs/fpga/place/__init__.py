"""Verilog through yosys and nextpnr: simulation, synthesis, placement and routing."""
