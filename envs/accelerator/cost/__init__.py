"""The embedded cost model: hardware, mapping, time, energy and area."""
