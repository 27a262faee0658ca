"""No Python file of a folder that was received runs, whichever command is run inside the folder."""

from __future__ import annotations

import importlib.metadata
import shutil
import sys
from pathlib import Path

import pytest

from tests.trust.received import called, received_run

TRAP = """
import pathlib
with pathlib.Path(__file__).with_name("ran.txt").open("a") as file:
    file.write(__name__ + "\\n")
raise ImportError("a file of the received folder runs")
"""
NOT_INSTALLED = ("bottleneck", "numexpr", "orjson", "ujson", "simplejson", "lxml", "cupy", "polars")
"""Packages that others look for, and use if they are there."""

COMMANDS = [
    ["best", "."],
    ["dataset", "validate", ".", "--replay", "2"],
    ["run", "quickstart", "--local", "--set", "budget=3", "--set", "seeds=1", "--out", "new", "-q"],
]
LONG = [
    ["list"],
    ["list", "simulators"],
    ["schema"],
    ["show", "DRAM-v0"],
    ["evaluate", "Conformance-v0", "--record", "one"],
    ["report", "."],
    ["report", ".", "--figures", "figures"],
    ["dataset", "info", "."],
    ["dataset", "export", ".", "rows.csv"],
    ["dataset", "split", ".", "parts"],
    ["enumerate", "Conformance-v0", "--set", "space=finite", "--out", "table"],
    ["validate", "Conformance-v0"],
    ["run", "experiment.yaml", "--local", "--resume", "--out", ".", "-q"],
    ["run", "quickstart", "--set", "budget=3", "--set", "seeds=1", "--out", "ray", "-q"],
    [
        *("run", "experiment.yaml", "--local", "--out", "beside", "-q"),
        *("--set", "simulation.workers=2"),
    ],
]
NIGHTLY = [
    ["proxy", "train", ".", "--out", "proxy"],
    ["check", "random"],
]


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a trap in the name of every module that may be imported."""
    folder = received_run(tmp_path_factory.mktemp("sent") / "run")
    installed = set(importlib.metadata.packages_distributions())
    for name in installed | sys.stdlib_module_names | {*NOT_INSTALLED}:
        if name.isidentifier():
            (folder / f"{name}.py").write_text(TRAP)
    return folder


@pytest.mark.parametrize(
    "command",
    [
        *COMMANDS,
        *(pytest.param(one, marks=pytest.mark.full) for one in LONG),
        *(pytest.param(one, marks=pytest.mark.nightly) for one in NIGHTLY),
    ],
    ids=lambda command: " ".join(command[:3]),
)
def test_no_file_of_the_working_folder_runs(command: list[str], sent: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(sent, tmp_path / "run")
    ended = called(command, folder)
    assert not (folder / "ran.txt").exists(), (folder / "ran.txt").read_text()
    assert "Traceback" not in ended.err
    if command[0] != "validate" and command[0] != "report":
        assert ended.code == 0, ended.err


MODULE = """
import pyarrow
from archgym.envs.conformance import ConformanceEnvironment
import beside

class Mine(ConformanceEnvironment):
    marker = beside.VALUE
"""


def test_a_module_that_is_named_is_found_and_takes_no_other_place(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MODULE)
    (tmp_path / "beside.py").write_text("VALUE = 1\n")
    for name in ("pyarrow", "numpy", "json", "pandas"):
        (tmp_path / f"{name}.py").write_text(TRAP)
    ended = called(["evaluate", "mine:Mine", "ways=2", "--record", "rows"], tmp_path)
    assert ended.code == 0, ended.err
    assert "Mine" in ended.out
    assert not (tmp_path / "ran.txt").exists()
    # An experiment names it too, and processes that simulate find it.
    ended = called(
        [
            *("run", "quickstart", "--local", "--out", "run", "-q", "--set", "budget=3"),
            *("--set", "seeds=1", "--set", "agents=[{name: random}]"),
            *("--set", "environments=[{id: 'mine:Mine', space: finite}]"),
            *("--set", "simulation.workers=1"),
        ],
        tmp_path,
    )
    assert ended.code == 0, ended.err
    assert not (tmp_path / "ran.txt").exists()


def test_a_dataset_names_no_module(tmp_path: Path) -> None:
    """What was recorded with a ``module:Class`` is read without it."""
    (tmp_path / "mine.py").write_text(
        "from archgym.envs.conformance import ConformanceEnvironment\n"
        "class Mine(ConformanceEnvironment):\n    pass\n"
    )
    assert called(["evaluate", "mine:Mine", "--record", "rows"], tmp_path).code == 0
    (tmp_path / "mine.py").write_text(TRAP)
    for command in (
        ["best", "rows"],
        ["dataset", "info", "rows"],
        ["dataset", "export", "rows", "x.csv"],
    ):
        ended = called(command, tmp_path)
        assert ended.code == 0, ended.err
    called(["dataset", "validate", "rows", "--replay"], tmp_path)
    assert not (tmp_path / "ran.txt").exists()
