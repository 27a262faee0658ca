"""The memory: devices, standards, timing constraints and address mappings."""
