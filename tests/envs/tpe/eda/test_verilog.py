"""Generated Verilog computes what it should, on random and on extreme operands."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from archgym.envs.tpe.eda.verilog import edge_verilog, pe_verilog
from archgym.envs.tpe.microarchitecture.adders import adder_cells, prefix_levels, prefix_network
from archgym.envs.tpe.microarchitecture.edge import Barrier, OperandEncoder, ResultAdder
from archgym.envs.tpe.microarchitecture.edge_structure import joins_words, result_heap, segments
from archgym.envs.tpe.microarchitecture.encodings import digit_count, digits
from archgym.envs.tpe.microarchitecture.pe import PE
from archgym.errors import UnknownNameError
from tests.envs.tpe.eda.verilog_runs import check, code, operands, pack, run_cycles
from tests.envs.tpe.legal_pes import legal_pes

needs_icarus = pytest.mark.skipif(
    shutil.which("iverilog") is None, reason="needs Icarus Verilog (Debian: iverilog)"
)

KEPT: dict[str, Any] = {"accumulator": "carry_save", "final_adder_place": "simd"}
NARROW: dict[str, Any] = {**KEPT, "encoder_place": "edge", "shift_place": "simd"}
KINDS = {
    "mac": PE(4, 4, 12),
    "array_multiplier": PE(4, 4, 12, encoding="radix2", final_adder="ripple"),
    "merged": PE(4, 8, 16, accumulator="merged", final_adder="kogge_stone", compressor="wallace"),
    "opt1": PE(4, 4, 12, compressor="4to2", **KEPT),
    "opt2": PE(4, 4, 9, encoding="ent", reduction=4, **NARROW),
    "opt3": PE(4, 4, 12, bit_weights="temporal_sparse", shift_place="simd", **KEPT),
    "opt4e": PE(4, 4, 12, bit_weights="temporal_sparse", lanes=4, compressor="linear", **NARROW),
    "shifter": PE(8, 4, 16, bit_weights="temporal_dense", encoding="serial_twos", **KEPT),
    "pipelined": PE(4, 4, 12, pipeline_depth=3, final_adder="brent_kung"),
}


@needs_icarus
@pytest.mark.parametrize("kind", KINDS)
def test_a_pe_accumulates_exactly(kind: str, tmp_path: Path) -> None:
    pe = KINDS[kind].hardware()
    check(pe, pe_verilog(pe), tmp_path)


@needs_icarus
@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(4))
def test_random_legal_pes_accumulate_exactly(seed: int, tmp_path: Path) -> None:
    for pe in legal_pes(30, seed):
        check(pe, pe_verilog(pe), tmp_path, seed=seed)


@needs_icarus
def test_all_most_negative_operands_do_not_overflow_a_bit_weight(tmp_path: Path) -> None:
    # Sixteen products of -2 (a digit) and -128: the published 13-bit reduction loses the sign.
    pe = PE(8, 8, 14, encoding="ent", reduction=16, **NARROW).hardware()
    a, b = np.full((1, 16), -128), np.full((1, 16), -128)
    codes = [code(int(d), 2) for d in digits(a, 8, "ent").ravel()]
    stimulus = {"digits": [pack(np.array(codes), 3), 0], "b": [pack(b[0], 8), 0]}
    result = run_cycles(pe_verilog(pe), stimulus, tmp_path)[1]["result"]
    total = 0
    for weight in range(4):
        words = [result >> (14 * (2 * weight + i)) & 0x3FFF for i in range(2)]
        value = sum(words) % (1 << 14)
        total += (value - (value >> 13 << 14)) << (2 * weight)
    assert total == 16 * 128 * 128


@needs_icarus
@pytest.mark.parametrize("encoding", ["booth", "ent", "csd"])
def test_encoders_give_the_digits(encoding: str, tmp_path: Path) -> None:
    block = OperandEncoder(8, encoding)  # type: ignore[arg-type]
    values = np.arange(-128, 128)
    stimulus = {"a": [int(v) & 255 for v in values] + [0] * 3}
    seen = run_cycles(edge_verilog(block), stimulus, tmp_path)
    latency = 2 if encoding == "ent" else 1
    expected = digits(values, 8, encoding)  # type: ignore[arg-type]
    for t, row in enumerate(expected):
        word = seen[t + latency]["digits"]
        found = [_value(word >> (3 * i) & 7, 2) for i in range(4)]
        assert found == row.tolist()


@needs_icarus
@pytest.mark.parametrize("encoding", ["booth", "csd", "serial_twos"])
def test_sparse_encoders_give_each_nonzero_digit_once(encoding: str, tmp_path: Path) -> None:
    block = OperandEncoder(8, encoding, serial=True, sparse=True)  # type: ignore[arg-type]
    verilog = edge_verilog(block)
    lines = 2 if encoding == "serial_twos" else 3
    for value in (-128, -86, -1, 1, 91, 124):
        # The operand stays at the port, so that it is encoded over and over; one full turn of
        # its digits, from one start to the next, adds up to it.
        stimulus = {"a": [value & 255] * 40}
        seen = run_cycles(verilog, stimulus, tmp_path)[8:]
        found = [_value(s["digits"], lines - 1) << (s["weight"] * (lines - 1)) for s in seen]
        chosen = digits(np.array(value), 8, encoding)  # type: ignore[arg-type]
        turn = max(1, int(np.count_nonzero(chosen)))
        assert sum(found[:turn]) == value
        assert found[turn : 2 * turn] == found[:turn]


@needs_icarus
@pytest.mark.parametrize(
    "block",
    [
        ResultAdder(1, 1, 20, 0, 32, "auto"),
        ResultAdder(1, 2, 32, 0, 32, "kogge_stone"),
        ResultAdder(1, 2, 14, 2, 24, "ripple", 4),
        ResultAdder(4, 2, 14, 2, 32, "sklansky"),
        ResultAdder(8, 2, 12, 1, 24, "brent_kung"),
    ],
)
def test_result_adders_add(block: ResultAdder, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    n, narrow, width = 12, block.accumulator_width, block.result_width
    numbers = operands(rng, min(narrow, 31), (n, block.accumulators))
    partial = operands(rng, min(width, 31), (n,))
    serial = block.accumulators == 1 and block.shift_bits > 0
    shift = rng.integers(0, 2, n) if serial else np.zeros(n, np.int64)
    words = numbers[:, :, None]
    if block.words == 2:
        carry = rng.integers(-(1 << 11), 1 << 11, numbers.shape)
        words = np.stack((numbers - carry, carry), axis=2)
    latency = len(segments(width, block.segment)) + (result_heap(block) is not None)
    latency += len(segments(narrow, block.segment)) if joins_words(block) else 0
    quiet = [0] * (latency + 1)
    stimulus = {"values": [pack(row.ravel(), narrow) for row in words] + quiet}
    stimulus["partial"] = [int(p) & ((1 << width) - 1) for p in partial] + quiet
    if serial:
        stimulus["shift"] = [int(s) for s in shift] + quiet
    seen = run_cycles(edge_verilog(block), stimulus, tmp_path)
    for t in range(n):
        expected = sum(int(x) << (i * block.shift_bits) for i, x in enumerate(numbers[t]))
        expected += int(partial[t]) << (int(shift[t]) * block.shift_bits)
        assert seen[t + latency]["result"] == expected % (1 << width)


@needs_icarus
@pytest.mark.parametrize(("streams", "bits"), [(3, 4), (2, 9), (1, 1), (2, 11)])
def test_a_barrier_opens_when_the_last_stream_is_used_up(
    streams: int, bits: int, tmp_path: Path
) -> None:
    rng = np.random.default_rng(2)
    left = rng.integers(1, min(1 << bits, 300), streams)
    used = rng.integers(0, 2, (700, streams))
    # Counts are taken in the cycle after `load`; a step is seen two cycles later.
    stimulus = {
        "load": [1, 0, *[0] * len(used)],
        "loaded": [0, pack(left, bits), *[0] * len(used)],
        "step": [0, 0, *[pack(step, 1) for step in used]],
    }
    seen = run_cycles(edge_verilog(Barrier(streams, bits)), stimulus, tmp_path)
    for t, step in enumerate(used[:-4]):
        assert seen[t + 2]["open"] == int(not left.any()), t
        left = np.maximum(0, left - step)
    assert not left.any()


def test_prefix_networks_have_the_sizes_of_the_literature() -> None:
    # Nodes for the carries of n = 2**k bits, and one bit more that needs no carry: Sklansky
    # n/2 log2 n, Kogge-Stone n log2 n - n + 1, Brent-Kung 2n - 2 - log2 n.
    for k in (2, 3, 4, 5):
        n = 1 << k
        assert len(prefix_network("sklansky", n + 1)) == n // 2 * k
        assert len(prefix_network("kogge_stone", n + 1)) == n * k - n + 1
        assert len(prefix_network("brent_kung", n + 1)) == 2 * n - 2 - k
        assert prefix_levels("sklansky", n + 1) == prefix_levels("kogge_stone", n + 1) == k


def test_an_adder_has_a_known_form() -> None:
    assert adder_cells("ripple", 9) == {"ripple_bit": 9}
    with pytest.raises(UnknownNameError, match="prefix adder"):
        prefix_network("ripple", 8)


def test_equal_hardware_is_equal_verilog() -> None:
    outside = PE(8, 8, 26, bit_weights="temporal_sparse", **NARROW)
    dense = PE(8, 8, 26, bit_weights="temporal_dense", **{**NARROW, "encoder_place": "memory"})
    assert pe_verilog(outside).text == pe_verilog(dense).text


def test_ports_say_what_comes_and_goes() -> None:
    verilog = pe_verilog(KINDS["opt3"].hardware())
    assert {port.name for port in verilog.ports if port.output} == {"result", "position", "done"}
    widths = {port.name: port.width for port in verilog.ports}
    assert widths["a"] == 3 * digit_count(4, "booth")


def _value(bits: int, radix_bits: int) -> int:
    """A digit from its lines, lowest first: one, two in radix 4, neg."""
    size = (bits & 1) + (2 * (bits >> 1 & 1) if radix_bits == 2 else 0)
    return -size if bits >> radix_bits & 1 else size


@needs_icarus
@pytest.mark.parametrize("compressor", ["wallace", "4to2", "linear"])
def test_constants_that_no_compressor_takes_are_accumulated(
    compressor: str, tmp_path: Path
) -> None:
    pe = PE(4, 4, 15, encoding="radix2", shift_place="simd", compressor=compressor, **KEPT)  # type: ignore[arg-type]
    check(pe.hardware(), pe_verilog(pe), tmp_path)
