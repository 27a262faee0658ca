from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archgym.errors import InvalidValueError, UnknownNameError
from archgym.problem.metrics import Metric
from archgym.problem.objective import Objective
from archgym.problem.scoring import Scorer

METRICS = (
    Metric("time_ns", "ns"),
    Metric("energy_pj", "pJ"),
    Metric("hit_rate", "", "maximize"),
    Metric("slack_ns", "ns", "maximize", signed=True),
)
BASE = np.array([10.0, 200.0, 0.5, -3.0])
SPECS: list[Any] = [
    "minimize time_ns",
    "maximize hit_rate",
    "maximize slack_ns",
    {"product": {"time_ns": 1, "energy_pj": 2, "hit_rate": 0.5}},
    {"target": {"time_ns": 25.0}},
    {"minimize": ["time_ns", "energy_pj"], "weights": {"time_ns": 3}},
    {
        "minimize": "time_ns",
        "maximize": "hit_rate",
        "limits": ["energy_pj <= 300", "slack_ns >= -1"],
    },
]
positive = st.floats(0, 1e12)
rows = st.lists(
    st.tuples(positive, positive, st.floats(0, 1), st.floats(-1e12, 1e12)), min_size=1, max_size=20
)


def scorer(spec: Any) -> Scorer:
    return Scorer(Objective.parse(spec), METRICS, BASE)


@pytest.mark.parametrize("spec", SPECS, ids=str)
@settings(max_examples=50, deadline=None)
@given(rows)
def test_rewards_are_bounded_and_alike_for_one_and_for_many(spec: Any, table: list[Any]) -> None:
    scored = scorer(spec)
    metrics = np.array(table, dtype=np.float64)
    values, costs, excess = (
        scored.values(metrics),
        scored.costs(metrics),
        scored.violations(metrics),
    )
    rewards = scored.rewards(costs, excess)
    assert np.isfinite(costs).all()
    assert ((rewards > -1) & (rewards <= 1)).all()
    assert ((rewards < 0) == (excess > 0).any(axis=1)).all()
    for i, row in enumerate(metrics.tolist()):
        assert scored.score(row) == (
            values[i].tolist(),
            costs[i].tolist(),
            excess[i].tolist(),
            rewards[i],
        )


@pytest.mark.parametrize("spec", ["minimize time_ns", "maximize hit_rate", "maximize slack_ns"])
@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0.01, 1e4), min_size=2, max_size=20, unique_by=lambda v: round(v, 4)))
def test_a_better_metric_has_a_strictly_better_reward(spec: str, column: list[float]) -> None:
    scored = scorer(spec)
    name = spec.split()[1]
    position = [m.name for m in METRICS].index(name)
    metrics = np.tile(BASE, (len(column), 1))
    metrics[:, position] = sorted(column, reverse=spec.startswith("minimize"))
    rewards = scored.rewards(scored.costs(metrics), scored.violations(metrics))
    assert (np.diff(rewards) > 0).all()


def reward(spec: Any, **changed: float) -> float:
    row = dict(zip([m.name for m in METRICS], BASE.tolist(), strict=True)) | changed
    return scorer(spec).score(list(row.values()))[3]


def test_known_rewards() -> None:
    assert reward("minimize time_ns") == 0.5
    assert reward("minimize time_ns", time_ns=30.0) == pytest.approx(1 / 4)
    assert reward("maximize hit_rate", hit_rate=1.0) == pytest.approx(2 / 3)
    edp = {"product": {"time_ns": 1, "energy_pj": 1}}
    assert reward(edp, time_ns=20.0, energy_pj=100.0) == pytest.approx(0.5)
    assert reward(edp, time_ns=20.0) == pytest.approx(1 / 3)
    limited = {"minimize": "time_ns", "limits": ["energy_pj <= 100"]}
    assert reward(limited) == pytest.approx(-0.5)  # twice the limit: excess 1
    assert reward(limited, energy_pj=100.0) == 0.5
    both = {"minimize": ["time_ns", "energy_pj"]}
    assert reward(both, time_ns=40.0, energy_pj=50.0) == pytest.approx(0.5)
    assert reward({**both, "weights": {"time_ns": 3}}, time_ns=160.0) == pytest.approx(1 / 9)


def test_a_target_is_best_met_exactly_and_has_no_pole() -> None:
    target = {"target": {"time_ns": 25.0}}
    rewards = [reward(target, time_ns=25.0 * ratio) for ratio in (1, 1.01, 1.1, 2, 100, 1e9)]
    assert rewards == sorted(rewards, reverse=True)
    assert len(set(rewards)) == len(rewards)
    assert reward(target, time_ns=50.0) == pytest.approx(reward(target, time_ns=12.5))
    assert -1 < reward(target, time_ns=0.0) < reward(target, time_ns=1e6)
    zero = Scorer(Objective.parse(target), METRICS, np.array([0.0, 1, 1, 1]))
    near, far = (zero.score([t, 1.0, 1.0, 1.0])[3] for t in (24.0, 100.0))
    assert near > far


def test_a_baseline_of_zero_still_orders() -> None:
    zero = Scorer(Objective.parse("minimize time_ns"), METRICS, np.array([0.0, 1, 1, 1]))
    rewards = [zero.score([t, 1.0, 1.0, 1.0])[3] for t in (0.0, 1e-3, 1.0, 1e6)]
    assert rewards == sorted(set(rewards), reverse=True)
    with pytest.raises(InvalidValueError, match="'time_ns', which is 0 at the baseline"):
        Scorer(Objective.parse({"product": {"time_ns": 1}}), METRICS, np.array([0.0, 1, 1, 1]))


def test_zero_metrics_in_a_product_are_as_bad_or_good_as_can_be() -> None:
    scored = scorer({"product": {"time_ns": 1, "hit_rate": 1}})
    usual, useless, free = (
        scored.score([t, 1.0, hits, 0.0]) for t, hits in ((10.0, 0.5), (10.0, 0.0), (0.0, 0.5))
    )
    assert free[0] < usual[0] < useless[0]
    assert 0 < useless[3] < 1e-20 < usual[3] < free[3] <= 1


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_json_round_trip(spec: Any) -> None:
    objective = Objective.parse(spec)
    assert Objective.parse(objective.to_json()) == objective


def test_limits_keep_their_digits() -> None:
    objective = Objective.parse({"minimize": "time_ns", "limits": "energy_pj < 1234567.25"})
    assert Objective.parse(objective.to_json()).limits[0].value == 1234567.25


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ("time_ns", InvalidValueError, "minimize METRIC"),
        (7, InvalidValueError, "neither a text nor a mapping"),
        ({}, InvalidValueError, "at least one metric"),
        ({"product": {}}, InvalidValueError, "at least one metric"),
        ({"minimise": "time_ns"}, UnknownNameError, "Did you mean 'minimize'"),
        ({"minimize": 3}, InvalidValueError, "minimize is a text or a list of texts, not 3"),
        ({"minimize": ["time_ns", "time_ns"]}, InvalidValueError, "'time_ns' is named twice"),
        ({"minimize": "time_ns", "limits": None}, InvalidValueError, "limits .* not None"),
        ({"minimize": "time_ns", "limits": ["energy_pj = 3"]}, InvalidValueError, "energy_pj = 3"),
        ({"minimize": "time_ns", "limits": ["energy_pj <= 1__0"]}, InvalidValueError, "1__0"),
        ({"minimize": "time_ns", "weights": {"energy_pj": 1}}, UnknownNameError, "goal"),
        ({"minimize": "time_ns", "weights": {"time_ns": 0}}, InvalidValueError, "> 0"),
        ({"product": {"time_ns": "x"}}, InvalidValueError, "not a number: 'x'"),
        ({"product": ["time_ns"]}, InvalidValueError, "maps metrics to numbers"),
    ],
)
def test_bad_objectives_are_refused(spec: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Objective.parse(spec)


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ("minimize time", UnknownNameError, "Did you mean 'time_ns'"),
        ({"product": {"slack_ns": 1}}, InvalidValueError, "can be negative"),
        ({"target": {"time_ns": -1}}, InvalidValueError, "number > 0, got -1"),
        ({"target": {"time_ns": math.nan}}, InvalidValueError, "number > 0, got nan"),
    ],
)
def test_objectives_that_do_not_fit_the_metrics(
    spec: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        scorer(spec)


def test_metric_names_end_in_their_unit() -> None:
    assert Metric("bandwidth_gb_per_s", "GB/s", "maximize").sign == -1
    with pytest.raises(InvalidValueError, match="must end in '_ns'"):
        Metric("latency", "ns")
    with pytest.raises(InvalidValueError, match="'_rate' or '_share' or '_count'"):
        Metric("hits", "")
    with pytest.raises(InvalidValueError, match="'smaller'"):
        Metric("time_ns", "ns", "smaller")  # type: ignore[arg-type]
    metric = Metric("slack_ns", "ns", "maximize", "doc", signed=True)
    assert Metric.from_json(metric.to_json()) == metric


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("mpki", ""),
        ("l2_mpki", ""),
        ("ipc", ""),
        ("CPI", ""),
        ("speedup", ""),
        ("edp", "Js"),
        ("system_edp", "pJ ns"),
        ("ed2p", "Js²"),
        ("tops", "TOPS"),
        ("peak_tops", "TOPS"),
        ("tops_per_w", "TOPS/W"),
        ("moved_bytes", "B"),
        ("moved_bytes", "bytes"),
        ("moved_b", "B"),
        ("state_bits", "bit"),
    ],
)
def test_names_of_the_field(name: str, unit: str) -> None:
    assert Metric(name, unit, "minimize").name == name


@pytest.mark.parametrize(
    ("name", "unit", "says"),
    [
        ("edp", "", "such as 'Js'"),
        ("edp", "ns", "such as 'Js'"),
        ("mpki", "ns", "must end in '_ns'"),
        ("misses", "", "mpki"),
        ("ipcs", "", "must end in '_rate'"),
        ("tops", "", "must end in"),
    ],
)
def test_names_with_another_unit(name: str, unit: str, says: str) -> None:
    with pytest.raises(InvalidValueError, match=says):
        Metric(name, unit, "minimize")


@pytest.mark.parametrize("key", ["pareto", "objectives", "goals"])
def test_a_key_of_other_tools_for_several_goals_says_how_they_are_written(key: str) -> None:
    with pytest.raises(InvalidValueError, match=rf"'{key}'.*minimize: \[METRIC, METRIC\]"):
        Objective.parse({key: ["time_ns", "energy_pj"]})
