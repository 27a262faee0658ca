"""What a run leaves: tables, comparisons, pictures, and commands that reproduce designs."""
