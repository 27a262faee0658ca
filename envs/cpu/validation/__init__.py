"""Reference figures of other simulators."""
