"""Reference figures and checkers that hold the simulator against the standards."""
