"""``archgym proxy``."""
