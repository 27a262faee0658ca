"""The tensor engine environment through its public interface."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import archgym
from archgym.envs.tpe.environment import TensorEngine
from archgym.envs.tpe.space.named import BASELINES
from archgym.errors import DesignError, InvalidValueError, SimulationError, UnknownNameError

SMALL = {"gemm": [64, 256, 64]}


@pytest.fixture(scope="module")
def env() -> TensorEngine:
    made = archgym.make("TPE-v0", workload=SMALL)
    assert isinstance(made, TensorEngine)
    return made


def metrics(env: archgym.Environment, design: Any) -> dict[str, float]:
    outcome = env.evaluate(design)
    assert outcome.status == "ok", outcome.reason
    return {name: value for name, value in outcome.metrics.items() if value is not None}


def test_metrics_agree_with_one_another(env: TensorEngine) -> None:
    designs = env.design_space.sample(200, np.random.default_rng(0))
    outcomes = env.evaluate_batch(designs)
    ok = outcomes.status == 0
    assert ok.sum() > 80
    column = {name: outcomes.metrics[ok, i] for i, name in enumerate(outcomes.metric_names)}
    macs = 64 * 256 * 64
    seconds = column["latency_ns"] * 1e-9
    np.testing.assert_allclose(column["tops"], 2 * macs / seconds / 1e12, rtol=1e-9)
    np.testing.assert_allclose(
        column["energy_per_mac_pj"] * macs, column["power_mw"] * column["latency_ns"], rtol=1e-9
    )
    np.testing.assert_allclose(
        column["tops_per_w"], column["tops"] / (column["power_mw"] * 1e-3), rtol=1e-9
    )
    np.testing.assert_allclose(
        column["tops_per_mm2"], column["tops"] / (column["area_um2"] * 1e-6), rtol=1e-9
    )
    fastest = np.array([design["clock"] == "fastest" for design in designs])[ok]
    cycles = macs / column["macs_per_cycle_rate"]
    np.testing.assert_allclose(
        (cycles * column["min_period_ns"])[fastest], column["latency_ns"][fastest], rtol=1e-9
    )
    assert (cycles * column["min_period_ns"] <= column["latency_ns"] * (1 + 1e-9)).all()


def test_no_array_does_more_than_its_multipliers(env: TensorEngine) -> None:
    for name, array in BASELINES.items():
        rate = metrics(env, env.named_designs()[name])["macs_per_cycle_rate"]
        assert 0.2 * array.multipliers < rate <= array.multipliers


def test_a_clock_that_is_too_fast_fails_with_both_figures(env: TensorEngine) -> None:
    fast = {**env.baseline, "clock": "target", "clock_mhz": 2500}
    outcome = env.evaluate(fast)
    assert outcome.status == "failed"
    assert "2500 MHz" in outcome.reason
    slow = metrics(env, {**fast, "clock_mhz": 50})
    free = metrics(env, env.baseline)
    assert slow["min_period_ns"] == free["min_period_ns"]
    assert slow["latency_ns"] == pytest.approx(free["latency_ns"] * 20 / free["min_period_ns"])
    assert slow["power_mw"] < free["power_mw"]


def test_one_design_and_a_batch_agree(env: TensorEngine) -> None:
    designs = env.design_space.sample(30, np.random.default_rng(3))
    batch = archgym.make("TPE-v0", workload=SMALL).evaluate_batch(designs)
    for i, design in enumerate(designs):
        one = archgym.make("TPE-v0", workload=SMALL) if i == 0 else env
        outcome = one.evaluate(design)
        assert outcome.status == batch[i].status
        assert outcome.metrics == batch[i].metrics


def test_the_published_optimisations_cost_less_per_mac(env: TensorEngine) -> None:
    """The order of the paper: each optimisation beats the one before in area x time."""
    names = ["systolic_os", "systolic_os/OPT1", "OPT4C", "OPT4E"]
    efficiency = [metrics(env, env.named_designs()[name])["tops_per_mm2"] for name in names]
    assert efficiency == sorted(efficiency)


@pytest.mark.parametrize("space", BASELINES)
def test_classic_arrays_hold_their_size(space: str) -> None:
    made = archgym.make("TPE-v0", space=space, workload=SMALL)
    assert isinstance(made, TensorEngine)
    assert made.baseline_design == made.named_designs()[space]
    held = BASELINES[space]
    for design in made.design_space.sample(5, np.random.default_rng(1)):
        assert design["array"] == space
        assert design["columns"] == held.columns


def test_bit_serial_columns_can_be_held() -> None:
    made = archgym.make("TPE-v0", fixed={"array": "bit_serial_column"}, workload=SMALL)
    assert made.baseline_design["bit_weights"] == "temporal_sparse"


def test_designs_are_as_wide_as_the_workload_needs() -> None:
    wide = archgym.make("TPE-v0", workload={**SMALL, "bits": [16, 8]})
    assert (wide.baseline["width_a"], wide.baseline["width_b"]) == (16, 8)
    with pytest.raises(DesignError, match="'width_a' cannot be 8"):
        wide.evaluate({**wide.baseline, "width_a": 8})
    narrow = archgym.make("TPE-v0", workload={**SMALL, "bits": 4})
    assert narrow.baseline["width_a"] == 4
    assert metrics(narrow, narrow.baseline)["area_um2"] < metrics(wide, wide.baseline)["area_um2"]


def at_target(**fixed: Any) -> archgym.Environment:
    return archgym.make("TPE-v0", workload=SMALL, fixed={"clock": "target", **fixed})


def test_a_baseline_with_a_clock_target_runs_as_fast_as_it_can() -> None:
    made = at_target()
    period = metrics(made, made.baseline_design)["min_period_ns"]
    parameter = made.design_space["clock_mhz"]
    clocks = [parameter.value(code) for code in range(parameter.size)]
    assert made.baseline_design["clock_mhz"] == max(c for c in clocks if c <= 1e3 / period)
    assert made.baseline_design["accumulator"] == "separate"


def test_a_held_clock_that_multiply_accumulate_units_miss_starts_from_an_optimisation() -> None:
    assert at_target(clock_mhz=500).baseline_design["accumulator"] == "separate"
    faster = at_target(clock_mhz=1200).baseline_design
    assert (faster["accumulator"], faster["clock_mhz"]) == ("carry_save", 1200)
    with pytest.raises(SimulationError, match="2500 MHz"):
        at_target(clock_mhz=2500).reset()


@pytest.mark.parametrize("widths", [(4, 4), (4, 8), (16, 16)])
def test_named_designs_have_operands_of_any_width(widths: tuple[int, int]) -> None:
    bits = {f"width_{of}": width for of, width in zip("ab", widths, strict=True)}
    made = archgym.make("TPE-v0", workload={"gemm": [16, 64, 16], "bits": 4}, fixed=bits)
    named = TensorEngine.named_designs(widths)
    assert set(named) == set(TensorEngine.named_designs())
    for design in named.values():
        metrics(made, design)


def test_named_designs_of_odd_widths_are_refused() -> None:
    with pytest.raises(InvalidValueError, match=r"5 bits.*4, 8, 16"):
        TensorEngine.named_designs((5, 8))


def test_sparser_operands_help_only_those_who_skip_zeros() -> None:
    narrow = archgym.make("TPE-v0", workload={**SMALL, "a": {"normal": 5}})
    wide = archgym.make("TPE-v0", workload={**SMALL, "a": "uniform"})
    assert isinstance(narrow, TensorEngine)
    named = narrow.named_designs()
    for name, gains in (("OPT4C", True), ("systolic_os", False)):
        ratio = (
            metrics(narrow, named[name])["macs_per_cycle_rate"]
            / (metrics(wide, named[name])["macs_per_cycle_rate"])
        )
        assert (ratio > 1.5) if gains else (ratio == 1.0)


def test_one_pe_alone(env: TensorEngine) -> None:
    alone = archgym.make("TPE-v0", workload=SMALL, scope="pe")
    whole, one = metrics(env, env.baseline), metrics(alone, alone.baseline)
    assert one["area_um2"] < whole["area_um2"] / 200
    assert one["macs_per_cycle_rate"] <= 1.0
    for name in ("rows", "columns"):
        assert metrics(alone, {**alone.baseline, name: 4}) == one


def test_technologies_differ_in_scale(env: TensorEngine) -> None:
    coarse = archgym.make("TPE-v0", workload=SMALL, technology="sg13g2")
    fine, older = metrics(env, env.baseline), metrics(coarse, coarse.baseline)
    assert older["area_um2"] > 4 * fine["area_um2"]
    assert older["min_period_ns"] > 2 * fine["min_period_ns"]
    assert env.settings["technology"] != coarse.settings["technology"]


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'nangate45'"):
        archgym.make("TPE-v0", technology="nangate54")
    with pytest.raises(UnknownNameError, match="Allowed: array, pe"):
        archgym.make("TPE-v0", scope="chip")
    with pytest.raises(UnknownNameError, match="Did you mean 'cube'"):
        archgym.make("TPE-v0", space="cubes")
    with pytest.raises(UnknownNameError, match="resnet18"):
        archgym.make("TPE-v0", workload="resnet81")
    with pytest.raises(InvalidValueError, match=r"no file lost/cells\.json"):
        archgym.make("TPE-v0", technology="lost/cells.json")
    with pytest.raises(InvalidValueError, match="technology 45"):
        archgym.make("TPE-v0", technology=45)
    with pytest.raises(InvalidValueError, match="fixed must be a mapping"):
        archgym.make("TPE-v0", fixed=["array"])
    with pytest.raises(DesignError, match="'array' cannot be"):
        archgym.make("TPE-v0", fixed={"array": ["cube"]})
    with pytest.raises(InvalidValueError, match="simulator_options must be a mapping"):
        archgym.make("TPE-v0", simulator="yosys", simulator_options="cells.lib")
    with pytest.raises(InvalidValueError, match="threads is 0"):
        archgym.make(
            "TPE-v0", simulator="yosys", simulator_options={"liberty": "x.lib", "threads": 0}
        )
