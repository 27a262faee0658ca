"""Neural layers on FPGAs: `FPGA-v0`."""
