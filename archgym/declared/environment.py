"""Environments that a YAML file declares around any program."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, Final

from archgym.declared.design_simulation import DesignSimulation
from archgym.declared.files import file_sha256
from archgym.declared.goals import fidelities_of, metrics_of, objective_of
from archgym.declared.load import Source, load_declaration
from archgym.declared.names import Names
from archgym.declared.places.engines import ENGINES, places_of
from archgym.declared.places.place import Place
from archgym.declared.places.version import program_version, version_text
from archgym.declared.plan import Plan
from archgym.declared.run import Runner
from archgym.declared.stage_folders import StageFolders, default_folder
from archgym.environment.environment import Environment
from archgym.errors import (
    InvalidValueError,
    UnknownNameError,
    check_choice,
)
from archgym.problem.simulator import SimulationResult, simulate_each
from archgym.problem.spread import SPREAD
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
    simulated_elsewhere: ClassVar[bool] = False
    """Whether the file declares no commands: a program simulates, through ``archgym serve``."""

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
        if self.simulated_elsewhere and isinstance(arguments.get("simulator", "embedded"), str):
            check_simulated(self.source, arguments.get("simulator", "embedded"))
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

    def edited_since(self, when_s: float) -> list[str]:
        """Names of the files that results depend on and whose date is later, sorted.

        Args:
            when_s: seconds since the epoch.
        """
        paths = {self.source.path, *self.plan.inputs}
        paths.update(path for stage in self.plan.stages for path in stage.inputs)
        for entry in self.source.declaration.files:
            named = (entry.template, entry.copy_, entry.edit)
            paths.update(self.source.beside(name) for name in named if name is not None)
        with contextlib.suppress(OSError):  # one that is gone now
            return sorted(path.name for path in paths if path.stat().st_mtime > when_s)
        return []

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
        simulation = DesignSimulation(
            self.source,
            self.plan,
            self.names,
            self.metrics,
            self.runner,
            self._chosen,
            (self.version, self.workload_sha256),
        )
        one = SimpleNamespace(simulate=functools.partial(simulation.simulate, fidelity=fidelity))
        return simulate_each(one, designs)


def check_simulated(source: Source, simulator: str) -> None:
    """Refuses to simulate where nothing is declared that does.

    Raises:
        InvalidValueError: unless a table or a proxy simulates.
    """
    if simulator == "embedded":
        raise InvalidValueError(
            f"{source.path.name} declares no stages, so a program simulates: archgym serve "
            f"{source.path.name} --simulator client --agent AGENT"
        )


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
    names, metrics = Names(source), metrics_of(source)
    plan = Plan(source, names)
    with source.at("objective"):
        objective = objective_of(source, metrics)
    fidelities = fidelities_of(source)
    return type(
        path.stem,
        (DeclaredEnvironment,),
        {
            "__doc__": declaration.description or f"A program, as {path.name} declares it.",
            "__module__": __name__,
            "source": source,
            "names": names,
            "plan": plan,
            "simulated_elsewhere": not declaration.stages,
            "design_space": names.space,
            "baseline": names.baseline,
            "metrics": metrics,
            "default_objective": objective,
            "fidelities": fidelities,
            "repeats": declaration.noise.repeats if declaration.noise else 1,
            "version": plan.content_sha256[:16],
        },
    )


def _files_elsewhere(source: Source) -> list[Path]:
    """Files that commands read and that are not below the folder of the declaration."""
    declared = source.declaration
    named = [*declared.inputs]
    named += [path for one in declared.workloads.values() for path in one.files.values()]
    paths = {Path(os.path.normpath(source.folder / name)) for name in named}
    return sorted(path for path in paths if not path.is_relative_to(source.folder))
