"""Reference figures of another serving simulator and of measured servers."""
