"""The examples run as they stand, and what they print is what their headers promise."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from archgym.data import Dataset

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
Run = Callable[[str], str]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs an example in a folder of its own; gives what it prints."""

    def run(name: str) -> str:
        done = subprocess.run(
            [sys.executable, str(ROOT / "examples" / f"{name}.py")],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def _number(pattern: str, text: str) -> float:
    found = re.search(pattern, text)
    assert found is not None, f"{pattern!r} is not in:\n{text}"
    return float(found[1].replace(",", ""))


@pytest.mark.full
def test_search(run: Run, tmp_path: Path) -> None:
    printed = run("search")
    assert printed.startswith("baseline:")
    before, after = map(float, re.findall(r"mean read latency ([\d.]+) ns", printed))
    assert after < before
    assert printed.count("within the limit: yes") == 2
    assert _number(r"best of (\d+) designs", printed) == 60
    assert "changed from the baseline:" in printed
    best = printed.split("feasible designs:\n")[1].splitlines()
    assert len(best) == 6
    assert float(best[1].split()[0]) == pytest.approx(after, abs=0.05)
    assert Dataset(tmp_path / "search-data").info()["evaluations"] >= 60


@pytest.mark.full
def test_own_environment(run: Run) -> None:
    printed = run("own_environment")
    assert _number(r"(\d+) distinct legal designs", printed) > 100
    passed, checks = re.findall(r"(\d+) of (\d+) checks passed", printed)[0]
    assert passed == checks
    assert int(checks) > 10
    baseline, best = (float(rate) for rate in re.findall(r"'miss_rate': ([\d.]+)", printed))
    assert best < baseline


@pytest.mark.full
def test_own_agent(run: Run) -> None:
    printed = run("own_agent")
    assert len(re.findall(r"check [\w ]+: passed", printed)) == 4
    assert "FAILED" not in printed
    assert "better in the median: near_the_best" in printed
    near = _number(r"near_the_best: .* median ([\d.]+)%", printed)
    assert near < _number(r"random: .* median ([\d.]+)%", printed)


@pytest.mark.full
def test_data_to_proxy(run: Run, tmp_path: Path) -> None:
    printed = run("data_to_proxy")
    assert _number(r"by the mean: ([\d.]+)%", printed) < 15
    assert _number(r"intervals: (\d+)%", printed) >= 75
    assert len(re.findall(r"predicted [\d.]+ pJ, simulated [\d.]+ pJ", printed)) == 5
    assert _number(r"best +([\d.]+) pJ", printed) < _number(r"baseline ([\d.]+) pJ", printed)
    assert (tmp_path / "energy.npz").is_file()


@pytest.mark.full
def test_learner_from_another_library(run: Run, tmp_path: Path) -> None:
    printed = run("learner_from_another_library")
    rewards = [float(mean) for mean in re.findall(r"mean reward of steps .*: (-?[\d.]+)", printed)]
    assert len(rewards) == 4
    assert rewards[-1] > rewards[0]
    rows = _number(r"([\d,]+) rows recorded", printed)
    assert rows == Dataset(tmp_path / "ppo-data").info()["evaluations"]


def test_every_example_has_a_test_a_header_and_public_imports() -> None:
    assert len(EXAMPLES) == 5
    for path in EXAMPLES:
        assert f"test_{path.stem}" in globals()
        text = path.read_text("utf-8")
        assert 40 <= len(text.splitlines()) <= 90, path.name
        tree = ast.parse(text)
        header = ast.get_docstring(tree) or ""
        assert f"python examples/{path.name}" in header
        assert "seconds" in header
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                assert not any(alias.name.startswith("_") for alias in node.names)
