"""Runs experiments for an assistant, each in a process, within budget and time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from archgym.assistant.evaluations import budget_state
from archgym.assistant.models import RunState
from archgym.assistant.workplace import EXPERIMENTS, Workplace
from archgym.environment.recorded import refuse_paths
from archgym.errors import ArchgymError, InvalidValueError, check_choice
from archgym.experiment import expand, read_experiment
from archgym.experiment.results.status import read_status
from archgym.experiment.spec.checks import check_experiment
from archgym.experiment.spec.hyperparameters import number_of_sets
from archgym.registry import agent_names
from archgym.simulators.launch import with_limits
from archgym.simulators.watching import watched

__all__ = ["Running", "run_state"]

MAX_TRIALS: Final = 200
_EVERY_S: Final = 0.5
_GRACE_S: Final = 15.0
_FILE_BYTES: Final = 1 << 34
_SHOWN: Final = 600


class Running:
    """An experiment that is to run.

    Args:
        workplace: where it runs, and within which limits.
        name: of its folder; one that is there goes on, if it is the same experiment.
        entry: the environment, as in an experiment file.
        agents: names of agents, or mappings with ``name`` and ``hyperparameters``.
        budget: distinct legal designs that each trial simulates.
        seeds: number of seeds.

    Raises:
        ArchgymError: for what is not possible.
    """

    def __init__(
        self,
        workplace: Workplace,
        name: str,
        entry: Mapping[str, Any],
        agents: Sequence[str | Mapping[str, Any]],
        budget: int,
        seeds: int,
    ) -> None:
        self._workplace, self.name = workplace, name
        self.folder = workplace.run_folder(name)
        listed = [{"name": one} if isinstance(one, str) else dict(one) for one in agents]
        for number, one in enumerate(listed):
            if "name" not in one:
                raise InvalidValueError(
                    f"agents[{number}] cannot be {one!r:.200}: allowed is a name of list_agents, "
                    "or {'name': NAME, 'hyperparameters': {...}}"
                )
            check_choice("agent", one["name"], agent_names())
            refuse_paths({"hyperparameters": one.get("hyperparameters", {})}, "name no files")
        data = {
            "name": name,
            "budget": budget,
            "seeds": seeds,
            "environments": [dict(entry)],
            "agents": listed,
            "library": "",
        }
        experiment = read_experiment(data)
        number = sum(map(number_of_sets, experiment.agents)) * experiment.number_of_seeds
        if number > MAX_TRIALS:  # before they are made
            raise InvalidValueError(f"these are {number:,} trials: at most {MAX_TRIALS} are run")
        trials = expand(experiment)
        check_experiment(experiment, trials)
        self.total = len(trials) * budget
        self._text = json.dumps(data)

    def run(self, report: Callable[[float, float], None], stopped: Callable[[], bool]) -> RunState:
        """Runs it to its end, the end of its time, or until it is stopped.

        Args:
            report: called with designs simulated and the number of them in all.
            stopped: whether it is to end now.

        Raises:
            BudgetExhausted: if the folder's budget has no room for it.
            ArchgymError: if it cannot run.
        """
        with self._workplace.running(self.name):
            before = self._workplace.simulated(self.folder) if self.folder.exists() else 0
            with self._workplace.reserved(max(0, self.total - before)) as used:
                try:
                    message = self._process(report, stopped)
                finally:
                    used[0] = self._workplace.simulated(self.folder) - before
        return run_state(self._workplace, self.name, self.folder, message)

    def _process(self, report: Callable[[float, float], None], stopped: Callable[[], bool]) -> str:
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        self._workplace.check()
        file = self._workplace.folder / EXPERIMENTS / f"{self.name}.yaml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(self._text, "utf-8")
        command = [sys.executable, "-P", "-m", "archgym", "run", str(file), "--local", "--quiet"]
        limited = with_limits(
            [*command, "--resume", "--begin", "--out", str(self.folder)], file_bytes=_FILE_BYTES
        )
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        log = file.with_suffix(".log")
        with log.open("wb") as output:
            process = subprocess.Popen(
                limited,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONPATH": path},
                start_new_session=True,
            )
            with watched(process.pid):
                try:
                    ended = self._wait(process, report, stopped)
                finally:
                    _end(process)
        if ended:
            return ended
        if process.returncode not in (0, 1):
            said = log.read_text("utf-8", errors="replace").strip()[-_SHOWN:]
            raise ArchgymError(f"the experiment could not run: {said}")
        return "" if process.returncode == 0 else "some trials failed: see run_status"

    def _wait(
        self,
        process: subprocess.Popen[bytes],
        report: Callable[[float, float], None],
        stopped: Callable[[], bool],
    ) -> str:
        """Waits for the end; gives why it did not come by itself, empty if it did."""
        minutes = self._workplace.limits.run_minutes
        until = time.monotonic() + 60 * minutes
        while True:
            try:
                process.wait(_EVERY_S)
            except subprocess.TimeoutExpired:
                if stopped():
                    return "stopped; call run_experiment again with the same arguments to go on"
                if time.monotonic() > until:
                    return (
                        f"ended after {minutes:g} minutes, the limit of this server; call "
                        "run_experiment again with the same arguments to go on"
                    )
                report(self._simulations(), self.total)
            else:
                return ""

    def _simulations(self) -> float:
        try:
            return read_status(self.folder).simulations
        except (ArchgymError, OSError):  # not begun
            return 0.0


def run_state(workplace: Workplace, name: str, folder: Path, message: str = "") -> RunState:
    """How a run is doing.

    Raises:
        ArchgymError: if the folder holds no run, and no message says why.
    """
    try:
        status = read_status(folder)
    except ArchgymError:
        if not message:
            raise
        return RunState(
            name=name,
            state="not begun",
            trials={},
            simulations=0,
            best=[],
            message=message,
            budget=budget_state(workplace),
        )
    best = []
    for one in status.best:
        infeasible = "" if one.feasible else " (not feasible)"
        best.append(f"{one.setting}: {', '.join(one.values)}{infeasible}, by {one.agent}")
    return RunState(
        name=name,
        state=status.state,
        trials=dict(status.trials),
        simulations=status.simulations,
        best=best,
        message=message,
        budget=budget_state(workplace),
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends a process that has not ended, at first kindly."""
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
