from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from archgym.envs.gpu.environment import GPUKernel
from archgym.envs.gpu.model.device import device_named
from archgym.envs.gpu.model.fitting import agreement, fit
from archgym.envs.gpu.model.gemm import BOUNDS, parts, shared_bytes
from archgym.envs.gpu.model.measured import (
    PASSES,
    measured_rows,
    measured_shapes,
    products,
    rows_of,
)
from archgym.envs.gpu.tabulate import tabulated
from archgym.envs.gpu.workload import shape_of
from archgym.errors import InvalidValueError


def test_every_legal_design_of_the_measured_shapes_has_a_row() -> None:
    shapes = measured_shapes()
    assert len(shapes) == 12
    assert sum(len(rows_of(shape)) for shape in shapes) == 17_568
    for shape in shapes:
        assert len(rows_of(shape)) == {"gemm": 1872, "norm": 240}[shape.kernel]


def test_results_are_right_and_times_are_there_where_a_design_is_ok() -> None:
    for row in measured_rows():
        if row["status"] == "ok" and row["run"] == 2:
            assert all(row[name] > 0 for name in PASSES)
            assert row["error"] is None or row["error"] <= 2e-3
        elif row["status"] == "failed":
            assert row["reason"] == "shared memory"


def test_the_model_refuses_exactly_what_the_gpu_refused() -> None:
    device = device_named("h200")
    for shape in measured_shapes():
        if shape.kernel == "gemm":
            rows = list(rows_of(shape).values())
            names = ("block_m", "block_n", "block_k", "warps", "stages", "split_k")
            values = {name: np.array([row[name] for row in rows], dtype=float) for name in names}
            need = shared_bytes(values, 2.0, warpgroups=True)
            failed = np.array([row["status"] == "failed" for row in rows])
            assert ((need > device.shared_bytes) == failed).all()


def test_a_table_gives_what_was_measured(tmp_path: Path) -> None:
    shape = shape_of("decode_16")
    tabulated(shape).save(tmp_path / "decode.parquet")
    env = GPUKernel(workload="decode_16", simulator=f"tabular:{tmp_path / 'decode.parquet'}")
    row = rows_of(shape)[tuple(GPUKernel.baseline.values())]
    found = env.evaluate(GPUKernel.baseline).metrics["time_us"]
    assert found == pytest.approx(np.median([row[name] for name in PASSES]), rel=1e-5)
    large = {**GPUKernel.baseline, "block_m": 256, "block_n": 256, "stages": 5}
    assert env.evaluate(large).reason == "shared memory"


def test_a_shape_that_was_not_measured_has_no_table() -> None:
    with pytest.raises(InvalidValueError, match="square_4096"):
        tabulated(shape_of("square_4096_fp8"))


def test_a_fit_finds_the_coefficients_that_made_the_times() -> None:
    designs, sizes, _, _ = products()
    device = device_named("h200")
    some = np.arange(0, len(designs["warps"]), 11)
    designs = {name: value[some] for name, value in designs.items()}
    sizes = {name: value[some] for name, value in sizes.items()}
    truth = {name: first for name, (_, first, _) in BOUNDS.items()} | {"latency": 700.0}
    times = parts(designs, sizes, "fp16", device, truth)["time_us"]
    fitted = fit(designs, sizes, times, device)
    found = agreement(parts(designs, sizes, "fp16", device, fitted)["time_us"], times)
    assert found["r2_log"] > 0.9999
    assert fitted["latency"] == pytest.approx(700.0, rel=0.1)


def test_agreement_by_hand() -> None:
    found = agreement(np.array([1.1, 2.0, 3.0]), np.array([1.0, 2.0, 3.0]))
    assert found["median_error"] == 0.0
    assert found["r2"] == pytest.approx(1 - 0.01 / 2, abs=1e-4)
