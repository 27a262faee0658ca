"""The out-of-order core: times of each instruction in each stage, in compiled code."""
