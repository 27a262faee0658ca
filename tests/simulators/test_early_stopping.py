"""The rule by which a run is stopped."""

from __future__ import annotations

import math
from typing import Any

import pytest

from archgym.errors import ArchgymError, StoppedEarly
from archgym.experiment.simulate.worker_pool import read_answer
from archgym.experiment.workers.remote_worker import ticket_of
from archgym.problem.metrics import Metric
from archgym.simulators.early_stopping import (
    MIN_FINISHED,
    Watch,
    WatchedMetrics,
    grown,
    growth_of,
    is_so_far,
    is_stop,
    watching,
)

METRICS = [Metric("time_ns", "ns"), Metric("hits_rate", "", "maximize"), Metric("power_mw", "mW")]
AS_IT_IS = ["times", 0.9, 1.0, 1.1]


def rule(objective: Any, *best: list[float], **growth: list[Any]) -> dict[str, Any]:
    """A rule for a milestone at a half, with a baseline of 100 everywhere."""
    known = {metric.name: growth.get(metric.name, AS_IT_IS) for metric in METRICS}
    return {
        "growth": {"0.5": known},
        "best": list(best),
        "finished": 9,
        "objective": objective,
        "metrics": [metric.to_json() for metric in METRICS],
        "baseline": [100.0, 100.0, 100.0],
    }


def stopped(known: dict[str, Any], **metrics: float) -> bool:
    """Whether a run is stopped at a half."""
    try:
        Watch(known).look(0.5, metrics)
    except StoppedEarly:
        return True
    return False


def test_growth_is_a_factor_or_else_a_difference() -> None:
    pairs = [(10.0, 10.0 * factor) for factor in (0.8, 1.0, 1.0, 1.0, 1.6)]
    how, low, middle, high = growth_of(pairs) or ("", 0.0, 0.0, 0.0)
    assert (how, middle) == ("times", 1.0)
    assert low == pytest.approx(0.8**1.25)
    assert high == pytest.approx(1.6**1.25)
    assert growth_of(pairs[: MIN_FINISHED - 1]) is None
    assert growth_of([(0.0, 1.0), (1.0, 3.0), (1.0, 2.0), (1.0, 2.0), (2.0, 3.0)]) == (
        *("plus", 1.0, 1.0, 2.25),
    )
    assert grown(-4.0, ["times", 0.5, 1.0, 2.0]) == (-8.0, -4.0, -2.0)


@pytest.mark.parametrize(
    ("objective", "worse", "may_be_better"),
    [
        ("minimize time_ns", {"time_ns": 60.0}, {"time_ns": 55.0}),
        ("maximize hits_rate", {"hits_rate": 180.0}, {"hits_rate": 185.0}),
        (
            {"product": {"time_ns": 1, "hits_rate": 1}},
            {"time_ns": 100.0, "hits_rate": 150.0},
            {"time_ns": 100.0, "hits_rate": 180.0},
        ),
    ],
)
def test_only_what_cannot_be_better_is_stopped(
    objective: Any, worse: dict[str, float], may_be_better: dict[str, float]
) -> None:
    known = rule(objective, [-math.log(2)])  # half the baseline
    assert stopped(known, **worse)
    assert not stopped(known, **may_be_better)
    assert not stopped(rule(objective), **worse), "nothing is known that is better"
    assert not stopped(known), "the metric is not known yet"


def test_a_target_between_the_bounds_may_be_met() -> None:
    known = rule({"target": {"time_ns": 50.0}}, [-2.0])
    assert not stopped(known, time_ns=52.0)
    assert stopped(known, time_ns=80.0)


def test_a_limit_that_will_be_broken_ends_a_run() -> None:
    objective = {"minimize": "time_ns", "limits": ["power_mw <= 10", "hits_rate >= 5"]}
    known = rule(objective, [0.5])
    assert not stopped(known, time_ns=100.0, power_mw=11.0, hits_rate=4.6)
    assert stopped(known, time_ns=100.0, power_mw=11.2, hits_rate=4.6)
    assert stopped(known, time_ns=100.0, power_mw=11.0, hits_rate=4.5)
    assert not stopped(known, time_ns=100.0, power_mw=20.0), "one metric is not known"


def test_several_goals_are_compared_with_the_front() -> None:
    objective = {"minimize": ["time_ns", "power_mw"]}
    front = rule(objective, [math.log(0.5), 0.0], [0.0, math.log(0.5)])
    assert stopped(front, time_ns=60.0, power_mw=120.0)
    assert not stopped(front, time_ns=60.0, power_mw=90.0)
    assert not stopped(front, time_ns=80.0, power_mw=80.0)


def test_a_stop_says_what_was_seen_and_predicted() -> None:
    known = rule("minimize time_ns", [-1.0], time_ns=["times", 0.9, 1.05, 1.1])
    watch = Watch(known)
    watch.look(0.25, {"time_ns": 90.0, "power_mw": math.nan})
    with pytest.raises(StoppedEarly, match="stopped at 50%: at best it is worse") as caught:
        watch.look(0.5, {"time_ns": 100.0})
    record = caught.value.record
    assert record["so_far"] == {"0.25": {"time_ns": 90.0}, "0.5": {"time_ns": 100.0}}
    assert record["predicted"] == {"time_ns": 105.0}
    assert is_stop(record)
    error = StoppedEarly.__reduce__(caught.value)
    assert error[0](*error[1]).record == record


def test_what_is_received_is_checked() -> None:
    with pytest.raises(ArchgymError, match="cannot be read"), watching({"growth": 5, "best": [1]}):
        pass
    assert not is_so_far({"0.1": {"x": "1"}})
    assert not is_stop({"progress": 2, "so_far": {}, "predicted": {}})
    line = {"ticket": 1, "codes": [1], "fidelity": 1.0}
    assert ticket_of(line) == (1, (1,), 1.0, None)
    assert ticket_of({**line, "rule": {"best": []}}) == (1, (1,), 1.0, {"best": []})
    assert ticket_of({**line, "rule": "x"}) == (1, (1,), 1.0, None)


def test_answers_of_workers_carry_what_was_seen() -> None:
    seen = {"0.1": {"time_ns": 3.0}}
    metrics, _ = read_answer({"metrics": {"time_ns": 2.0}, "so_far": seen, "seconds": 1.0})
    assert isinstance(metrics, WatchedMetrics)
    assert metrics.so_far == seen
    record = {"progress": 0.1, "so_far": seen, "predicted": {"time_ns": 2.0}}
    result, _ = read_answer({"stopped": record, "reason": "slow", "seconds": 1.0})
    assert isinstance(result, StoppedEarly)
    assert result.record == record
