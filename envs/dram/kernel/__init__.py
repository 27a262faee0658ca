"""The compiled event loop of the memory controller; call it through ``controller.simulate``."""
