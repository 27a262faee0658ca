"""``archgym dataset``."""
