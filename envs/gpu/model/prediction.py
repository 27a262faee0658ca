"""Predicting time, power and spread: the terms of a kernel, times a learned correction.

The correction is an ensemble of boosted trees over the terms, as plain arrays; ``fitted.npz`` and
``fitted.json`` have them, made by ``python -m archgym.envs.gpu.model.fitting``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from archgym.envs.gpu.model import attention, gemm, norm, power
from archgym.envs.gpu.model.compiled import Compiled
from archgym.envs.gpu.model.device import Device
from archgym.envs.gpu.model.terms import Array, Bounds, Terms
from archgym.proxy.models.traversal import Trees
from archgym.reading.files import read_arrays, read_json

_LIMIT_BYTES = 1 << 26
Values = Mapping[str, Array]


class Mechanism(NamedTuple):
    """The terms of a kernel.

    Attributes:
        bounds: of its coefficients.
        terms: what bounds the time of designs.
        features: what the correction looks at.
    """

    bounds: Bounds
    terms: Callable[[Values, Values, Device, Compiled, Mapping[str, float]], Terms]
    features: Callable[[Values, Values, Terms, Compiled], Array]


MECHANISMS: Final[Mapping[str, Mechanism]] = {
    "gemm": Mechanism(gemm.BOUNDS, gemm.terms, gemm.features),
    "attention": Mechanism(attention.BOUNDS, attention.terms, attention.features),
    "norm": Mechanism(norm.BOUNDS, norm.terms, norm.features),
}


@dataclass(frozen=True)
class Correction:
    """The logarithm of a factor, by boosted trees.

    Attributes:
        trees: of all members of the ensemble.
        start: mean of what the members begin with.
        members: how many there are.
        n_features: that it looks at.
    """

    trees: Trees
    start: float
    members: int
    n_features: int

    def __call__(self, features: Array) -> Array:
        """Logarithm of the factor, shape (n,)."""
        sums = self.trees.sums(features.astype(np.float32))[:, 0]
        return np.asarray(self.start + sums / self.members)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that it has learned, as small as it can be kept."""
        kept = dict(self.trees.arrays)
        kept["feature"] = kept["feature"].astype(np.int8)
        kept["value"] = kept["value"].astype(np.float32)
        return kept | {"start": np.array([self.start, float(self.members)])}

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]], n_features: int) -> Correction:
        """The inverse of :meth:`arrays`."""
        start, members = arrays["start"].tolist()
        return cls(Trees.of(arrays, n_features, 1), start, int(members), n_features)


@dataclass(frozen=True)
class KernelModel:
    """What is predicted of a kernel.

    Attributes:
        kernel: its name.
        coefficients: of its terms.
        powers: coefficients of the power of its parts; empty if power was not fitted.
        corrections: ``time``, of the terms' time; ``busy``, from the time with a cold cache to the
            time without pause; ``power``, of the parts' power. Without, the terms stand alone.
    """

    kernel: str
    coefficients: Mapping[str, float]
    powers: Mapping[str, float]
    corrections: Mapping[str, Correction]

    def predict(
        self, designs: Values, sizes: Values, device: Device, compiled: Compiled
    ) -> dict[str, Array]:
        """``time_us``, and where it was fitted ``busy_us`` and ``power_w``, shape (n,) each."""
        mechanism = MECHANISMS[self.kernel]
        found = mechanism.terms(designs, sizes, device, compiled, self.coefficients)
        features = mechanism.features(designs, sizes, found, compiled)
        time_us = found["time_us"]
        # It was learned where warpgroups multiply, as that of the power was: other GPUs have the
        # mechanism alone.
        if "time" in self.corrections and device.warpgroups:
            time_us = time_us * np.exp(self.corrections["time"](features))
        result = {"time_us": time_us}
        if self.powers:
            activity = activities(found, features, time_us, device)
            busy_us = time_us * np.exp(self.corrections["busy"](activity))
            busy = power.rates(found, sizes, busy_us, device)
            parts = power.power_w(busy, sizes, device, self.powers)
            result["busy_us"] = busy_us
            if device.warpgroups:
                parts = parts * np.exp(self.corrections["power"](activity))
            result["power_w"] = parts
        return result


def activities(found: Terms, features: Array, time_us: Array, device: Device) -> Array:
    """What power depends on: how busy each part of the GPU is, and the features, (n, features)."""
    cycles = time_us * device.clock_mhz * device.multiprocessors
    peak = max(device.flops_per_cycle.values())
    busy = (
        found["flops"] / (cycles * peak),
        found["l2_bytes"] / (cycles * power.L2_BYTES_PER_CYCLE),
        power.missed(found, device)
        * found["memory_bytes"]
        / (time_us * device.memory_gb_per_s * 1e3),
    )
    logs = [np.log2(np.maximum(one, 1e-4)) for one in busy]
    return np.column_stack([*logs, np.log2(time_us), np.minimum(found["each"], 4), features])


@lru_cache(maxsize=1)
def shipped_models() -> dict[str, KernelModel]:
    """The models that were fitted to the shipped measurements, by kernel."""
    folder = resources.files("archgym.envs.gpu.model")
    with resources.as_file(folder.joinpath("fitted.npz")) as path:
        arrays = read_arrays(path, _LIMIT_BYTES)
    with resources.as_file(folder.joinpath("fitted.json")) as path:
        noted = read_json(path)
    models = {}
    for kernel, fitted in noted["kernels"].items():
        corrections = {
            name: Correction.of(_under(f"{kernel}.{name}.", arrays), count)
            for name, count in fitted["features"].items()
        }
        models[kernel] = KernelModel(kernel, fitted["coefficients"], fitted["powers"], corrections)
    return models


def _under(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    found = {n.removeprefix(prefix): v for n, v in arrays.items() if n.startswith(prefix)}
    found["feature"] = found["feature"].astype(np.int32)
    return found
