"""The models of the kernels: mechanism, correction, fitting and judging."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from archgym.envs.gpu.model import power
from archgym.envs.gpu.model.compiled import Compiled, compiled_facts
from archgym.envs.gpu.model.device import device_named
from archgym.envs.gpu.model.fitting import FEW, compiled_tables, fit_coefficients, grow
from archgym.envs.gpu.model.judging import agreement, regrets
from archgym.envs.gpu.model.machines import USUAL_RUN, extras_of_runs
from archgym.envs.gpu.model.measured import measured, rows_of
from archgym.envs.gpu.model.prediction import MECHANISMS, Correction, shipped_models
from archgym.envs.gpu.parameters import KERNELS, PARAMETERS
from archgym.envs.gpu.workload import shape_of

DEVICE = device_named("h200")


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_shipped_model_is_near_what_it_was_fitted_to(kernel: str) -> None:
    rows = measured(kernel, DEVICE)
    some = rows[np.arange(0, len(rows.names), 7)]
    found = shipped_models()[kernel].predict(some.designs, some.sizes, DEVICE, some.compiled)
    assert agreement(found["time_us"], some.time_us)["median_error"] < 0.04
    known = np.isfinite(some.power)
    assert agreement(found["power_w"][known], some.power[known])["median_error"] < 0.06


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_fit_finds_the_coefficients_that_made_the_times(kernel: str) -> None:
    rows = measured(kernel, DEVICE)
    some = rows[np.arange(0, len(rows.names), 1 + len(rows.names) // 900)]
    mechanism = MECHANISMS[kernel]
    truth = {name: first for name, (_, first, _) in mechanism.bounds.items()} | {"latency": 700.0}
    made = mechanism.terms(some.designs, some.sizes, DEVICE, some.compiled, truth)["time_us"]
    fitted = fit_coefficients(replace(some, times=made[:, None]), kernel, DEVICE)
    found = mechanism.terms(some.designs, some.sizes, DEVICE, some.compiled, fitted)["time_us"]
    assert agreement(found, made)["r2_log"] > 0.999
    assert fitted["latency"] == pytest.approx(700.0, rel=0.15)


def test_what_the_compiler_said_of_a_design_is_looked_up() -> None:
    shape = shape_of("prefill_512")
    rows = [row for row in rows_of(shape).values() if row["status"] == "ok"][::50]
    designs = {name: np.array([row[name] for row in rows]) for name in PARAMETERS["gemm"]}
    found = compiled_facts(shape, designs)
    assert found.registers.tolist() == [row["registers"] for row in rows]
    assert found.spills.tolist() == [row["spills"] for row in rows]


def test_the_tables_of_the_compiler_are_those_of_the_measurements() -> None:
    made = compiled_tables()
    shape = shape_of("attention_gpt")
    designs = {name: np.array([float(v[0])]) for name, v in PARAMETERS["attention"].items()}
    found = compiled_facts(shape, designs)
    assert made["attention"][1, 0, 0, 0, 0].tolist() == [
        found.registers[0],
        found.spills[0],
        found.shared_bytes[0],
    ]


def test_a_correction_survives_its_arrays() -> None:
    random = np.random.default_rng(0)
    features = random.random((400, 3)).astype(np.float32).astype(float)
    wanted = features[:, 0] - 2 * (features[:, 1] > 0.5)
    grown = grow(features, wanted, None, FEW)
    again = Correction.of(grown.arrays(), 3)
    assert np.allclose(again(features), grown(features), atol=1e-5)
    assert agreement(np.exp(again(features)), np.exp(wanted))["median_error"] < 0.05


def test_agreement_and_regret_by_hand() -> None:
    found = agreement(np.array([1.1, 2.0, 3.0]), np.array([1.0, 2.0, 3.0]))
    assert found["median_error"] == 0.0
    assert found["r2"] == pytest.approx(1 - 0.01 / 2, abs=1e-4)
    assert regrets(np.array([1.0, 2.0, 3.0]), np.array([12.0, 10.0, 11.0])) == [0.2, 0.0]


def test_more_spilled_words_take_longer() -> None:
    rows = measured("gemm", DEVICE)[np.arange(50)]
    none = Compiled(rows.compiled.registers, 0 * rows.compiled.spills, rows.compiled.shared_bytes)
    many = replace(none, spills=none.spills + 100)
    terms, fitted = MECHANISMS["gemm"].terms, shipped_models()["gemm"].coefficients
    few, more = (
        terms(rows.designs, rows.sizes, DEVICE, one, fitted)["time_us"] for one in (none, many)
    )
    assert (more >= few).all()


def test_power_is_that_of_the_busy_parts_up_to_the_limit() -> None:
    fitted = {name: first for name, (_, first, _) in power.BOUNDS.items()} | {"memory": 300.0}
    idle = {name: np.zeros(1) for name in power.BOUNDS if name != "limit"}

    def power_w(extra_w: float = 0.0, **busy: float) -> float:
        parts = idle | {name: np.array([share]) for name, share in busy.items()}
        sizes = {"memory_extra_w": np.array([extra_w])}
        return float(power.power_w(parts, sizes, DEVICE, fitted)[0])

    assert power_w() == pytest.approx(DEVICE.idle_w, rel=1e-4)
    assert power_w(memory=0.5) == pytest.approx(DEVICE.idle_w + 150.0, rel=1e-3)
    assert power_w(100.0, memory=0.5) == pytest.approx(DEVICE.idle_w + 200.0, rel=1e-3)
    assert power_w(100.0) == power_w()
    assert power_w(multiply=50.0) == pytest.approx(fitted["limit"], rel=1e-3)


def test_what_the_memory_of_a_machine_takes_is_told_by_pytorch_s_normalisation() -> None:
    def row(run: int, power_w: float, *, shape: str = "norm_2048", warps: int | None = None) -> Any:
        return {
            "run": run,
            "shape": shape,
            "warps": warps,
            "power_w": power_w,
            "busy_time_us": 5 * 2 * 16384 * 2048 / (DEVICE.memory_gb_per_s * 1e3) * 2,
        }

    usual = row(USUAL_RUN, 600.0)  # at half of the bandwidth
    others = [row(4, 650.0), row(4, 500.0, warps=8), row(4, 900.0, shape="norm_5120")]
    found = extras_of_runs([usual, *others, row(5, 590.0)], DEVICE)
    assert found == pytest.approx({USUAL_RUN: 0.0, 4: 100.0, 5: -20.0})


def test_powers_of_normalisations_are_predicted_on_every_machine() -> None:
    rows = measured("norm", DEVICE, held_out=True)
    found = shipped_models()["norm"].predict(rows.designs, rows.sizes, DEVICE, rows.compiled)
    elsewhere = np.isfinite(rows.power) & (rows.sizes["memory_extra_w"] < -10.0)
    assert elsewhere.sum() > 20
    agreed = agreement(found["power_w"][elsewhere], rows.power[elsewhere])
    assert agreed["median_error"] < 0.04


def test_launches_that_repeat_find_small_data_in_the_cache() -> None:
    sizes = DEVICE.l2_mb * 1e6 * np.array([0.1, 0.8, 10.0])
    small, middle, large = power.missed({"footprint_bytes": sizes}, DEVICE)
    assert small < 0.01
    assert middle == pytest.approx(0.5)
    assert large > 0.99
