from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pytest

import archgym
from archgym.errors import InvalidValueError, NotCoveredError, UnknownNameError
from archgym.problem.reference import Reference, ReferenceRow, Skipped
from archgym.problem.simulator import SimulationResult
from archgym.space import Designs, DesignSpace, Integer
from archgym.validation.agreement import (
    agreement,
    average_ranks,
    kendall,
    raw_regret,
    regret,
    spearman,
    summarise,
    tie_groups,
    top_overlap,
)
from archgym.validation.validate import live_reference, validate


def array(*values: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array(values, np.float64)


# -- statistics ------------------------------------------------------------------------------------


def test_values_within_a_thousandth_of_the_first_of_their_group_tie() -> None:
    values = array(100.2, 100.0, 100.05, 250.0, 100.1, 0.0)
    assert tie_groups(values).tolist() == [2, 1, 1, 3, 1, 0]


def test_ties_of_negative_values_are_relative_too() -> None:
    assert tie_groups(array(-100.0, -99.95, -99.0)).tolist() == [0, 0, 1]


def test_tied_values_get_the_mean_of_their_ranks() -> None:
    assert average_ranks(np.array([1, 0, 1, 2, 1])).tolist() == [3.0, 1.0, 3.0, 5.0, 3.0]


def test_spearman_without_ties_is_one_less_six_times_the_squared_rank_differences() -> None:
    # d = 1, 1, 0, 1, -1: 1 - 6 * 4 / (5 * 24)
    assert spearman(array(1, 2, 3, 4, 5), array(2, 1, 3, 5, 4)) == pytest.approx(0.8)
    assert spearman(array(1, 2, 3), array(3, 2, 1)) == -1.0


def test_spearman_with_ties_is_the_correlation_of_mean_ranks() -> None:
    # Ranks 1, 2.5, 2.5, 4 and 1, 2, 3, 4: 4.5 / sqrt(4.5 * 5)
    assert spearman(array(1, 2, 2, 3), array(1, 2, 3, 4)) == pytest.approx(math.sqrt(0.9))


def test_kendall_is_tau_b() -> None:
    # Pairs: 5 in order, 0 swapped, 1 tied in the first: 5 / sqrt(5 * 6)
    assert kendall(array(1, 2, 2, 3), array(1, 2, 3, 4)) == pytest.approx(5 / math.sqrt(30))
    # 10 pairs, 2 of them swapped
    assert kendall(array(1, 2, 3, 4, 5), array(2, 1, 3, 5, 4)) == pytest.approx(0.6)


def test_rank_correlation_of_what_does_not_vary() -> None:
    constant, rising = array(5, 5, 5.001), array(1, 2, 3)
    for statistic in (spearman, kendall):
        assert math.isnan(statistic(constant, rising))
        assert statistic(rising, constant) == 0.0


def test_statistics_agree_with_scipy_on_random_values_with_ties() -> None:
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(0)
    a = rng.integers(1, 12, 60).astype(np.float64)
    b = a + rng.integers(0, 6, 60)
    assert spearman(a, b) == pytest.approx(stats.spearmanr(a, b).statistic)
    assert kendall(a, b) == pytest.approx(stats.kendalltau(a, b).statistic)


def test_top_overlap_is_the_share_of_the_best_twentieth() -> None:
    reference = array(*range(1, 41))  # the best two of 40 are 1 and 2
    ours = reference.copy()
    ours[[1, 9]] = ours[[9, 1]]  # ours puts the tenth design second
    assert top_overlap(reference, reference) == 1.0
    assert top_overlap(reference, ours) == 0.5
    assert top_overlap(reference, reference[::-1]) == 0.0
    assert top_overlap(reference, reference, maximize=True) == 1.0


def test_a_prediction_that_ties_throughout_finds_no_best_designs() -> None:
    assert top_overlap(array(*range(1, 41)), array(*[1] * 40)) == 2 / 40


def test_regret_is_the_true_loss_of_our_winner() -> None:
    assert regret(array(10, 11, 20), array(3, 2, 9)) == pytest.approx(0.1)
    assert regret(array(10, 11, 20), array(2, 2, 9)) == 0.0  # the better one of a tie
    assert regret(array(10, 11, 20), array(9, 8, 7)) == pytest.approx(1.0)


def test_raw_regret_knows_no_ties() -> None:
    power, ours = array(100.0, 107.4), array(50.001, 50.0)
    assert regret(power, ours) == 0.0  # within 0.1 %, the better one counts
    assert raw_regret(power, ours) == pytest.approx(0.074)
    assert raw_regret(array(10, 12, 20), array(2, 2, 9)) == pytest.approx(0.1)  # either of the two
    assert raw_regret(array(10, 20), array(1, 2), maximize=True) == 0.0
    assert math.isnan(raw_regret(array(), array()))
    found = agreement("case", "power_mw", power, ours)
    assert (found.regret, round(found.raw_regret, 6)) == (0.0, 0.074)


def test_regret_of_a_maximised_metric_is_the_share_that_is_lost() -> None:
    assert regret(array(10, 15, 20), array(1, 9, 2), maximize=True) == pytest.approx(0.25)
    assert regret(array(0, 0, 0), array(1, 9, 2)) == 0.0
    assert math.isnan(regret(array(0, 5), array(2, 1)))


def test_errors_are_relative_and_bias_has_a_sign() -> None:
    one = agreement("case", "m_ns", [100, 200, 400], [110, 180, 400])
    assert one.median_error == pytest.approx(0.1)
    assert one.mean_error == pytest.approx(0.2 / 3)
    assert one.max_error == pytest.approx(0.1)
    assert one.bias == pytest.approx(0.0)
    assert one.spread == 3.0
    assert agreement("case", "m_ns", [100, 200], [90, 190]).bias == pytest.approx(-0.075)


def test_rows_without_a_value_on_both_sides_are_left_out() -> None:
    one = agreement("case", "m_ns", [1, math.nan, 3, 4], [1, 2, math.nan, 4])
    assert one.n == 2
    assert one.spearman == 1.0
    assert one.max_error == 0.0


def test_reference_values_of_zero_have_no_relative_error() -> None:
    one = agreement("case", "m_ns", [0, 2, 4], [1, 2, 5])
    assert one.mean_error == pytest.approx(0.125)
    assert one.spread == math.inf


def test_a_single_row_has_errors_and_no_ranking() -> None:
    one = agreement("case", "m_ns", [100], [103])
    assert (one.n, one.spread, one.regret, one.top_overlap) == (1, 0.0, 0.0, 1.0)
    assert one.mean_error == pytest.approx(0.03)
    assert math.isnan(one.spearman)
    assert math.isnan(one.kendall)


def test_nothing_to_compare_gives_nan() -> None:
    one = agreement("case", "m_ns", [math.nan], [1])
    assert one.n == 0
    assert math.isnan(one.mean_error)
    assert math.isnan(one.median_error)
    assert math.isnan(one.regret)


def test_an_error_below_a_thousandth_does_not_swap_designs() -> None:
    # 100.00 and 100.09 tie in the reference, 100.00 and 100.11 would not in ours.
    assert agreement("case", "m_ns", [100, 100.09, 200], [100, 100.11, 200]).spearman == 1.0


def test_median_and_worst_are_over_the_cases_that_vary() -> None:
    cases = [
        agreement("a", "m_ns", [1, 2, 3, 4], [1, 2, 3, 4]),
        agreement("b", "m_ns", [1, 2, 3, 4], [1, 3, 2, 4]),
        agreement("c", "m_ns", [1, 2, 3, 4], [2, 4, 6, 8]),
        agreement("flat", "m_ns", [100, 100.5, 101, 101.9], [900, 700, 500, 300]),
    ]
    (summary,) = summarise(cases)
    assert (summary.varying, summary.steady) == (3, 1)
    assert summary.median["spearman"] == 1.0
    assert summary.worst["spearman"] == pytest.approx(0.8)
    assert summary.median["mean_error"] == pytest.approx((1 / 2 + 1 / 3) / 4)
    assert summary.worst["mean_error"] == 1.0
    (looser,) = summarise(cases, 0.01)
    assert looser.varying == 4
    assert looser.worst["spearman"] == pytest.approx(-1.0)


def test_the_worst_bias_is_the_one_furthest_from_zero() -> None:
    cases = [
        agreement("low", "m_ns", [100, 200], [70, 140]),
        agreement("high", "m_ns", [100, 200], [110, 220]),
    ]
    assert summarise(cases)[0].worst["bias"] == pytest.approx(-0.3)


def test_a_metric_that_never_varies_has_no_summary_figures() -> None:
    (summary,) = summarise([agreement("flat", "m_ns", [5, 5], [5, 6])])
    assert (summary.varying, summary.steady) == (0, 1)
    assert math.isnan(summary.worst["spearman"])


# -- comparison ------------------------------------------------------------------------------------


class Exact:
    """The other simulator of :class:`Lane`: 1 ns more a stage, and none beyond 8 stages."""

    def __init__(self, environment: Any) -> None:
        self.name, self.version = "exact", "2.0"
        self.metric_names: tuple[str, ...] = ("time_ns",)
        self._slowness = environment.slowness

    def simulate(self, designs: Designs) -> list[tuple[SimulationResult, float]]:
        return [(self._one(design["stages"]), 0.0) for design in designs]

    def _one(self, stages: int) -> SimulationResult:
        if stages > 8:
            return NotCoveredError("more than 8 stages")
        return {"time_ns": self._slowness * (stages + 1.0)}


class Lane(archgym.Environment):
    design_space = DesignSpace([Integer("stages", 1, 10), Integer("width", 1, 4)])
    metrics: ClassVar = (
        archgym.Metric("time_ns", "ns", "minimize"),
        archgym.Metric("bandwidth_gb_per_s", "GB/s", "maximize"),
    )
    default_objective: ClassVar = "maximize bandwidth_gb_per_s"
    baseline: ClassVar = {"stages": 1, "width": 1}
    default_workload: ClassVar = "slow"
    simulators: ClassVar = {"exact": Exact}

    def load_workload(self, spec: Any) -> None:
        self.slowness = {"slow": 10.0, "fast": 1.0}[spec]

    def simulate(self, design: dict[str, Any]) -> Mapping[str, float]:
        if design["stages"] == 10:
            raise archgym.errors.SimulationError("too deep")
        return {
            "time_ns": self.slowness * design["stages"],
            "bandwidth_gb_per_s": design["width"] / self.slowness,
        }


def row(case: str, stages: int, setting: int = 0, line: int = 0, **metrics: float) -> ReferenceRow:
    return ReferenceRow(case, {"stages": stages, "width": 1}, metrics, setting, line)


SETTINGS = ({"workload": "slow"}, {"workload": "fast"})


def test_rows_are_compared_case_by_case_under_their_own_settings() -> None:
    reference = Reference(
        "other 1.0",
        "table.csv",
        SETTINGS,
        [
            row("slow", 1, time_ns=10.0),
            row("fast", 1, 1, time_ns=2.0),
            row("slow", 2, time_ns=25.0),
            row("fast", 3, 1, time_ns=3.0),
        ],
    )
    found = validate(reference, Lane)
    assert found.metrics == ("time_ns",)
    assert found.ours[:, 0].tolist() == [10.0, 1.0, 20.0, 3.0]
    slow, fast = found.agreements
    assert [(one.case, one.n) for one in (slow, fast)] == [("slow", 2), ("fast", 2)]
    assert slow.max_error == pytest.approx(0.2)
    assert fast.max_error == pytest.approx(0.5)
    assert found.summary("time_ns").worst["max_error"] == pytest.approx(0.5)
    with pytest.raises(UnknownNameError, match="time_ns"):
        found.summary("time_n")


def test_a_metric_is_compared_only_where_the_reference_gives_it() -> None:
    rows = [
        row("slow", 1, time_ns=10.0, bandwidth_gb_per_s=0.1),
        row("slow", 2, time_ns=20.0),
        row("fast", 2, 1, time_ns=2.0),
    ]
    found = validate(Reference("other", "t.csv", SETTINGS, rows), Lane)
    assert {(a.metric, a.case): a.n for a in found.agreements} == {
        ("time_ns", "slow"): 2,
        ("time_ns", "fast"): 1,
        ("bandwidth_gb_per_s", "slow"): 1,
    }


def test_worst_rows_come_first() -> None:
    rows = [row("slow", n, line=n, time_ns=t) for n, t in ((1, 10.0), (2, 16.0), (3, 40.0))]
    found = validate(Reference("other", "t.csv", SETTINGS, rows), Lane)
    worst = found.worst_rows("time_ns", 2)
    assert [(e.row.line, round(e.error, 3)) for e in worst] == [(2, 0.25), (3, -0.25)]


def test_a_design_that_we_cannot_evaluate_is_reported_and_left_out() -> None:
    rows = [row("slow", 10, line=7, time_ns=1.0), row("slow", 2, time_ns=20.0)]
    found = validate(Reference("other", "t.csv", SETTINGS, rows), Lane)
    assert found.failed == (Skipped(7, "failed: too deep"),)
    assert found.agreements[0].n == 1


def test_nothing_to_compare_is_an_error_that_says_why() -> None:
    reference = Reference("other", "t.csv", (), (), skipped=[Skipped(2, "status 'hang'")])
    with pytest.raises(InvalidValueError, match=r"t\.csv: no row .*status 'hang'"):
        validate(reference, Lane)


def test_json_holds_every_figure() -> None:
    rows = [row("slow", 1, time_ns=10.0), row("slow", 2, time_ns=25.0)]
    data = validate(Reference("other", "t.csv", SETTINGS, rows), Lane).to_json()
    assert data["rows"] == 2
    assert data["cases"][0] == {
        "case": "slow",
        "metric": "time_ns",
        "n": 2,
        "spread": 1.5,
        "spearman": 1.0,
        "kendall": 1.0,
        "median_error": pytest.approx(0.1),
        "mean_error": pytest.approx(0.1),
        "max_error": pytest.approx(0.2),
        "bias": pytest.approx(-0.1),
        "top_overlap": 1.0,
        "regret": 0.0,
        "raw_regret": 0.0,
    }
    assert data["summaries"][0]["varying"] == 1


def test_another_simulator_gives_the_reference_on_random_designs() -> None:
    reference = live_reference(Lane, "exact", workloads=["slow", "fast"], n=30, seed=3)
    assert reference.title == "exact 2.0"
    assert {row.case for row in reference.rows} == {"slow", "fast"}
    assert all(skipped.reason.endswith("more than 8 stages") for skipped in reference.skipped)
    assert len(reference.rows) + len(reference.skipped) <= 60
    found = validate(reference, Lane)
    assert found.metrics == ("time_ns",)
    assert found.summary("time_ns").worst["spearman"] == 1.0
    assert found.agreements[0].bias < 0


def test_the_seed_chooses_the_designs() -> None:
    def designs(seed: int) -> list[Any]:
        return [row.design for row in live_reference(Lane, "exact", n=10, seed=seed).rows]

    assert designs(1) == designs(1)
    assert designs(1) != designs(2)
    with pytest.raises(UnknownNameError, match="exact"):
        live_reference(Lane, "exakt")


def test_an_environment_without_references_says_so() -> None:
    with pytest.raises(InvalidValueError, match="Lane has no reference figures"):
        Lane.references()
