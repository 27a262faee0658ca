"""Commands with which other programs use archgym."""
