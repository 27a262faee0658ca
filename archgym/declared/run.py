"""Runs a design: the stages in their order, then the metrics out of what they left."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shlex
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from archgym.declared.advice import beside, memory_advice
from archgym.declared.checkpoints import Checkpoints
from archgym.declared.failures import failure_in, failure_line
from archgym.declared.files import File
from archgym.declared.kept import save_run
from archgym.declared.places.place import HOST, Call, Place
from archgym.declared.plan import Plan, Stage
from archgym.declared.readings.at_end import RunRecord, metrics_of
from archgym.declared.readings.partial import Look, PartialReader
from archgym.declared.stage_folders import StageFolders
from archgym.errors import (
    ArchgymError,
    MissingDependencyError,
    NotCoveredError,
    SimulationError,
    StoppedEarly,
)
from archgym.simulators.external import ProgramOutput, ended_badly, run_program, stopped
from archgym.simulators.leftovers import end_leftovers, new_mark, newest_pid

__all__ = ["Runner"]

_MB: Final = 1_000_000
_NO_LIMIT: Final = 1 << 62


class Runner:
    """Runs designs of one declaration.

    Args:
        plan: what is run.
        here: folder of the declaration.
        version: of the program, a part of what folders of stages are kept under.
        folders: keeps the folders of stages.
        keep: ``never``, ``failed`` or ``always``: which folders of runs stay.
        kept_in: where those that stay are put.
        install: how to get the program.
        places: where stages run, by their names; on this machine if it is not there.
        readable: files and folders besides ``here`` that commands may read in a container.

    Attributes:
        folders: gives what keeps the folders of stages.
        kept: folders of runs that stayed, in their order.
    """

    def __init__(
        self,
        plan: Plan,
        here: Path,
        version: str,
        folders: Callable[[], StageFolders],
        keep: str,
        kept_in: Path,
        install: str,
        places: Mapping[str, Place] | None = None,
        readable: Sequence[Path] = (),
    ) -> None:
        self._plan, self._here, self._version, self.folders = plan, here, version, folders
        self._keep, self._kept_in, self._install = keep, kept_in, install
        self._places, self._readable = places or {}, (here, *readable)
        self.kept: list[Path] = []

    def run(
        self,
        values: Mapping[str, Any],
        look: Look | None = None,
        checkpoints: Checkpoints | None = None,
    ) -> dict[str, float]:
        """Metrics of one run; those without a value are optional ones that were not there.

        Args:
            values: of every name that templates may have, but for the folders.
            look: called with the share of the run that is over and the metrics so far, at each
                share of ``partial``; it ends the run by an error.
            checkpoints: of the design, where a longer run goes on from what a shorter one left.

        Raises:
            SimulationError, NotCoveredError, TimeoutError: as the run ended.
            MissingDependencyError: if a program is not there.
        """
        with self._folder() as folder:
            run = RunRecord(
                folder, {**values, "here": str(self._here), "folder": {"run": str(folder)}}
            )
            try:
                self._go_on(run, checkpoints)
                _write(self._plan.files, folder, run.values)
                if look is not None and self._plan.partial is not None:
                    asked = (self._plan.partial, run, look)
                    run.looks[asked[0].stage] = lambda: PartialReader(*asked).read
                for stage in self._plan.stages:
                    self._stage(stage, run)
                    if checkpoints is not None and self._plan.checkpoint is not None:
                        name, path = self._plan.checkpoint
                        if name == stage.name:
                            checkpoints.save(path, folder)
                return metrics_of(self._plan.readings, run)
            except OSError as error:
                if isinstance(error, TimeoutError):
                    raise
                raise SimulationError(f"{error.filename or folder}: {error.strerror}") from error
            finally:
                if self._keep != "never":
                    save_run(folder, (file.path for file in self._plan.files), run.ran, run.printed)

    def _go_on(self, run: RunRecord, checkpoints: Checkpoints | None) -> None:
        """Takes over what a shorter run left, where one did."""
        run.values["resumed_from"] = 0
        if checkpoints is not None and self._plan.checkpoint is not None:
            path = self._plan.checkpoint[1]
            found = run.values["resumed_from"] = checkpoints.restore(path, run.folder)
            if found:
                run.ran.append(f"# {path}: as a run at fidelity {found:g} left it")

    @contextlib.contextmanager
    def _folder(self) -> Iterator[Path]:
        """A folder of a run, which stays or goes as the declaration says."""
        if self._keep == "always":
            self._kept_in.mkdir(parents=True, exist_ok=True)
            folder = Path(tempfile.mkdtemp(prefix=_now(), dir=self._kept_in)).absolute()
            self.kept.append(folder)
            yield folder
            return
        folder = Path(tempfile.mkdtemp(prefix="archgym-"))
        try:
            yield folder
        except (ArchgymError, TimeoutError) as error:
            if self._keep == "failed" and not isinstance(error, StoppedEarly):
                self._kept_in.mkdir(parents=True, exist_ok=True)
                name = f"{_now()}{folder.name.removeprefix('archgym-')}"
                self.kept.append(Path(shutil.move(folder, self._kept_in / name)))
            raise
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    # -- stages ----------------------------------------------------------------------------------

    def _stage(self, stage: Stage, run: RunRecord) -> None:
        values, entry = run.values, stage.entry
        if entry.uses is not None:
            seen = {name: values[name] for name in entry.uses if name in values}
            values = {**seen, "here": values["here"], "folder": values["folder"]}
        command = [part.fill(values) for part in stage.command]
        command = [
            text for text, part in zip(command, stage.command, strict=True) if text or not part.text
        ]
        env = {name: template.fill(values) for name, template in stage.env.items()}
        if not command or not command[0]:
            raise SimulationError(f"stage {stage.name}: the program's name is empty")
        if entry.uses is None:
            self._tried(stage, command, env, run.folder, run)
            return
        contents = {file.path: file.content(values) for file in stage.files}
        key = self._key(stage, command, env, contents)

        def build(folder: Path) -> ProgramOutput:
            for file in stage.files:
                _put(folder / file.path, contents[file.path], file.executable)
            return self._tried(stage, command, env, folder, run)

        before = len(run.ran)
        folder, run.printed[stage.name] = self.folders().obtain(key, build)
        if len(run.ran) == before:
            run.ran.append(f"# stage {stage.name}: run before, in {folder}\n{shlex.join(command)}")
        run.values["folder"] = {**run.values["folder"], stage.name: str(folder)}

    def _key(
        self,
        stage: Stage,
        command: list[str],
        env: Mapping[str, str],
        contents: Mapping[str, bytes],
    ) -> str:
        hashes = {path: hashlib.sha256(text).hexdigest() for path, text in contents.items()}
        inputs = [file_state(path) for path in (*self._plan.inputs, *stage.inputs)]
        codes = stage.entry.good_exit_codes
        parts = [stage.name, command, dict(env), hashes, inputs, self._version, codes]
        if identity := self._places.get(stage.name, HOST).identity:
            parts.append(identity)
        text = json.dumps(parts, sort_keys=True)
        return f"{stage.name}-{hashlib.sha256(text.encode()).hexdigest()[:32]}"

    def _tried(
        self, stage: Stage, command: list[str], env: Mapping[str, str], folder: Path, run: RunRecord
    ) -> ProgramOutput:
        """Runs a stage, again where its output says that it is worth it."""
        tries: dict[int, int] = {}
        while True:
            output = run.printed[stage.name] = self._once(stage, command, env, folder, run)
            failure = failure_in(self._plan.failures, stage.name, output)
            if failure is not None and failure.entry.means == "retry":
                number = self._plan.failures.index(failure)
                tries[number] = tries.get(number, 0) + 1
                if tries[number] <= failure.entry.times:
                    _wait(failure.entry.wait_s)
                    continue
            if failure is not None:
                what = failure.entry.text or failure.entry.regex
                again = ", also when tried again" if failure.entry.means == "retry" else ""
                kind = NotCoveredError if failure.entry.means == "illegal" else SimulationError
                line = failure_line(failure, stage.name, output)
                raise kind(f"stage {stage.name} printed {what!r}{again}: {line}")
            if output.exit_code not in stage.entry.good_exit_codes:
                name = Path(command[0]).name
                good = ", ".join(map(str, stage.entry.good_exit_codes))
                raise SimulationError(
                    f"stage {stage.name}: {ended_badly(name, output)} (good_exit_codes: {good})"
                    f"{memory_advice(stage.entry, output)}{beside(command, folder, self._here)}"
                )
            return output

    def _once(
        self, stage: Stage, command: list[str], env: Mapping[str, str], folder: Path, run: RunRecord
    ) -> ProgramOutput:
        entry, mark, began = stage.entry, new_mark(), time.monotonic()
        newest = newest_pid()
        ending = "was not started"
        place = self._places.get(stage.name, HOST)
        call = self._call(stage, command, env, folder, run, mark)
        try:
            launch = place.launch(call)
            output = run_program(
                launch.command,
                folder,
                time_limit_s=entry.time_limit_s,
                environment=launch.environment,
                output_limit_bytes=int(entry.output_limit_mb * _MB),
                file_limit_bytes=launch.file_bytes or _NO_LIMIT,
                memory_limit_bytes=launch.memory_bytes,
                name=Path(command[0]).name,
                good_exit_codes=None,
                on_killed=partial(run.printed.__setitem__, stage.name),
                on_output=look() if (look := run.looks.get(stage.name)) else None,
            )
            ending = f"exit code {output.exit_code}"
            place.check_ended(call, output)
            return output
        except MissingDependencyError as error:
            if stage.own_program:
                raise SimulationError(f"stage {stage.name}: {error}") from None
            advice = f". {self._install.rstrip('. ')}." if self._install else ""
            advice = beside(command, folder, self._here) or advice
            raise MissingDependencyError(f"stage {stage.name}: {error}{advice}") from None
        except StoppedEarly as error:
            ending = str(error)
            raise
        except (SimulationError, TimeoutError) as error:
            ending = str(error)
            raise type(error)(f"stage {stage.name}: {error}") from None
        finally:
            if not ending.startswith("exit code"):
                place.stop(call)
            end_leftovers(mark, newest)
            seconds = time.monotonic() - began
            run.ran.append(
                f"# stage {stage.name}: {ending}, {seconds:.3f} s"
                f"{'' if folder == run.folder else f', in {folder}'}"
                f"{f', {place.title}' if place.title else ''}\n"
                f"{shlex.join(command)}"
            )

    def _call(
        self,
        stage: Stage,
        command: list[str],
        env: Mapping[str, str],
        folder: Path,
        run: RunRecord,
        mark: str,
    ) -> Call:
        entry = stage.entry
        folders = {Path(path) for path in run.values["folder"].values()}
        return Call(
            command,
            folder.absolute(),
            env,
            mark,
            entry.time_limit_s,
            int(entry.file_limit_mb * _MB),
            None if entry.memory_limit_mb is None else int(entry.memory_limit_mb * _MB),
            (run.folder.absolute(),) if entry.uses is None else (),
            (*self._readable, *sorted(folders - {folder, run.folder})),
        )


def file_state(path: Path) -> list[Any]:
    """What tells a file from what it was before."""
    state = path.stat()
    return [str(path), state.st_size, state.st_mtime_ns]


def _now() -> str:
    return time.strftime("%Y%m%d-%H%M%S-")


def _wait(seconds: float) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if stopped():
            raise SimulationError("it was stopped while it waited to try again")
        time.sleep(min(left, 0.2))


def _write(files: tuple[File, ...], folder: Path, values: Mapping[str, Any]) -> None:
    for file in files:
        _put(folder / file.path, file.content(values), file.executable)


def _put(path: Path, content: bytes, executable: bool) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    if executable:
        path.chmod(0o755)
