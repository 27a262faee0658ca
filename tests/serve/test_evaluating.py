"""A program proposes designs: budget, record, workers, the end of either side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import archgym
from archgym.data import Dataset
from archgym.data.dataset import equal_trajectories
from archgym.errors import InvalidValueError, UnknownNameError
from tests.serve.conftest import Begin, Program


def _points(program: Program, n: int, start: int = 0) -> list[dict[str, Any]]:
    return [
        program.good("evaluate", id=i, unit=[(0.37 * i * (k + 1)) % 1 for k in range(6)])
        for i in range(start, start + n)
    ]


def test_rows_have_agent_seed_and_label(begin: Begin, tmp_path: Path) -> None:
    program = begin(
        record=tmp_path / "d",
        agent="my_optimiser",
        seed=7,
        label="train",
        hyperparameters={"rate": 0.5},
        budget=20,
        trial_id="first",
    )
    answers = _points(program, 5)
    assert [answer["id"] for answer in answers] == list(range(5))
    best = program.good("end")
    assert program.rest() == []
    dataset = Dataset(tmp_path / "d")
    (trial,) = dataset.trials().to_pylist()
    assert (trial["trial_id"], trial["agent"], trial["seed"]) == ("first", "my_optimiser", 7)
    assert trial["budget"] == 20
    assert trial["label"] == "train"
    assert json.loads(trial["hyperparameters"])["rate"] == 0.5
    assert trial["state"] == "finished"
    rows = dataset.evaluations().to_pylist()
    assert [row["status"] for row in rows] == [a["outcome"]["status"] for a in answers]
    for row, answer in zip(rows, answers, strict=True):
        for name, value in answer["outcome"]["metrics"].items():
            assert row[f"metric.{name}"] == value  # every digit
    legal = [a["outcome"] for a in answers if a["outcome"]["feasible"]]
    assert best["best"]["reward"] == max(outcome["reward"] for outcome in legal)


def test_outcomes_are_those_of_the_environment(begin: Begin) -> None:
    program, env = begin(), archgym.make("Conformance-v0")
    for design in program.good("sample", n=10)["designs"]:
        told, own = program.good("evaluate", design=design)["outcome"], env.evaluate(design)
        assert told["metrics"] == own.metrics
        assert told["reward"] == own.reward
        assert told["goals"] == list(own.objectives)


def test_the_budget_is_kept(begin: Begin) -> None:
    program = begin(budget=3)
    designs = program.good("sample", n=40)["designs"]
    distinct = list({json.dumps(one): one for one in designs}.values())[:10]
    answer = program.good("evaluate", designs=distinct)
    assert len(answer["outcomes"]) == 3
    assert answer["left_out"] == 7
    assert answer["trial"] == {
        "spent": 3.0, "left": 0.0, "simulations": 3, "proposals": 3, "duplicates": 0, "illegal": 0,
        "exhausted": True,
    }  # fmt: skip
    refused = program.call(id="x", op="evaluate", design=distinct[0])
    assert refused["error"]["kind"] == "budget_exhausted"
    assert refused["id"] == "x"
    assert refused["trial"]["exhausted"]
    assert len(program.good("best")["front"]) == 1


def test_illegal_designs_are_outcomes(begin: Begin) -> None:
    program = begin(budget=50)
    found = [a["outcome"] for a in _points(program, 30) if a["outcome"]["status"] == "illegal"]
    assert found
    assert found[0]["reward"] == -1
    assert found[0]["goals"] == [None] * len(found[0]["goals"])
    assert found[0]["metrics"] == {}
    assert "rule" in found[0]["reason"]


def test_the_end_of_the_requests_is_the_end(begin: Begin, tmp_path: Path) -> None:
    program = begin(record=tmp_path / "d")
    program.send({"id": 1, "op": "evaluate", "unit": [0.5] * 6}, {"id": 2, "op": "status"})
    assert [answer["id"] for answer in program.rest()] == [1, 2]
    dataset = Dataset(tmp_path / "d")
    assert dataset.trials()["state"].to_pylist() == ["closed"]
    assert list((tmp_path / "d" / "journal").iterdir()) == []
    assert len(list((tmp_path / "d" / "evaluations").iterdir())) == 1


def test_a_last_line_without_an_end_is_a_request(begin: Begin) -> None:
    program = begin()
    program._requests.write(b'{"id":1,"op":"status"}')
    assert [answer["id"] for answer in program.rest()] == [1]


def test_a_program_that_is_killed_loses_nothing(begin: Begin, tmp_path: Path) -> None:
    program = begin(record=tmp_path / "d")
    _points(program, 4)
    program.leave()
    again = begin(record=tmp_path / "d")
    _points(again, 2)
    assert again.rest() == []
    assert Dataset(tmp_path / "d").info()["evaluations"] == 6


def test_a_trial_goes_on(begin: Begin, tmp_path: Path) -> None:
    settings = {"agent": "mine", "budget": 10, "trial_id": "t"}
    whole = begin(record=tmp_path / "whole", **settings)
    _points(whole, 8)
    whole.rest()
    first = begin(record=tmp_path / "parts", **settings)
    _points(first, 5)
    first.rest()
    second = begin(record=tmp_path / "parts", resume=True, **settings)
    answers = _points(second, 8)
    assert answers[-1]["trial"]["proposals"] == 8
    second.rest()
    tables = [Dataset(tmp_path / name).evaluations() for name in ("whole", "parts")]
    assert equal_trajectories(*tables)


def test_another_search_cannot_go_on_with_a_trial(begin: Begin, tmp_path: Path) -> None:
    settings = {"record": tmp_path / "d", "agent": "mine", "trial_id": "t"}
    first = begin(**settings)
    _points(first, 3)
    first.rest()
    second = begin(resume=True, **settings)
    error = second.error(op="evaluate", unit=[0.9] * 6)
    assert "step 0" in error["message"]


@pytest.mark.full
def test_several_designs_are_in_flight(begin: Begin, tmp_path: Path) -> None:
    program = begin(record=tmp_path / "d", workers=3, agent="mine", budget=12)
    designs = program.good("sample", n=8, seed=2)["designs"]
    for i, design in enumerate(designs):
        program.send({"id": i, "op": "evaluate", "design": design})
    program.send({"id": "many", "op": "evaluate", "designs": designs[:3]})
    program.send(b"not json")
    answers = {answer["id"]: answer for answer in (program.receive() for _ in range(10))}
    assert set(answers) == {*range(8), "many", None}
    for i, design in enumerate(designs):
        assert answers[i]["outcome"]["design"] == design
    assert [one["design"] for one in answers["many"]["outcomes"]] == designs[:3]
    program.send({"id": "late", "op": "evaluate", "unit": [[0.1 * i] * 6 for i in range(9)]})
    last = program.rest()
    assert last[0]["id"] == "late"
    dataset = Dataset(tmp_path / "d")
    assert dataset.info()["simulated"] == last[0]["trial"]["simulations"] <= 12
    assert {row["worker"] for row in dataset.evaluations(["worker"]).to_pylist()} >= {"process 1"}


@pytest.mark.full
def test_a_trial_with_workers_goes_on(begin: Begin, tmp_path: Path) -> None:
    settings = {"record": tmp_path / "d", "workers": 2, "agent": "mine", "trial_id": "t"}
    first = begin(**settings)
    designs = first.good("sample", n=10, seed=2)["designs"]
    for i, design in enumerate(designs[:6]):
        first.send({"id": i, "op": "evaluate", "design": design})
    before = [first.receive() for _ in range(6)]
    first.leave()
    second = begin(resume=True, **settings)
    for i, design in enumerate(designs):
        second.send({"id": i, "op": "evaluate", "design": design})
    after = [second.receive() for _ in range(10)]
    metrics = {answer["id"]: answer["outcome"]["metrics"] for answer in after}
    assert [answer["id"] for answer in after[:6]] == [answer["id"] for answer in before]
    assert all(metrics[answer["id"]] == answer["outcome"]["metrics"] for answer in before)
    second.rest()
    assert Dataset(tmp_path / "d").info()["simulated"] == 10


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"agent": "ga"}, "is an agent of archgym"),
        ({"resume": True}, "give --trial and --record"),
        ({"arguments": {"simulator": "client"}}, "needs --agent"),
        ({"arguments": {"simulator": "client"}, "agent": "ga"}, "--budget or --hours"),
        ({"arguments": {"objective": "minimize nothing"}}, "unknown metric"),
    ],
)
def test_what_cannot_begin_says_why(begin: Begin, settings: dict[str, Any], message: str) -> None:
    from archgym.serve import Settings, serve

    with pytest.raises((InvalidValueError, UnknownNameError), match=message):
        serve(Settings("Conformance-v0", **settings), 0, 1)
