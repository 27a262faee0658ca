"""Pictures of an array and its processing element."""
