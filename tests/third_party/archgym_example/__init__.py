"""An environment and an agent from outside archgym."""
