"""Pictures of an accelerator: roofline, energy, schematic."""
