from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import archgym
from archgym.data import Dataset, equal_trajectories, export
from archgym.data.dataset import TIMING_COLUMNS
from archgym.data.schema import FLIGHT_COLUMNS
from archgym.errors import DatasetError, ReplayMismatchError, UnknownNameError
from archgym.evaluation.trial_info import TrialInfo
from archgym.space import DesignSpace, Integer
from tests.helpers import Adder, Grumpy

DESIGNS: list[dict[str, Any]] = [
    {"x": x, "y": y, "mode": "plain"} for x, y in ((0, 0), (4, 4), (2, 1), (3, 0), (0, 0), (4, 0))
]


def trial(
    env: archgym.Environment, name: str, *, resume: bool = False, budget: int | None = None
) -> None:
    env.start_trial(TrialInfo(trial_id=name, agent="test", seed=3, budget=budget, resume=resume))


def rows(folder: Path, trial_id: str | None = None) -> list[dict[str, Any]]:
    table = Dataset(folder).evaluations(trial_id=trial_id).to_pylist()
    return [{k: v for k, v in row.items() if k not in TIMING_COLUMNS[:3]} for row in table]


def lines(folder: Path) -> list[Any]:
    return [
        json.loads(line)
        for path in sorted((folder / "journal").glob("*.jsonl"))
        for line in path.read_text().splitlines()
    ]


def test_rows_hold_what_was_returned(tmp_path: Path) -> None:
    env = Grumpy(record=tmp_path, objective={"minimize": "total_ns", "limits": ["total_ns <= 2"]})
    trial(env, "one")
    outcomes = [env.evaluate(design) for design in DESIGNS]
    for step, (row, outcome) in enumerate(zip(rows(tmp_path), outcomes, strict=True)):
        assert row["trial_id"] == "one"
        assert row["step"] == step
        assert row["parent_step"] is None
        assert {n: row[f"param.{n}"] for n in outcome.design} == outcome.design
        assert row["param.scale"] is None
        for name in ("total_ns", "speed_rate"):
            assert row[f"metric.{name}"] == outcome.metrics.get(name)
        for name in ("reward", "status", "reason", "feasible", "cached"):
            assert row[name] == getattr(outcome, name)
        assert row["fidelity"] == 1.0
    env.close()
    (row,) = Dataset(tmp_path).trials().to_pylist()
    assert (row["trial_id"], row["agent"], row["seed"], row["state"]) == (
        "one",
        "test",
        3,
        "closed",
    )
    assert row["started"] <= row["ended"]
    assert json.loads(row["objective"])["limits"] == ["total_ns <= 2"]
    assert json.loads(row["baseline"]) == {"total_ns": 5.0, "speed_rate": 0.2}


def test_a_row_is_with_the_operating_system_before_the_caller_is_told(tmp_path: Path) -> None:
    env = Adder(record=tmp_path)
    for step, design in enumerate(DESIGNS[:3]):
        env.evaluate(design)
        assert lines(tmp_path)[-1][1] == step


def test_batches_steps_and_single_designs_leave_equal_rows(tmp_path: Path) -> None:
    env = Adder(record=tmp_path)
    designs = env.design_space.designs(DESIGNS)
    trial(env, "batch")
    env.evaluate_batch(designs)
    trial(env, "steps")
    for action in env.encoding.encode(designs):
        env.step(action)
        env.reset()
    trial(env, "single")
    for design in DESIGNS:
        env.evaluate(design)
    env.close()
    found = {name: rows(tmp_path, name) for name in ("batch", "steps", "single")}
    for part in found.values():
        assert len(part) == len(DESIGNS)
        for row in part:
            del row["trial_id"]
    assert found["batch"] == found["steps"] == found["single"]


def test_sealing_changes_nothing_but_the_files(tmp_path: Path) -> None:
    env = Grumpy(record=tmp_path)
    env.evaluate_batch(DESIGNS)
    env.close()
    before, trials = rows(tmp_path), Dataset(tmp_path).trials()
    Dataset(tmp_path).seal()
    Dataset(tmp_path).seal()
    assert not list((tmp_path / "journal").iterdir())
    assert len(list((tmp_path / "evaluations").iterdir())) == 1
    assert rows(tmp_path) == before
    assert Dataset(tmp_path).trials().equals(trials)


def test_files_from_before_there_were_executors_can_be_read(tmp_path: Path) -> None:
    env = Adder(record=tmp_path)
    trial(env, "t")
    env.evaluate_batch(env.design_space.sample(5, np.random.default_rng(0)))
    env.close()
    dataset = Dataset(tmp_path)
    dataset.seal()
    whole = dataset.evaluations()
    (part,) = (tmp_path / "evaluations").glob("*.parquet")
    table = pq.read_table(part)
    names = [name for name in table.column_names if name not in FLIGHT_COLUMNS]
    pq.write_table(table.select(names), part)
    assert dataset.evaluations() == whole
    assert dataset.evaluations(["step", "worker"])["worker"].null_count == len(whole)


def test_a_crash_between_renaming_and_unlinking_leaves_no_row_twice(tmp_path: Path) -> None:
    env = Adder(record=tmp_path)
    env.evaluate_batch(DESIGNS)
    env.end_trial()
    (journal,) = (tmp_path / "journal").iterdir()
    text = journal.read_bytes()
    before = rows(tmp_path)
    Dataset(tmp_path).seal()
    journal.write_bytes(text)  # as if the process had died before it unlinked the journal
    assert rows(tmp_path) == before
    assert Dataset(tmp_path).trials().num_rows == 1
    Dataset(tmp_path).seal()
    assert not journal.exists()
    assert rows(tmp_path) == before


def test_sealing_leaves_a_living_writer_alone(tmp_path: Path) -> None:
    code = """
import sys
from tests_helpers import Adder
env = Adder(record=sys.argv[1])
for y in range(5):
    env.evaluate({"x": 0, "y": y, "mode": "plain"})
    print(y, flush=True)
    sys.stdin.readline()
env.close()
"""
    writer = run_script(code, tmp_path)
    assert writer.stdin is not None
    assert writer.stdout is not None
    for y in range(5):
        assert writer.stdout.readline().strip() == str(y)
        Dataset(tmp_path).seal()
        assert [row["param.y"] for row in rows(tmp_path)] == list(range(y + 1))
        writer.stdin.write("\n")
        writer.stdin.flush()
    assert writer.wait(60) == 0
    Dataset(tmp_path).seal()
    assert not list((tmp_path / "journal").iterdir())
    assert [row["param.y"] for row in rows(tmp_path)] == list(range(5))


def test_many_processes_may_seal_while_others_read(tmp_path: Path) -> None:
    env = Adder(record=tmp_path)
    code = """
import sys
from archgym.data import Dataset
sys.stdin.readline()
for _ in range(30):
    Dataset(sys.argv[1]).seal()
print("sealed", flush=True)
"""
    sealers = [run_script(code, tmp_path) for _ in range(2)]
    for sealer in sealers:
        assert sealer.stdin is not None
        sealer.stdin.write("\n")
        sealer.stdin.flush()
    written = 0
    while any(sealer.poll() is None for sealer in sealers) or written == 0:
        env.start_trial(TrialInfo(trial_id=f"t{written}"))
        env.evaluate(DESIGNS[0])
        env.end_trial()
        written += 1
        assert Dataset(tmp_path).evaluations().num_rows == written
        assert Dataset(tmp_path).trials().num_rows == written
    assert [sealer.wait() for sealer in sealers] == [0, 0]


def run_script(code: str, *arguments: Any) -> subprocess.Popen[str]:
    """A Python process that can import this folder's helpers as ``tests_helpers``."""
    helpers = Path(__file__).parent.parent / "helpers.py"
    loader = f"""
import importlib.util, sys
spec = importlib.util.spec_from_file_location("tests_helpers", {str(helpers)!r})
module = importlib.util.module_from_spec(spec)
sys.modules["tests_helpers"] = module
spec.loader.exec_module(module)
"""
    return subprocess.Popen(
        [sys.executable, "-c", loader + code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_two_environments_record_into_one_folder(tmp_path: Path) -> None:
    first, second = Adder(record=tmp_path), Adder(record=tmp_path, objective="maximize speed_rate")
    for design in DESIGNS:
        first.evaluate(design)
        second.evaluate(design)
    first.close()
    second.evaluate({"x": 1, "y": 1, "mode": "plain"})
    second.close()
    trials = Dataset(tmp_path).trials()["trial_id"].to_pylist()
    assert sorted(len(rows(tmp_path, name)) for name in trials) == [6, 7]


def test_an_ended_trial_is_followed_by_a_new_one(tmp_path: Path) -> None:
    env = Adder(record=tmp_path)
    env.evaluate(DESIGNS[0])
    env.end_trial("finished")
    assert not env.evaluate(DESIGNS[0]).cached
    env.close()
    env.close()
    assert Dataset(tmp_path).trials()["state"].to_pylist() == ["finished", "closed"]
    assert [row["step"] for row in rows(tmp_path)] == [0, 0]


def test_a_forked_process_goes_on_in_a_journal_and_a_trial_of_its_own(tmp_path: Path) -> None:
    env = Adder(record=tmp_path)
    trial(env, "parent")
    env.evaluate(DESIGNS[0])
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            env.evaluate(DESIGNS[2])
            env.evaluate(DESIGNS[3])
            env.close()
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0
    env.evaluate(DESIGNS[5])
    env.end_trial()
    assert [row["step"] for row in rows(tmp_path, "parent")] == [0, 1]
    assert [row["step"] for row in rows(tmp_path, f"parent-{pid}")] == [0, 1]
    assert len(list((tmp_path / "journal").iterdir())) == 2
    Dataset(tmp_path).seal()
    assert len(rows(tmp_path)) == 4


def test_another_design_space_or_simulator_is_refused(tmp_path: Path) -> None:
    Adder(record=tmp_path).close()

    class Newer(Adder):
        version = "2"

    class Other(Adder):
        design_space = DesignSpace([Integer("x", 0, 4), Integer("y", 0, 4)])
        baseline = {"x": 2, "y": 2}  # noqa: RUF012

    for kind, message in ((Newer, "simulators differ"), (Other, "differ in their parameters")):
        with pytest.raises(DatasetError, match=message):
            kind(record=tmp_path)
    Adder(record=tmp_path, fixed={"x": 1}).close()


def test_a_folder_that_cannot_be_written_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DatasetError, match=r"cannot write to .*file"):
        Adder(record=tmp_path / "file" / "out")
    with pytest.raises(DatasetError, match="is not a dataset"):
        Dataset(tmp_path / "nowhere")


@pytest.mark.parametrize("partly", [0, 10])
def test_a_full_disk_leaves_no_half_row_and_no_trace_of_the_evaluation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, partly: int
) -> None:
    env = Adder(record=tmp_path)
    env.evaluate(DESIGNS[0])
    before = lines(tmp_path)
    write = os.pwrite
    calls = []

    def full(handle: int, data: bytes, at: int) -> int:
        calls.append(handle)
        if partly and len(calls) == 1:
            return write(handle, data[:partly], at)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(DatasetError, match="No space left"):
        env.evaluate(DESIGNS[2])
    calls.clear()
    with pytest.raises(DatasetError, match="No space left"):
        env.evaluate_batch(DESIGNS)
    monkeypatch.undo()
    assert lines(tmp_path) == before
    assert env.evaluator.proposals == 1
    outcome = env.evaluate(DESIGNS[2])
    env.close()
    assert not outcome.cached
    assert [row["step"] for row in rows(tmp_path)] == [0, 1]


def test_a_torn_last_line_is_left_out(tmp_path: Path) -> None:
    env = Adder(record=tmp_path)
    env.evaluate_batch(DESIGNS)
    env.end_trial()
    (journal,) = (tmp_path / "journal").iterdir()
    content = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(content[:5]) + content[5][:20])
    assert [row["step"] for row in rows(tmp_path)] == [0, 1, 2, 3]
    journal.write_bytes(b"".join([*content[:3], b"[0, 7\n", *content[3:]]))
    with pytest.raises(DatasetError, match="line 4 is not JSON"):
        rows(tmp_path)


def test_a_resumed_trial_replays_and_goes_on_as_if_nothing_had_happened(tmp_path: Path) -> None:
    undisturbed = Grumpy(record=tmp_path / "whole")
    trial(undisturbed, "t", budget=20)
    whole = undisturbed.evaluate_batch(DESIGNS)
    undisturbed.close()
    for stop in range(len(DESIGNS) + 1):
        folder = tmp_path / str(stop)
        env = Grumpy(record=folder)
        trial(env, "t", budget=20)
        env.evaluate_batch(DESIGNS[:stop])
        env.close()
        again = Grumpy(record=folder)
        trial(again, "t", budget=20, resume=True)
        outcomes = again.evaluate_batch(DESIGNS)
        again.end_trial("finished")
        assert len(again.simulated) == len(undisturbed.simulated) - len(env.simulated)
        for name in ("reward", "status", "cached", "feasible"):
            assert getattr(outcomes, name).tolist() == getattr(whole, name).tolist()
        assert outcomes.reason == whole.reason
        assert equal_trajectories(
            Dataset(folder).evaluations(), Dataset(tmp_path / "whole").evaluations()
        )
        assert Dataset(folder).trials()["state"].to_pylist() == ["finished"]


def test_a_resumed_trial_that_proposes_something_else_is_refused(tmp_path: Path) -> None:
    env = Adder(record=tmp_path)
    trial(env, "t")
    env.evaluate_batch(DESIGNS)
    trial(env, "t", resume=True)
    env.evaluate(DESIGNS[0])
    with pytest.raises(ReplayMismatchError, match=r"step 1: .*'x': 2.*log holds .*'x': 4"):
        env.evaluate(DESIGNS[2])
    assert len(rows(tmp_path)) == len(DESIGNS)


def test_export(tmp_path: Path) -> None:
    env = Adder(record=tmp_path / "data")
    env.evaluate_batch(DESIGNS)
    env.close()
    dataset = Dataset(tmp_path / "data")
    assert export(dataset, tmp_path / "out" / "rows.parquet") == len(DESIGNS)
    assert export(dataset, tmp_path / "rows.csv") == len(DESIGNS)
    table = pq.read_table(tmp_path / "out" / "rows.parquet")
    assert table["param.x"].to_pylist() == [design["x"] for design in DESIGNS]
    assert set(table["agent"].to_pylist()) == {"external"}
    header = (tmp_path / "rows.csv").read_text().splitlines()[0]
    assert "metric.total_ns" in header
    with pytest.raises(DatasetError, match="exists already"):
        export(dataset, tmp_path / "rows.csv")
    with pytest.raises(
        UnknownNameError, match="Allowed: card, csv, hf, minari, optuna, parquet, t4"
    ):
        export(dataset, tmp_path / "rows.xls")


def test_info_counts(tmp_path: Path) -> None:
    env = Grumpy(record=tmp_path)
    env.evaluate_batch(DESIGNS)
    env.close()
    info = Dataset(tmp_path).info()
    assert info["evaluations"] == len(DESIGNS)
    assert info["simulated"] == env.evaluator.simulations
    assert info["status"] == {"failed": 3, "illegal": 2, "ok": 1}


@pytest.mark.parametrize(
    "kills", [5, pytest.param(20, marks=pytest.mark.nightly)], ids=["few", "full"]
)
def test_a_killed_process_loses_nothing_that_it_told(tmp_path: Path, kills: int) -> None:
    code = """
import sys
from tests_helpers import Adder
from archgym.space import DesignSpace, Integer
class Wide(Adder):
    design_space = DesignSpace([Integer("x", 0, 1000), Integer("y", 0, 1000)])
    baseline = {"x": 0, "y": 0}
env = Wide(record=sys.argv[1])
env.start_trial(__import__("archgym").TrialInfo(trial_id=sys.argv[2]))
print("ready", flush=True)
for i in range(1_000_000):
    outcome = env.evaluate({"x": i % 1001, "y": i // 1001})
    print(i, outcome.reward, flush=True)
"""
    rng = np.random.default_rng(0)
    for number in range(kills):
        process = run_script(code, tmp_path, f"t{number}")
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        heard = [process.stdout.readline() for _ in range(int(rng.integers(1, 2000)))]
        process.kill()
        heard += process.stdout.readlines()
        process.wait()
        told = [line.split() for line in heard if line.endswith("\n")]
        assert told
        table = Dataset(tmp_path).evaluations(["step", "reward"], trial_id=f"t{number}").to_pylist()
        assert [row["step"] for row in table] == list(range(len(table)))
        for i, reward in told:
            assert table[int(i)]["reward"] == float(reward)
    Dataset(tmp_path).seal()
    assert Dataset(tmp_path).trials()["state"].to_pylist() == ["running"] * kills
