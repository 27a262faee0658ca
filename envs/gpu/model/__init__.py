"""The embedded model: waves of tiles, occupancy, pipeline and memory traffic, fitted on tables."""
