"""The synthetic workloads: reproducible, within their bounds, each with its own character."""

from __future__ import annotations

import hashlib
import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archgym.envs.dram.traces.generators import GENERATORS, LINE_BYTES, Parameter, generate
from archgym.errors import InvalidValueError, UnknownNameError

NAMES = list(GENERATORS)

# First 12 digits of the hash of each generator with 2,000 requests and seed 5.
GOLDEN = {
    "stream": "a2543bfb5b96",
    "copy": "044ec4167c9a",
    "random": "f4686555ff11",
    "mixed": "c57adc265874",
    "stride_conflict": "521caf8de2b0",
    "pointer_chase": "3e2c75a6d8c7",
    "bursts": "2bbed7cc44cf",
    "zipf": "b210ab87aa5e",
    "program": "17fe620c01a9",
    "cloud_1": "ca133a978536",
    "cloud_2": "57423fdf5a20",
}


@pytest.mark.parametrize("name", NAMES)
def test_requests_do_not_change(name: str) -> None:
    assert generate(name, requests=2000, seed=5).sha256[:12] == GOLDEN[name]


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=12, deadline=None)
@given(
    requests=st.integers(1, 700),
    interval_ns=st.floats(0.001, 500),
    jitter_share=st.floats(0, 1),
    read_share=st.floats(0, 1),
    lines=st.integers(32768, 1 << 20),
    seed=st.integers(0, 2**63 - 1),
)
def test_any_setting_gives_a_valid_trace(
    name: str,
    requests: int,
    interval_ns: float,
    jitter_share: float,
    read_share: float,
    lines: int,
    seed: int,
) -> None:
    trace = generate(
        name,
        requests=requests,
        interval_ns=interval_ns,
        jitter_share=jitter_share,
        read_share=read_share,
        footprint_bytes=lines * LINE_BYTES,
        seed=seed,
    )
    assert len(trace) == requests
    assert trace.arrival_ps[0] >= 0
    assert (np.diff(trace.arrival_ps) >= 0).all()
    assert (trace.address % LINE_BYTES == 0).all()
    assert trace.address.min() >= 0
    assert trace.address.max() < lines * LINE_BYTES
    assert set(np.unique(trace.is_write)) <= {0, 1}


@pytest.mark.parametrize("name", NAMES)
def test_defaults_keep_mean_interval_and_read_share(name: str) -> None:
    trace = generate(name)
    settings_ = GENERATORS[name].checked({})
    mean_ns = trace.arrival_ps[-1] / 1000 / (len(trace) - 1)
    if name == "program":  # pauses, and write-backs that arrive with a miss
        apart = np.diff(trace.arrival_ps)
        assert np.median(apart[apart > 0]) / 1000 < 2 * settings_["interval_ns"] < mean_ns * 4
        mean_ns = settings_["interval_ns"]
    if name == "bursts":
        phases = len(trace) // settings_["burst_requests"] - 1
        mean_ns -= settings_["idle_ns"] * phases / (len(trace) - 1)
    assert mean_ns == pytest.approx(settings_["interval_ns"], rel=0.03)
    assert 1 - trace.is_write.mean() == pytest.approx(settings_["read_share"], abs=0.02)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_read_share_is_kept(name: str, share: float) -> None:
    trace = generate(name, read_share=share, requests=8000)
    assert 1 - trace.is_write.mean() == pytest.approx(share, abs=0.0 if share in (0, 1) else 0.04)


@pytest.mark.parametrize("name", ["random", "mixed", "zipf", "pointer_chase", "cloud_1", "cloud_2"])
def test_seeds_differ(name: str) -> None:
    assert generate(name, seed=1).sha256 != generate(name, seed=2).sha256


def test_another_process_draws_the_same() -> None:
    code = (
        "from archgym.envs.dram.traces.generators import generate;"
        "print(generate('cloud_2', requests=3000, seed=9).sha256)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == generate("cloud_2", requests=3000, seed=9).sha256


def test_stream_is_evenly_spaced_and_wraps() -> None:
    trace = generate(
        "stream", requests=1026, footprint_bytes=65536, interval_ns=2.5, stride_bytes=64
    )
    assert trace.arrival_ps[:3].tolist() == [0, 2500, 5000]
    assert trace.address[:3].tolist() == [0, 64, 128]
    assert trace.address[1024:].tolist() == [0, 64]


def test_copy_alternates_between_two_regions() -> None:
    trace = generate("copy", requests=6, footprint_bytes=65536)
    assert trace.is_write.tolist() == [0, 1, 0, 1, 0, 1]
    assert trace.address.tolist() == [0, 32768, 64, 32832, 128, 32896]
    blocks = generate("copy", requests=8, footprint_bytes=65536, block_requests=2)
    assert blocks.is_write.tolist() == [0, 0, 1, 1, 0, 0, 1, 1]


def test_random_covers_its_footprint_evenly() -> None:
    trace = generate("random", requests=20_000, footprint_bytes=65536)
    counts = np.bincount(trace.address // LINE_BYTES, minlength=1024)
    chi_square = float(((counts - 20_000 / 1024) ** 2).sum() / (20_000 / 1024))
    assert abs(chi_square - 1023) < 6 * math.sqrt(2 * 1023)


def test_mixed_runs_have_the_asked_mean_length() -> None:
    trace = generate("mixed", requests=20_000, run_requests=6)
    breaks = np.count_nonzero(np.diff(trace.address) != LINE_BYTES)
    assert 20_000 / (breaks + 1) == pytest.approx(6, rel=0.05)


def test_stride_conflict_stays_on_one_bank_and_changes_the_row() -> None:
    trace = generate("stride_conflict", requests=1000)
    assert (np.diff(trace.address)[:254] == 1 << 20).all()
    assert trace.address[256] == LINE_BYTES, "the second sweep starts one line further on"
    with pytest.raises(InvalidValueError, match=r"stride_bytes=1048576 must be at most half"):
        generate("stride_conflict", footprint_bytes=1 << 20)


def test_pointer_chase_visits_every_node_once_a_cycle() -> None:
    trace = generate("pointer_chase", requests=2048, footprint_bytes=65536)
    assert sorted(trace.address[:1024].tolist()) == list(range(0, 65536, 64))
    assert trace.address[:1024].tolist() == trace.address[1024:].tolist()


def test_bursts_are_silent_between_phases() -> None:
    trace = generate("bursts", requests=100, burst_requests=10, interval_ns=2.0, idle_ns=500.0)
    gaps = np.diff(trace.arrival_ps)
    assert (gaps[9::10] == 502_000).all()
    assert (np.delete(gaps, np.s_[9::10]) == 2000).all()


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 1.25])
def test_zipf_frequencies(exponent: float) -> None:
    rows = 64
    trace = generate(
        "zipf",
        requests=60_000,
        footprint_bytes=65536,
        row_bytes=1024,
        exponent=exponent,
        read_share=1.0,
    )
    counts = np.sort(np.bincount(trace.address // 1024, minlength=rows))[::-1]
    law = np.arange(1, rows + 1) ** -exponent
    assert counts[:8] / 60_000 == pytest.approx((law / law.sum())[:8], rel=0.16)


def test_cloud_1_takes_turns() -> None:
    trace = generate("cloud_1", requests=400, block_requests=100, interval_ns=10.0)
    half = 128 << 20
    assert (trace.address[:100] == np.arange(100) * 64).all()
    assert (trace.address[100:200] >= half).all()
    assert (trace.address[200:300] == np.arange(100, 200) * 64).all()
    gaps = np.diff(trace.arrival_ps)
    assert set(gaps[:99]) == {5000}
    assert set(gaps[100:198]) == {15000}


def test_write_backs_of_a_program_arrive_with_a_miss_and_trail_its_stream() -> None:
    trace = generate("program", streams=1, random_share=0.0, run_requests=50)
    back = np.flatnonzero(trace.is_write)
    assert (trace.arrival_ps[back] == trace.arrival_ps[back - 1]).all()
    lines = (256 << 20) // 64
    behind = (trace.address[back - 1] - trace.address[back]) // 64 % lines
    assert set(behind.tolist()) == {4096}


def test_cloud_2_has_four_tenants_at_the_stated_rates() -> None:
    trace = generate("cloud_2")
    shares = np.bincount(trace.address // (64 << 20), minlength=4) / len(trace)
    assert shares == pytest.approx([0.4, 0.3, 0.2, 0.1], abs=0.01)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"requests": 0}, "requests=0 is out of range: it must be an integer from 1 to"),
        ({"requests": 1.5}, "requests=1.5 must be an integer"),
        ({"requests": True}, "requests=True must be an integer"),
        ({"requests": "many"}, "requests='many' must be an integer"),
        ({"interval_ns": -1}, "interval_ns=-1 is out of range"),
        ({"interval_ns": float("nan")}, "interval_ns=nan is out of range"),
        ({"read_share": 1.1}, "read_share=1.1 is out of range: it must be a number from 0.0 to"),
        ({"footprint_bytes": 65600}, None),
        ({"footprint_bytes": 65537}, "footprint_bytes=65537 must be a multiple of 64"),
        ({"exponent": 0.3}, "exponent=0.3 must be a multiple of 0.125"),
        ({"row_bytes": 1 << 20, "footprint_bytes": 65536}, "make 0 rows; it must be 1 to"),
    ],
)
def test_values_are_checked(values: dict[str, object], message: str | None) -> None:
    if message is None:
        generate("zipf", **values)  # type: ignore[arg-type]
        return
    with pytest.raises(InvalidValueError, match=message.split("(")[0]) as caught:
        generate("zipf", **values)  # type: ignore[arg-type]
    assert "generator 'zipf'" in str(caught.value)


def test_unknown_names_are_suggested() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown generator 'stram'. Did you mean 'stream'"):
        generate("stram")
    with pytest.raises(UnknownNameError, match=r"'zipf': unknown parameter 'sed'. Did you mean"):
        generate("zipf", sed=1)


def test_whole_numbers_of_other_types_are_taken() -> None:
    plain = generate("zipf", requests=100, seed=4)
    assert generate("zipf", requests=100.0, seed=np.int64(4)).sha256 == plain.sha256  # type: ignore[arg-type]


def test_label_names_only_what_differs() -> None:
    assert generate("zipf", seed=0).name == "zipf"
    assert generate("zipf", seed=3, requests=5000).name == "zipf(requests=5000,seed=3)"
    assert generate("zipf", exponent=1.5, requests=9).name == "zipf(exponent=1.5,requests=9)"


def test_every_parameter_is_documented() -> None:
    for generator in GENERATORS.values():
        assert generator.description
        names = [parameter.name for parameter in generator.parameters]
        assert len(names) == len(set(names))
        for parameter in generator.parameters:
            assert parameter.doc
            assert parameter.check(parameter.default, "x") == parameter.default
            assert parameter.low <= parameter.default <= parameter.high


def test_parameter_kinds() -> None:
    assert Parameter("a", 1, 0, 2, "x").kind == "int"
    assert Parameter("a", 1.0, 0, 2, "x").kind == "float"


def test_golden_hash_covers_every_column() -> None:
    trace = generate("mixed", requests=3)
    digest = hashlib.sha256()
    for column in (trace.arrival_ps, trace.address, trace.is_write):
        digest.update(column.tobytes())
    assert digest.hexdigest() == trace.sha256
