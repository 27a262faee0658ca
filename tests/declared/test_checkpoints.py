"""Longer fidelities that go on from what shorter ones left."""

from __future__ import annotations

from pathlib import Path

import pytest

import archgym
from archgym.data import Dataset
from archgym.declared.checkpoints import Checkpoints
from archgym.declared.stage_folders import StageFolders
from archgym.errors import ArchgymError, SimulationError
from archgym.registry import make_agent
from tests.declared.conftest import Write

SIMULATOR = """
import os, sys
n, x, place = int(sys.argv[1]), int(sys.argv[2]), sys.argv[4]
done = total = steps = 0
if os.path.exists(place):
    done, total = map(int, open(place).read().split())
while done < n:
    total, done, steps = total + (x * done) % 7, done + 1, steps + 1
os.makedirs(os.path.dirname(place) or ".", exist_ok=True)
open(place, "w").write(f"{done} {total}")
print(f"total = {total * 1000 / n}\\nsteps = {steps}\\nfrom = {sys.argv[3]}")
"""
DECLARATION = """
parameters:
  x: {integer: [0, 15], baseline: 1}
workloads:
  a: {values: {place: state/here}}
  b: {values: {place: state/here}, held_out: true}
fidelities:
  - {value: 0.1, cost: 0.1, values: {n: 100}}
  - {value: 0.5, cost: 0.5, values: {n: 500}}
  - {value: 1, cost: 1, values: {n: 1000}}
stages:
  run:
    run: [python3, simulator.py, "{{ n }}", "{{ x }}", "{{ resumed_from }}", "{{ place }}"]
    checkpoint: state
files:
  - {path: simulator.py, copy: simulator.py}
metrics:
  total_count: {key: total}
  steps_count: {key: steps}
  from_rate: {key: from}
"""


@pytest.fixture
def declared(write: Write, tmp_path: Path) -> Write:
    """Writes the declaration and its simulator."""

    def make(*changes: tuple[str, str]) -> str:
        (tmp_path / "simulator.py").write_text(SIMULATOR)
        return write(*changes, text=DECLARATION)

    return make


def test_a_longer_run_goes_on_and_gives_the_same(declared: Write, tmp_path: Path) -> None:
    path = declared()
    fresh = archgym.make(path, stages=tmp_path / "fresh").evaluate({"x": 3}).metrics
    assert (fresh["steps_count"], fresh["from_rate"]) == (1000, 0)
    env = archgym.make(path, stages=tmp_path / "stages")
    found = [env.evaluate({"x": 3}, value).metrics for value in (0.1, 0.5, 1.0)]
    assert [one["steps_count"] for one in found] == [100, 400, 500]
    assert [one["from_rate"] for one in found] == [0, 0.1, 0.5]
    assert found[2]["total_count"] == fresh["total_count"]
    other = env.evaluate({"x": 4}).metrics  # another design has none
    assert other["steps_count"] == 1000
    held_out = archgym.make(path, workload="b", stages=tmp_path / "stages").evaluate({"x": 3})
    assert held_out.metrics["steps_count"] == 1000


def test_a_file_is_a_checkpoint_as_well(declared: Write, tmp_path: Path) -> None:
    path = declared(("checkpoint: state", "checkpoint: state/here"))
    env = archgym.make(path, stages=tmp_path / "stages")
    found = [env.evaluate({"x": 3}, value).metrics["steps_count"] for value in (0.5, 1.0)]
    assert found == [500, 500]


def test_hyperband_simulates_less(declared: Write, tmp_path: Path) -> None:
    env = archgym.make(declared(), stages=tmp_path / "stages", record=tmp_path / "rows")
    make_agent("hyperband", env.design_space, seed=0).search(env, 8)
    table = Dataset(tmp_path / "rows").evaluations().to_pylist()
    went_on = [row for row in table if row["metric.from_rate"]]
    assert went_on
    for row in went_on:
        all_steps = round(1000 * (row["fidelity"] - row["metric.from_rate"]))
        assert row["metric.steps_count"] == all_steps


def test_what_was_cut_off_is_no_checkpoint(tmp_path: Path) -> None:
    folders = StageFolders(tmp_path / "stages")
    run = tmp_path / "run"
    (run / "state").mkdir(parents=True)
    (run / "state" / "a").write_text("1")
    low = Checkpoints(folders, ["design"], [0.1, 1.0], 0.1)
    high = Checkpoints(folders, ["design"], [0.1, 1.0], 1.0)
    half = tmp_path / "stages" / ".checkpoint-half"
    half.mkdir()
    assert high.restore("state", tmp_path / "next") == 0.0
    low.save("state", run)
    low.save("state", run)  # a second process
    assert high.restore("state", tmp_path / "next") == 0.1
    assert (tmp_path / "next" / "state" / "a").read_text() == "1"
    high.save("state", run)  # no longer run follows
    assert len(list((tmp_path / "stages").glob("checkpoint-*"))) == 1
    with pytest.raises(SimulationError, match="left no checkpoint 'nothing'"):
        Checkpoints(folders, ["other"], [0.1, 1.0], 0.1).save("nothing", run)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("checkpoint: state", "checkpoint: ../state"), "inside|in the folder of the run"),
        (("checkpoint: state", "checkpoint: state\n    uses: [x]"), "sees only what it uses|uses"),
        (
            ("stages:\n", "stages:\n  first: {run: ['true'], checkpoint: other}\n"),
            "stage 'first' has one already",
        ),
    ],
)
def test_mistakes_are_named(declared: Write, change: tuple[str, str], message: str) -> None:
    with pytest.raises(ArchgymError, match=message):
        archgym.make(declared(change))
