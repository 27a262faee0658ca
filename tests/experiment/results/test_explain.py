"""Why a best design is the best: limits and differences, with answers known beforehand."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import archgym
from archgym.errors import ArchgymError, DatasetError
from archgym.experiment.results.explain import FILE, explain_run, kept_explanations
from archgym.experiment.results.explanation_tables import summary
from archgym.report import read_study, write_report
from archgym.space import Categorical, DesignSpace, Integer, Rule, param
from tests.cli.conftest import Called, call

__all__ = ["Called", "call"]


class Known(archgym.Environment):
    """A chip whose time and area are formulas, so that every answer is known."""

    design_space = DesignSpace(
        [
            Integer("cores", 1, 8),
            Integer("clock", 1, 4),
            Categorical("cache", ["none", "small"]),
            Integer("ways", 1, 4, when=param("cache") == "small"),
            Categorical("colour", ["red", "blue"]),
            Integer("volt", 1, 4),
        ],
        [Rule("fast_needs_volts", param("volt") >= param("clock"))],
    )
    metrics = (
        archgym.Metric("time_ns", "ns", "minimize"),
        archgym.Metric("area_um2", "um2", "minimize"),
    )
    default_objective = {"minimize": "time_ns", "limits": ["area_um2 <= 60"]}  # noqa: RUF012
    baseline = {  # noqa: RUF012
        "cores": 2,
        "clock": 1,
        "cache": "none",
        "colour": "red",
        "volt": 1,
    }
    ran: list[dict[str, Any]] = []  # noqa: RUF012

    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        self.ran.append(design)
        gain = 1.25 if design["cache"] == "small" else 1.0
        time = 1000 / (design["cores"] * design["clock"] * gain)
        ways = design.get("ways", 0)
        return {"time_ns": time, "area_um2": 10.0 * design["cores"] + 5.0 * ways}


NAME = f"{__name__}:Known"
BEST = {"cores": 4, "clock": 2, "cache": "small", "ways": 2, "colour": "blue", "volt": 2}
TOO_LARGE = {**BEST, "cores": 8}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    env = archgym.make(NAME, record=tmp_path / "data")
    for design in (env.baseline_design, BEST, TOO_LARGE, {**BEST, "cores": 3}):
        env.evaluate(design)
    env.close()
    Known.ran.clear()
    return tmp_path / "data"


def test_each_difference_has_its_known_worth(folder: Path) -> None:
    (found,) = explain_run(folder, 60, environment=NAME)
    assert found.best.design == BEST
    assert found.best.worse == [pytest.approx(1 / 5 - 1)]
    worth: dict[Any, Any] = {
        tuple(one.parameters): (one.back.worse[0], one.alone.worse[0]) for one in found.differences
    }
    assert worth == {
        ("cores",): (pytest.approx(1.0), pytest.approx(-0.5)),
        ("clock", "volt"): (pytest.approx(1.0), pytest.approx(-0.5)),
        ("cache",): (pytest.approx(0.25), pytest.approx(-0.2)),
        ("colour",): (pytest.approx(0), pytest.approx(0)),
    }
    (cache,) = (one for one in found.differences if one.parameters == ["cache"])
    assert cache.along == {"ways": 2}
    assert "ways" not in cache.back.design
    assert cache.alone.design["ways"] == 2
    assert found.simpler is not None
    assert found.simpler.design == {**BEST, "colour": "red"}
    assert found.left == 0


def test_a_maximized_goal_is_told_by_its_values(tmp_path: Path) -> None:
    objective = {"maximize": "area_um2"}
    env = archgym.make(NAME, record=tmp_path / "data", objective=objective)
    for design in (env.baseline_design, {**env.baseline_design, "cores": 8}):
        env.evaluate(design)
    env.close()
    (found,) = explain_run(tmp_path / "data", 0, environment=NAME)
    told = summary(found)
    assert told[0].endswith("area_um2 [um2] 80 (baseline 20)")
    assert any("+100 % is half of its value" in line for line in told)


def test_a_limit_that_binds_and_what_it_costs(folder: Path) -> None:
    (found,) = explain_run(folder, 0, environment=NAME)
    (margin,) = found.limits
    assert margin.value == 50.0
    assert margin.margin == pytest.approx(10 / 60)
    assert margin.without is not None
    assert margin.without.design == TOO_LARGE
    assert margin.without.worse == [pytest.approx(-0.5)]


def test_what_was_simulated_before_an_interruption_is_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulate = Known.simulate

    def interrupted(self: Known, design: dict[str, Any]) -> dict[str, float]:
        if len(Known.ran) == 3:
            raise KeyboardInterrupt
        return simulate(self, design)

    monkeypatch.setattr(Known, "simulate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        explain_run(folder, 60, environment=NAME)
    (kept,) = kept_explanations(folder)
    assert kept.simulations == 3
    assert kept.left > 0
    monkeypatch.undo()
    (whole,) = explain_run(folder, 60, environment=NAME)
    assert whole.left == 0
    codes = [json.dumps(design, sort_keys=True) for design in Known.ran]
    assert len(codes) == len(set(codes)) == 3 + whole.simulations


def test_a_budget_holds_and_nothing_is_simulated_twice(folder: Path) -> None:
    (nothing,) = explain_run(folder, 0, environment=NAME)
    assert Known.ran == []
    assert nothing.simulations == 0
    assert nothing.left > 0
    (some,) = explain_run(folder, 2, environment=NAME)
    assert len(Known.ran) == some.simulations == 2
    (rest,) = explain_run(folder, 60, environment=NAME)
    assert rest.left == 0
    assert len(Known.ran) == rest.simulations + 2
    ran = [json.dumps(design, sort_keys=True) for design in Known.ran]
    assert len(set(ran)) == len(ran)
    (again,) = explain_run(folder, 60, environment=NAME)
    assert again.simulations == 0
    before, after = (
        [(d.back.goals, d.alone.goals) for d in one.differences] for one in (rest, again)
    )
    assert before == after


def test_an_environment_of_somebody_is_made_only_when_named(folder: Path) -> None:
    said: list[str] = []
    with pytest.raises(DatasetError, match="is not registered: name it with --environment"):
        explain_run(folder, 60, progress=said.append)
    assert Known.ran == []
    assert said == [], "it says that it simulates, and then refuses"
    assert len(explain_run(folder, 0)) == 1


def test_the_report_shows_what_was_kept(folder: Path, tmp_path: Path) -> None:
    title = "What each difference to the baseline is worth"
    page = write_report(read_study([folder]), tmp_path / "before.html").read_text()
    assert title not in page
    explain_run(folder, 60, environment=NAME)
    page = write_report(read_study([folder]), tmp_path / "after.html").read_text()
    assert title in page
    assert "clock=2 (1), volt=2 (1)" in page
    assert "binds: without it, the run knows a design at -50 %" in page


@pytest.mark.parametrize(
    "text", ["", "[1]", '{"explanations": [{"environment": 3}]}', '{"explanations": 1e999}']
)
def test_a_damaged_file_is_said_and_made_again(folder: Path, tmp_path: Path, text: str) -> None:
    (folder / FILE).write_text(text)
    with pytest.raises(DatasetError, match=FILE):
        kept_explanations(folder)
    assert explain_run(folder, 60, environment=NAME)
    assert kept_explanations(folder)


def test_a_run_that_found_nothing(tmp_path: Path) -> None:
    with pytest.raises(ArchgymError, match="nowhere"):
        explain_run(tmp_path / "nowhere", 3)


def test_command_line_on_several_goals_and_yaml(call: Any, tmp_path: Path) -> None:
    (tmp_path / "some.yaml").write_text(
        """
name: some
budget: 25
seeds: 1
environments:
  - {id: Conformance-v0, space: finite}
  - {id: Conformance-v0, space: finite, objective: {minimize: [access_ns, energy_pj]}}
agents: [{name: random}]
"""
    )
    run = tmp_path / "run"
    assert call("run", tmp_path / "some.yaml", "--local", "-q", "--out", run).code == 0
    shown = call("explain", run)
    assert shown.code == 0, shown.err
    assert shown.out.count("put back") == 2
    data = call("explain", run, "--json").json
    assert sorted(len(one["goals"]) for one in data) == [1, 2]
    assert all(one["simulations"] == 0 for one in data)
    shutil.rmtree(run / "datasets")
    assert call("explain", run).code == 2


def test_a_folder_that_cannot_be_written_to_costs_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Known(record=tmp_path / "designs") as env:
        env.evaluate(BEST)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("os.replace", refuse)
    told: list[str] = []
    (one,) = explain_run(tmp_path / "designs", 60, environment=NAME, progress=told.append)
    assert one.differences
    assert "Read-only file system" in told[-1]
