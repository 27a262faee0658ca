"""The circuit of a network: its structure, its cycles and its Verilog."""
