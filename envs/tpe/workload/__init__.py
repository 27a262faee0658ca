"""What a tensor engine runs: matrix products and the operands that flow through them."""
