"""The baseline design is simulated once: where a trial evaluates it, its metrics are known.

Rewards are relative to the baseline, so it is simulated before any trial begins, and it is the
first design of each. With a simulator of an hour, eight trials of a setting would simulate it for
eight hours more.
"""

from __future__ import annotations

from collections.abc import Sequence

from archgym.environment.environment import Environment
from archgym.problem.simulator import Simulator
from archgym.simulators.executor import Executor
from archgym.simulators.queued import TimedResult, designs_at_a_time, simulate_at
from archgym.simulators.recall import RecallingExecutor
from archgym.space import Designs

__all__ = ["BaselineExecutor", "BaselineSimulator"]


class _KnownBaseline:
    """The result of an environment's baseline design, as soon as it is known."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._names = environment.simulator.metric_names
        space, design = environment.design_space, environment.baseline_design
        self.codes = [int(code) for code in space.codes(design)]

    def result(self) -> TimedResult | None:
        """Its metrics, and no time; ``None`` if they are not known, or not all of them."""
        if not self._environment.baseline_is_known:
            return None
        names = [metric.name for metric in self._environment.metrics]
        values = zip(names, self._environment.baseline_metrics.tolist(), strict=True)
        metrics = {name: value for name, value in values if name in self._names}
        return None if any(value != value for value in metrics.values()) else (metrics, 0.0)


class BaselineExecutor(RecallingExecutor):
    """An executor that does not simulate the baseline design again.

    Args:
        inner: simulates the other designs.
        environment: whose baseline it is.
    """

    def __init__(self, inner: Executor, environment: Environment) -> None:
        super().__init__(inner)
        self._baseline = _KnownBaseline(environment)

    def recall(self, ticket: int, codes: Sequence[int], fidelity: float) -> TimedResult | None:
        """The result of the baseline design, fully simulated."""
        same = fidelity == 1 and [int(code) for code in codes] == self._baseline.codes
        return self._baseline.result() if same else None

    def forget(self, ticket: int) -> None:
        """Nothing is kept of a ticket."""

    def forget_all(self) -> None:
        """Nothing is kept of tickets."""


class BaselineSimulator:
    """A simulator of single designs in this process that does not simulate the baseline again.

    Args:
        inner: simulates the other designs.
        environment: whose baseline it is.
    """

    def __init__(self, inner: Simulator, environment: Environment) -> None:
        self._inner, self._baseline = inner, _KnownBaseline(environment)
        self.name, self.version = inner.name, inner.version
        self.metric_names = inner.metric_names
        if hasattr(inner, "fidelities"):
            self.fidelities = inner.fidelities
        self.alone = designs_at_a_time(inner)
        self.compiles = bool(getattr(inner, "compiles", False))

    def simulate(self, designs: Designs) -> Sequence[TimedResult]:
        """Simulates designs; see :class:`~archgym.problem.simulator.Simulator`."""
        return self.simulate_at(designs, 1.0)

    def simulate_at(self, designs: Designs, fidelity: float) -> Sequence[TimedResult]:
        """As :meth:`simulate`, at a fidelity."""
        same = (designs.codes == self._baseline.codes).all(axis=1)
        known = self._baseline.result() if fidelity == 1 and same.any() else None
        if known is None:
            return simulate_at(self._inner, designs, fidelity)
        others = iter(simulate_at(self._inner, designs[~same], fidelity) if not same.all() else ())
        return [known if is_known else next(others) for is_known in same.tolist()]
