"""The output folder of a run: its files, its locks, and how its trials ended."""
