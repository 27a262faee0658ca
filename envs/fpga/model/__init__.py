"""The embedded model of what synthesis, placement and routing give."""
