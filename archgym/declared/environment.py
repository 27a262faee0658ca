"""Environments that a YAML file declares around any program."""

from __future__ import annotations

import functools
import hashlib
import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, Final

from archgym.declared.load import Source, load_declaration
from archgym.declared.names import Names
from archgym.declared.plan import Plan, file_sha256
from archgym.declared.run import Runner
from archgym.declared.stage_folders import StageFolders, default_folder
from archgym.environment.environment import Environment
from archgym.errors import (
    ArchgymError,
    InvalidValueError,
    MissingDependencyError,
    SimulationError,
    UnknownNameError,
    check_choice,
)
from archgym.problem.fidelity import FULL, Fidelity, check_fidelities
from archgym.problem.metrics import Metric, metric_named
from archgym.problem.objective import Objective
from archgym.problem.simulator import SimulationResult, simulate_each
from archgym.simulators.external import private_folder, run_program
from archgym.space import Designs

__all__ = ["DeclaredEnvironment", "declared_class"]

HELD_OUT: Final = "held_out"
KEPT_IN: Final = "archgym-kept"
_VERSION_LIMIT_S: Final = 60.0
_SPREAD: Final = "_spread_share"


class DeclaredEnvironment(Environment):
    """The base of the environments that :func:`declared_class` makes; it is not made itself.

    Args:
        keep: ``never``, ``failed`` or ``always``: which folders of runs stay; as the file says if
            left out.
        stages: folder that holds those of stages with ``uses``; one of the user's by default.
        **arguments: see :class:`archgym.Environment`.
    """

    source: ClassVar[Source]
    plan: ClassVar[Plan]
    names: ClassVar[Names]
    incidental_arguments = ("keep", "stages")
    simulates_alone = True

    def __init__(
        self, *, keep: str | None = None, stages: str | Path | None = None, **arguments: Any
    ) -> None:
        declaration = self.source.declaration
        keep = declaration.keep if keep is None else keep
        check_choice("keep", keep, ("never", "failed", "always"))
        folder = default_folder() if stages is None else Path(stages)
        program = ""
        if arguments.get("simulator", "embedded") == "embedded":
            with self.source.at("version"):
                program = _program_version(tuple(declaration.version), declaration.install)
        # The class has a version too, for which the program is not asked.
        vars(self)["version"] = _version(self.plan.content_sha256, program)
        self.runner = Runner(
            self.plan,
            self.source.folder,
            program,
            functools.cache(lambda: StageFolders(folder)),
            keep,
            Path(KEPT_IN) / self.source.path.stem,
            declaration.install,
        )
        self._chosen: tuple[str, ...] = ()
        super().__init__(**arguments)

    @property
    def name(self) -> str:
        """The name of the file."""
        return self.source.path.name

    @property
    def kept(self) -> tuple[Path, ...]:
        """Folders of runs that stayed, in the order of the runs."""
        return tuple(self.runner.kept)

    @property
    def metrics_given(self) -> tuple[str, ...]:
        """All metrics but the optional ones."""
        entries = self.source.declaration.metrics
        return tuple(
            metric.name
            for metric in self.metrics
            if not entries[metric.name.removesuffix(_SPREAD)].optional
        )

    @classmethod
    def workloads(cls) -> dict[str, str]:
        """The declared ones, and those that are held out together."""
        declared = cls.source.declaration.workloads
        found = {name: entry.doc for name, entry in declared.items()}
        if any(entry.held_out for entry in declared.values()):
            found[HELD_OUT] = "all that searches leave out"
        return found

    @classmethod
    def argument_docs(cls) -> dict[str, str]:
        """What ``keep`` and ``stages`` can be."""
        return {
            "keep": f"never, failed or always: which folders of runs stay, in {KEPT_IN}",
            "stages": "folder that holds those of stages with 'uses'",
        }

    def load_workload(self, spec: Any) -> None:
        """Chooses workloads: one by its name, all that are held out, or all others.

        Raises:
            UnknownNameError: if there is none of that name.
        """
        declared = self.source.declaration.workloads
        if spec is not None and spec != HELD_OUT and spec not in declared:
            raise UnknownNameError("workload", spec, self.workloads())
        held_out = spec == HELD_OUT
        self._chosen = tuple(
            name
            for name, entry in declared.items()
            if (name == spec if spec in declared else entry.held_out == held_out)
        )
        if declared and not self._chosen:
            raise InvalidValueError(
                "no workload is held out" if held_out else "every workload is held out"
            )

    def hash_workload(self) -> str:
        """Hash of the values, weights and files of the chosen workloads."""
        if not self._chosen:
            return ""
        declared, parts = self.source.declaration.workloads, []
        for name in self._chosen:
            entry = declared[name]
            files = {}
            for key, path in entry.files.items():
                with self.source.at("workloads", name, "files", key):
                    files[key] = file_sha256(self.source.beside(path))
            parts.append([name, entry.values, files, entry.weight])
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def simulate_batch_at(
        self, designs: Designs, fidelity: float
    ) -> list[tuple[SimulationResult, float]]:
        """Runs the program for each design, one after the other."""
        one = SimpleNamespace(simulate=functools.partial(self._simulate, fidelity=fidelity))
        return simulate_each(one, designs)

    # -- one design ------------------------------------------------------------------------------

    def _simulate(self, design: Mapping[str, Any], fidelity: float) -> dict[str, float]:
        declaration = self.source.declaration
        part = next((one.values for one in declaration.fidelities if one.value == fidelity), {})
        if not self._chosen:
            return self._repeated(design, {**part, "workload": ""})
        results = []
        for name in self._chosen:
            entry = declaration.workloads[name]
            files = {key: str(self.source.folder / path) for key, path in entry.files.items()}
            try:
                others = {**part, **entry.values, **files, "workload": name}
                results.append(self._repeated(design, others))
            except (ArchgymError, TimeoutError) as error:
                if len(self._chosen) > 1:
                    error.args = (f"workload {name}: {error}",)
                raise
        weights = [declaration.workloads[name].weight for name in self._chosen]
        return {
            metric.name: self._across(metric, [one[metric.name] for one in results], weights)
            for metric in self.metrics
            if all(metric.name in one for one in results)
        }

    def _repeated(self, design: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, float]:
        """Metrics of a design on one workload: medians, where it is run several times."""
        noise = self.source.declaration.noise
        values = self.names.values(design, others)
        runs = [
            self.runner.run({**values, "repeat": number})
            for number in range(noise.repeats if noise else 1)
        ]
        if noise is None:
            return runs[0]
        found: dict[str, float] = {}
        for metric in self.metrics:
            name = metric.name.removesuffix(_SPREAD)
            numbers = [run[name] for run in runs if name in run]
            if len(numbers) < len(runs):
                continue
            median = statistics.median(numbers)
            if name == metric.name:
                found[name] = median
            else:
                found[metric.name] = statistics.stdev(numbers) / abs(median) if median else 0.0
        return found

    def _across(self, metric: Metric, numbers: Sequence[float], weights: Sequence[float]) -> float:
        if metric.name.endswith(_SPREAD):
            return max(numbers)
        how = self.source.declaration.metrics[metric.name].over_workloads
        if how == "worst":
            return max(numbers) if metric.direction == "minimize" else min(numbers)
        pairs = list(zip(numbers, weights, strict=True))
        if how == "sum":
            return math.fsum(number * weight for number, weight in pairs)
        if how == "mean":
            return math.fsum(n * w for n, w in pairs) / math.fsum(weights)
        if min(numbers) <= 0:
            raise SimulationError(f"{metric.name} has no geometric mean: {min(numbers):g} is in it")
        logs = math.fsum(math.log(number) * weight for number, weight in pairs)
        return math.exp(logs / math.fsum(weights))


def declared_class(path: str | Path) -> type[DeclaredEnvironment]:
    """The environment that a file declares; equal files give the same class.

    Raises:
        InvalidValueError, UnknownNameError: if it is not possible; the message names the line.
    """
    absolute = Path(path).absolute()
    try:
        state = absolute.stat()
    except OSError:
        load_declaration(path)  # which says what is wrong
        raise
    return _made(absolute, state.st_mtime_ns, state.st_size, state.st_ino)


@functools.lru_cache(maxsize=64)
def _made(path: Path, *state: int) -> type[DeclaredEnvironment]:
    source = load_declaration(path)
    declaration = source.declaration
    names, metrics = Names(source), _metrics(source)
    plan = Plan(source, names)
    with source.at("objective"):
        objective = _objective(source, metrics)
    fidelities = _fidelities(source)
    return type(
        path.stem,
        (DeclaredEnvironment,),
        {
            "__doc__": declaration.description or f"A program, as {path.name} declares it.",
            "__module__": __name__,
            "source": source,
            "names": names,
            "plan": plan,
            "design_space": names.space,
            "baseline": names.baseline,
            "metrics": metrics,
            "default_objective": objective,
            "fidelities": fidelities,
            "version": plan.content_sha256[:16],
        },
    )


def _metrics(source: Source) -> tuple[Metric, ...]:
    metrics = []
    for name, entry in source.declaration.metrics.items():
        with source.at("metrics", name):
            if name in source.declaration.parameters or name in source.declaration.derived:
                raise InvalidValueError("a parameter or a derived value has this name, too")
            metrics.append(Metric(name, entry.unit, entry.goal, entry.doc, entry.signed))
    noise = source.declaration.noise
    if noise is None:
        return tuple(metrics)
    wanted = noise.spread
    if wanted is None:
        objective = Objective.parse(_objective(source, metrics))
        wanted = sorted(objective.metric_names())
    for name in wanted:
        with source.at("noise", "spread"):
            metric_named(name, metrics)
        doc = f"standard deviation of {name} over its median, between runs of a design"
        metrics.append(Metric(f"{name}{_SPREAD}", "", "minimize", doc))
    return tuple(metrics)


def _objective(source: Source, metrics: Sequence[Metric]) -> str | dict[str, Any]:
    given = source.declaration.objective
    found = given if given is not None else f"{metrics[0].direction} {metrics[0].name}"
    objective = Objective.parse(found)
    objective.check(tuple(metrics))
    for name in objective.metric_names():
        entry = source.declaration.metrics.get(name)
        if entry is not None and entry.optional:
            raise InvalidValueError(f"metric {name!r} is optional, so it cannot be in an objective")
    return found


def _fidelities(source: Source) -> tuple[Fidelity, ...]:
    entries = source.declaration.fidelities
    if not entries:
        return (FULL,)
    found = []
    for number, entry in enumerate(entries):
        with source.at("fidelities", number):
            found.append(Fidelity(entry.value, entry.cost, entry.doc))
    with source.at("fidelities"):
        return check_fidelities(found, source.path.name)


@functools.cache
def _program_version(command: tuple[str, ...], install: str) -> str:
    """What the command prints, or the text of a command without a program."""
    if not command:
        return ""
    if not command[0]:
        return " ".join(command[1:])
    try:
        with private_folder() as folder:
            output = run_program(command, folder, time_limit_s=_VERSION_LIMIT_S)
    except (SimulationError, TimeoutError) as error:
        raise InvalidValueError(f"the version cannot be had: {error}") from None
    except MissingDependencyError as error:
        advice = f". {install.rstrip('. ')}." if install else ""
        raise MissingDependencyError(f"{error}{advice}") from None
    lines = (output.stdout or output.stderr).strip().splitlines()
    return "\n".join(lines)[:1000]


def _version(content_sha256: str, program: str) -> str:
    """The version that results are kept under: readable where the program says a short one."""
    lines = (line.strip() for line in program.splitlines())
    first = next((line[:60] for line in lines if any(map(str.isalnum, line))), "")
    whole = hashlib.sha256(f"{content_sha256} {program}".encode()).hexdigest()[:16]
    return f"{first} {whole}".strip()
