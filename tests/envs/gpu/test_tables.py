from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import archgym
from archgym.envs.gpu.environment import GPUKernel
from archgym.envs.gpu.model import gemm
from archgym.envs.gpu.model.device import device_named
from archgym.envs.gpu.model.measured import (
    PASSES,
    measured,
    measured_rows,
    measured_shapes,
    rows_of,
)
from archgym.envs.gpu.parameters import HELD_OUT, TOLERANCES
from archgym.envs.gpu.tabulate import tabulated
from archgym.envs.gpu.workload import shape_of
from archgym.errors import InvalidValueError
from archgym.simulators.tabular import shipped_tables

DESIGNS = {"gemm": 2862, "attention": 224, "norm": 240}


def test_every_legal_design_of_the_measured_shapes_has_a_row() -> None:
    shapes = measured_shapes()
    assert len(shapes) >= 20
    assert {shape.kernel for shape in shapes} == set(DESIGNS)
    assert sum(len(rows_of(shape)) for shape in shapes) >= 12_000
    for shape in shapes:
        assert len(rows_of(shape)) == DESIGNS[shape.kernel]


def test_results_are_right_and_times_are_there_where_a_design_is_ok() -> None:
    for shape in measured_shapes():
        for row in rows_of(shape).values():
            if row["status"] == "ok":
                assert all(row[name] > 0 for name in PASSES)
                assert row["error"] is None or row["error"] <= TOLERANCES[shape.dtype]
            else:
                assert row["reason"] in ("shared memory", "wrong result")


def test_no_row_that_models_are_fitted_to_is_of_a_shape_that_judges_them() -> None:
    names = {row["shape"] for row in measured_rows()}
    sizes = {tuple(shape_of(name).sizes.values()) for name in names}
    assert not names & {shape.name for shape in HELD_OUT}
    assert not sizes & {tuple(s.sizes.values()) for s in HELD_OUT if s.dtype == "fp16"}


@pytest.mark.parametrize("name", ["square_2048", "attention_long", "norm_16384", "decode_64_fp8"])
def test_the_model_refuses_exactly_what_the_gpu_refused(name: str) -> None:
    env = GPUKernel(workload=name)
    rows = rows_of(shape_of(name))
    designs = env.design_space.designs(
        [dict(zip(env.design_space.names, values, strict=True)) for values in rows]
    )
    found = env.evaluate_batch(designs)
    for row, outcome in zip(rows.values(), found, strict=True):
        assert outcome.status == row["status"], (row, outcome.reason)
        assert outcome.reason.startswith(row["reason"])


def test_the_error_of_eight_bit_products_grows_as_it_was_measured() -> None:
    device = device_named("h200")
    rows = measured("gemm", device)
    error = gemm.relative_error(rows.designs, rows.sizes, device)
    assert (error[rows.sizes["element"] == 2] == 0).all()
    for shape in ("square_4096_fp8", "decode_64_fp8"):
        for row in rows_of(shape_of(shape)).values():
            if row["error"] is not None and row["block_m"] >= 64:
                one = {name: np.array([float(row[name])]) for name in ("block_m", "warps")}
                one["split_k"] = np.array([float(row["split_k"])])
                depth = {"k": np.array([float(shape_of(shape).sizes["k"])])}
                sizes = depth | {"element": np.array([1.0])}
                found = gemm.relative_error(one, sizes, device)
                assert found[0] == pytest.approx(row["error"], rel=0.02)


def test_a_table_gives_what_was_measured() -> None:
    shape = shape_of("decode_16")
    env = archgym.make("GPUKernel-v0", simulator="tabular:gpu-decode-16")
    row = rows_of(shape)[tuple(GPUKernel.baseline.values())]
    times = [row[name] for name in PASSES]
    metrics = env.evaluate(GPUKernel.baseline).metrics
    assert metrics["time_us"] == pytest.approx(np.median(times), rel=1e-5)
    spread = metrics["time_us_spread_share"]
    assert spread == pytest.approx(np.std(times) / np.median(times), rel=1e-2)
    large = {**GPUKernel.baseline, "block_m": 256, "block_n": 256, "stages": 5}
    assert env.evaluate(large).reason == "shared memory"


def test_each_measured_shape_has_a_table_by_name() -> None:
    names = {f"gpu-{shape.name.replace('_', '-')}" for shape in measured_shapes()}
    assert names <= set(shipped_tables())


@pytest.mark.parametrize("name", ["attention_gpt", "norm_4096"])
def test_the_table_decides_the_kernel(name: str) -> None:
    env = archgym.make("GPUKernel-v0", simulator=f"tabular:gpu-{name.replace('_', '-')}")
    assert env.workload_name == name
    assert env.evaluate(env.baseline_design).status == "ok"


def test_a_table_of_a_file(tmp_path: Path) -> None:
    tabulated(shape_of("norm_1024")).save(tmp_path / "norm.parquet")
    env = GPUKernel(workload="norm_1024", simulator=f"tabular:{tmp_path / 'norm.parquet'}")
    assert env.evaluate(env.baseline_design).status == "ok"


def test_a_shape_that_was_not_measured_has_no_table() -> None:
    with pytest.raises(InvalidValueError, match="square_4096"):
        tabulated(shape_of({"gemm": [5, 5, 5]}))
