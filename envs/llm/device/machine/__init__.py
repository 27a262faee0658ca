"""Times, energies, area and cost of a device."""
