"""Environments that a YAML file declares around any program."""

from __future__ import annotations

import functools
import hashlib
import math
import os
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, Final

from archgym.declared.checkpoints import Checkpoints
from archgym.declared.files import file_sha256
from archgym.declared.load import Source, load_declaration
from archgym.declared.names import Names
from archgym.declared.partial import Look
from archgym.declared.places.engines import ENGINES, places_of
from archgym.declared.places.place import Place
from archgym.declared.places.version import program_version, version_text
from archgym.declared.plan import Plan
from archgym.declared.run import Runner
from archgym.declared.stage_folders import StageFolders, default_folder
from archgym.environment.environment import Environment
from archgym.errors import (
    ArchgymError,
    InvalidValueError,
    SimulationError,
    StoppedEarly,
    UnknownNameError,
    check_choice,
)
from archgym.problem.fidelity import FULL, Fidelity, check_fidelities
from archgym.problem.metrics import Metric, metric_named
from archgym.problem.objective import Objective
from archgym.problem.simulator import SimulationResult, simulate_each
from archgym.problem.spread import SPREAD
from archgym.simulators.early_stopping import current_watch
from archgym.space import Designs

__all__ = ["DeclaredEnvironment", "declared_class"]

HELD_OUT: Final = "held_out"
KEPT_IN: Final = "archgym-kept"


class DeclaredEnvironment(Environment):
    """The base of the environments that :func:`declared_class` makes; it is not made itself.

    Args:
        keep: ``never``, ``failed`` or ``always``: which folders of runs stay; as the file says if
            left out.
        stages: folder that holds those of stages with ``uses``; one of the user's by default.
        where: ``host`` for this machine, ``docker``, ``podman`` or ``apptainer`` for the container
            of the file, or a mapping in the place of the file's ``where``; as the file says if
            left out.
        **arguments: see :class:`archgym.Environment`.
    """

    source: ClassVar[Source]
    plan: ClassVar[Plan]
    names: ClassVar[Names]
    incidental_arguments = ("keep", "stages", "where")
    simulates_alone = True

    def __init__(
        self,
        *,
        keep: str | None = None,
        stages: str | Path | None = None,
        where: str | Mapping[str, Any] | None = None,
        **arguments: Any,
    ) -> None:
        declaration = self.source.declaration
        keep = declaration.keep if keep is None else keep
        check_choice("keep", keep, ("never", "failed", "always"))
        folder = default_folder() if stages is None else Path(stages)
        program, places = "", dict[str, Place]()
        if arguments.get("simulator", "embedded") == "embedded":
            own = {name: stage.where for name, stage in declaration.stages.items()}
            folder_of_file, at = self.source.folder, self.source.at
            places = places_of(declaration.where, own, folder_of_file, where, at)
            with self.source.at("version"):
                command = tuple(declaration.version)
                program = program_version(command, declaration.install, places.pop(""))
        # The class has a version too, for which the program is not asked.
        images = [place.identity for place in places.values()]
        vars(self)["version"] = version_text(self.plan.content_sha256, images, program)
        self.runner = Runner(
            self.plan,
            self.source.folder,
            program,
            functools.cache(lambda: StageFolders(folder)),
            keep,
            Path(KEPT_IN) / self.source.path.stem,
            declaration.install,
            places,
            _files_elsewhere(self.source),
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
            if not entries[metric.name.removesuffix(SPREAD)].optional
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
        """What ``keep``, ``stages`` and ``where`` can be."""
        return {
            "keep": f"never, failed or always: which folders of runs stay, in {KEPT_IN}",
            "stages": "folder that holds those of stages with 'uses'",
            "where": f"host, {', '.join(ENGINES)}, or a mapping with container: where commands run",
        }

    def held_out_workload(self) -> str | None:
        """All that are held out together, unless one of them was chosen."""
        declared = self.source.declaration.workloads
        chosen = any(declared[name].held_out for name in self._chosen)
        held_out = any(entry.held_out for entry in declared.values())
        return HELD_OUT if held_out and not chosen else None

    @property
    def metrics_so_far(self) -> tuple[str, ...]:
        """Metrics that can be known before all runs of a design have ended."""
        declaration, partial = self.source.declaration, self.plan.partial
        if declaration.noise is not None or len(self._chosen) > 1:
            return self.metrics_given
        return () if partial is None else tuple(one.name for one in partial.readings)

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
        declaration, watch = self.source.declaration, current_watch()
        part = next((one.values for one in declaration.fidelities if one.value == fidelity), {})
        if not self._chosen:
            look = watch.look if watch else None
            return self._repeated(design, {**part, "workload": ""}, look, fidelity)
        results: list[dict[str, float]] = []

        def look_at(share: float, metrics: Mapping[str, float]) -> None:
            assert watch is not None
            so_far = self._over_workloads([*results, metrics])
            watch.look((len(results) + share) / len(self._chosen), so_far)

        for name in self._chosen:
            entry = declaration.workloads[name]
            files = {key: str(self.source.folder / path) for key, path in entry.files.items()}
            others = {**part, **entry.values, **files, "workload": name}
            try:
                seen = look_at if watch else None
                results.append(self._repeated(design, others, seen, fidelity))
            except StoppedEarly:
                raise
            except (ArchgymError, TimeoutError) as error:
                if len(self._chosen) > 1:
                    error.args = (f"workload {name}: {error}",)
                raise
            if watch is not None and len(results) < len(self._chosen):
                watch.look(len(results) / len(self._chosen), self._over_workloads(results))
        return self._over_workloads(results)

    def _repeated(
        self,
        design: Mapping[str, Any],
        others: Mapping[str, Any],
        look: Look | None,
        fidelity: float,
    ) -> dict[str, float]:
        """Metrics of a design on one workload: medians, where it is run several times."""
        noise = self.source.declaration.noise
        values = self.names.values(design, others)
        if noise is None:
            kept = self._checkpoints(design, others["workload"], 0, fidelity)
            return self.runner.run({**values, "repeat": 0}, look, kept)
        runs: list[Mapping[str, float]] = []

        def look_at(share: float, metrics: Mapping[str, float]) -> None:
            assert look is not None
            look((len(runs) + share) / noise.repeats, self._medians([*runs, metrics]))

        for number in range(noise.repeats):
            kept = self._checkpoints(design, others["workload"], number, fidelity)
            own = {**values, "repeat": number}
            run = self.runner.run(own, None if look is None else look_at, kept)
            runs.append(run)
            if look is not None and len(runs) < noise.repeats:
                look(len(runs) / noise.repeats, self._medians(runs))
        return self._medians(runs)

    def _checkpoints(
        self, design: Mapping[str, Any], workload: str, repeat: int, fidelity: float
    ) -> Checkpoints | None:
        """What shorter runs of a design left, where the declaration has a checkpoint."""
        if self.plan.checkpoint is None:
            return None
        values = [one.value for one in self.source.declaration.fidelities]
        parts = [self.version, sorted(design.items()), workload, self.workload_sha256, repeat]
        return Checkpoints(self.runner.folders(), parts, values, fidelity)

    def _medians(self, runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
        """Metrics of several runs; those that a run lacks are left out."""
        found: dict[str, float] = {}
        for metric in self.metrics:
            name = metric.name.removesuffix(SPREAD)
            numbers = [run[name] for run in runs if name in run]
            if len(numbers) < len(runs):
                continue
            median = statistics.median(numbers)
            if name == metric.name:
                found[name] = median
            elif len(numbers) > 1:
                found[metric.name] = statistics.stdev(numbers) / abs(median) if median else 0.0
        return found

    def _over_workloads(self, results: Sequence[Mapping[str, float]]) -> dict[str, float]:
        """Metrics over the first workloads, all of them at the end."""
        names = self._chosen[: len(results)]
        weights = [self.source.declaration.workloads[name].weight for name in names]
        return {
            metric.name: self._across(metric, [one[metric.name] for one in results], weights)
            for metric in self.metrics
            if all(metric.name in one for one in results)
        }

    def _across(self, metric: Metric, numbers: Sequence[float], weights: Sequence[float]) -> float:
        if metric.name.endswith(SPREAD):
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
            "repeats": declaration.noise.repeats if declaration.noise else 1,
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
        metrics.append(Metric(f"{name}{SPREAD}", "", "minimize", doc))
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
    with source.at("fidelities"):
        found = [Fidelity(entry.value, entry.cost, entry.doc) for entry in entries]
        return check_fidelities(found, source.path.name)


def _files_elsewhere(source: Source) -> list[Path]:
    """Files that commands read and that are not below the folder of the declaration."""
    declared = source.declaration
    named = [*declared.inputs]
    named += [path for one in declared.workloads.values() for path in one.files.values()]
    paths = {Path(os.path.normpath(source.folder / name)) for name in named}
    return sorted(path for path in paths if not path.is_relative_to(source.folder))
