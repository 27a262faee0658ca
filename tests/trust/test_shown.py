"""What is shown or exported of received data does nothing in a terminal or a spreadsheet."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import archgym
from archgym.cli.output import printable
from archgym.data import Dataset, load
from archgym.export.files import export
from archgym.export.formulas import without_formula
from archgym.registry import make_agent
from archgym.space import Categorical, DesignSpace, Integer
from tests.cli.conftest import Called
from tests.trust.test_recorded import with_trial

ESCAPES = "\x1b[2J\x1b]0;title\x07\x9b31m\u202e[bold red]x[/]\x7f"


class Named(archgym.Environment):
    """An environment whose names steer terminals and spreadsheets."""

    design_space = DesignSpace(
        [
            Categorical("mode", ["=1+1", "+cmd|' /C calc'!A0", "-2", "@SUM(A1)", ESCAPES]),
            Integer("x", 0, 3),
        ]
    )
    metrics = (archgym.Metric("time_ns", "ns", "minimize"),)
    default_objective = "minimize time_ns"
    baseline = {"mode": "-2", "x": 0}  # noqa: RUF012

    def simulate(self, design: dict[str, object]) -> dict[str, float]:
        if design["mode"] == "@SUM(A1)":
            raise ValueError(f"=reason {ESCAPES}")
        return {"time_ns": 1.0 + len(str(design["mode"])) + float(str(design["x"]))}


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("named") / "data"
    env = Named(record=folder)
    agent = make_agent("random", env.design_space, seed=0)
    with mock.patch.object(archgym.TrialInfo, "__post_init__", return_value=None):
        agent.search(env, budget=20, trial_id=f"=trial{ESCAPES}")  # which archgym itself refuses
    env.close()
    Dataset(folder).seal()
    return with_trial(folder, agent=f"@agent{ESCAPES}", environment=f"Env{ESCAPES}")


@pytest.mark.parametrize(
    "words",
    [
        ["best", "DATA"],
        ["best", "DATA", "--json"],
        ["dataset", "info", "DATA"],
        ["dataset", "info", "DATA", "--json"],
        ["dataset", "validate", "DATA", "--replay"],
        ["dataset", "validate", "DATA", "--json"],
        ["dataset", "export", "DATA", "OUT/a.csv", "--where", "nothing == 1"],
        ["report", "DATA", "--out", "OUT/report.html", "--tables", "OUT/tables"],
        ["dataset", "merge", "DATA", "DATA", "OUT/merged"],
        ["proxy", "train", "DATA", "--out", "OUT/proxy"],
    ],
    ids=" ".join,
)
def test_nothing_that_is_shown_steers_a_terminal(
    words: list[str], named: Path, tmp_path: Path, call: Callable[..., Called]
) -> None:
    ended = call(*(w.replace("DATA", str(named)).replace("OUT", str(tmp_path)) for w in words))
    for text in (ended.out, ended.err):
        assert printable(text) == text
    assert ended.code in (0, 1, 2)
    if "--json" in words:
        assert json.loads(ended.out)


def cells(path: Path) -> list[str]:
    with path.open(newline="", encoding="utf-8") as file:
        return [cell for row in csv.reader(file) for cell in row]


def test_no_cell_of_a_csv_file_is_a_formula(
    named: Path, tmp_path: Path, call: Callable[..., Called]
) -> None:
    export(load(named), tmp_path / "rows.csv")
    found = cells(tmp_path / "rows.csv")
    assert "'=1+1" in found
    assert "-2" in found
    assert any(cell.startswith("'=trial") for cell in found)
    assert not [c for c in found if c[:1] in "=+@" and c[:1]]
    assert call("report", named, "--out", tmp_path / "r.html", "--tables", tmp_path / "t").code == 0
    for table in (tmp_path / "t").glob("*.csv"):
        assert all(without_formula(cell) == cell for cell in cells(table)), table
    ended = call("dataset", "export", named, tmp_path / "raw.csv", "--formulas")
    assert ended.code == 0
    assert "=1+1" in cells(tmp_path / "raw.csv")


def test_a_csv_file_of_plain_texts_is_as_before(tmp_path: Path) -> None:
    env = archgym.make("Conformance-v0", record=tmp_path / "data")
    env.evaluate(env.baseline)
    env.close()
    export(load(tmp_path / "data"), tmp_path / "a.csv")
    export(load(tmp_path / "data"), tmp_path / "b.csv", formulas=True)
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_a_parquet_export_keeps_every_text(named: Path, tmp_path: Path) -> None:
    export(load(named), tmp_path / "rows.parquet")
    table = pq.read_table(tmp_path / "rows.parquet")
    assert "=1+1" in table["param.mode"].cast(pa.string()).to_pylist()
