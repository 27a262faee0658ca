"""Simulators: resolving a name, external programs, tables, a cache shared between trials."""
