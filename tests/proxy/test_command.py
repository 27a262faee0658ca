from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import archgym
from archgym.cli import app
from archgym.data import Dataset
from archgym.registry import make_agent


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("command") / "data"
    env = archgym.make("Conformance-v0", space="finite", record=folder)
    make_agent("random", env.design_space, seed=0).search(env, budget=300)
    env.close()
    Dataset(folder).seal()
    return folder


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["proxy", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_train_evaluate_compare_search(dataset: Path, tmp_path: Path) -> None:
    file, picture = tmp_path / "p.npz", tmp_path / "p.png"
    quick = ("--model", "boosting", "--option", "trees=30")
    text = run("train", dataset, "--out", file, "--target", "energy_pj", "--rows", 250, *quick)
    assert "250 designs, boosting, validation 1 of 10" in text
    assert "boosting, on all of them for energy_pj" in text
    assert f"proxy:{file}" in text
    (row,) = json.loads(run("evaluate", file, dataset, "--plot", picture, "--json"))["scores"]
    assert row["n"] > 30
    assert row["r2"] > 0.8
    assert picture.read_bytes()[:4] == b"\x89PNG"
    rows = json.loads(
        run(
            "compare",
            dataset,
            "--target",
            "energy_pj",
            *quick,
            "--model",
            "forest",
            "--sizes",
            "50,150",
            "--plot",
            tmp_path / "c.png",
            "--quiet",
            "--json",
        )
    )
    assert {(row["model"], row["size"]) for row in rows} == {
        (model, size) for model in ("boosting", "forest") for size in (50, 150)
    }
    found = json.loads(
        run(
            "search",
            file,
            "--objective",
            "minimize energy_pj",
            "--budget",
            200,
            "--verify",
            5,
            "--json",
        )
    )
    assert found["verified"] == 5
    assert found["best"]["feasible"]


def test_study_of_two_agents(dataset: Path, tmp_path: Path) -> None:
    both = tmp_path / "both"
    for name, seed in (("random", 1), ("ga", 2)):
        env = archgym.make("Conformance-v0", space="finite", record=both)
        make_agent(name, env.design_space, seed=seed).search(env, budget=120)
        env.close()
    Dataset(both).seal()
    arguments = ["study", both, "--test", dataset, "--target", "energy_pj", "--repetitions", 1]
    arguments += ["--sizes", "60,200", "--option", "trees=20", "--plot", tmp_path / "s.png"]
    points = json.loads(run(*arguments, "--quiet", "--json"))
    held = {(point["source"], point["size"]) for point in points}
    # No agent has 200 designs of its own; both together have.
    assert held == {("random", 60), ("ga", 60), ("mixed", 60), ("mixed", 200)}
    assert all(0 < point["errors"][0] < 1 for point in points)
    text = run(*arguments)
    assert "60 designs of ga, 1 of 1" in text
    assert "200 designs of mixed, 1 of 1" in text
    assert (tmp_path / "s.png").read_bytes()[:4] == b"\x89PNG"
