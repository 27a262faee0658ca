from __future__ import annotations

import contextlib
import fcntl
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import archgym
from archgym.data import Dataset
from archgym.envs.gpu.environment import GPUKernel
from archgym.envs.gpu.measuring.turn import lock_path, turn
from archgym.envs.gpu.parameters import PARAMETERS, SHAPES, legal
from archgym.envs.gpu.space import design_space
from archgym.envs.gpu.workload import shape_of, shape_sha256
from archgym.errors import (
    InvalidValueError,
    MissingDependencyError,
    UnknownNameError,
)

BASELINE = GPUKernel.baseline


def time_us(workload: Any, **changes: int) -> float:
    env = GPUKernel(workload=workload)
    outcome = env.evaluate({**BASELINE, **changes})
    assert outcome.status == "ok", outcome.reason
    found = outcome.metrics["time_us"]
    assert found is not None
    return found


@pytest.mark.parametrize("kernel", list(PARAMETERS))
def test_the_rule_of_the_space_is_the_one_that_measuring_uses(kernel: str) -> None:
    space = design_space(kernel)
    count = 1
    for values in PARAMETERS[kernel].values():
        count *= len(values)
    designs = list(space.unrank(np.arange(int(space.canonical_cardinality))))
    assert all(legal(kernel, design) for design in designs)
    assert len(designs) < count
    assert len(designs) == {"gemm": 2862, "attention": 224, "norm": 240}[kernel]


def test_more_work_takes_longer_and_never_less_than_the_data_sheet_allows() -> None:
    times = [time_us({"gemm": [size, size, size]}) for size in (512, 1024, 2048, 4096)]
    assert times == sorted(times)
    assert times[-1] > 2 * 4096**3 / 1.07e15 * 1e6


def test_tiles_of_thirds_need_rows_for_warpgroups_and_are_predicted() -> None:
    space = design_space("gemm")
    wide = {**BASELINE, "block_n": 192, "block_k": 32, "stages": 5}
    assert "rows_of_thirds" in space.broken_rule({**wide, "block_m": 32})
    # 384 tiles of 128 x 192 are 2.9 for each of 132 multiprocessors, 288 of 128 x 256 are 2.2.
    square = {"gemm": [3072, 3072, 3072]}
    assert time_us(square, **{**wide, "block_m": 128}) < time_us(
        square, **{**wide, "block_m": 128, "block_n": 256}
    )


def test_wide_tiles_of_the_copy_engine_fill_the_multiprocessors_once() -> None:
    space = design_space("gemm")
    wide = {**BASELINE, "block_m": 64, "block_n": 320, "warps": 4, "stages": 4, "copy_engine": 1}
    assert space.broken_rule(wide) == ""
    assert "only_by_the_engine" in space.broken_rule({**wide, "copy_engine": 0})
    assert "engine_does_not_split" in space.broken_rule({**wide, "split_k": 4})
    # 120 tiles of 64 x 320 for 132 multiprocessors; 144 of 128 x 128 are two for some.
    square = {"gemm": [1536, 1536, 1536]}
    assert time_us(square, **wide) < time_us(square, **{**wide, "block_m": 128, "block_n": 128})


@pytest.mark.parametrize(
    ("device", "workload", "reason"),
    [
        ("a100", "square_2048", "A100"),
        ("h200", {"gemm": [512, 500, 512]}, "16 bytes"),
        ("h200", {"gemm": [512, 512, 500]}, "16 bytes"),
    ],
)
def test_the_copy_engine_loads_what_it_can(device: str, workload: Any, reason: str) -> None:
    env = GPUKernel(device=device, workload=workload)
    outcome = env.evaluate({**BASELINE, "copy_engine": 1})
    assert outcome.status == "failed"
    assert outcome.reason.startswith("copy engine: ")
    assert reason in outcome.reason
    assert env.evaluate(BASELINE).status == "ok"


def test_splitting_k_helps_a_deep_product_and_not_a_square_one() -> None:
    deep = {"gemm": [256, 256, 32768]}
    assert time_us(deep, split_k=4) < time_us(deep, split_k=1)
    square = {"gemm": [4096, 4096, 4096]}
    assert time_us(square, split_k=4) > time_us(square, split_k=1)


def test_a_pipeline_that_needs_too_much_shared_memory_fails() -> None:
    env = GPUKernel()
    design = {**BASELINE, "block_m": 256, "block_n": 256, "block_k": 64, "stages": 5}
    outcome = env.evaluate(design)
    assert outcome.status == "failed"
    assert "shared memory" in outcome.reason
    assert "327680" in outcome.reason


@pytest.mark.parametrize("workload", ["square_4096", "attention_llama", "norm_4096"])
def test_another_gpu_keeps_its_own_power_limit(workload: str) -> None:
    env = GPUKernel(device="a100", workload=workload)
    designs = list(env.design_space.sample(300, np.random.default_rng(0)))
    outcomes = [env.evaluate(design) for design in designs]
    powers = [one.metrics["power_w"] or 0 for one in outcomes if one.status == "ok"]
    assert len(powers) > 100
    assert env.device.idle_w < min(powers)
    assert max(powers) <= env.device.power_w == 400


def test_a_smaller_gpu_is_slower_and_refuses_more() -> None:
    here, there = GPUKernel(device="h200"), GPUKernel(device="a100")
    slow, fast = there.evaluate(BASELINE).metrics, here.evaluate(BASELINE).metrics
    assert (slow["time_us"] or 0) > (fast["time_us"] or 0)
    large = {**BASELINE, "block_m": 128, "block_n": 256, "block_k": 64, "stages": 5}
    assert there.evaluate(large).status == "failed"


@pytest.mark.parametrize(
    "workload",
    [
        "attention_gpt",
        {"attention": [2, 16, 4096, 128], "causal": True},
        "norm_4096",
        {"norm": [1000, 3000]},
        {"gemm": [64, 4096, 14336], "dtype": "fp8"},
    ],
    ids=str,
)
def test_every_kernel_has_time_power_and_energy(workload: Any) -> None:
    env = GPUKernel(workload=workload)
    outcome = env.evaluate(env.baseline_design)
    assert outcome.status == "ok", outcome.reason
    metrics = outcome.metrics
    assert 1 < (metrics["time_us"] or 0) < 1000
    assert env.device.idle_w < (metrics["power_w"] or 0) < 1.2 * env.device.power_w
    assert (metrics["energy_mj"] or 0) > 0


def test_causal_attention_and_fewer_rows_take_less_time() -> None:
    def best(workload: Any) -> float:
        env = GPUKernel(workload=workload)
        return float(env.evaluate(env.baseline_design).metrics["time_us"] or 0)

    sizes = [1, 32, 8192, 128]
    full = best({"attention": sizes, "causal": False})
    assert best({"attention": sizes, "causal": True}) < 0.8 * full
    assert best({"norm": [2048, 4096]}) < best({"norm": [8192, 4096]})


def test_a_product_of_eight_bit_elements_can_be_wrong() -> None:
    env = GPUKernel(workload={"gemm": [64, 4096, 14336], "dtype": "fp8"})
    outcome = env.evaluate(BASELINE)
    assert outcome.status == "failed"
    assert outcome.reason.startswith("wrong result")
    assert env.evaluate({**BASELINE, "split_k": 4}).status == "ok"


@pytest.mark.parametrize(
    ("workload", "words"),
    [
        ("square_2049", "square_2048"),
        ({"gem": [1, 2, 3]}, "gemm"),
        ({"gemm": [0, 2, 3]}, "three integers"),
        ({"gemm": [1, 2]}, "three integers"),
        ({"gemm": [True, 2, 3]}, "three integers"),
        ({"gemm": [1, 2, 3], "dtype": "fp61"}, "fp16"),
        ({"gemm": [1, 2, 3], "kind": "fp16"}, "dtype"),
        (7, "must be a name"),
        ({"norm": [1, 2, 3]}, "two integers"),
        ({"norm": [8, 8], "gemm": [8, 8, 8]}, "one of"),
        ({"norm": [8, 8], "dtype": "fp8"}, "fp16"),
        ({"attention": [1, 2, 3]}, "four integers"),
        ({"attention": [1, 8, 64, 80]}, "64, 128"),
        ({"attention": [1, 8, 64, 64], "causal": 1}, "true or false"),
    ],
    ids=str,
)
def test_workloads_that_there_are_not(workload: Any, words: str) -> None:
    with pytest.raises((InvalidValueError, UnknownNameError), match=words):
        GPUKernel(workload=workload)


def test_other_arguments_that_are_not_possible() -> None:
    with pytest.raises(UnknownNameError, match="h200"):
        GPUKernel(device="h20")
    with pytest.raises(InvalidValueError, match="another kernel"):
        GPUKernel(space="norm")
    with pytest.raises(InvalidValueError, match="does not give metric"):
        GPUKernel(objective="minimize time_us_spread_share")
    with pytest.raises(InvalidValueError, match="block_rows"):
        GPUKernel(workload="norm_4096", space=design_space("gemm"))


def test_a_name_and_its_sizes_are_the_same_workload() -> None:
    named = shape_of("square_2048")
    assert shape_sha256(named) == shape_sha256(shape_of({"gemm": [2048, 2048, 2048]}))
    assert len({shape_sha256(shape) for shape in SHAPES}) == len(SHAPES)


def test_measuring_says_what_is_missing() -> None:
    try:
        import triton  # noqa: F401
    except ImportError:
        with pytest.raises(MissingDependencyError, match=r"pip install torch triton"):
            GPUKernel(simulator="triton")


def test_memory_that_takes_more_power_counts_where_the_cache_holds_nothing() -> None:
    def power_w(workload: Any, extra_w: float) -> float:
        env = GPUKernel(workload=workload, memory_extra_w=extra_w)
        assert env.settings.get("memory_extra_w", 0.0) == extra_w
        return float(env.evaluate(env.baseline_design).metrics["power_w"] or 0)

    assert power_w("norm_4096", 90.0) > power_w("norm_4096", 0.0) + 30.0
    small = {"norm": [256, 4096]}
    assert power_w(small, 90.0) == pytest.approx(power_w(small, 0.0), rel=0.01)
    for wrong in ("much", 4000.0, float("nan")):
        with pytest.raises(InvalidValueError, match="memory_extra_w"):
            GPUKernel(memory_extra_w=wrong)  # type: ignore[arg-type]


def test_what_the_model_likes_best_is_near_the_best_of_a_table() -> None:
    env = archgym.make("GPUKernel-v0", simulator="tabular:gpu-attention-bert")
    first = env.predicted_designs()
    assert len(first) == 10
    assert env.predicted_designs(3) == first[:3]
    assert env.optimum is not None
    times = [env.evaluate(design).metrics["time_us"] or np.inf for design in first]
    assert min(times) < 1.05 * (env.optimum.metrics["time_us"] or 0)
    model = GPUKernel(workload="attention_bert")
    predicted = [model.evaluate(design).metrics["time_us"] or 0 for design in first]
    assert predicted == sorted(predicted)


def test_designs_are_predicted_for_another_simulator_that_has_the_same_metrics() -> None:
    with pytest.raises(InvalidValueError, match="the one that is searched"):
        GPUKernel().predicted_designs()
    steady = archgym.make(
        "GPUKernel-v0",
        simulator="tabular:gpu-attention-bert",
        objective="minimize time_us_spread_share",
    )
    with pytest.raises(InvalidValueError, match="time_us_spread_share"):
        steady.predicted_designs()


def test_one_process_at_a_time_measures() -> None:
    def free(gpu: str) -> bool:
        with lock_path(gpu).open("r+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

    gpu = f"test-{uuid.uuid4()}"
    try:
        with turn(gpu):
            assert not free(gpu)
        assert free(gpu)
        with contextlib.suppress(ZeroDivisionError), turn(gpu):
            _ = 1 / 0
        assert free(gpu)
    finally:
        lock_path(gpu).unlink()


def test_it_is_made_by_its_name_and_searched(tmp_path: Path) -> None:
    env = archgym.make("GPUKernel-v0", workload="square_1024", record=tmp_path / "data")
    archgym.make_agent("random", env.design_space, seed=1).search(env, 20)
    env.close()
    assert Dataset(tmp_path / "data").evaluations().num_rows >= 20
