"""Recording programs: what needs valgrind is skipped without it, the rest always runs."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from archgym.envs.dram import lackey
from archgym.envs.dram import record as record_module
from archgym.envs.dram.cache import LOAD, STORE, CacheHierarchy, DramRequests
from archgym.envs.dram.formats import read_trace
from archgym.envs.dram.lackey import Accesses, run_under_lackey
from archgym.envs.dram.recipes import RECIPES, make
from archgym.envs.dram.record import PageMap, record, save_recording
from archgym.envs.dram.workload import load_workload, recorded_names
from archgym.errors import MissingDependencyError, TraceError, UnknownNameError

needs_valgrind = pytest.mark.skipif(
    shutil.which("valgrind") is None, reason="valgrind is not installed (apt-get install valgrind)"
)

TINY_CACHE = CacheHierarchy(
    l1i_bytes=1024,
    l1i_ways=2,
    l1d_bytes=1024,
    l1d_ways=2,
    l2_bytes=4096,
    l2_ways=4,
    llc_bytes=16384,
    llc_ways=4,
)


def test_missing_valgrind_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MissingDependencyError, match=r"'valgrind'.*apt-get install valgrind"):
        record(["/bin/true"])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"clock_ghz": 0}, "clock_ghz=0 must be from 0.001 to 100"),
        ({"instructions_per_clock": 100}, "instructions_per_clock=100 must be from"),
        ({"skip_instructions": -1}, "skip_instructions=-1 must be from 0"),
        ({"max_requests": 0}, "max_requests=0 must be from 1"),
        ({"timeout_s": 0}, "timeout_s=0 must be from"),
        ({"clock_ghz": float("nan")}, "clock_ghz=nan must be"),
    ],
)
def test_settings_are_checked(values: dict[str, Any], message: str) -> None:
    with pytest.raises(TraceError, match=message):
        record(["/bin/true"], **values)


def parsed(text: str) -> tuple[list[tuple[int, int, int]], list[str], str]:
    """Accesses, other lines and the unfinished rest of lackey output."""
    data = text.encode()
    most = max(1, len(data))
    columns = (np.empty(most, np.uint8), np.empty(most, np.int64), np.empty(most, np.int32))
    other = np.empty((8, 2), np.int64)
    used, count, others = lackey._parse(np.frombuffer(data, np.uint8), *columns, other)
    rows = [tuple(int(column[i]) for column in columns) for i in range(count)]
    return rows, [text[a:b] for a, b in other[:others]], text[used:]  # type: ignore[return-value]


def test_lackey_lines() -> None:
    rows, other, rest = parsed(
        "==12== Lackey, an example\nI  0401ab70,3\n S 1fff000778,8\n L 04033e06,1\n"
        " M 0ffeffe7c,16\n==12==\n L 04"
    )
    assert rows == [(0, 0x401AB70, 3), (2, 0x1FFF000778, 8), (1, 0x4033E06, 1), (3, 0xFFEFFE7C, 16)]
    assert other == ["==12== Lackey, an example", "==12=="]
    assert rest == " L 04"


@pytest.mark.parametrize(
    "line", ["I  xyz,3", "I  04", "I  04,", " Q 04,8", " L 04,9999999", "valgrind: no", "I", " "]
)
def test_other_lines_are_no_accesses(line: str) -> None:
    assert parsed(line + "\n") == ([], [line], "")


def test_pages_take_frames_in_the_order_of_first_touch() -> None:
    pages = PageMap()

    def translate(*address: int) -> list[int]:
        n = len(address)
        requests = DramRequests(
            np.zeros(n, np.int64), np.array(address, np.int64), np.zeros(n, np.uint8)
        )
        return [int(a) for a in pages.translate(requests).address]

    assert translate(0x7FFF_FFFF_F040, 0x1000, 0x1FC0, 0x7FFF_FFFF_F000) == [
        0x40,
        0x1000,
        0x1FC0,
        0,
    ]
    assert translate(0x1080, 0x5000) == [0x1080, 0x2000]
    assert translate() == []
    assert len(pages) == 3


def fake_program(monkeypatch: pytest.MonkeyPatch, chunks: list[Accesses]) -> None:
    """A program whose accesses are known, in place of valgrind."""

    def stream(*_: Any, **__: Any) -> Iterator[Accesses]:
        yield from chunks

    monkeypatch.setattr(record_module, "run_under_lackey", stream)
    monkeypatch.setattr(record_module, "valgrind_version", lambda: "0.0")


def fetch_and_load(addresses: list[int], kind: int = LOAD) -> Accesses:
    """Each address is loaded by an instruction of its own; all instructions share a line."""
    kinds = np.array([[0, kind]] * len(addresses), np.uint8).reshape(-1)
    where = np.array([[1 << 20, address] for address in addresses], np.int64).reshape(-1)
    return Accesses(kinds, where, np.full(len(kinds), 4, np.int32))


def test_times_follow_from_clock_and_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    chunks = [fetch_and_load([0, 64]), fetch_and_load([64, 128, 0])]
    fake_program(monkeypatch, chunks)
    trace, card = record(["x"], clock_ghz=2.0, instructions_per_clock=0.5)
    # Instruction n ends n ns after the start; the first fetch itself misses, then come 3 lines.
    assert trace.arrival_ps.tolist() == [1000, 1000, 2000, 4000]
    assert trace.address.tolist() == [0, 4096, 4096 + 64, 4096 + 128]
    assert trace.is_write.tolist() == [0, 0, 0, 0]
    assert trace.name == "x"
    assert card["instructions_recorded"] == 5
    assert card["ended_by"] == "exit"
    assert card["requests"] == 4
    assert card["footprint_bytes"] == 256
    assert card["sha256"] == trace.sha256
    assert card["cache"] == CacheHierarchy().as_dict()


def test_skip_and_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    chunks = [fetch_and_load([0, 64]), fetch_and_load([64, 128, 192, 256])]
    fake_program(monkeypatch, chunks)
    trace, card = record(
        ["x"], clock_ghz=1.0, instructions_per_clock=1.0, skip_instructions=2, max_requests=2
    )
    assert trace.arrival_ps.tolist() == [2000, 3000]
    assert trace.address.tolist() == [4096 + 128, 4096 + 192]
    assert card["ended_by"] == "max_requests"
    assert card["instructions_skipped"] == 2
    assert card["instructions_recorded"] == 3
    with pytest.raises(TraceError, match=r"made no DRAM request after the first 99 instruct.*ed 6"):
        record(["x"], skip_instructions=99)


def test_stores_come_back_as_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_program(monkeypatch, [fetch_and_load(list(range(0, 1 << 18, 64)), STORE)])
    trace, card = record(["x"], cache=TINY_CACHE)
    lines = 1 << 12
    assert int((1 - trace.is_write).sum()) >= lines
    assert card["write_share"] == pytest.approx(0.48, abs=0.03)


def test_saved_recording_loads_as_a_workload(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake_program(monkeypatch, [fetch_and_load(list(range(0, 1 << 14, 64)))])
    trace, card = record(["x"], name="mine")
    path = save_recording(trace, card | {"title": "é"}, tmp_path / "mine.npz")
    assert load_workload(path).sha256 == trace.sha256
    assert load_workload(path).name == "mine"
    assert json.loads((tmp_path / "mine.json").read_text("utf-8"))["title"] == "é"
    with pytest.raises(TraceError, match="nowhere' does not exist"):
        save_recording(trace, card, tmp_path / "nowhere" / "mine.npz")


@needs_valgrind
def test_record_a_real_program(tmp_path: Path) -> None:
    trace, card = record(["/bin/true"], cache=TINY_CACHE)
    assert len(trace) > 500
    assert 50_000 < card["instructions_recorded"] < 5_000_000
    assert 0.01 < trace.is_write.mean() < 0.5
    assert trace.address.max() < 4096 * card["pages_4kib"]
    assert card["recorded_with"].startswith("valgrind 3.")
    assert card["command"] == ["/bin/true"]
    assert read_trace(save_recording(trace, card, tmp_path / "t.npz")).sha256 == trace.sha256


@needs_valgrind
def test_recording_stops_the_program_at_the_limit(tmp_path: Path) -> None:
    program = "import sys\nwhile True: pass"
    trace, card = record(
        [sys.executable, "-S", "-c", program], cache=TINY_CACHE, max_requests=3000, timeout_s=60
    )
    assert len(trace) == 3000
    assert card["ended_by"] == "max_requests"


@needs_valgrind
def test_the_same_program_gives_the_same_trace() -> None:
    settings: dict[str, Any] = {"environment": {"LC_ALL": "C"}, "max_requests": 400}
    first, _ = record(["/bin/true"], **settings)
    second, _ = record(["/bin/true"], **settings)
    assert first.sha256 == second.sha256


@needs_valgrind
def test_input_and_folder_reach_the_program(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("no newline needed")
    script = 'read line; test "$line" = "no newline needed" -o -n "$line" && test -f data'
    record(["/bin/sh", "-c", script], folder=tmp_path, stdin=tmp_path / "data")
    with pytest.raises(TraceError, match="exit status 1"):
        record(["/bin/sh", "-c", script])
    with pytest.raises(TraceError, match=r"stdin=.*cannot be read"):
        record(["/bin/true"], stdin=tmp_path / "missing")
    with pytest.raises(TraceError, match=r"folder=.*does not exist"):
        record(["/bin/true"], folder=tmp_path / "missing")


@needs_valgrind
def test_children_are_not_recorded() -> None:
    _, alone = record(["/bin/sh", "-c", ":"])
    _, parent = record(["/bin/sh", "-c", "(i=0; while test $i -lt 999; do i=$((i+1)); done)"])
    assert parent["instructions_recorded"] < 1.5 * alone["instructions_recorded"]


@needs_valgrind
@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["/no/such/program"], "program '/no/such/program' does not exist or cannot be executed"),
        (["no-such-program"], "program 'no-such-program' does not exist"),
        (["-v"], "program '-v' does not exist"),
        ([], "must be a list of a program and its arguments"),
        ("true", "command='true' must be a list"),
        (
            ["/bin/ls", "/no/such/file"],
            r"'/bin/ls' failed under valgrind with exit status 2: .*/no",
        ),
        (["/bin/false"], "'/bin/false' failed under valgrind with exit status 1: it said nothing"),
        (["/bin/sh", "-c", "kill -9 $$"], "'/bin/sh' failed under valgrind by signal 9"),
    ],
)
def test_what_goes_wrong_is_said(command: Any, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        record(command)


@needs_valgrind
def test_time_limit() -> None:
    with pytest.raises(TraceError, match=r"'/bin/sleep' did not end within timeout_s=1\.5 s"):
        record(["/bin/sleep", "60"], timeout_s=1.5)


@needs_valgrind
def test_closing_the_stream_ends_the_program() -> None:
    stream = run_under_lackey([sys.executable, "-S", "-c", "while True: pass"], timeout_s=60)
    chunk = next(stream)
    assert len(chunk.kind) == len(chunk.address) == len(chunk.size) > 0
    stream.close()  # type: ignore[attr-defined]
    with pytest.raises(StopIteration):
        next(stream)


def test_every_shipped_recording_has_a_recipe() -> None:
    assert set(recorded_names()) == set(RECIPES)
    with pytest.raises(UnknownNameError, match=r"unknown recipe 'sqlit'. Did you mean 'sqlite'"):
        make("sqlit")


def test_recipe_without_its_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(TraceError, match="needs the program 'xz': apt-get install xz-utils"):
        make("xz")


def test_recipe_inputs_are_the_same_every_time(tmp_path: Path) -> None:
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        RECIPES["python_json"].make_input(folder)
    assert (tmp_path / "a/records.json").read_bytes() == (tmp_path / "b/records.json").read_bytes()
