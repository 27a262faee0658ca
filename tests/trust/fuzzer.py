"""Commands with arguments that cannot be right, from a seed: what a fuzzer would type.

``python -m tests.trust.fuzzer CASES SEED`` runs them one after the other and prints each that did
not end as it should: with exit code 0, 1 or 2, an error in at most five lines, no traceback, and
nothing left half-written; then which commands took longest.
"""

from __future__ import annotations

import collections
import contextlib
import io
import itertools
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import typer.main

from archgym.cli import app, main
from tests.trust.received import received_run

LIMIT_S = 120
TEXTS = (
    *(
        "",
        " ",
        "x",
        "-",
        "--",
        "..",
        ".",
        "/",
        "~",
        "*",
        "a=b",
        "=",
        "key=",
        "=value",
        "1",
        "0",
        "-1",
    ),
    *(
        "1e308",
        "inf",
        "-inf",
        "nan",
        ".nan",
        "1e-320",
        "0x10",
        "9" * 30,
        "true",
        "null",
        "[]",
        "{}",
    ),
    *("[1, 2", "{a: ", "&a [*a]", "!!python/none", "é", "\u202e", "\x1b[2J", "\udcff", "x" * 300),
    *("/proc/x", "/dev/null", "/dev/zero", "/etc/passwd", "/etc", "nowhere/at/all", "a\nb", "%s"),
    *("Conformance-v0", "DRAM-v0", "random", "ga", "module:Class", "os:system", "no.such:Thing"),
    *("proxy:x", "tabular:x", "tabular:/etc/passwd", "proxy:.", "embedded", "minimize x", "ways=2"),
    *("ways >= 4", "status == ok", "ways ==", "(((", "and", "step < 1e999", "9" * 5000),
    *("minimize access_ns", "{minimize: access_ns, limits: [area_mm2 <= 3]}", "finite"),
)
"""Values that somebody may type."""
EXPERIMENT = """
name: x
budget: 3
environments: [{id: Conformance-v0}]
agents: [{name: random}]
"""
SMALL = ("0", "1", "2", "3", "-1", "1.5", "x", "", "1e9", "9" * 30)
COSTLY = {
    "--budget",
    "--rows",
    "--designs",
    "--workers",
    "--replay",
    "--speed",
    "--verify",
    "--cpus",
}
"""Options whose large values ask for hours of work, rightly."""


class Case(NamedTuple):
    """A command line, how it ended, and when; ``wrong`` is empty if it ended as it should."""

    words: list[str]
    code: int
    out: str
    err: str
    wrong: str
    seconds: float


class Fuzzer:
    """Makes command lines and runs them in this process.

    Args:
        seed: decides which.
        place: an empty folder, where the commands run.
    """

    def __init__(self, seed: int, place: Path) -> None:
        self.random = random.Random(seed)
        self._place = place
        self._run = received_run(place / "kept" / "run")
        self._commands = list(_commands(typer.main.get_command(app)))

    def cases(self, number: int) -> Iterator[Case]:
        """Runs commands, each in a fresh copy of a folder with a run in it."""
        before = Path.cwd()
        for count in range(number):
            folder = self._place / str(count)
            shutil.copytree(self._run, folder / "run")
            (folder / "file.yaml").write_text(EXPERIMENT)
            os.chdir(folder)
            try:
                yield self._case(folder)
            finally:
                os.chdir(before)
                shutil.rmtree(folder, ignore_errors=True)

    def _case(self, folder: Path) -> Case:
        names, command = self.random.choice(self._commands)
        words = [*names, *self._arguments(command), *_CHEAPLY.get(names, ())]
        began = time.perf_counter()
        code, out, err = called([word for word in words if word not in _DEAR])
        seconds = time.perf_counter() - began
        wrong = ""
        if code not in (0, 1, 2) or "Traceback" in err:
            wrong = "it did not end as it should"
        elif code == 2 and not err.strip():
            wrong = "it does not say what is wrong"
        elif code == 2 and "Usage:" not in err and len(err.strip().splitlines()) > 5:
            wrong = "it says what is wrong in too many lines"
        else:
            left = [p for p in folder.rglob(".*") if "unfinished" in p.name or ".tmp" in p.name]
            left += list(folder.rglob("*.tmp"))
            wrong = f"left behind: {left}" if left else ""
        return Case(words, code, out, err, wrong, seconds)

    def _arguments(self, command: Any) -> list[str]:
        words: list[str] = []
        for parameter in command.params:
            if parameter.param_type_name == "argument":
                if parameter.required or self.random.random() < 0.5:
                    count = self.random.choice([1, 1, 2, 3]) if parameter.nargs == -1 else 1
                    words += [self._value(parameter) for _ in range(count)]
            elif parameter.name not in ("help", "version"):
                if not (parameter.required or self.random.random() < 0.25):
                    continue
                name = self.random.choice(parameter.opts)
                if parameter.is_flag:
                    words.append(name)
                else:
                    words += [name, *(self._value(parameter) for _ in range(parameter.nargs))]
        if self.random.random() < 0.1:
            words.insert(self.random.randrange(len(words) + 1), self.random.choice(TEXTS))
        return words

    def _value(self, parameter: Any) -> str:
        name = parameter.opts[0]
        if name in COSTLY or parameter.bare_type is int:
            return self.random.choice(SMALL)
        chance, sound = self.random.random(), _SOUND.get(str(parameter.name), ())
        if sound and chance < 0.6:
            return self.random.choice(sound)
        return self.random.choice(TEXTS)


_SOUND = {
    "folder": ("run", "run/datasets/Conformance-v0"),
    "folders": ("run", "run/datasets/Conformance-v0", "new"),
    "environment": (
        "Conformance-v0",
        "DRAM-v0",
        "TPE-v0",
        "Accelerator-v0",
        "NAS-v0",
        "LLMTraining-v0",
        "LLMDevice-v0",
        "GPUKernel-v0",
    ),
    "name": ("Conformance-v0", "random", "ga"),
    "target": ("random",),
    "experiment": ("file.yaml", "run/experiment.yaml"),
    "out": ("new", "new.html", "new/deep"),
    "file": ("new.csv", "new.parquet", "new.md"),
    "values": ("ways=2", "ways=99", "replacement=lru"),
    "arguments": ("space=finite", "levels=3", "zzz=1"),
    "settings": ("budget=3", "seeds=1", "budget=-1", "agents=[{name: random}]", "seeds=[1,1]"),
    "where": ("status == ok", "ways >= 4", "agent == ga"),
    "only": ("seeds", "search mixed"),
}
"""Values that are right, so that what comes after them is reached too."""
_CHEAPLY = {
    ("run",): ["--local", "--set", "budget=3"],  # Ray takes seconds to start
    ("check",): ["--only", "seeds"],
    ("docs",): ["random"],
    ("enumerate",): ["--most", "100000"],
    ("proxy", "train"): ["--model", "forest"],
    ("proxy", "compare"): ["--model", "forest"],
    ("proxy", "study"): ["--model", "forest", "--sizes", "10", "--repetitions", "1"],
    ("proxy", "collect-workloads"): [
        *("--drawn", "1", "--searched", "1", "--crossed", "1", "--workload", "zipf"),
    ],
    ("trace", "record"): ["--timeout-s", "2", "--max-requests", "10"],
    ("worker",): ["--max-wait", "0"],
}
"""Words behind those of a command that would take minutes."""
_DEAR = {"--validate"}
"""Options that ask for minutes whatever follows."""


def compile_simulators() -> None:
    """Once on a machine: it takes a minute, which is no fault of the command that needs it."""
    for name in _SOUND["environment"]:
        called(["evaluate", name], limit_s=0)


def called(words: list[str], limit_s: int = LIMIT_S) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of the command, in this process; a limit of 0 is none."""

    def late(number: int, frame: FrameType | None) -> None:
        raise _HangsError

    out, err, code = _stream(), _stream(), 0
    before = sys.argv, signal.signal(signal.SIGALRM, late)
    sys.argv = ["archgym", *words]
    signal.alarm(limit_s)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0
    except _HangsError:
        code = 124
    except Exception:
        code = 99
        err.write(traceback.format_exc())
    finally:
        signal.alarm(0)
        sys.argv = before[0]
        signal.signal(signal.SIGALRM, before[1])
    return code, _text(out), _text(err)


class _HangsError(BaseException):
    """A command takes too long."""


def _stream() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)


def _text(stream: io.TextIOWrapper) -> str:
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode("utf-8", "replace")


def _commands(group: Any, names: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command, with the words that name it."""
    inner = getattr(group, "commands", None)
    if inner is None:
        yield names, group
        return
    for name, command in inner.items():
        yield from _commands(command, (*names, name))


def _report(number: int, seed: int) -> None:
    found, seconds = 0, collections.defaultdict[str, float](float)
    compile_simulators()
    with tempfile.TemporaryDirectory() as place:
        for case in Fuzzer(seed, Path(place)).cases(number):
            seconds[" ".join(itertools.takewhile(str.isalpha, case.words[:2]))] += case.seconds
            if case.wrong:
                found += 1
                sys.stdout.write(f"{case.words}\n  {case.wrong}, {case.code}\n{case.err[-1500:]}\n")
                sys.stdout.flush()
    slowest = sorted(((taken, name) for name, taken in seconds.items()), reverse=True)
    longest = ", ".join(f"{name} {s:.0f}" for s, name in slowest[:8])
    sys.stdout.write(f"{sum(seconds.values()):.0f} s: {longest}\n")
    sys.stdout.write(f"{found} wrong of {number}\n")


if __name__ == "__main__":
    _report(int(sys.argv[1]), int(sys.argv[2]))
