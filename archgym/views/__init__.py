"""Other forms of an environment: vectorised, one parameter a step, one agent a parameter."""
