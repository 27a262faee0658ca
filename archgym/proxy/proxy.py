"""A trained proxy: models of metrics, with what they were trained on."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.errors import InvalidValueError, UnknownNameError
from archgym.problem.metrics import Metric
from archgym.proxy.calibration import Calibration
from archgym.proxy.inputs import Inputs
from archgym.proxy.known_workloads import KnownWorkloads, described
from archgym.proxy.models import Array, Features, Model
from archgym.proxy.provenance import Origin, Workload
from archgym.proxy.ranges import Ranges
from archgym.proxy.targets import TargetScale
from archgym.space import Designs, DesignSpace

_CHUNK = 16_384


@dataclass(frozen=True, eq=False)
class Part:
    """One model of a proxy.

    Attributes:
        workloads: that it predicts, indices into those of the origin.
        targets: that it predicts, indices into the metrics of the proxy.
        model: takes features of designs, and of the workload if there are several.
        scale: of its targets.
        calibrations: of its intervals, one a workload.
        workload_names: names of the features of workloads.
        workload_values: shape (n_workloads, n_names).
    """

    workloads: tuple[int, ...]
    targets: tuple[int, ...]
    model: Model
    scale: TargetScale
    calibrations: tuple[Calibration, ...]
    workload_names: tuple[str, ...]
    workload_values: Features


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predicted metrics of designs on a workload, in their units.

    Attributes:
        names: the metrics.
        values: NaN for one that is not given on this workload, shape (n, n_metrics).
        low: lower ends of the prediction intervals.
        high: upper ends.
        deviation: half width of the interval as the model learns the metric (of logarithms where
            it learns them, so about a relative error), by which uncertainty can be ranked.
    """

    names: tuple[str, ...]
    values: Array
    low: Array
    high: Array
    deviation: Array


@dataclass(frozen=True, eq=False)
class Proxy:
    """Predicts what a simulator would give.

    Attributes:
        space: the design space, with nothing fixed.
        metrics: that it predicts.
        origin: the simulation that it replaces.
        parts: its models; each metric on each workload has at most one.
        ranges: which designs it covers.
        trained_on: fingerprints of the designs that it has seen, ascending.
        report: how it was trained, plain values.
        known: the workloads side by side, if it was trained across workloads from features.
        fingerprint: of its file; empty as long as it has none.
    """

    space: DesignSpace
    metrics: tuple[Metric, ...]
    origin: Origin
    parts: tuple[Part, ...]
    ranges: Ranges
    trained_on: NDArray[np.uint64]
    report: dict[str, Any] = field(default_factory=dict)
    known: KnownWorkloads | None = None
    fingerprint: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_inputs", Inputs(self.space))

    @property
    def searched_space(self) -> DesignSpace:
        """The design space that a search on it takes: parameters that all data held are held."""
        return self.space.without_fixed().fix(self.origin.fixed)

    def workload(self, name: str = "", sha256: str = "") -> int:
        """Index of a workload, by its hash if it has one, else by name.

        Raises:
            UnknownNameError: if it was not trained on it.
        """
        for index, one in enumerate(self.origin.workloads):
            if (one.sha256 == sha256) if sha256 and one.sha256 else (one.name == name):
                return index
        known = [one.name for one in self.origin.workloads]
        raise UnknownNameError("workload of the proxy", name or sha256[:12], known)

    def with_workload(self, workload: Workload) -> Proxy:
        """This proxy with one more workload, which it knows by its features only.

        Args:
            workload: with its features, and metrics of the baseline design.

        Raises:
            InvalidValueError: if it was not trained across workloads, or a feature is missing.
        """
        if self.known is None:
            raise InvalidValueError(
                "the proxy was not trained across workloads: archgym proxy train --per "
                "workload-features makes one that is"
            )
        new = len(self.origin.workloads)
        row = self.known.scale.numbers(described(workload.features, workload.baseline))
        parts = tuple(
            replace(
                part,
                workloads=(*part.workloads, new),
                calibrations=(*part.calibrations, part.calibrations[0]),
                workload_values=np.vstack([part.workload_values, row.astype(np.float32)]),
            )
            for part in self.parts
        )
        origin = replace(self.origin, workloads=(*self.origin.workloads, workload))
        return replace(self, origin=origin, parts=parts)

    def given(self, workload: int) -> tuple[str, ...]:
        """Names of the metrics that it predicts on a workload."""
        there = {t for part in self.parts if workload in part.workloads for t in part.targets}
        return tuple(m.name for number, m in enumerate(self.metrics) if number in there)

    def predict(self, designs: Designs, workload: int = 0, *, coverage: float = 0.9) -> Predictions:
        """Predictions for designs of its space (fixed values may differ), also out of range.

        Args:
            designs: canonical ones.
            workload: index, see :meth:`workload`.
            coverage: chance with which an interval is to hold the simulator's value.

        Raises:
            InvalidValueError: if the workload or coverage is not possible.
        """
        if not 0 <= workload < len(self.origin.workloads):
            raise InvalidValueError(
                f"workload must be from 0 to {len(self.origin.workloads) - 1}, not {workload!r}"
            )
        n = len(designs)
        found = [np.full((n, len(self.metrics)), np.nan) for _ in range(4)]
        for start in range(0, n, _CHUNK):
            rows = slice(start, min(n, start + _CHUNK))
            self._predict(designs.codes[rows], workload, coverage, [one[rows] for one in found])
        return Predictions(tuple(m.name for m in self.metrics), *found)

    def _predict(
        self, codes: NDArray[np.int64], workload: int, coverage: float, found: list[Array]
    ) -> None:
        inputs: Features = self._inputs(codes)  # type: ignore[attr-defined]
        for part in self.parts:
            if workload not in part.workloads:
                continue
            place, columns = part.workloads.index(workload), list(part.targets)
            own = np.repeat(part.workload_values[place][None], len(inputs), axis=0)
            mean, spread = part.model.predict(np.hstack([inputs, own]))
            half = part.calibrations[place].half_width(spread, coverage)
            baseline = np.repeat(self.baseline(workload)[None, columns], len(inputs), axis=0)
            for kind, values in enumerate((mean, mean - half, mean + half)):
                found[kind][:, columns] = part.scale.backward(values, baseline)
            found[3][:, columns] = half * part.scale.spread
        unsigned = [not metric.signed for metric in self.metrics]
        for one in found[:3]:
            np.maximum(one, 0.0, out=one, where=unsigned)

    def baseline(self, workload: int) -> Array:
        """Metrics of the baseline design on a workload, NaN where not known, shape (n_metrics,)."""
        known = self.origin.workloads[workload].baseline
        return np.array([known.get(metric.name, np.nan) for metric in self.metrics])
