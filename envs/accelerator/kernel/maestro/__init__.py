"""What MAESTRO does otherwise than its paper says."""
