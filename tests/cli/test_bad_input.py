"""Whatever is wrong with a run is said in one message, before anything runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.experiment.experiments import mapping


def settings(**changes: Any) -> list[str]:
    """``--set`` for each change; ``__`` stands for a dot."""
    return [
        word
        for name, value in changes.items()
        for word in ("--set", f"{name.replace('__', '.')}={value}")
    ]


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    path = tmp_path / "experiment.yaml"
    path.write_text(yaml.safe_dump(mapping()))
    return path


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"environments__0__id": "Conformanse-v0"},
            ["environments[0].id", "'Conformanse-v0'", "Did you mean 'Conformance-v0'?", "DRAM-v0"],
        ),
        (
            {"agents__1__name": "gaa"},
            ["agents[1].name", "'gaa'", "Did you mean 'ga'?", "random"],
        ),
        (
            {"environments__0": "{id: DRAM-v0, workload: sqlit}"},
            ["environments[0]", "workload", "'sqlit'", "Did you mean 'sqlite'?", "zipf"],
        ),
        (
            {"environments__0": "{id: DRAM-v0, arguments: {memory: DDR4}}"},
            ["environments[0]", "'DDR4'", "Did you mean 'DDR4-2400' or 'DDR4-3200'?"],
        ),
        (
            {"environments__0": "{id: DRAM-v0, workload: {generator: zip}}"},
            ["environments[0]", "'zip'", "Did you mean 'zipf'?"],
        ),
        (
            {"environments__0": "{id: DRAM-v0, workload: {generater: zipf}}"},
            ["environments[0]", "workload key", "'generater'", "Did you mean 'generator'?"],
        ),
        (
            {"environments__0__objective": "minimize energy"},
            ["environments[0]", "objective", "'energy'", "energy_pj"],
        ),
        (
            {"environments__0__objective": "{minimize: access_ns, limits: [area <= 3]}"},
            ["environments[0]", "objective", "'area'", "Did you mean 'area_mm2'?"],
        ),
        (
            {"environments__0__fixed": "{wasy: 3}"},
            ["environments[0]", "parameter", "'wasy'", "Did you mean 'ways'?"],
        ),
        (
            {"environments__0__fixed": "{ways: 17}"},
            ["environments[0]", "'ways'", "17", "from 1 to 16"],
        ),
        (
            {"environments__0__fixed": "{replacement: lur}"},
            ["environments[0]", "'replacement'", "'lur'", "Did you mean 'lru'?"],
        ),
        ({"environments__0__spaec": "x"}, ["environments[0]", "'spaec'", "Did you mean 'space'?"]),
        ({"bugdet": 3}, ["unknown key 'bugdet'", "Did you mean 'budget'?"]),
        ({"budget": -3}, ["budget", "-3", "allowed is at least 1"]),
        ({"budget": 0}, ["budget", "0", "allowed is at least 1"]),
        (
            {"agents__1__hyperparameters": "{population_size: 1}"},
            ["agents[1].hyperparameters", "population_size", "1", "allowed is at least 2"],
        ),
        (
            {"agents__1__hyperparameters": "{population_sise: 8}"},
            ["agents[1]", "'population_sise'", "Did you mean 'population_size'?"],
        ),
        (
            {"agents__1__hyperparameters": "{mutation_rate: {uniform: [0.5, 1.5]}}, samples: 9"},
            ["is not YAML"],
        ),
        (
            {
                "agents__1": "{name: ga, hyperparameters: "
                "{mutation_rate: {uniform: [0.9, 1.5]}}, samples: 9}"
            },
            ["agents[1]", "mutation_rate", "allowed is at most 1"],
        ),
        ({"seeds": "[0, -4]"}, ["seeds", "[0, -4]", "at least 0"]),
    ],
)
def test_is_one_clear_message(
    call: Any, experiment: Path, tmp_path: Path, changes: dict[str, Any], words: list[str]
) -> None:
    out = tmp_path / "out"
    called = call("run", experiment, "--local", "--out", out, *settings(**changes))
    assert called.code == 2
    assert called.err.startswith("Error: ")
    assert len(called.err.splitlines()) == 1
    for word in words:
        assert word in called.err
    assert not out.exists()


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("broken.stl", "31: read 0x40\n33: raed 0x80\n", ["broken.stl", "line 2", "raed 0x80"]),
        ("empty.stl", "", ["empty.stl", "no request"]),
        ("empty.stl", "# nothing\n\n", ["empty.stl", "no request"]),
    ],
)
def test_bad_traces(
    call: Any, experiment: Path, tmp_path: Path, name: str, text: str, words: list[str]
) -> None:
    (tmp_path / name).write_text(text)
    change = {"environments__0": f"{{id: DRAM-v0, workload: {tmp_path / name}}}"}
    called = call("run", experiment, "--local", "--out", tmp_path / "out", *settings(**change))
    assert called.code == 2
    for word in words:
        assert word in called.err
    assert not (tmp_path / "out").exists()


def test_yaml_that_is_none(call: Any, tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("name: x\nbudget: [1,\nagents: {")
    called = call("run", path, "--local", "--out", tmp_path / "out")
    assert called.code == 2
    assert f"Error: {path}, line 3, column " in called.err
    assert "is not YAML" in called.err
    assert not (tmp_path / "out").exists()


def test_folders_that_cannot_be_used(call: Any, experiment: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for out in (file, file / "below", Path("/proc/nowhere")):
        called = call("run", experiment, "--local", "--out", out)
        assert called.code == 2
        assert str(out) in called.err
    assert call("run", experiment, "--local", "--quiet", "--out", tmp_path / "run").code == 0
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*")}
    called = call("run", experiment, "--local", "--out", tmp_path / "run")
    assert called.code == 2
    assert f"{tmp_path / 'run'} exists already" in called.err
    assert "--resume" in called.err
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*")}


def test_a_run_that_is_not_there_is_not_resumed(
    call: Any, experiment: Path, tmp_path: Path
) -> None:
    run = ("run", experiment, "--local", "--quiet")
    missing = call(*run, "--resume", "--out", tmp_path / "frist")
    assert missing.code == 2
    assert f"there is no run in {tmp_path / 'frist'} to go on with; begin one" in missing.err
    begun = call(*run, "--resume", "--begin", "--out", tmp_path / "first")
    assert begun.code == 0, begun.err
    misspelt = call(*run, "--resume", "--out", tmp_path / "frist")
    assert misspelt.code == 2
    assert f"runs beside it: {tmp_path / 'first'};" in misspelt.err
    assert not (tmp_path / "frist").exists()
    assert call(*run, "--resume", "--begin", "--out", tmp_path / "first").code == 0
    assert "--begin goes with --resume" in call(*run, "--begin", "--out", tmp_path / "x").err
