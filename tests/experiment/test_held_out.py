"""Workloads that searches leave out: what was found is evaluated on them, and shown apart."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from archgym.analysis.held_out import HeldOut, held_out_of
from archgym.report import read_study
from archgym.report.content import problem_sections
from tests.cli.conftest import Called, call  # noqa: F401 - a fixture
from tests.declared.conftest import QUEUE

WORKLOADS = (
    "workloads:\n  light: {values: {load: 1}}\n  heavy: {values: {load: 5}, held_out: true}\nfiles:"
)
EXPERIMENT = """
name: apart
budget: 6
seeds: 2
environments:
  - {id: queue.yaml}
agents:
  - {name: random}
"""


@pytest.fixture
def ran(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    call: Callable[..., Called],  # noqa: F811
) -> Callable[..., Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    text = QUEUE.replace("files:", WORKLOADS, 1).replace("{{ area }}", "{{ area * load }}")
    (tmp_path / "queue.yaml").write_text(text)
    (tmp_path / "search.yaml").write_text(EXPERIMENT)

    def run(*settings: str) -> Path:
        words = [word for setting in settings for word in ("--set", setting)]
        done = call("run", "search.yaml", "--local", "--out", "found", *words)
        assert done.code == 0, done.err
        return tmp_path / "found"

    return run


def test_best_and_report_show_the_held_out_workload_apart(
    ran: Callable[..., Path],
    call: Callable[..., Called],  # noqa: F811
) -> None:
    folder = ran("environments.0.objective=minimize area_um2")
    best = json.loads(call("best", str(folder), "--json").out)[0]["best"]
    held_out = best["held_out"]
    assert held_out["workload"] == "held_out"
    assert held_out["design"] == best["design"]
    assert held_out["metrics"]["area_um2"] == 5 * best["metrics"]["area_um2"]
    assert held_out["baseline"]["area_um2"] == 200
    assert "on held out: " in call("best", str(folder)).out
    study = read_study([folder])
    (problem,) = study.problems
    tables = [t for s in problem_sections(study, problem, 50, 50) for t in s.tables]
    (table,) = [one for one in tables if "held out" in one.title]
    (row,) = table.rows
    assert row[:2] == ["random", "area_um2 (um2)"]
    assert float(row[4]) == 5 * float(row[2])


def test_the_workload_of_any_environment_can_be_held_out(
    ran: Callable[..., Path],
    call: Callable[..., Called],  # noqa: F811
) -> None:
    folder = ran("environments.0.workload=heavy", "environments.0.held_out=light")
    best = json.loads(call("best", str(folder), "--json").out)[0]["best"]
    assert best["held_out"]["workload"] == "light"
    assert 5 * best["held_out"]["metrics"]["area_um2"] == best["metrics"]["area_um2"]


def test_a_mistyped_workload_is_told_before_the_run(
    ran: Callable[..., Path],
    call: Callable[..., Called],  # noqa: F811
) -> None:
    setting = "environments.0.held_out=hevy"
    done = call("run", "search.yaml", "--local", "--out", "found", "--set", setting)
    assert "Did you mean 'heavy'" in done.err
    assert "environments[0].held_out" in done.err


@pytest.mark.parametrize(
    "data",
    [None, 3, {}, {"workload": "x"}, {**vars(HeldOut("x")), "metrics": {"a": float("nan")}},
     {**vars(HeldOut("x")), "design": []}, {**vars(HeldOut("x")), "more": 1}],
)  # fmt: skip
def test_a_damaged_log_holds_nothing(data: Any) -> None:
    assert held_out_of(data) is None
