"""Reference figures: published solutions."""
