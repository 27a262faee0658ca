"""200 mistakes in the eight example files and in what their programs do.

For each there is one clear message, and nothing is left: no process, no folder, no half a stage.
"""

from __future__ import annotations

import os
import re
import resource
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

import archgym
from tests.cli.conftest import Called, call  # noqa: F401 - a fixture
from tests.declared import mutations
from tests.declared.stand_ins import BEHAVIOURS, LAST, SOURCES, make_examples, program


def _two(stems: list[str], number: int) -> list[str]:
    """Two neighbours, which differ from number to number."""
    return [stems[(2 * number + one) % len(stems)] for one in (0, 1)]


MISTAKES = mutations.mutations(140, seed=25)
RUNS = [
    (name, stem)
    for number, (name, behaviour) in enumerate(BEHAVIOURS.items())
    for stem in _two(list(SOURCES) if behaviour.reads_file else list(LAST), number)
]
"""Each behaviour with two of the files."""
LINES_AT_MOST = 5
MEMORY_KB = 300_000
"""By which a mistake may make this process grow."""


class Traces:
    """What a run may leave behind."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.mark = folder, f"mark{uuid.uuid4().hex}"
        self.work, self.cache, self.cwd = folder / "tmp", folder / "cache", folder / "cwd"
        for one in (self.work, self.cwd):
            one.mkdir()
        monkeypatch.setenv("ARCHGYM_TEST_MARK", self.mark)
        monkeypatch.setenv("XDG_CACHE_HOME", str(self.cache))
        monkeypatch.setenv("PATH", f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.setattr(tempfile, "tempdir", str(self.work))
        monkeypatch.chdir(self.cwd)

    def check_nothing_is_left(self) -> None:
        assert os.listdir(self.work) == []
        assert os.listdir(self.cwd) == []
        stages = self.cache / "archgym" / "stages"
        for entry in stages.iterdir() if stages.exists() else ():
            assert entry.suffix == ".lock" or (entry / "complete.json").is_file()
        assert running(self.mark) == []


def peak_kb() -> int:
    """The most memory that this process has had, kB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def running(mark: str) -> list[str]:
    """Processes that have a mark in their variables, but for this one."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if (
                entry.name.isdigit()
                and int(entry.name) != os.getpid()
                and mark.encode() in (entry / "environ").read_bytes()
            ):
                found.append(entry.name)
        except OSError:
            continue
    return found


@pytest.fixture
def traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Traces:
    return Traces(tmp_path, monkeypatch)


Call = Callable[..., Called]


def check_mistake(mutation: mutations.Mutation, traces: Traces, call: Call) -> str:  # noqa: F811
    make_examples(traces.folder)
    path = mutations.write(traces.folder, mutation)
    memory, began = peak_kb(), time.monotonic()
    said = call("evaluate", path)
    assert time.monotonic() - began < 60
    assert peak_kb() - memory < MEMORY_KB
    message = said.err + said.out
    check_message(message)
    assert said.code == 2 or "status failed" in said.out, message
    assert path.name in message, message
    whole = " ".join(message.split())
    for name in mutation.names:
        assert re.search("|".join(map(re.escape, name.split("|"))), whole), (name, message)
    traces.check_nothing_is_left()
    return message


def into_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


STARTS: dict[str, Callable[[Path], object]] = {
    "is not there": lambda path: path.unlink(),
    "is not executable": lambda path: path.chmod(0o644),
    "is a folder": into_folder,
    "needs an interpreter that is not there": lambda path: path.write_text("#!/no/such/sh\n"),
    "is empty": lambda path: path.write_text(""),
    "is for another processor": lambda path: path.write_bytes(b"\x7fELF\2\1\1" + bytes(90)),
}
"""What can be wrong with a program before it runs."""


def check_message(message: str) -> None:
    assert message.strip()
    assert "Traceback" not in message
    assert len(message) < 1500, message


def check_run(name: str, stem: str, traces: Traces) -> str:
    behaviour = BEHAVIOURS[name]
    make_examples(traces.folder, behaviour.script)
    path = traces.folder / f"{stem}.yaml"
    text = path.read_text()
    before, last, after = text.rpartition("  run:" if stem != "fpga" else "  place:")
    seconds = 0.7 if behaviour.status == "timeout" else 30
    limits = f"time_limit_s: {seconds}, output_limit_mb: 1, {behaviour.limits}"
    assert "time_limit_s: " in after, stem
    after = re.sub(r"time_limit_s: \d+", "time_limit_s: LIMITS", after, count=1)
    block = re.search(r"^    time_limit_s: LIMITS", after, re.MULTILINE)
    joined = limits.rstrip(", ").replace(", ", "\n    " if block else ", ")
    path.write_text(before + last + after.replace("time_limit_s: LIMITS", joined))
    env = archgym.make(str(path))
    env.baseline_metrics = [1.0] * len(env.metrics)
    memory, began = peak_kb(), time.monotonic()
    outcome = env.evaluate(env.baseline_design)
    assert time.monotonic() - began < 60
    assert peak_kb() - memory < MEMORY_KB
    assert outcome.status == behaviour.status, outcome.reason
    assert re.search(behaviour.reason, outcome.reason, re.DOTALL), outcome.reason
    assert len(outcome.reason.splitlines()) <= LINES_AT_MOST, outcome.reason
    if outcome.status != "ok":
        check_message(outcome.reason)
        assert re.match(r"(workload \w+: )?(stage \w+:|\w+:|\w+ is) ", outcome.reason), (
            outcome.reason
        )
    traces.check_nothing_is_left()
    return outcome.reason


def sampled(items: list, every: int) -> list:  # type: ignore[type-arg]
    """The items as parameters; each but a few of them is for the full tests."""
    return [
        pytest.param(one, id=f"{number}", marks=[pytest.mark.full] if number % every else [])
        for number, one in enumerate(items)
    ]


def test_there_are_two_hundred() -> None:
    assert len(MISTAKES) + len(RUNS) >= 200
    assert len({str(one) for one in MISTAKES}) == len(MISTAKES)
    assert {one.stem for one in MISTAKES} == {stem for _, stem in RUNS} == set(LAST)


@pytest.mark.parametrize("mutation", sampled(MISTAKES, 9))
def test_a_mistake_is_one_clear_message(
    mutation: mutations.Mutation,
    traces: Traces,
    call: Call,  # noqa: F811
) -> None:
    check_mistake(mutation, traces, call)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("stem", ["gem5", "champsim"])
def test_a_program_that_cannot_start_is_one_message(
    start: str,
    stem: str,
    traces: Traces,
    call: Call,  # noqa: F811
) -> None:
    make_examples(traces.folder)
    STARTS[start](program(traces.folder, stem))
    said = call("evaluate", traces.folder / f"{stem}.yaml")
    message = said.err + said.out
    check_message(message)
    assert said.code in (1, 2), message
    assert program(traces.folder, stem).name in message or "stage run left no file" in message
    traces.check_nothing_is_left()


@pytest.mark.parametrize("case", sampled(RUNS, 7))
def test_a_program_that_misbehaves_is_one_reason(case: tuple[str, str], traces: Traces) -> None:
    check_run(*case, traces)
