"""Faults at random moments of a real run: what the tests of resilience share."""

from __future__ import annotations

import contextlib
import random
import resource
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import psutil

from archgym.data import Dataset
from tests.experiment.experiments import HELPERS, archgym, assert_equal_runs, start, written

LOCAL = ("--local",)
RAY = ("--cpus", "2")


def moody(folder: Path, **changes: object) -> Path:
    """An experiment in which designs raise, give NaN and hang, and trials raise."""
    settings = {
        "budget": 60,
        "seeds": 2,
        "environments": [{"id": f"{HELPERS}:Moody", "arguments": {"hangs": True}}],
        "agents": [{"name": "random"}, {"name": f"{HELPERS}:Failing"}, {"name": "ga"}],
        # Killed again and again, a simulation of one design is tried again.
        "simulation": {"time_limit_s": 1.5, "retries": 9},
    }
    return written(folder, **{**settings, **changes})


class Chaos:
    """Breaks a run again and again, and goes on with it.

    Args:
        experiment: file of the experiment.
        out: the run's folder.
        seed: of the moments and of the choice of faults.
    """

    def __init__(self, experiment: Path, out: Path, seed: int) -> None:
        self.experiment, self.out = experiment, out
        self.random = random.Random(seed)
        self.happened: Counter[str] = Counter()
        self.finished = False

    def session(self, options: tuple[str, ...], faults: list[str]) -> None:
        """Starts or resumes the run, lets the faults happen, and sees that it ends."""
        before = self._journals()
        process = start(
            "run", self.experiment, "--out", self.out, "--resume", "--begin", "--quiet", *options
        )
        while process.poll() is None and not self._journals() - before:
            time.sleep(0.02)
        for fault in faults:
            time.sleep(self.random.uniform(0, 0.6))
            if process.poll() is not None:
                break
            with contextlib.suppress(psutil.Error, ProcessLookupError):
                if FAULTS[fault](psutil.Process(process.pid)):
                    self.happened[fault] += 1
        if faults and faults[-1] not in ENDING:
            process.send_signal(signal.SIGKILL)
        _, err = process.communicate(timeout=300)
        self.finished = process.returncode in (0, 1) and "Error" not in err
        assert "Traceback" not in err, err

    def finish(self, *options: str) -> None:
        """Lets it come to its end."""
        code, _, err = archgym(
            "run",
            self.experiment,
            "--out",
            self.out,
            "--resume",
            "--begin",
            "-q",
            *options,
            limit_s=1800,
        )
        assert code in (0, 1), err

    def check(self, folder: Path) -> int:
        """Compares with an undisturbed run; the number of rows."""
        undisturbed = folder / "undisturbed"
        code, _, err = archgym("run", self.experiment, "--local", "--out", undisturbed, "-q")
        assert code in (0, 1), err
        assert_equal_runs(undisturbed, self.out)
        rows = 0
        for path in (self.out / "datasets").iterdir():
            table = Dataset(path).evaluations(["trial_id", "step"]).to_pylist()
            rows += len(table)
            assert len({(row["trial_id"], row["step"]) for row in table}) == len(table)
        return rows

    def _journals(self) -> set[Path]:
        """A new one is there as soon as something is evaluated."""
        return set(self.out.glob("datasets/*/journal/*.jsonl"))


def _kill_driver(driver: psutil.Process) -> bool:
    driver.kill()
    return True


def _interrupt(driver: psutil.Process) -> bool:
    driver.send_signal(signal.SIGINT)
    return True


def _fill_disk(driver: psutil.Process) -> bool:
    """From now on no file of the process can grow."""
    resource.prlimit(driver.pid, resource.RLIMIT_FSIZE, (1, 1))
    return True


def _kill_child(driver: psutil.Process, words: str) -> bool:
    for child in driver.children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if words in " ".join(child.cmdline()):
                child.kill()
                return True
    return False


def _kill_worker(driver: psutil.Process) -> bool:
    return _kill_child(driver, "Trainable.")


def _kill_simulator(driver: psutil.Process) -> bool:
    return _kill_child(driver, "worker_process")


FAULTS: dict[str, Callable[[psutil.Process], bool]] = {
    "driver killed": _kill_driver,
    "Ctrl-C": _interrupt,
    "disk full": _fill_disk,
    "worker killed": _kill_worker,
    "simulator killed": _kill_simulator,
}
ENDING = ("driver killed", "Ctrl-C", "disk full")
