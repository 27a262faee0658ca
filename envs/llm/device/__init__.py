"""Devices for language models: a transformer and the memory system that runs it, together."""
