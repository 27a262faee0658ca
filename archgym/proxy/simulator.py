"""``simulator="proxy:PATH"``: a proxy in place of a simulator."""

from __future__ import annotations

import functools
import time
from pathlib import Path
from typing import Any

import numpy as np

from archgym.errors import InvalidValueError, NotCoveredError, UnknownNameError
from archgym.problem.design_problem import DesignProblem
from archgym.problem.simulator import SimulationResult
from archgym.proxy.files import load_proxy
from archgym.proxy.proxy import Proxy
from archgym.simulators.compatibility import differences
from archgym.space import Designs, DesignSpace
from archgym.space.designs import MISSING, recoded


class ProxyFile:
    """A proxy in the simulator's place; see :class:`archgym.simulators.resolve.SimulatorFile`.

    Args:
        path: of the file that ``archgym proxy train`` made.

    Raises:
        InvalidValueError: if no path is given.
        DatasetError: if there is no such proxy, or it cannot be read.
    """

    kind = "proxy"
    space: str | DesignSpace = "default"
    workload: tuple[Any, str] | None = None
    workload_names: tuple[str, ...] = ()

    def __init__(self, path: str) -> None:
        if not path:
            raise InvalidValueError("simulator 'proxy:' names no proxy: write proxy:PATH")
        self._proxy = _read_once(Path(path))
        origin = self._proxy.origin
        self.environment = origin.environment
        self.arguments = {**origin.settings, "space": self._proxy.searched_space}
        if len(origin.workloads) == 1:
            (only,) = origin.workloads
            self.arguments["workload"] = only.spec if only.spec is not None else only.name or None

    def differences(self, problem: DesignProblem) -> list[str]:
        """The differences that make the proxy unusable for an environment."""
        proxy, own = self._proxy, problem.workload_sha256
        settings = proxy.origin.settings
        found = differences(self.kind, problem, proxy.space, settings, proxy.metrics)
        try:
            proxy.workload(problem.workload_name, own)
        except UnknownNameError:
            names = ", ".join(repr(one.name) for one in proxy.origin.workloads)
            found.append(
                f"the proxy was trained on workload {names}, "
                f"not on {problem.workload_name!r} (sha256 {own[:12]})"
            )
        return found

    def simulator(self, problem: DesignProblem) -> ProxySimulator:
        """Serves the proxy's predictions for the environment's workload."""
        return ProxySimulator(self._proxy, problem)


class ProxySimulator:
    """Serves a proxy's predictions.

    A design that is out of range of the training data (a level of a parameter that they never
    show; see :class:`archgym.proxy.ranges.Ranges`) is not covered: its status is ``illegal``, and
    the reason says which parameter. The baseline design gives the metrics that the simulator gave,
    so that ratios to it, and limits, mean the same as there.

    Args:
        proxy: the proxy.
        problem: the environment that it serves, with its design space and workload in place.
    """

    name = "proxy"

    def __init__(self, proxy: Proxy, problem: DesignProblem) -> None:
        self.proxy = proxy
        self.workload = proxy.workload(problem.workload_name, problem.workload_sha256)
        made_by = proxy.origin.simulator
        self.version = f"{made_by['name']}-{made_by['version']}/{proxy.fingerprint[:16]}"
        self.metric_names = proxy.given(self.workload)
        recorded = proxy.origin.workloads[self.workload]
        self._baseline_key = -1
        self._baseline = {n: v for n, v in recorded.baseline.items() if n in self.metric_names}
        if recorded.baseline_design and len(self._baseline) == len(self.metric_names):
            designs = proxy.space.without_fixed().designs([recorded.baseline_design])
            (self._baseline_key,) = proxy.space.keys(designs.codes)

    def simulate(self, designs: Designs) -> list[tuple[SimulationResult, float]]:
        """Predicts designs."""
        began = time.perf_counter()
        proxy, codes = self.proxy, recoded(designs, self.proxy.space)
        unknown = codes == MISSING
        codes = np.where(unknown, 0, codes)
        designs = Designs(proxy.space, codes)
        found = proxy.predict(designs, self.workload)
        columns = [found.names.index(name) for name in self.metric_names]
        results: list[SimulationResult] = [
            dict(zip(self.metric_names, row, strict=True))
            for row in found.values[:, columns].tolist()
        ]
        outside = proxy.ranges.outside(codes)
        for row, position in np.argwhere(unknown).tolist():
            outside[row] = -1
            results[row] = NotCoveredError(
                f"the proxy's training data exclude this value of {proxy.space.names[position]}"
            )
        for row in np.flatnonzero(outside >= 0).tolist():
            results[row] = NotCoveredError(
                proxy.ranges.reason(codes[row].tolist(), int(outside[row]))
            )
        if self._baseline_key >= 0:
            for row, key in enumerate(proxy.space.keys(codes)):
                if key == self._baseline_key:
                    results[row] = dict(self._baseline)
        each = (time.perf_counter() - began) / max(1, len(results))
        return [(result, each) for result in results]


def _read_once(path: Path) -> Proxy:
    """The proxy in a file, read once as long as the file stays as it is."""
    if not path.is_file():
        return load_proxy(path)  # raises, with the reason
    stat = path.stat()
    return _load(path.absolute(), stat.st_mtime_ns, stat.st_size)


@functools.lru_cache(maxsize=8)
def _load(path: Path, changed_ns: int, size: int) -> Proxy:
    return load_proxy(path)
