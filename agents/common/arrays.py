"""Types of the arrays that agents calculate with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
"""Codes of designs, rows, or choices."""
