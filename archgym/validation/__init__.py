"""How well an environment's own simulator agrees with reference figures."""

from archgym.validation.validate import RowError, Validation, live_reference, validate

__all__ = ["RowError", "Validation", "live_reference", "validate"]
