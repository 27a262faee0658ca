from __future__ import annotations

import numpy as np
import pytest

import archgym
from archgym.envs.dram.device.memory import load_memory
from archgym.envs.dram.trace_features import FEATURES, trace_features
from archgym.envs.dram.traces.trace import Trace

MEMORY = load_memory("DDR3-1600")
ROW_BYTES = 1 << 13  # mapping rbc: the bank begins at bit 13


def trace_of(lines: list[int], writes: list[int] | None = None, gap_ps: int = 10_000) -> Trace:
    n = len(lines)
    return Trace(
        "hand",
        np.arange(n, dtype=np.int64) * gap_ps,
        np.array(lines, dtype=np.int64) * 64,
        np.array(writes or [0] * n, dtype=np.uint8),
    )


def test_a_stream_of_reads_to_one_row() -> None:
    found = trace_features(trace_of(list(range(20))), MEMORY)
    assert found["read_share"] == 1.0
    assert found["row_locality_share"] == pytest.approx(19 / 20)
    assert found["near_row_share"] == pytest.approx(19 / 20)
    assert found["sequential_share"] == 1.0
    assert found["intensity_per_ns"] == pytest.approx(0.1)
    assert found["footprint_bytes"] == 20 * 64
    assert found["turnaround_share"] == found["reuse_share"] == found["burstiness"] == 0.0
    assert found["bank_parallelism_count"] == 1.0


def test_reads_and_writes_in_turns_to_two_rows_of_a_bank() -> None:
    apart = 8 * ROW_BYTES // 64  # eight banks: the next row of the same bank
    found = trace_features(trace_of([0, apart] * 8, [0, 1] * 8), MEMORY)
    assert found["read_share"] == 0.5
    assert found["turnaround_share"] == 1.0
    assert found["row_locality_share"] == 0.0
    assert found["near_row_share"] == pytest.approx(14 / 16)
    assert found["reuse_share"] == pytest.approx(14 / 16)
    assert found["bank_imbalance"] == 1.0


def test_banks_in_turns() -> None:
    found = trace_features(trace_of([n % 8 * ROW_BYTES // 64 for n in range(32)]), MEMORY)
    assert found["bank_parallelism_count"] == 8.0
    assert found["row_locality_share"] == pytest.approx(24 / 32)


def test_time_and_place_are_told_apart() -> None:
    slow, fast = (trace_features(trace_of([0, 9, 4, 7], gap_ps=g), MEMORY) for g in (10**6, 10**3))
    assert slow["idle_share"] == 1.0
    assert fast["near_share"] == 1.0
    assert fast["load_share"] == pytest.approx(1000 * slow["load_share"])
    same = [name for name in slow if slow[name] == fast[name]]
    assert {"footprint_bytes", "row_locality_share", "stride_share"} <= set(same)


def test_one_request_has_features() -> None:
    assert np.isfinite(list(trace_features(trace_of([3]), MEMORY).values())).all()


def test_the_environment_gives_them_and_says_what_they_mean() -> None:
    env = archgym.make("DRAM-v0", workload={"generator": "stream", "requests": 500})
    features = env.workload_features
    assert features["row_locality_share"] > 0.9
    assert features == env.workload_features
    docs = env.workload_feature_docs()
    assert all(docs.values())
    assert set(FEATURES) <= set(features)
