"""External accelerator models as simulators of the environment."""
