"""Executors: where the designs of a trial are simulated, with limits and a cache."""
