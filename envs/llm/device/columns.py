"""Designs as columns of numbers, with what stands where a parameter is inactive or absent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from archgym.space import Designs

__all__ = [
    "AFTER_TRAINING",
    "NEAR_BANK",
    "PROCESSOR",
    "READ",
    "REQUIRED",
    "SRAM_TABLES",
    "Columns",
    "columns_of",
]

Columns = dict[str, NDArray[Any]]
"""A column by name, each of shape (n_designs,)."""
PROCESSOR: Final = "processor"
NEAR_BANK: Final = "near_bank"
SRAM_TABLES: Final = "sram_tables"
AFTER_TRAINING: Final = "after_training"
REQUIRED: Final = (
    "layers",
    "hidden",
    "heads",
    "kv_heads",
    "feedforward_ratio",
    "mac_units",
    "clock_mhz",
    "memory",
    "channels",
)
"""Parameters that a space cannot lack."""
_DEFAULTS: Final[Mapping[str, Any]] = {
    "vocabulary": 32000,
    "tied_embeddings": True,
    "gated": True,
    "weight_bits": 16,
    "quantization": AFTER_TRAINING,
    "activation_bits": 16,
    "kv_bits": 16,
    "sram_mib": 1.0,
    "sram_resident_share": 0.0,
    "ranks": 1,
    "far_memory": "none",
    "far_channels": 0,
    "far_striped": False,
    "flash_gb_per_s": 0.0,
    "products": PROCESSOR,
    "pim_lanes": 16,
    "pim_banks_per_unit": 1,
    "attention_in_memory": False,
    "table_weights": 4,
}
READ: Final = frozenset((*REQUIRED, *_DEFAULTS, "head_size"))
"""Parameters that are read; without ``head_size`` a head is as wide as its share of ``hidden``."""
_TEXTS: Final = ("memory", "far_memory", "products", "quantization")


def columns_of(designs: Designs) -> Columns:
    """One column for each parameter, numbers as floats.

    Args:
        designs: canonical ones, of a space with at least :data:`REQUIRED`.
    """
    found: Columns = {}
    for name in (*designs.space.names, *(n for n in _DEFAULTS if n not in designs.space.names)):
        if name in designs.space.names:
            values = designs.values(name, _DEFAULTS.get(name))
        else:
            values = np.full(len(designs), _DEFAULTS[name])
        found[name] = values.astype(str) if name in _TEXTS else values.astype(np.float64)
    return found
