"""SCALE-Sim 3's double-buffered memories, cycle by cycle."""
