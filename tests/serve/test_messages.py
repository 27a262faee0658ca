"""Each line is answered, whatever it is, and says what is wrong with it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from archgym.serve.lines import LINE_LIMIT_BYTES
from tests.serve.conftest import Begin

DESIGN = {"replacement": "lru", "size_kb": 16, "ways": 4, "prefetch": False, "voltage": 0.8}


def test_it_describes_the_problem(begin: Begin) -> None:
    program = begin(budget=9, agent="mine", seed=3, label="train", hyperparameters={"rate": 0.5})
    answer = program.good("describe", id="first", protocol=1)
    problem = answer["problem"]
    assert answer["id"] == "first"
    assert problem["protocol"] == 1
    assert problem["environment"] == "Conformance-v0"
    assert (problem["agent"], problem["seed"], problem["label"]) == ("mine", 3, "train")
    assert problem["budget"] == 9
    assert answer["trial"]["left"] == 9
    space = problem["space"]
    by_name = {one["name"]: one for one in space["parameters"]}
    assert by_name["size_kb"]["values"] == [1, 2, 4, 8, 16, 32, 64]
    assert by_name["size_kb"]["unit"] == "kB"
    assert by_name["prefetch"]["values"] == [False, True]
    assert by_name["ways"]["low"] == 1
    assert "prefetch" in by_name["distance"]["acts_when"]
    assert space["unit_axes"] == list(by_name)
    assert space["level_counts"] is None  # one is real
    assert space["rules"]
    metrics = {one["name"]: one for one in problem["metrics"]}
    assert all(one["better"] in ("smaller", "larger") for one in metrics.values())
    assert problem["baseline"]["metrics"].keys() == metrics.keys()
    assert problem["goals"][0]["name"]


def test_designs_come_as_mappings_points_and_lists(begin: Begin) -> None:
    program = begin()
    one = program.good("evaluate", id=1, design=DESIGN)["outcome"]
    assert one["status"] == "ok"
    assert one["design"] == DESIGN
    again = program.good("evaluate", designs=[DESIGN, DESIGN])["outcomes"]
    assert [outcome["cached"] for outcome in again] == [True, True]
    assert again[0]["metrics"] == one["metrics"]
    point = program.good("evaluate", unit=[0.1, 0.2, 0.3, 0.4, 0.5, 1])["outcome"]
    assert point["design"]["replacement"] == "lru"
    assert point["design"]["voltage"] == 1.1
    assert len(program.good("evaluate", unit=[[0] * 6, [1] * 6])["outcomes"]) == 2


def test_levels_of_a_finite_space(begin: Begin) -> None:
    program = begin(arguments={"fixed": {"voltage": 0.8}})
    counts = program.good("describe")["problem"]["space"]["level_counts"]
    assert counts[:4] == [3, 7, 16, 2]
    found = program.good("evaluate", levels=[0, 4, 3, 0, 0])["outcome"]
    assert found["design"] == DESIGN
    error = program.error(op="evaluate", levels=[0, 7, 0, 0, 0])
    assert (error["field"], error["value"]) == ("levels[1]", 7)
    assert error["allowed"] == "an integer from 0 to 6"


def test_samples_and_neighbours_are_legal_and_free(begin: Begin) -> None:
    program = begin(budget=1000)
    designs = program.good("sample", n=20, seed=5)["designs"]
    assert designs == program.good("sample", n=20, seed=5)["designs"]
    near = program.good("neighbours", design=designs[0])["designs"]
    assert program.good("status")["trial"]["spent"] == 0
    outcomes = program.good("evaluate", designs=[*designs, *near])["outcomes"]
    assert "illegal" not in {outcome["status"] for outcome in outcomes}


def test_numbers_keep_all_their_digits(begin: Begin) -> None:
    program = begin()
    program.send(b'{"id":12345678901234567890123,"op":"status"}')
    assert program.receive()["id"] == 12345678901234567890123
    assert program.call(id=0.1, op="status")["id"] == 0.1
    first = program.good("evaluate", design={**DESIGN, "voltage": 0.7123451})["outcome"]
    again = program.good("evaluate", design=first["design"])["outcome"]
    assert again["cached"]
    assert again["metrics"] == first["metrics"]


BAD: list[tuple[bytes, dict[str, Any]]] = [
    (b"nonsense", {"kind": "not_json"}),
    (b"[1]", {"kind": "not_json"}),
    (b"\xff{}", {"kind": "not_json"}),
    (b"[" * 5000, {"kind": "not_json"}),
    (b'{"op":"status","n":NaN}', {"kind": "not_json"}),
    (b'{"op":"status","n":-Infinity}', {"kind": "not_json"}),
    (b'{"op":"status","n":1e999}', {"kind": "not_json"}),
    (b'{"op":"status","n":' + b"1" * 5000 + b"}", {"kind": "not_json"}),
    (b'{"op":"status","op":"end"}', {"kind": "not_json"}),
    (b"{}", {"kind": "bad_request", "field": "op"}),
    (b'{"op":7}', {"kind": "invalid_value", "field": "op", "value": 7}),
    (b'{"op":"evalute"}', {"kind": "unknown_name", "nearest": "evaluate"}),
    (b'{"op":"ask"}', {"kind": "not_here"}),
    (b'{"op":"tell"}', {"kind": "not_here"}),
    (b'{"op":"status","id":[1]}', {"kind": "invalid_value", "field": "id"}),
    (b'{"op":"status","id":true}', {"kind": "invalid_value", "field": "id"}),
    (b'{"op":"status","extra":1}', {"kind": "unknown_name", "field": "extra"}),
    (b'{"op":"describe","protocol":2}', {"kind": "invalid_value", "allowed": "1"}),
    (b'{"op":"evaluate"}', {"kind": "bad_request", "field": "design"}),
    (b'{"op":"evaluate","design":{},"unit":[]}', {"kind": "bad_request"}),
    (b'{"op":"evaluate","design":[]}', {"field": "design"}),
    (b'{"op":"evaluate","design":{}}', {"kind": "invalid_value", "field": "design"}),
    (b'{"op":"evaluate","designs":[]}', {"field": "designs"}),
    (b'{"op":"evaluate","unit":[0,0,0,0,0,1.5]}', {"field": "unit[5]", "value": 1.5}),
    (b'{"op":"evaluate","unit":[0,0,0,0,0,null]}', {"field": "unit[5]", "value": None}),
    (b'{"op":"evaluate","unit":[[0,0,0,0,0,0],[0]]}', {"field": "unit[1]"}),
    (b'{"op":"evaluate","levels":[0,0,0,0,0,0]}', {"field": "levels"}),
    (b'{"op":"sample","n":0}', {"field": "n", "value": 0}),
    (b'{"op":"sample","n":true}', {"field": "n", "value": True}),
    (b'{"op":"sample","n":1000000000}', {"field": "n"}),
    (b'{"op":"sample","seed":-1}', {"field": "seed"}),
]


@pytest.mark.parametrize("nothing", [None])
def test_a_bad_line_is_answered_and_the_session_goes_on(begin: Begin, nothing: None) -> None:
    program = begin(budget=5)
    for line, expected in BAD:
        error = program.error(line)
        assert {key: error.get(key) for key in expected} == expected, line[:80]
        assert "Traceback" not in error["message"]
        assert len(json.dumps(error)) < 2000
    assert program.good("evaluate", design=DESIGN)["trial"]["spent"] == 1


def test_values_of_parameters_are_named(begin: Begin) -> None:
    program = begin()
    wrong = program.error(op="evaluate", design={**DESIGN, "replacement": "lur"})
    assert wrong["field"] == "design.replacement"
    assert wrong["value"] == "lur"
    assert wrong["allowed"] == ["lru", "fifo", "random"]
    assert wrong["nearest"] == "lru"
    name = program.error(op="evaluate", designs=[DESIGN, {**DESIGN, "replacment": "lru"}])
    assert name["field"] == "designs[1].replacment"
    assert name["nearest"] == "replacement"
    values: list[Any] = ["4", None, [4], {}, 10**400, 4.5, -1, True]
    for value in values:
        error = program.error(op="evaluate", design={**DESIGN, "ways": value})
        assert error["field"] == "design.ways", value
    fidelity = program.error(op="evaluate", design=DESIGN, fidelity=0.123)
    assert fidelity["field"] == "fidelity"
    assert program.error(op="evaluate", design=DESIGN, fidelty=1)["nearest"] == "fidelity"


def test_a_line_that_is_too_long_is_skipped(begin: Begin) -> None:
    program = begin()
    long = b'{"op":"evaluate","design":"' + b"x" * (3 * LINE_LIMIT_BYTES) + b'"}'
    assert program.error(long)["kind"] == "too_long"
    fitting = b'{"op":"status"' + b" " * (LINE_LIMIT_BYTES - 15) + b"}"
    assert len(fitting) == LINE_LIMIT_BYTES
    assert program.call(fitting)["ok"]
    assert program.error(fitting + b" ")["kind"] == "too_long"


def test_blank_lines_and_windows_line_ends(begin: Begin) -> None:
    program = begin()
    program.send(b"", b"   ", b'{"id":1,"op":"status"}\r')
    assert program.receive()["id"] == 1


def test_answers_are_ascii_on_one_line(begin: Begin) -> None:
    program = begin()
    program.send(json.dumps({"id": "µ\n\ud800\u2028", "op": "status"}).encode())
    assert program.receive()["id"] == "µ\n\ud800\u2028"
