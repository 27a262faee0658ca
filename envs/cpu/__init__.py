"""The processor environment: instruction streams, caches and what surrounds them."""
