"""The design spaces of the accelerator environment."""
