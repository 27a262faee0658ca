"""Reference figures of other planners and of measured clusters."""
