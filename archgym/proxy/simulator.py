"""``simulator="proxy:PATH"``: a proxy in place of a simulator."""

from __future__ import annotations

import functools
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from archgym.errors import InvalidValueError, NotCoveredError
from archgym.problem.simulator import SimulationResult
from archgym.proxy.files import load_proxy
from archgym.proxy.proxy import Proxy
from archgym.simulators.compatibility import differences
from archgym.space import Designs

if TYPE_CHECKING:
    from archgym.environment.environment import Environment

__all__ = ["PREFIX", "ProxySimulator", "proxy_named"]

PREFIX = "proxy:"


class ProxySimulator:
    """Serves a proxy's predictions.

    A design that is out of range of the training data (a level of a parameter that they never
    show; see :class:`archgym.proxy.ranges.Ranges`) is not covered: its status is ``illegal``, and
    the reason says which parameter. The baseline design gives the metrics that the simulator gave,
    so that ratios to it, and limits, mean the same as there.

    Args:
        proxy: the proxy.
        environment: whose designs it is asked for, with design space, workload and settings in
            place.
        label: what the user called the proxy.

    Raises:
        InvalidValueError: if the proxy is of another design space, workload, other metrics or
            other settings; the message says what differs.
    """

    name = "proxy"

    def __init__(self, proxy: Proxy, environment: Environment, label: str) -> None:
        differences = _differences(proxy, environment)
        if differences:
            what = f"simulator {label!r}, a proxy of {proxy.origin.environment}, does not fit"
            raise InvalidValueError(f"{what}: {'; '.join(differences)}")
        self.proxy = proxy
        self.workload = proxy.workload(environment.workload_name, environment.workload_sha256)
        made_by = proxy.origin.simulator
        self.version = f"{made_by['name']}-{made_by['version']}/{proxy.fingerprint[:16]}"
        self.metric_names = proxy.given(self.workload)
        recorded = proxy.origin.workloads[self.workload]
        self._baseline_key = -1
        self._baseline = {n: v for n, v in recorded.baseline.items() if n in self.metric_names}
        if recorded.baseline_design and len(self._baseline) == len(self.metric_names):
            designs = environment.design_space.designs([recorded.baseline_design])
            (self._baseline_key,) = proxy.space.keys(designs.codes)

    def simulate(self, designs: Designs) -> list[tuple[SimulationResult, float]]:
        """Predicts designs."""
        began = time.perf_counter()
        proxy, codes = self.proxy, designs.codes
        found = proxy.predict(designs, self.workload)
        columns = [found.names.index(name) for name in self.metric_names]
        results: list[SimulationResult] = [
            dict(zip(self.metric_names, row, strict=True))
            for row in found.values[:, columns].tolist()
        ]
        outside = proxy.ranges.outside(codes)
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


def proxy_named(simulator: str) -> Proxy:
    """The proxy that ``proxy:PATH`` names; read once as long as the file stays as it is.

    Raises:
        InvalidValueError: if no path is named.
        DatasetError: if there is no such proxy, or it cannot be read.
    """
    text = simulator.removeprefix(PREFIX)
    if not text:
        raise InvalidValueError(f"simulator {simulator!r} names no proxy: write proxy:PATH")
    path = Path(text)
    if not path.is_file():
        return load_proxy(path)  # which says what is wrong
    stat = path.stat()
    return _load(path.absolute(), stat.st_mtime_ns, stat.st_size)


@functools.lru_cache(maxsize=8)
def _load(path: Path, changed_ns: int, size: int) -> Proxy:
    return load_proxy(path)


def _differences(proxy: Proxy, environment: Environment) -> list[str]:
    """What keeps a proxy from serving an environment, each in a few words."""
    origin = proxy.origin
    found = differences(
        "proxy", environment, space=proxy.space, settings=origin.settings, metrics=proxy.metrics
    )
    hashes = [(one.sha256, one.name) for one in origin.workloads]
    own = environment.workload_sha256
    if not any(
        (own == sha) if own and sha else (environment.workload_name == n) for sha, n in hashes
    ):
        known = ", ".join(repr(name) for _, name in hashes)
        found.append(
            f"the proxy was trained on workload {known}, not on {environment.workload_name!r} "
            f"(sha256 {own[:12]})"
        )
    return found
