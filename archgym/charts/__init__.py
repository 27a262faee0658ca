"""Charts as data, and drawing them with Matplotlib."""
