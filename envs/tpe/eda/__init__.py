"""Electronic design automation: Liberty, Verilog, synthesis, timing and gate-level simulation."""
