"""Metrics while a program runs, and runs that a search stops."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

import archgym
from archgym.check.program import check_program
from archgym.data import Dataset, validate
from archgym.errors import InvalidValueError, SimulationError, StoppedEarly
from archgym.experiment.simulate.simulators import environment_with_workers
from archgym.registry import make_agent
from archgym.simulators.early_stopping import watching
from tests.declared.conftest import Write

SIMULATOR = r"""
BEGIN {
  x = ARGV[1]; y = ARGV[2]; final = 10 + (x - 7) ^ 2 + (y - 3) ^ 2
  for (step = 1; step <= 10; step++) {
    printf "cost so far = %.6f\n", final * (1 + 0.5 / step)
    printf "done %d %%\n", 10 * step; fflush()
    if (ENVIRON["PAUSE"]) system("sleep " ENVIRON["PAUSE"])
  }
  print "cost so far = " final
}
"""
DECLARATION = """
parameters:
  x: {integer: [0, 15], baseline: 0}
  y: {integer: [0, 15], baseline: 0}
stages:
  run: {run: [awk, -f, simulator.txt, "{{ x }}", "{{ y }}"], time_limit_s: 30}
files:
  - {path: simulator.txt, copy: simulator.txt}
metrics:
  cost_count: {key: cost so far}
  twice_count: {formula: 2 * cost_count}
partial: {regex: 'done (\\d+)', of: 100}
"""
PYTHON = ("awk, -f, ", "python3, ")
RULE: dict[str, Any] = {"growth": {}, "best": []}


@pytest.fixture
def declared(write: Write, tmp_path: Path) -> Write:
    """Writes the declaration and its simulator."""

    def make(*changes: tuple[str, str], simulator: str = SIMULATOR) -> str:
        (tmp_path / "simulator.txt").write_text(simulator)
        return write(*changes, text=DECLARATION)

    return make


def so_far(path: str, design: dict[str, Any] | None = None) -> dict[str, Any]:
    """What one run had on the way."""
    env = archgym.make(path)
    design = design or dict(env.baseline_design)
    with watching(RULE) as watch:
        env.simulator.simulate(env.design_space.designs([design]))
    return watch.so_far


def searched(path: str, folder: Path, *, budget: int = 40, **settings: Any) -> Dataset:
    """The dataset of a search with a genetic algorithm that stops runs early."""
    with environment_with_workers(path, {"stop_early": True, **settings}, record=folder) as env:
        make_agent("ga", env.design_space, seed=3).search(env, budget, trial_id="one")
    return Dataset(folder)


def rows(dataset: Dataset) -> list[tuple[Any, ...]]:
    """What is the same in two equal searches."""
    table = dataset.evaluations().to_pylist()
    names = ("param.x", "param.y", "metric.cost_count", "reward", "status", "reason", "partial")
    return [tuple(row[name] for name in names) for row in table]


def test_metrics_are_seen_at_shares_of_the_run(declared: Write) -> None:
    seen = so_far(declared(("of: 100", "of: 100, at: [0.1, 0.5, 0.9]")), {"x": 7, "y": 3})
    assert seen == {
        "0.1": {"cost_count": 15.0, "twice_count": 30.0},
        "0.5": {"cost_count": 11.0, "twice_count": 22.0},
        "0.9": {"cost_count": 10.555556, "twice_count": 21.111112},
    }


def test_lines_that_are_counted_and_a_formula_of_the_whole(declared: Write) -> None:
    counted = "partial: {counts: '^done', of: 10, at: [0.2, 0.35]}"
    seen = so_far(declared(("partial: {regex: 'done (\\d+)', of: 100}", counted)))
    assert list(seen) == ["0.2", "0.35"]
    assert seen["0.2"]["cost_count"] == 68 * 1.25
    assert seen["0.35"]["cost_count"] == 68 * 1.125
    wrong = so_far(declared(("of: 100", "of: 100 * x")))  # the baseline's x is 0: no whole
    assert wrong == {}


def test_metrics_from_a_file_and_by_another_pattern(declared: Write) -> None:
    path = declared(
        ("of: 100", "of: 100, from: log.txt, metrics: {cost_count: 'now (\\S+)'}, at: [0.5]"),
        simulator=SIMULATOR.replace(
            'printf "done %d %%\\n", 10 * step',
            'printf "now %d\\ndone %d %%\\n", step, 10 * step > "log.txt"',
        ),
    )
    assert so_far(path) == {"0.5": {"cost_count": 5.0, "twice_count": 10.0}}


def test_what_is_seen_does_not_depend_on_when_it_is_looked_at(
    declared: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    fast = so_far(declared())
    monkeypatch.setenv("PAUSE", "0.03")
    assert so_far(declared()) == fast


@pytest.mark.parametrize(
    ("printed", "seen"),
    [
        ("", {}),
        ("print('done')\nprint('done x %')", {}),
        ("print('done 50')\nprint('cost so far = none')\nprint('done 60')", {"0.5": {}, "0.6": {}}),
        ("print('cost so far = nan')\nprint('done', 10**30)", {}),
        ("print('done -3')\nprint('done 1e400')", {}),
        ("sys.stdout.buffer.write(b'\\xff\\xfe\\n' * 9 + b'done 55\\n')", {"0.5": {}}),
        ("print('done 20' * 100000)", {"0.2": {}}),
    ],
)
def test_a_program_that_says_nothing_or_garbage_runs_to_its_end(
    declared: Write, printed: str, seen: object
) -> None:
    path = declared(PYTHON, simulator=f"import sys\n{printed}\nprint('cost so far = 5')\n")
    assert so_far(path) == seen
    assert archgym.make(path).evaluate({"x": 1, "y": 1}).metrics["cost_count"] == 5


def one_result(path: str) -> tuple[object, dict[str, Any]]:
    """The result of a run, and what it had on the way."""
    env = archgym.make(path)
    with watching(RULE) as watch:
        result, _ = env.simulator.simulate(env.design_space.designs([{"x": 1, "y": 1}]))[0]
    return result, watch.so_far


def test_endless_output_ends_by_its_limit(declared: Write) -> None:
    limit = ("time_limit_s: 30", "time_limit_s: 30, output_limit_mb: 1")
    path = declared(PYTHON, limit, simulator="while True: print('done 0.001')")
    result, _ = one_result(path)
    assert isinstance(result, SimulationError)
    assert "printed more than" in str(result)


def test_a_hang_between_two_shares_ends_by_the_time_limit(declared: Write) -> None:
    hang = 'BEGIN { print "done 10"; fflush(); system("sleep 60") }'
    result, seen = one_result(declared(("time_limit_s: 30", "time_limit_s: 2"), simulator=hang))
    assert isinstance(result, TimeoutError)
    assert list(seen) == ["0.1"]


def test_a_long_log_is_read_once(declared: Write) -> None:
    text = "import sys\nfor i in range(200000): print('cost so far =', i)\nprint('done 50')\n"
    path = declared(PYTHON, ("of: 100", "of: 100, at: [0.5]"), simulator=text + "print('done 100')")
    began = time.process_time()
    assert so_far(path) == {"0.5": {"cost_count": 199999.0, "twice_count": 399998.0}}
    assert time.process_time() - began < 20


def ended(pid: str) -> bool:
    try:
        stat = Path("/proc", pid, "stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return True
    return stat.rpartition(")")[2].split()[0] == "Z"


def test_a_run_that_is_clearly_worse_is_stopped_and_ended(declared: Write, tmp_path: Path) -> None:
    forked = f"""
import os, time
child = os.fork()
if child:
    open("{tmp_path}/pids", "a").write(f"{{os.getpid()}} {{child}} ")
    print("cost so far = 300")
    print("done 10 %", flush=True)
time.sleep(60)
"""
    path = declared(PYTHON, simulator=forked)
    growth = {"0.1": {"cost_count": ["times", 0.6, 0.66, 0.7]}}
    env = archgym.make(path)
    about = {
        "objective": env.objective.to_json(),
        "metrics": [metric.to_json() for metric in env.metrics],
        "baseline": [68.0, 136.0],
    }
    rule = {"growth": growth, "best": [[-1.5]], "finished": 9, **about}
    design = env.design_space.designs([{"x": 15, "y": 15}])
    with watching(rule):
        result, _ = env.simulator.simulate(design)[0]
    assert isinstance(result, StoppedEarly)
    assert result.record["progress"] == 0.1
    assert result.record["predicted"] == {"cost_count": pytest.approx(198)}
    assert "stopped at 10%" in str(result)
    limit = time.monotonic() + 30  # a killed process ends when it is given a processor
    for pid in (tmp_path / "pids").read_text().split():
        while not ended(pid):
            assert time.monotonic() < limit, f"process {pid} goes on"
            time.sleep(0.01)


def test_a_search_stops_designs_and_keeps_its_best(declared: Write, tmp_path: Path) -> None:
    path = declared()
    with environment_with_workers(path, {"stop_early": True}, record=tmp_path / "rows") as env:
        found = make_agent("ga", env.design_space, seed=3).search(env, 60)
    table = Dataset(tmp_path / "rows").evaluations().to_pylist()
    stopped = [row for row in table if row["status"] == "stopped" and not row["cached"]]
    assert len(stopped) > 20
    assert found.best is not None
    assert found.best.status == "ok"
    assert found.simulations == 60
    best = min(row["metric.cost_count"] for row in table if row["status"] == "ok")
    assert found.best.metrics["cost_count"] == best
    for row in stopped:
        record = json.loads(row["partial"])
        assert row["metric.cost_count"] is None
        assert not row["feasible"]
        assert "worse than the best design" in row["reason"]
        assert 0 < record["progress"] < 1
        final = 10 + (row["param.x"] - 7) ** 2 + (row["param.y"] - 3) ** 2
        assert record["predicted"]["cost_count"] == pytest.approx(final, rel=0.02)
        assert final > best  # nothing was stopped that is better
    whole = [row for row in table if row["status"] == "ok" and not row["cached"]]
    assert all("so_far" in json.loads(row["partial"]) for row in whole)
    assert all(check.passed for check in validate(Dataset(tmp_path / "rows")))


def test_the_same_seed_gives_the_same_log(declared: Write, tmp_path: Path) -> None:
    path = declared()
    once = rows(searched(path, tmp_path / "once"))
    assert rows(searched(path, tmp_path / "again", workers=1)) == once
    assert any(row[4] == "stopped" for row in once)


def test_a_resumed_search_goes_on_as_if_nothing_had_happened(
    declared: Write, tmp_path: Path
) -> None:
    path = declared()
    whole = rows(searched(path, tmp_path / "whole"))
    settings = {"stop_early": True}
    with environment_with_workers(path, settings, record=tmp_path / "cut") as env:
        seen = []

        def stop(outcomes: Any) -> None:
            seen.extend(outcomes)
            if len(seen) > 25:
                raise KeyboardInterrupt

        env.on_evaluated = stop
        with pytest.raises(KeyboardInterrupt):
            make_agent("ga", env.design_space, seed=3).search(env, 40, trial_id="one")
    before = rows(Dataset(tmp_path / "cut"))
    assert before == whole[: len(before)]
    assert 20 < len(before) < 40
    with environment_with_workers(path, settings, record=tmp_path / "cut") as env:
        agent = make_agent("ga", env.design_space, seed=3)
        agent.search(env, 40, trial_id="one", resume=True)
    assert rows(Dataset(tmp_path / "cut")) == whole


def test_a_cache_keeps_no_run_that_was_stopped(declared: Write, tmp_path: Path) -> None:
    path = declared()
    cache = str(tmp_path / "cache.sqlite")
    dataset = searched(path, tmp_path / "rows", cache=cache)
    stopped = next(row for row in rows(dataset) if row[4] == "stopped")
    with environment_with_workers(path, {"cache": cache}) as env:
        outcome = env.evaluate({"x": stopped[0], "y": stopped[1]})
    assert outcome.status == "ok"
    assert outcome.metrics["cost_count"] == 10 + (stopped[0] - 7) ** 2 + (stopped[1] - 3) ** 2


def test_runs_of_a_batch_do_not_know_of_each_other(declared: Write, tmp_path: Path) -> None:
    path = declared()
    settings = {"workers": 2, "asynchronous": False}
    once = rows(searched(path, tmp_path / "once", **settings))
    again = rows(searched(path, tmp_path / "again", **settings))
    assert sorted(once) == sorted(again)


def test_repeats_are_a_race(write: Write, tmp_path: Path) -> None:
    text = """
parameters:
  x: {integer: [0, 30], baseline: 0}
stages:
  run: {run: [awk, 'BEGIN { print "cost =", 10 + {{ x }} + 0.1 * {{ repeat }} }']}
metrics:
  cost_count: {key: cost}
noise: {repeats: 4}
"""
    path = write(text=text)
    env = archgym.make(path)
    assert env.metrics_so_far == ("cost_count", "cost_count_spread_share")
    dataset = searched(path, tmp_path / "rows", budget=20)
    table = dataset.evaluations().to_pylist()
    records = [json.loads(row["partial"]) for row in table if row["status"] == "stopped"]
    assert records
    assert {record["progress"] for record in records} == {0.25}


def test_workloads_are_a_race(write: Write, tmp_path: Path) -> None:
    text = """
parameters:
  x: {integer: [0, 30], baseline: 0}
workloads:
  a: {values: {plus: 1}}
  b: {values: {plus: 2}}
stages:
  run: {run: [awk, 'BEGIN { print "cost =", 10 + {{ x }} + {{ plus }} }']}
metrics:
  cost_count: {key: cost}
"""
    table = searched(write(text=text), tmp_path / "rows", budget=20).evaluations().to_pylist()
    records = [json.loads(row["partial"]) for row in table if row["status"] == "stopped"]
    assert {record["progress"] for record in records} == {0.5}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("of: 100", "of: 100, counts: done"), "exactly one of the keys regex and counts"),
        (("of: 100", "of: 100, stage: ran"), "Did you mean 'run'"),
        (("of: 100", "of: 100, from: log"), "no metric is read from log of stage 'run'"),
        (("of: 100", "of: 100, at: [0.5, 0.2]"), "its shares ascend"),
        (("of: 100", "of: 100, at: [0]"), "partial.at"),
        (("of: 100", "of: hundred"), "hundred"),
        (("of: 100", "of: 0"), "of cannot be 0: allowed is more than 0"),
        (("of: 100", "of: 100, metrics: {cost: x}"), "Did you mean 'cost_count'"),
        (("done (\\d+)", "done ("), "no regular expression"),
    ],
)
def test_mistakes_name_the_line(declared: Write, change: tuple[str, str], message: str) -> None:
    with pytest.raises(archgym.errors.ArchgymError, match=r"line 1[0-9]") as caught:
        archgym.make(declared(change))
    assert message in str(caught.value)
    assert str(caught.value).count("line 1") == 1


def test_a_search_that_cannot_stop_anything_is_refused(declared: Write, write: Write) -> None:
    silent = declared(("partial: {regex: 'done (\\d+)', of: 100}", ""))
    with (
        pytest.raises(InvalidValueError, match="gives no metrics while a design is simulated"),
        environment_with_workers(silent, {"stop_early": True}),
    ):
        pass
    unseen = declared(("partial", "  end_s: {seconds: run}\nobjective: minimize end_s\npartial"))
    with (
        pytest.raises(InvalidValueError, match=r"looks at end_s, .*known are cost_count"),
        environment_with_workers(unseen, {"stop_early": True}),
    ):
        pass
    with (
        pytest.raises(archgym.errors.ArchgymError, match="takes no stop_early"),
        environment_with_workers(
            unseen, {"stop_early": True, "clock": "simulated", "duration": 1.0}
        ),
    ):
        pass


def test_check_notices_output_that_is_kept_back(declared: Write) -> None:
    loop = "for n in range(1, 11): print('cost so far =', n, '\\ndone', 10 * n)"
    late = f"import time\ntime.sleep(0.8)\n{loop}\n"
    (result,) = check_program(declared(PYTHON, simulator=late), only=["partial"])
    assert not result.passed
    assert "It must flush each line" in result.detail


def test_check_names_what_the_objective_lacks_on_the_way(declared: Write) -> None:
    more = ("metrics:", "objective: minimize end_count\nmetrics:\n  end_count: {key: end}")
    simulator = SIMULATOR.replace('print "cost so far', 'print "end = 3"; print "cost so far')
    (result,) = check_program(declared(more, simulator=simulator), only=["partial"])
    assert not result.passed
    assert "end_count of the objective is not seen on the way" in result.detail


def test_check_shows_what_is_seen(declared: Write) -> None:
    (_, result) = check_program(declared(), only=["can_be_made", "partial"])
    assert result.passed
    assert "metrics are seen at 10%, 20%" in result.detail
    (_, result) = check_program(declared(("done (", "finished (")), only=["can_be_made", "partial"])
    assert not result.passed
    assert "no metric was seen in stdout of stage run" in result.detail
    silent = declared(("partial: {regex: 'done (\\d+)', of: 100}", ""))
    assert check_program(silent, only=["partial"]) == []


@pytest.mark.parametrize("flush", [False, True])
def test_check_notices_a_program_that_keeps_its_output_back(declared: Write, flush: bool) -> None:
    simulator = (
        "import time\n"
        "for step in range(1, 7):\n"
        "    print('cost so far =', 20 / step)\n"
        f"    print('done', 15 * step, '%', flush={flush})\n"
        "    time.sleep(0.15)\n"
    )
    # -E: whatever PYTHONUNBUFFERED says in the shell of the tests
    path = declared(("awk, -f, ", "python3, -E, "), simulator=simulator)
    (_, result) = check_program(path, only=["can_be_made", "partial"])
    assert result.passed == flush, result.detail
    assert ("keeps its output back" in result.detail) != flush
