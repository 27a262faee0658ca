"""The experiment file: its form, reading it, the trials that it expands to, and checks."""
