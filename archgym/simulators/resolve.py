"""Which simulator an environment runs: its own, a table, a proxy, or another one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from archgym.errors import InvalidValueError, UnknownNameError
from archgym.problem.design_problem import DesignProblem
from archgym.problem.fidelity import FULL, Fidelity, check_fidelities
from archgym.problem.simulator import MultiFidelitySimulator, SimulationResult, Simulator
from archgym.space import Designs

if TYPE_CHECKING:
    from archgym.environment.environment import Environment
    from archgym.simulators.tabular import Table

__all__ = ["Embedded", "checked_options", "fidelities_of", "simulator_of", "table_of"]


def table_of(simulator: object) -> Table | None:
    """The table behind ``tabular:PATH``; ``None`` for another simulator."""
    if not (isinstance(simulator, str) and simulator.startswith("tabular:")):
        return None
    from archgym.simulators.tabular import table_named  # only where it is needed

    return table_named(simulator)


def checked_options(
    environment: DesignProblem, simulator: object, options: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The options of a simulator; which of them there are, it checks itself.

    Raises:
        InvalidValueError: if they are no mapping, or for a simulator that takes none.
    """
    if options is not None and not isinstance(options, Mapping):
        raise InvalidValueError(f"simulator_options must be a mapping, not {options!r:.80}")
    if options and simulator not in environment.simulators:
        takes = " or ".join(map(repr, environment.simulators)) or "another one, which there is not"
        raise InvalidValueError(f"simulator_options are for simulator {takes}, not {simulator!r}")
    return dict(options or {})


def simulator_of(
    environment: Environment, simulator: str | Simulator, table: Table | None
) -> Simulator:
    """The simulator that an argument of that name stands for.

    Args:
        environment: which is to run it.
        simulator: see :class:`archgym.Environment`.
        table: what :func:`table_of` it gives.

    Raises:
        UnknownNameError, InvalidValueError: if there is none, or it does not fit.
    """
    if not isinstance(simulator, str):
        return simulator
    if table is not None:
        from archgym.simulators.tabular import TabularSimulator

        return TabularSimulator(table, environment, simulator)
    if simulator.startswith("proxy:"):
        from archgym.proxy.simulator import ProxySimulator, proxy_named

        return ProxySimulator(proxy_named(simulator), environment, simulator)
    if simulator == "embedded":
        return Embedded(environment)
    if simulator not in environment.simulators:
        allowed = ["embedded", *environment.simulators, "tabular:PATH", "proxy:PATH"]
        raise UnknownNameError("simulator", simulator, allowed)
    return environment.simulators[simulator](environment)


def fidelities_of(environment: Environment) -> tuple[Fidelity, ...]:
    """Those of its simulator: of another one than its own, an environment's do not hold.

    Raises:
        InvalidValueError: if what it declares is not possible.
    """
    owner = type(environment)
    declared = check_fidelities(environment.fidelities, owner.__name__)
    if len(declared) > 1 and owner.simulate_batch_at is DesignProblem.simulate_batch_at:
        raise InvalidValueError(
            f"{owner.__name__} declares fidelities and must override simulate_batch_at"
        )
    if isinstance(environment.simulator, MultiFidelitySimulator):
        return check_fidelities(environment.simulator.fidelities, environment.simulator.name)
    return (FULL,)


class Embedded:
    """The simulator that an environment brings itself."""

    name = "embedded"

    def __init__(self, environment: Environment) -> None:
        self.version = environment.version
        self.metric_names = environment.metrics_given
        self.compiles = environment.compiles
        self.fidelities = environment.fidelities
        self.simulate_at = environment.simulate_batch_at

    def simulate(self, designs: Designs) -> list[tuple[SimulationResult, float]]:
        """As :meth:`archgym.Environment.simulate_batch`."""
        return self.simulate_at(designs, 1.0)
