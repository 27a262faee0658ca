"""The guides run as they stand: files are written, commands and programs run, in their order."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from archgym.envs.cpu.traces.champsim_format import RECORD
from tests.cli.conftest import Called, call  # noqa: F401 - a fixture

GUIDES = sorted((Path(__file__).parent.parent.parent / "docs" / "guides").glob("*.md"))
_BLOCK = re.compile(
    r"^(?:<!-- (?P<mark>[^\n]*) -->\n)?```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.S | re.M
)
_UNMARKED = {"toml", "text"}
"""Kinds of blocks that may be shown only."""


def _blocks(guide: Path) -> list[tuple[str, str, str]]:
    """Mark, kind and text of each block of code."""
    found = _BLOCK.finditer(guide.read_text("utf-8"))
    return [(match["mark"] or "", match["kind"], match["text"]) for match in found]


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_every_block_says_what_becomes_of_it(guide: Path) -> None:
    for mark, kind, text in _blocks(guide):
        marks = {"bash": r"run|not run: .+", "python": r"python(: \w+)?|file: .+\.py"}
        if guide.stem.startswith("recipes_"):  # which tests/docs/test_recipes.py runs
            marks = {"bash": "install|recipe", "python": r"recipe|file: .+\.py"}
        assert re.fullmatch(marks.get(kind, "file: .+|"), mark), f"{mark!r} before {kind}:\n{text}"
        assert mark or kind in _UNMARKED, text


def _kind(mark: str) -> str:
    """What a mark says: file, run, not run or python; the rest of it is a name."""
    return mark.split(":")[0]


RUNNING = [
    guide for guide in GUIDES if {"run", "python"} & {_kind(mark) for mark, *_ in _blocks(guide)}
]
QUICK_GUIDES = {"agents", "environments", "simulators"}
SLOW_GUIDES = {
    "accelerator",
    "history_library",
    "libraries",
    "llm",
    "llm_serving",
    "nas",
    "proxies",
}
"""They run with the nightly tests; what is in neither set, with the long ones."""


def _when(guide: Path) -> Any:
    """A guide, with the mark of the tests that it runs with."""
    if guide.stem in QUICK_GUIDES:
        return guide
    mark = pytest.mark.nightly if guide.stem in SLOW_GUIDES else pytest.mark.full
    return pytest.param(guide, marks=mark)


def test_the_guides_of_the_uses_run() -> None:
    names = {guide.stem for guide in RUNNING}
    assert names >= {"agents", "datasets", "environments", "experiments", "nas", "proxies"}


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_guide_is_short_enough(guide: Path) -> None:
    lines = len(guide.read_text("utf-8").splitlines())
    assert lines <= 250, f"{guide.name} has {lines} lines: shorten it, or begin another guide"


@pytest.mark.parametrize(
    "guide",
    [_when(guide) for guide in RUNNING],
    ids=lambda path: path.stem,
)
def test_guide_runs(
    guide: Path,
    tmp_path: Path,
    call: Callable[..., Called],  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    for number, (mark, kind, text) in enumerate(_blocks(guide)):
        if _kind(mark) == "file":
            Path(mark.removeprefix("file: ")).write_text(text, encoding="utf-8")
        elif _kind(mark) == "python":
            script = tmp_path / f"block_{number}.py"
            script.write_text(text)
            done = subprocess.run(
                [sys.executable, "-W", "error", str(script)],
                capture_output=True,
                text=True,
                timeout=300,
            )
            assert done.returncode == 0, done.stderr
            assert done.stdout.strip()
        elif mark == "run":
            assert kind == "bash"
            for line in text.splitlines():
                program, *arguments = shlex.split(line, comments=True)
                assert program == "archgym"
                came = call(*arguments)
                assert came.code == 0, f"{line}\n{came.out}\n{came.err}"


@pytest.mark.full
def test_the_exercise_prints_the_tables_that_it_shows(tmp_path: Path) -> None:
    exercise = next(guide for guide in GUIDES if guide.stem == "cpu_exercise")
    programs, tables = (
        [text for _, kind, text in _blocks(exercise) if kind == wanted]
        for wanted in ("python", "text")
    )
    for program, table in zip(programs, tables, strict=True):
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path
        )
        assert done.stdout == table, done.stderr
    assert (tmp_path / "caches-sqlite.png").stat().st_size > 10_000


@pytest.mark.full
def test_the_cold_misses_of_the_exercise_are_the_first_touches_of_lines(tmp_path: Path) -> None:
    lines, passes = 1 << 16, 2  # 4 MiB: more than the last level of the baseline
    records = np.zeros(lines * passes, RECORD)
    records["ip"] = 0x400000
    records["read"][:, 0] = 0x1000000 + 64 * (np.arange(lines * passes) % lines)
    records.tofile(tmp_path / "passes.champsimtrace")
    names: dict[str, Any] = {}
    trace = str(tmp_path / "passes.champsimtrace")
    exercise = next(guide for guide in GUIDES if guide.stem == "cpu_exercise")
    program = next(text for _, kind, text in _blocks(exercise) if kind == "python")
    start = program[: program.index("figure, ")].replace(
        '{"recorded": "sqlite", "instructions": 500_000}', repr(trace)
    )
    exec(start, names)
    assert names["measure"](16384, 64) == pytest.approx(1000 / passes)
