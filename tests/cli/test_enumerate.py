from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from archgym.experiment.results.texts import regret_text

SMALL = ["enumerate", "Conformance-v0", "--space", "finite", "--workers", "1"]


def test_optimum_and_front(call: Any, tmp_path: Path) -> None:
    arguments = [*SMALL, "--out", tmp_path / "t", "--set", "fixed={replacement: lru, ways: 2}"]
    objective = "{maximize: hit_rate, limits: [area_mm2 <= 0.05]}"
    wanted = ["--objective", objective, "--pareto", "access_ns,hit_rate", "--json"]
    made = call(*arguments, *wanted)
    assert "63 of 63 designs" in made.err
    data = made.json
    assert data["designs"] == 63
    assert data["fixed"] == {"replacement": "lru", "ways": 2}
    assert data["bytes"] == (tmp_path / "t" / "table.parquet").stat().st_size
    default, best, front = data["results"]
    assert default["goals"] == ["access_ns [ns]"]
    assert default["optimum"]["design"]["size_kb"] == 64
    assert default["optimum"]["baseline_regret"] > 0
    assert best["optimum"]["metrics"]["area_mm2"] <= 0.05
    assert best["optimum"]["objectives"] == [best["optimum"]["metrics"]["hit_rate"]]
    assert front["objective"] == {"minimize": ["access_ns"], "maximize": ["hit_rate"]}
    assert len(front["front"]) == 1  # a hit saves time, at the same number of ways
    shown = call(*arguments, "--pareto", "access_ns area_mm2")
    assert "63 designs: " in shown.out
    assert "Exact optimum of access_ns [ns]" in shown.out
    assert "Pareto front of access_ns [ns] and area_mm2 [mm2]" in shown.out


def test_a_tabulated_problem_reports_regret(call: Any, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    assert call(*SMALL, "--out", folder, "--quiet").err == ""
    experiment = tmp_path / "e.yaml"
    experiment.write_text(
        "name: tabulated\nbudget: 20\nagents: [{name: random}]\nseeds: 2\n"
        f"environments: [{{id: Conformance-v0, simulator: 'tabular:{folder}'}}]\n"
    )
    shown = call("run", experiment, "--local", "--quiet", "--out", tmp_path / "run")
    assert shown.code == 0
    assert "regret" in shown.out
    assert "exact optimum" in shown.out
    (problem,) = call("best", tmp_path / "run", "--json").json
    assert problem["best"]["regret"] >= 0
    assert f"regret {regret_text(problem['best']['regret'])}" in call("best", tmp_path / "run").out
    design = ["size_kb=64", "ways=16", "prefetch=true", "distance=4"]
    evaluated = call("evaluate", "Conformance-v0", *design, "--simulator", f"tabular:{folder}")
    assert "simulator tabular" in evaluated.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--pareto", "access_ns"], "name two metrics or more"),
        (["--pareto", "acces_ns area_mm2"], "Did you mean 'access_ns'?"),
        (["--objective", "minimize area"], "Did you mean 'area_mm2'?"),
        (["--set", "sapce=finite"], "Did you mean 'space'?"),
        (["--set", "fixed={ways: 99}"], "from 1 to 16"),
        (["--workload", "sqlite"], "has no workloads"),
        (["--chunk", "0"], "--chunk"),
        (["--most", "10"], "more than most=10"),
    ],
)
def test_bad_input_writes_nothing(
    call: Any, tmp_path: Path, arguments: list[str], message: str
) -> None:
    failed = call(*SMALL, "--out", tmp_path / "t", *arguments)
    assert failed.code == 2
    assert message in " ".join(failed.err.split())
    assert not (tmp_path / "t").exists()
