"""A program simulates designs of archgym's agents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import archgym
from archgym.data import Dataset
from archgym.data.dataset import equal_trajectories
from archgym.errors import InvalidValueError
from tests.serve.conftest import Begin, Program, wait_ns

CLIENT = {"simulator": "client:queue-1"}


def _simulate(program: Program, limit: int = 1000, n: int = 1) -> list[dict[str, Any]]:
    """Simulates until the search is over, or for so many designs."""
    simulated: list[dict[str, Any]] = []
    while len(simulated) < limit:
        answer = program.good("ask", n=n)
        if answer["over"]:
            break
        assert answer["designs"]
        for one in answer["designs"]:
            metrics = {"wait_ns": wait_ns(one["design"])}
            program.good("tell", ticket=one["ticket"], metrics=metrics, seconds=0.5)
            simulated.append(one)
    return simulated


@pytest.mark.parametrize("agent", ["ga", "random", "nsga2"])
def test_an_agent_searches(begin: Begin, queue: str, tmp_path: Path, agent: str) -> None:
    program = begin(queue, arguments=CLIENT, agent=agent, seed=1, budget=30, record=tmp_path / "d")
    problem = program.good("describe")["problem"]
    assert problem["metrics_given"] == ["wait_ns"]
    assert problem["simulator"]["name"] == "client:queue-1"
    simulated = _simulate(program)
    assert simulated[0]["baseline"]
    assert len(simulated) == 30  # the baseline is not asked for twice
    best = program.good("best")["best"]
    assert best["goals"] == [min(wait_ns(one["design"]) for one in simulated)]
    program.rest()
    dataset = Dataset(tmp_path / "d")
    (trial,) = dataset.trials().to_pylist()
    assert (trial["agent"], trial["seed"], trial["state"]) == (agent, 1, "finished")
    rows = dataset.evaluations().to_pylist()
    assert dataset.sidecar.simulator["name"] == "client:queue-1"
    assert {row["metric.area_um2"] for row in rows} == {None}
    assert {row["simulation_s"] for row in rows if row["status"] == "ok"} <= {0.0, 0.5}


def test_it_is_the_search_of_archgym_itself(begin: Begin, tmp_path: Path) -> None:
    env = archgym.make("Conformance-v0", record=tmp_path / "own")
    agent = archgym.make_agent("ga", env.design_space, seed=4)
    agent.search(env, 25, initial=[env.baseline_design], trial_id="t")
    env.close()
    program = begin(
        arguments=CLIENT, agent="ga", seed=4, budget=25, record=tmp_path / "d", trial_id="t"
    )
    simulator = archgym.make("Conformance-v0")
    while True:
        answer = program.good("ask")
        if answer["over"]:
            break
        (one,) = answer["designs"]
        own = simulator.evaluate(one["design"])
        result = {"metrics": own.metrics} if own.metrics else {"status": own.status}
        program.good("tell", ticket=one["ticket"], **result)
    program.rest()
    columns = ["step", "status", "reward", "param.ways", "param.voltage", "metric.energy_pj"]
    tables = [Dataset(tmp_path / name).evaluations(columns) for name in ("own", "d")]
    assert tables[0].equals(tables[1])


def test_several_designs_are_with_the_program(begin: Begin, queue: str, tmp_path: Path) -> None:
    program = begin(
        queue, arguments=CLIENT, agent="ga", budget=40, workers=4, record=tmp_path / "d"
    )
    (baseline,) = program.good("ask", n=10)["designs"]
    program.good("tell", ticket=baseline["ticket"], metrics={"wait_ns": 29.0})
    held = program.good("ask", n=10)["designs"]
    while len(held) < 4:
        more = program.good("ask", n=10)["designs"]
        held += more
    assert program.good("ask") == {"id": None, "ok": True, "designs": [], "over": False}
    for one in reversed(held):
        program.good("tell", ticket=one["ticket"], metrics={"wait_ns": wait_ns(one["design"])})
    _simulate(program, n=4)
    assert program.good("status")["trial"]["spent"] == 40


def test_results_that_are_no_metrics(begin: Begin, queue: str, tmp_path: Path) -> None:
    program = begin(queue, arguments=CLIENT, agent="random", budget=9, record=tmp_path / "d")
    _simulate(program, 1)
    for status in ("failed", "timeout", "illegal"):
        (one,) = program.good("ask")["designs"]
        program.good("tell", ticket=one["ticket"], status=status, reason=f"so {status}")
    _simulate(program)
    program.rest()
    rows = Dataset(tmp_path / "d").evaluations(["status", "reason"]).to_pylist()
    reasons = {row["status"]: row["reason"] for row in rows if row["reason"].startswith("so ")}
    assert reasons == {one: f"so {one}" for one in ("failed", "timeout", "illegal")}


def test_wrong_results_are_refused_and_may_be_told_again(begin: Begin, queue: str) -> None:
    program = begin(queue, arguments=CLIENT, agent="ga", budget=5)
    (one,) = program.good("ask")["designs"]
    ticket = one["ticket"]
    for fields, field in (
        ({"ticket": 99, "metrics": {"wait_ns": 1}}, "ticket"),
        ({"ticket": None, "metrics": {"wait_ns": 1}}, "ticket"),
        ({"ticket": True, "metrics": {"wait_ns": 1}}, "ticket"),
        ({"ticket": ticket}, "metrics"),
        ({"ticket": ticket, "metrics": {}}, "metrics.wait_ns"),
        ({"ticket": ticket, "metrics": {"wait_ns": None}}, "metrics.wait_ns"),
        ({"ticket": ticket, "metrics": {"wait_ns": "1"}}, "metrics.wait_ns"),
        ({"ticket": ticket, "metrics": {"wait_ns": -1}}, "metrics.wait_ns"),
        ({"ticket": ticket, "metrics": {"wait_ns": 10**400}}, "metrics.wait_ns"),
        ({"ticket": ticket, "metrics": {"wait": 1}}, "metrics.wait"),
        ({"ticket": ticket, "metrics": {"wait_ns": 1}, "seconds": -1}, "seconds"),
        ({"ticket": ticket, "status": "fail"}, "status"),
        ({"results": [{"ticket": ticket, "metrics": {"wait": 1}}]}, "results[0].metrics.wait"),
        ({"ticket": ticket, "metrics": {"wait_ns": 1}, "metric": 1}, "metric"),
    ):
        assert program.error(op="tell", **fields)["field"] == field, fields
    program.good("tell", results=[{"ticket": ticket, "metrics": {"wait_ns": 3.25}}])
    assert program.error(op="tell", ticket=ticket, metrics={"wait_ns": 1})["field"] == "ticket"
    assert program.good("describe")["problem"]["baseline"]["metrics"]["wait_ns"] == 3.25
    assert program.error(op="evaluate", design={})["kind"] == "not_here"


def test_a_search_goes_on(begin: Begin, queue: str, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"arguments": CLIENT, "agent": "ga", "budget": 25, "trial_id": "t"}
    whole = begin(queue, record=tmp_path / "whole", **settings)
    _simulate(whole)
    whole.rest()
    first = begin(queue, record=tmp_path / "parts", **settings)
    assert len(_simulate(first, 11)) == 11
    first.leave()
    second = begin(queue, record=tmp_path / "parts", resume=True, **settings)
    assert len(_simulate(second)) == 14
    second.rest()
    tables = [Dataset(tmp_path / name).evaluations() for name in ("whole", "parts")]
    assert equal_trajectories(*tables)


def test_a_baseline_that_fails_ends_the_search(begin: Begin, queue: str) -> None:
    program = begin(queue, arguments=CLIENT, agent="ga", budget=5, fails="cannot be simulated")
    (one,) = program.good("ask")["designs"]
    error = program.error(op="tell", ticket=one["ticket"], status="failed", reason="no licence")
    assert error["kind"] == "search_failed"
    assert "no licence" in error["message"]
    assert program.error(op="ask")["kind"] == "search_failed"


def test_a_trial_that_never_began_begins(begin: Begin, queue: str, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"arguments": CLIENT, "agent": "random", "budget": 4}
    program = begin(queue, record=tmp_path / "d", trial_id="t", resume=True, **settings)
    assert len(_simulate(program)) == 4


def test_what_was_told_is_recorded_when_it_is_answered(
    begin: Begin, queue: str, tmp_path: Path
) -> None:
    program = begin(queue, arguments=CLIENT, agent="ga", budget=9, record=tmp_path / "d")
    _simulate(program, 5)
    assert Dataset(tmp_path / "d").info()["evaluations"] >= 5


def test_such_a_file_cannot_be_simulated_otherwise(queue: str) -> None:
    with pytest.raises(InvalidValueError, match=r"archgym serve queue\.yaml --simulator client"):
        archgym.make(queue)
    with pytest.raises(InvalidValueError, match="while archgym serve runs"):
        archgym.make(queue, simulator="client:queue-1")


def test_readings_need_stages(tmp_path: Path, queue: str) -> None:
    path = tmp_path / "other.yaml"
    path.write_text(
        Path(queue).read_text(encoding="utf-8").replace("{unit: ns}", "{unit: ns, key: wait}")
    )
    with pytest.raises(InvalidValueError, match="stages: this is missing"):
        archgym.make(str(path))
