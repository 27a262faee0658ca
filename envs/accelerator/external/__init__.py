"""Other people's accelerator models as simulators of the environment."""
