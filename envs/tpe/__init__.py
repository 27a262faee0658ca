"""TPE-v0: the multiply-accumulate fabric of a tensor processing engine."""
