"""Signals: operand distributions independent of a width, and the observed ones that ship."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from typing import Any

import numpy as np

from archgym.envs.tpe.workload.operands import OperandDistribution
from archgym.errors import InvalidValueError, UnknownNameError

__all__ = [
    "DEFAULT_SIGMA",
    "DEFAULT_SIGNAL",
    "Signal",
    "canonical_signal",
    "observed_card",
    "observed_names",
    "read_signal",
    "signal_of_counts",
]

DEFAULT_SIGMA = 25.0
"""Standard deviation at which the digit averages of the paper hold: 2.41 (Booth), 2.22 (EN-T)."""
DEFAULT_SIGNAL = {"normal": DEFAULT_SIGMA}
_KINDS = ("normal", "uniform", "constant", "histogram", "observed")


@dataclass(frozen=True)
class Signal:
    """A distribution of an operand independent of its width: weights or activations of a layer.

    Attributes:
        name: short label.
        sigma: of a normal signal, its standard deviation in units of the last place of 8 bits,
            full scale kept at other widths; ``None`` for another kind.
        codes: of an observed signal, the distribution of its 8-bit codes; ``None`` for another
            kind. A signal with neither is uniform.
    """

    name: str
    sigma: float | None = None
    codes: OperandDistribution | None = None

    def at(self, width: int) -> OperandDistribution:
        """The distribution of the signal in operands of a width.

        Raises:
            InvalidValueError: if the width is not possible.
        """
        return _quantised(self, width)


@lru_cache(maxsize=4096)
def _quantised(signal: Signal, width: int) -> OperandDistribution:
    if signal.codes is not None:
        return signal.codes.requantised(width)
    if signal.sigma is not None:
        return OperandDistribution.normal(width, signal.sigma * 2.0 ** (width - 8))
    return OperandDistribution.uniform(width)


def canonical_signal(spec: Any, where: str) -> Any:
    """A signal as JSON can hold it, checked; ``where`` names the operand in messages.

    Raises:
        UnknownNameError: for an unknown kind or network, with suggestions.
        InvalidValueError: for a value of the wrong type or out of range.
    """
    if isinstance(spec, str) and spec == "uniform":
        return spec
    if not isinstance(spec, Mapping) or len(spec) != 1:
        raise InvalidValueError(
            f"workload: {where}={spec!r} must be 'uniform' or a mapping with one of the keys "
            f"{', '.join(name for name in _KINDS if name != 'uniform')}"
        )
    ((kind, value),) = spec.items()
    if kind not in _KINDS:
        raise UnknownNameError("signal", kind, _KINDS, f"workload: {where}")
    checked: Any = value
    if kind == "normal":
        if not _is_number(value) or not 0 < value < math.inf:
            raise InvalidValueError(f"workload: {where}: normal={value!r} must be above 0")
        checked = float(value)
    elif kind == "constant":
        if not isinstance(value, int) or isinstance(value, bool) or not -128 <= value <= 127:
            raise InvalidValueError(
                f"workload: {where}: constant={value!r} must be an integer from -128 to 127"
            )
    elif kind == "histogram":
        numbers = isinstance(value, (list, tuple)) and all(map(_is_number, value))
        if not (numbers and len(value) == 256 and min(value) >= 0 and sum(value) > 0):
            raise InvalidValueError(
                f"workload: {where}: histogram must be 256 counts of at least 0, of the 8-bit "
                "codes from -128 up, not all 0"
            )
        checked = list(value)
    elif value not in observed_names():
        raise UnknownNameError("observed workload", value, observed_names(), f"workload: {where}")
    return {kind: checked}


def read_signal(spec: Any, operand: str) -> Signal:
    """The signal of a canonical spec; of an observed network, what its operand a or b carries."""
    if spec == "uniform":
        return Signal("uniform")
    ((kind, value),) = spec.items()
    if kind == "normal":
        return Signal(f"normal({value:g})", sigma=value)
    if kind == "constant":
        return Signal(f"constant({value})", codes=OperandDistribution.constant(8, value))
    if kind == "histogram":
        digest = hashlib.sha256(json.dumps(value).encode()).hexdigest()[:8]
        return signal_of_counts(f"histogram({digest})", value)
    # Each operand of a layer counts as often as it is multiplied.
    total = np.zeros(256)
    for p in observed_card(value)["products"]:
        if p["weighted"]:
            counts = np.array(p[operand], dtype=np.float64)
            total += counts / counts.sum() * p["m"] * p["k"] * p["n"] * p["count"]
    return signal_of_counts(f"{value}.{operand}", total)


def signal_of_counts(name: str, counts: Any) -> Signal:
    """An observed signal from how often each 8-bit code occurs, from -128 up."""
    return Signal(name, codes=OperandDistribution(name, 8, np.asarray(counts, dtype=np.float64)))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


@cache
def observed_names() -> tuple[str, ...]:
    """The networks whose operands ship, sorted."""
    folder = resources.files("archgym.envs.tpe.workload").joinpath("observed")
    names = (entry.name for entry in folder.iterdir()) if folder.is_dir() else ()
    return tuple(sorted(name.removesuffix(".json") for name in names if name.endswith(".json")))


@cache
def observed_card(name: str) -> dict[str, Any]:
    """Shipped card of an observed network: its products with their operands, and its history."""
    file = (
        resources.files("archgym.envs.tpe.workload").joinpath("observed").joinpath(f"{name}.json")
    )
    card: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return card
