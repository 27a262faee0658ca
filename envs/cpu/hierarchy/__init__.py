"""A hierarchy of caches in compiled code, exact access by access."""
