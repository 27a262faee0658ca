"""What caches cost: storage, area, energy and time."""
