"""Trace files: every format round-trips, and every broken file says where and why."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archgym.envs.dram.traces.generators import generate
from archgym.envs.dram.traces.line_formats import TEXT_FORMATS, cycles_to_ps, ps_to_cycles
from archgym.envs.dram.traces.trace import Trace
from archgym.envs.dram.traces.trace_files import (
    FORMATS,
    guess_format,
    read_trace,
    trace_name,
    write_trace,
)
from archgym.errors import InvalidValueError, TraceError, UnknownNameError

EXACT_FORMATS = {"text": "a.txt", "npz": "a.npz", "parquet": "a.parquet"}
CLOCKED_FORMATS = ("stl", "dramsim3")

requests_strategy = st.lists(
    st.tuples(st.integers(0, 10**7), st.integers(0, (1 << 63) - 1), st.integers(0, 1)),
    min_size=1,
    max_size=40,
)


def as_trace(rows: list[tuple[int, int, int]], name: str = "t") -> Trace:
    steps, address, is_write = (np.array(column) for column in zip(*rows, strict=True))
    return Trace(name, np.cumsum(steps), address, is_write.astype(np.uint8))


def same(a: Trace, b: Trace) -> bool:
    return a.sha256 == b.sha256


def put(folder: Path, text: str, name: str = "run.trace") -> Path:
    path = folder / name
    path.write_text(text)
    return path


@settings(max_examples=40, deadline=None)
@given(rows=requests_strategy)
def test_exact_formats_keep_everything(
    rows: list[tuple[int, int, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("f")
    trace = as_trace(rows)
    for format, file in EXACT_FORMATS.items():
        path = write_trace(trace, folder / file, format)
        assert same(read_trace(path), trace), format


@settings(max_examples=40, deadline=None)
@given(rows=requests_strategy, clock=st.sampled_from([0.5, 400.0, 800.0, 933.333, 1200.0, 1600.0]))
def test_clocked_formats_round_down_to_the_clock(
    rows: list[tuple[int, int, int]], clock: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("f")
    trace = as_trace(rows)
    for format in CLOCKED_FORMATS:
        first = read_trace(
            write_trace(trace, folder / "a.trace", format, clock_mhz=clock),
            format,
            clock_mhz=clock,
        )
        late = trace.arrival_ps - first.arrival_ps
        assert (late > -1).all()
        assert (late <= np.ceil(1e6 / clock)).all()
        assert (first.address == trace.address).all()
        assert (first.is_write == trace.is_write).all()
        again = read_trace(
            write_trace(first, folder / "b.trace", format, clock_mhz=clock),
            format,
            clock_mhz=clock,
        )
        assert same(again, first), "times on clock edges are kept"


@pytest.mark.parametrize("format", ["ramulator", "ramulator1"])
def test_formats_without_times_are_evenly_spaced(format: str, tmp_path: Path) -> None:
    trace = generate("mixed", requests=200)
    path = write_trace(trace, tmp_path / "a.trace", format)
    back = read_trace(path)
    assert (back.address == trace.address).all()
    assert (back.is_write == trace.is_write).all()
    assert back.arrival_ps.tolist() == list(range(0, 200_000, 1000))
    assert read_trace(path, interval_ns=2.5).arrival_ps[:3].tolist() == [0, 2500, 5000]
    with pytest.raises(InvalidValueError, match="interval_ns=-1 must be from 0"):
        read_trace(path, interval_ns=-1)


@pytest.mark.parametrize("format", list(TEXT_FORMATS))
def test_gzip_and_guessing(format: str, tmp_path: Path) -> None:
    trace = generate("zipf", requests=50)
    plain = write_trace(trace, tmp_path / "a.trace", format)
    packed = write_trace(trace, tmp_path / "a.trace.gz", format)
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    assert packed.read_bytes() == write_trace(trace, packed, format).read_bytes()
    assert guess_format(plain) == guess_format(packed) == format
    assert same(read_trace(plain), read_trace(packed))
    misnamed = tmp_path / "b.trace"
    misnamed.write_bytes(packed.read_bytes())
    assert same(read_trace(misnamed), read_trace(plain))


def test_example_lines_belong_to_one_format_only() -> None:
    for name, kind in TEXT_FORMATS.items():
        for write in (0, 1):
            line = kind.line(12, write, 0x1F40).strip()
            fitting = [k for k, other in TEXT_FORMATS.items() if other.pattern.fullmatch(line)]
            assert fitting == [name], line


@pytest.mark.parametrize(
    ("text", "arrival_ps", "address", "is_write"),
    [
        (
            "31:\tread\t0x400140\n33:\twrite\t0x400160\n",
            [38750, 41250],
            [0x400140, 0x400160],
            [0, 1],
        ),
        (
            "0: read 0x40\n\n# remark\n2:  write 0xFF80 0xabcd  \n",
            [0, 2500],
            [0x40, 0xFF80],
            [0, 1],
        ),
        ("5: (32) read 0x40\n", [6250], [0x40], [0]),
        ("5: (129) write 0x40\n", [6250] * 3, [0x40, 0x80, 0xC0], [1, 1, 1]),
        ("1 read 40\r\n2 write 80\r\n", [1250, 2500], [0x40, 0x80], [0, 1]),
        ("# clkMhz: 1000\n3: read 0x0\n", [3000], [0], [0]),
        ("# clock: 1000 MHz\n3: read 0x0\n", [3000], [0], [0]),
        ("# a core clock of 4000 MHz\n3: read 0x0\n", [3750], [0], [0]),
        ("# a trace\n# clock_mhz: 933.25\n4: read 0x0\n", [4287], [0], [0]),
    ],
)
def test_stl(
    text: str, arrival_ps: list[int], address: list[int], is_write: list[int], tmp_path: Path
) -> None:
    trace = read_trace(put(tmp_path, text, "x.stl"))
    assert trace.arrival_ps.tolist() == arrival_ps
    assert trace.address.tolist() == address
    assert trace.is_write.tolist() == is_write


def test_clock_argument_wins_over_the_comment(tmp_path: Path) -> None:
    path = put(tmp_path, "# clock_mhz: 400\n8: read 0x0\n", "x.stl")
    assert read_trace(path).arrival_ps.tolist() == [20_000]
    assert read_trace(path, clock_mhz=1000).arrival_ps.tolist() == [8_000]
    late = put(tmp_path, "8: read 0x0\n# clock_mhz: 400\n9: read 0x0\n", "y.stl")
    assert read_trace(late).arrival_ps.tolist() == [10_000, 11_250], "only at the top"


@pytest.mark.parametrize(
    ("line", "time_ps"),
    [("15 R 0x40", 15_000), ("15.25 W 0x40", 15_250), (".5 R 0x0", 500), ("2. R 0x0", 2000),
     ("1.2345 R 0x0", 1235), ("1.2344 R 0x0", 1234), ("1.9999 R 0x0", 2000)],
)  # fmt: skip
def test_text_times_are_exact_picoseconds(line: str, time_ps: int, tmp_path: Path) -> None:
    assert read_trace(put(tmp_path, line + "\n")).arrival_ps.tolist() == [time_ps]


def test_dramsim3_and_ramulator_lines(tmp_path: Path) -> None:
    trace = read_trace(put(tmp_path, "0x1F40 READ 0\n0x40 WRITE 12\n"))
    assert trace.arrival_ps.tolist() == [0, 10_000]
    assert trace.address.tolist() == [0x1F40, 0x40]
    trace = read_trace(put(tmp_path, "LD 0x40\nST 128\n", "b.trace"))
    assert trace.address.tolist() == [64, 128]
    assert trace.is_write.tolist() == [0, 1]


def test_files_for_the_simulators_hold_what_their_parsers_expect(tmp_path: Path) -> None:
    trace = as_trace([(0, 0x40, 0), (2500, 0xFF80, 1)])
    lines = {
        format: [
            line
            for line in write_trace(trace, tmp_path / f"{format}.t", format).read_text().split("\n")
            if line and not (format in ("stl", "text") and line.startswith("#"))
        ]
        for format in TEXT_FORMATS
    }
    assert lines == {
        "stl": ["0:\tread\t0x40", "2:\twrite\t0xff80"],
        "dramsim3": ["0x40 READ 0", "0xFF80 WRITE 3"],
        "ramulator": ["LD 0x40", "ST 0xff80"],
        "ramulator1": ["0x40 R", "0xff80 W"],
        "text": ["0 R 0x40", "2.5 W 0xff80"],
    }


BROKEN = [
    ("stl", "0: read 0x0\n1: raed 0x40\n", 2, "'1: raed 0x40'", "expected '<cycle>: read|write 0x"),
    ("stl", "0: read 0x0\n\n#\n1: read zz\n", 4, "'1: read zz'", "expected '<cycle>"),
    ("stl", "-1: read 0x0\n", 1, "'-1: read 0x0'", "expected '<cycle>"),
    ("stl", "0x40 READ 3\n", 1, "'0x40 READ 3'", "the line is of the format 'dramsim3'"),
    ("dramsim3", "0x40 READ 1\n0x40 READ\n", 2, "'0x40 READ'", "'0x<address> READ|WRITE <cycle>'"),
    ("dramsim3", "0x40 FETCH 1\n", 1, "'0x40 FETCH 1'", "expected '0x<address>"),
    ("ramulator", "LD 0x40\nLDX 0x40\n", 2, "'LDX 0x40'", "'LD|ST 0x<address>'"),
    ("ramulator1", "R 0,0,1,2,33,4\n", 1, "'R 0,0,1,2,33,4'", "needs the address mapping undone"),
    ("text", "1 R 0x0\n2 X 0x0\n", 2, "'2 X 0x0'", "'<time in ns> R|W 0x<address>'"),
    ("text", "1 R 0x0\n1e3 R 0x0\n", 2, "'1e3 R 0x0'", "expected"),
    ("text", "1 R 0x0\n٣ R 0x0\n", 2, "R 0x0", "expected"),
    ("text", "5 R 0x0\n6 R 0x0\n\n4.5 R 0x0\n", 4, "'4.5 R 0x0'", "arrives before line 2"),
    ("text", "1 R 0x0\n2 R 0x8000000000000000\n", 2, "0x8000000000000000", "address does not fit"),
    ("stl", "99999999999999999999: read 0x0\n", 1, "99999", "the time does not fit in 63 bits"),
]


@pytest.mark.parametrize(("format", "text", "number", "shown", "reason"), BROKEN)
def test_broken_line_is_named(
    format: str, text: str, number: int, shown: str, reason: str, tmp_path: Path
) -> None:
    path = put(tmp_path, text)
    with pytest.raises(TraceError) as caught:
        read_trace(path, format)
    message = str(caught.value)
    assert message.startswith(f"{path}, line {number}: ")
    assert shown in message
    assert reason in message


def test_long_broken_line_is_cut(tmp_path: Path) -> None:
    with pytest.raises(TraceError) as caught:
        read_trace(put(tmp_path, "9" * 5000 + "\n"), "text")
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("content", ["", "\n\n", "# only a remark\n"])
@pytest.mark.parametrize("format", [None, "stl", "ramulator"])
def test_empty_file(content: str, format: str | None, tmp_path: Path) -> None:
    path = put(tmp_path, content)
    with pytest.raises(TraceError, match="the trace is empty") as caught:
        read_trace(path, format)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("name", ["none.stl", "none.npz", "none.parquet", "none.txt", "none"])
def test_missing_file(name: str, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=f"{name}: there is no such trace file"):
        read_trace(tmp_path / name)


def test_folder_instead_of_file(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="cannot read the trace file"):
        read_trace(tmp_path, "stl")


def test_damaged_gzip_and_archive(tmp_path: Path) -> None:
    path = write_trace(generate("random", requests=500), tmp_path / "a.txt.gz", "text")
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(TraceError, match=r"a\.txt\.gz: cannot read the trace file"):
        read_trace(path)
    for content in (b"", b"PK\x03\x04 nonsense", b"text"):
        archive = tmp_path / "a.npz"
        archive.write_bytes(content)
        with pytest.raises(TraceError, match=r"a\.npz: cannot read the binary trace"):
            read_trace(archive)


def test_foreign_and_pickled_archives_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, other=np.arange(3))
    with pytest.raises(TraceError, match="not an archgym trace: the field 'version' is missing"):
        read_trace(path)
    good = {"arrival_step_ps": 0, "address_step": 0, "address_shift": 0, "is_write": 0}
    np.savez(path, version=np.array([object()], dtype=object), **good)  # type: ignore[arg-type]
    with pytest.raises(TraceError, match="cannot read the binary trace"):
        read_trace(path)
    np.savez(path, version=9, **good)  # type: ignore[arg-type]
    with pytest.raises(TraceError, match="trace version 9 is unknown; this archgym reads 1"):
        read_trace(path)


def test_unknown_format(tmp_path: Path) -> None:
    path = put(tmp_path, "hello world\n")
    with pytest.raises(TraceError, match=r"line 1: 'hello world' is of no known trace format"):
        read_trace(path)
    with pytest.raises(UnknownNameError, match=r"unknown trace format 'stt'. Did you mean 'stl'"):
        read_trace(path, "stt")
    with pytest.raises(UnknownNameError, match="unknown trace format"):
        write_trace(generate("stream", requests=2), tmp_path / "a.dat")
    with pytest.raises(TraceError, match=r"has no arrival times|counts from the completion"):
        read_trace(put(tmp_path, "1: read 0x0\n", "a.rstl"))


def test_arguments_that_the_format_does_not_use(tmp_path: Path) -> None:
    text = put(tmp_path, "1 R 0x0\n")
    with pytest.raises(InvalidValueError, match="clock_mhz=800 has no meaning for the format 'tex"):
        read_trace(text, clock_mhz=800)
    stl = put(tmp_path, "1: read 0x0\n", "a.stl")
    with pytest.raises(InvalidValueError, match="interval_ns=2 has no meaning for the format 'stl"):
        read_trace(stl, interval_ns=2)
    with pytest.raises(InvalidValueError, match=r"clock_mhz=0 must be from 0\.001"):
        read_trace(stl, clock_mhz=0)
    npz = write_trace(generate("stream", requests=2), tmp_path / "a.npz")
    with pytest.raises(InvalidValueError, match="has no meaning for the format 'npz'"):
        read_trace(npz, clock_mhz=800)
    with pytest.raises(TraceError, match=r"must have the ending '\.npz'"):
        write_trace(generate("stream", requests=2), tmp_path / "a.bin", "npz")


@pytest.mark.parametrize(
    ("file", "name"),
    [("a.stl", "a"), ("a.stl.gz", "a"), ("x/b-1_32.trace", "b-1_32"), ("c.gz", "c"), ("d", "d")],
)
def test_trace_name(file: str, name: str) -> None:
    assert trace_name(file) == name


def test_name_argument(tmp_path: Path) -> None:
    path = put(tmp_path, "1 R 0x0\n", "run.txt")
    assert read_trace(path).name == "run"
    assert read_trace(path, name="other").name == "other"


@given(st.integers(0, 10**15), st.integers(1, 10**9))
def test_clock_conversion_is_exact(cycle: int, clock_khz: int) -> None:
    clock_mhz = clock_khz / 1000
    if cycle * 10**9 // clock_khz >= 1 << 62:
        return
    time_ps = int(cycles_to_ps(np.array([cycle]), clock_mhz)[0])
    assert time_ps == -(-cycle * 10**9 // clock_khz)
    assert int(ps_to_cycles(np.array([time_ps]), clock_mhz)[0]) == time_ps * clock_khz // 10**9


def test_a_large_file_is_read_whole(tmp_path: Path) -> None:
    written = generate("random", requests=200_000)
    read = read_trace(write_trace(written, tmp_path / "a.stl"))
    assert np.array_equal(read.address, written.address)
    assert np.array_equal(read.is_write, written.is_write)


def test_formats_are_listed() -> None:
    assert set(FORMATS) == {*TEXT_FORMATS, "npz", "parquet"}


@pytest.mark.parametrize("ending", ["stl", "npz"])
def test_a_trace_beside_the_one_that_is_not_there_is_suggested(ending: str, tmp_path: Path) -> None:
    (tmp_path / f"packets.{ending}").touch()
    with pytest.raises(TraceError, match=rf"Did you mean '.*packets\.{ending}'\?"):
        read_trace(tmp_path / f"packet.{ending}")


def test_times_that_decrease_are_replayed_as_simulators_do(tmp_path: Path) -> None:
    # ArchGym's ddr3_example.stl counts back now and then; DRAMSys sends such a request at once.
    path = put(tmp_path, "8: read 0x0\n6: read 0x40\n7: write 0x80\n9: read 0xc0\n", "back.stl")
    with pytest.warns(UserWarning, match=r"line 2: '6: read 0x40' arrives before line 1\.") as w:
        trace = read_trace(path, clock_mhz=1000.0)
    assert "Of 4 requests, 2 have a time before" in str(w[0].message)
    assert trace.arrival_ps.tolist() == [8000, 8000, 8000, 9000]


def test_a_parquet_trace_may_come_from_any_library(tmp_path: Path) -> None:
    path = tmp_path / "mine.parquet"
    columns = {"address": [0, 64, 128], "arrival_ns": [0.0, 1.25, 10.0004], "is_write": [0, 1, 0]}
    pq.write_table(pa.table({**columns, "thread": ["a", "b", "c"]}), path)
    trace = read_trace(path)
    assert (trace.name, trace.arrival_ps.tolist()) == ("mine", [0, 1250, 10_000])
    assert (trace.address.tolist(), trace.is_write.tolist()) == ([0, 64, 128], [0, 1, 0])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"address": None}, "this one lacks address. It has: arrival_ps, is_write"),
        ({"arrival_ps": None}, "this one lacks a time"),
        ({"address": ["0x0", "0x40"]}, "'address' must hold whole numbers.*it holds string"),
        ({"address": [0, None]}, "'address' must hold whole numbers without gaps"),
        ({"is_write": [0, 2]}, "'is_write' must hold truth values, or 0 and 1"),
        ({"arrival_ps": [-1, 2]}, "a time in 'arrival_ps' is negative"),
        ({"arrival_ps": [5, 2]}, "arrives at 2 ps, before"),
        ({"arrival_ps": [0, 1 << 62]}, "does not fit in 62 bits"),
    ],
)
def test_a_parquet_trace_without_these_columns_is_refused(
    changes: dict[str, list[Any] | None], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "mine.parquet"
    columns = {"arrival_ps": [0, 1], "address": [0, 64], "is_write": [False, True], **changes}
    pq.write_table(pa.table({k: v for k, v in columns.items() if v is not None}), path)
    with pytest.raises(TraceError, match=message):
        read_trace(path)


def test_what_is_no_parquet_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.parquet"
    path.write_bytes(b"PAR1 and then nothing")
    with pytest.raises(TraceError, match=r"mine\.parquet: cannot read the Parquet trace"):
        read_trace(path)
