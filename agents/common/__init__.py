"""What search agents share."""
