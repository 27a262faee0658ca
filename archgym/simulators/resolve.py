"""Which simulator an environment runs: its own, another one by name, or a file in its place.

A file that takes the simulator's place is written ``SCHEME:PATH``: a table of simulated designs
(``tabular:PATH``) or a trained proxy (``proxy:PATH``). :data:`SCHEMES` names the class that opens
the files of each scheme; it is imported when such a file is named.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint
from typing import Any, Final, Protocol

from archgym.errors import InvalidValueError, UnknownNameError
from archgym.problem.design_problem import DesignProblem
from archgym.problem.fidelity import FULL, Fidelity, check_fidelities
from archgym.problem.simulator import MultiFidelitySimulator, SimulationResult, Simulator
from archgym.space import Designs, DesignSpace

SCHEMES: Final = {
    "proxy": "archgym.proxy.simulator:ProxyFile",
    "tabular": "archgym.simulators.tabular.simulator:TableFile",
}
"""The class that opens the files of each scheme, from their path, as ``module:Class``."""

_MEMBERS: Final = ("name", "metric_names", "simulate")
"""What every simulator has; its version is asked for when results are recorded."""


class SimulatorFile(Protocol):
    """A file that takes the simulator's place.

    Attributes:
        kind: what messages call it, such as ``table``.
        environment: name of the environment whose simulator it replaces.
        arguments: constructor arguments of that environment under which its data were recorded.
        space: design space that is searched where the user names none.
        workload: workload that is taken where the user names none, and the hash of its content;
            ``None`` for the environment's default.
        workload_names: short names of that workload, such as that of the program of which it is
            a part: who gives one of them means it.
    """

    kind: str
    environment: str
    arguments: Mapping[str, Any]
    space: str | DesignSpace
    workload: tuple[Any, str] | None
    workload_names: tuple[str, ...]

    def differences(self, problem: DesignProblem) -> list[str]:
        """The differences that make the file unusable for an environment, each in a few words.

        Args:
            problem: the environment, with its design space, workload and settings in place.
        """
        ...

    def simulator(self, problem: DesignProblem) -> Simulator:
        """The simulator that serves the file, for an environment without :meth:`differences`."""
        ...


def simulator_file(simulator: object) -> SimulatorFile | None:
    """The file that ``SCHEME:PATH`` names; ``None`` for another simulator.

    Raises:
        UnknownNameError, InvalidValueError, DatasetError: if it is not there or cannot be read.
    """
    if not isinstance(simulator, str):
        return None
    scheme, colon, path = simulator.partition(":")
    if not colon or scheme not in SCHEMES:
        return None
    opened: SimulatorFile = EntryPoint(scheme, SCHEMES[scheme], "archgym.simulators").load()(path)
    return opened


def meant_workload(workload: Any, simulator: object) -> Any:
    """The workload that a user means, for environments whose space follows from it.

    Args:
        workload: as given; ``None`` if none was.
        simulator: as given: where it is a file, the workload may be that of the file.

    Returns:
        ``None`` for the environment's default.
    """
    if workload is not None or (file := simulator_file(simulator)) is None:
        return workload
    return None if file.workload is None else file.workload[0]


def checked_options(
    problem: DesignProblem, simulator: object, options: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The options of a simulator; which of them there are, the simulator checks.

    Raises:
        InvalidValueError: if they are no mapping, or for a simulator that takes none.
    """
    if options is not None and not isinstance(options, Mapping):
        raise InvalidValueError(f"simulator_options must be a mapping, not {options!r:.80}")
    if options and simulator not in problem.simulators:
        takes = " or ".join(map(repr, problem.simulators)) or "another one, which there is not"
        raise InvalidValueError(f"simulator_options are for simulator {takes}, not {simulator!r}")
    return dict(options or {})


def simulator_of(
    problem: DesignProblem, simulator: str | Simulator, file: SimulatorFile | None
) -> Simulator:
    """The simulator that the environment's argument ``simulator`` names.

    Args:
        problem: the environment that is to run it.
        simulator: see :class:`archgym.Environment`.
        file: the :func:`simulator_file` that it names.

    Raises:
        UnknownNameError: if there is no such simulator.
        InvalidValueError: if the file does not fit the environment (the message says what
            differs), or it is neither a text nor a simulator.
    """
    if not isinstance(simulator, str):
        lacking = [name for name in _MEMBERS if not hasattr(simulator, name)]
        if isinstance(simulator, type) or lacking:
            has_not = f", which has no {lacking[0]}" if 0 < len(lacking) < len(_MEMBERS) else ""
            raise InvalidValueError(
                "simulator must be a name, SCHEME:PATH or an object that is a Simulator, not "
                f"{simulator!r:.80}{has_not}"
            )
        given = simulator.metric_names
        if not isinstance(given, tuple | list) or not all(isinstance(n, str) for n in given):
            raise InvalidValueError(
                f"metric_names of simulator {simulator.name!r} must be a tuple of names of "
                f"metrics, not {given!r:.80}"
            )
        return simulator
    if file is not None:
        if differences := file.differences(problem):
            raise InvalidValueError(
                f"simulator {simulator!r}, a {file.kind} of {file.environment}, does not fit: "
                f"{'; '.join(differences)}"
            )
        return file.simulator(problem)
    if simulator == "embedded":
        return Embedded(problem)
    if simulator.partition(":")[0] == "client":
        raise InvalidValueError(
            f"simulator {simulator!r} is a program that simulates while archgym serve runs: "
            f"archgym serve ENV --simulator {simulator} --agent AGENT"
        )
    if simulator not in problem.simulators:
        files = [f"{scheme}:PATH" for scheme in SCHEMES]
        raise UnknownNameError("simulator", simulator, ["embedded", *problem.simulators, *files])
    return problem.simulators[simulator](problem)


def fidelities_of(problem: DesignProblem, simulator: Simulator) -> tuple[Fidelity, ...]:
    """The simulator's fidelities; those that an environment declares are its own simulator's.

    Raises:
        InvalidValueError: if what the environment declares is not possible.
    """
    owner = type(problem)
    declared = check_fidelities(problem.fidelities, owner.__name__)
    if len(declared) > 1 and owner.simulate_batch_at is DesignProblem.simulate_batch_at:
        raise InvalidValueError(
            f"{owner.__name__} declares fidelities and must override simulate_batch_at"
        )
    if isinstance(simulator, MultiFidelitySimulator):
        return check_fidelities(simulator.fidelities, simulator.name)
    return (FULL,)


class Embedded:
    """The simulator that an environment brings itself."""

    name = "embedded"

    def __init__(self, problem: DesignProblem) -> None:
        if not isinstance(problem.version, str):
            raise InvalidValueError(
                f"version of {type(problem).__name__} is recorded with its results and must be a "
                f"text, such as version = '1', not {problem.version!r:.80}"
            )
        self.version = problem.version
        self.metric_names = problem.metrics_given
        self.compiles = problem.compiles
        self.fidelities = problem.fidelities
        self.simulate_at = problem.simulate_batch_at
        cls = type(problem)
        batches = (cls.simulate_batch, cls.simulate_batch_at)
        base = (DesignProblem.simulate_batch, DesignProblem.simulate_batch_at)
        self.alone = int(batches == base or problem.simulates_alone)
        """How many designs it simulates at a time, each alone; 0 for whole batches."""

    def simulate(self, designs: Designs) -> list[tuple[SimulationResult, float]]:
        """As :meth:`archgym.Environment.simulate_batch`."""
        return self.simulate_at(designs, 1.0)
