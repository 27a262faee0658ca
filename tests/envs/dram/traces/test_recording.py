"""Recording programs: what needs valgrind is skipped without it, the rest always runs."""

from __future__ import annotations

import json
import os
import resource
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from archgym.envs.dram.traces import recording as record_module
from archgym.envs.dram.traces import recording_inputs, valgrind
from archgym.envs.dram.traces.cache_model import LOAD, STORE, CacheHierarchy, DramRequests
from archgym.envs.dram.traces.recording import PageMap, record, save_recording, with_stalls
from archgym.envs.dram.traces.recording_recipes import RECIPES, make
from archgym.envs.dram.traces.trace_files import read_trace
from archgym.envs.dram.traces.valgrind import Accesses, run_under_lackey
from archgym.envs.dram.traces.workload import load_workload, recorded_names
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
        ({"requests_under_way": 0}, "requests_under_way=0 must be from 1"),
        ({"request_ns": 0}, "request_ns=0 must be from 0.001"),
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
    maximum = max(1, len(data))
    columns = (
        np.empty(maximum, np.uint8),
        np.empty(maximum, np.int64),
        np.empty(maximum, np.int32),
    )
    other = np.empty((8, 2), np.int64)
    used, count, others = valgrind._parse(np.frombuffer(data, np.uint8), *columns, other)
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
    """Each address is loaded by a separate instruction; all instructions share a line."""
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


def test_a_core_stands_still_while_too_many_requests_are_under_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Four requests at once, two may be under way for 10 each; what comes later is later by 10.
    wanted = np.array([0, 0, 0, 0, 5, 100], np.int64)
    assert with_stalls(wanted, 2, 10).tolist() == [0, 0, 10, 10, 20, 115]
    assert with_stalls(wanted, 9, 10).tolist() == wanted.tolist()
    fake_program(monkeypatch, [fetch_and_load([0, 64, 128])])
    settings: dict[str, Any] = {"clock_ghz": 1.0, "instructions_per_clock": 1.0}
    free, card = record(["x"], **settings)
    assert free.arrival_ps.tolist() == [1000, 1000, 2000, 3000]
    assert card["requests_under_way"] is None
    bound, card = record(["x"], **settings, requests_under_way=1, request_ns=2.5)
    assert bound.arrival_ps.tolist() == [1000, 3500, 6000, 8500]
    assert (card["requests_under_way"], card["request_ns"]) == (1, 2.5)
    assert bound.address.tolist() == free.address.tolist()


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


def test_a_recording_is_saved_whole_or_not_at_all(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake_program(monkeypatch, [fetch_and_load(list(range(0, 1 << 14, 64)))])
    trace, card = record(["x"])

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            save_recording(trace, card, tmp_path / "mine.npz")
    assert list(tmp_path.iterdir()) == []
    save_recording(trace, card, tmp_path / "mine.npz")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.json", "mine.npz"]


def test_progress_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_program(monkeypatch, [fetch_and_load([0, 64]), fetch_and_load([64, 128, 192])])
    reported: list[tuple[int, int]] = []
    record(["x"], skip_instructions=1, progress=lambda *state: reported.append(state))
    assert reported == [(2, 1), (5, 3)]


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
def test_a_program_of_the_folder_needs_its_path(tmp_path: Path) -> None:
    program = tmp_path / "program-of-the-folder"
    program.write_text("no program")
    with pytest.raises(TraceError, match=r"cannot be executed$"):
        record([program.name], folder=tmp_path)
    program.chmod(0o755)
    with pytest.raises(TraceError, match=r"in this folder is './program-of-the-folder'"):
        record([program.name], folder=tmp_path)


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
        (
            ["/bin/false"],
            "'/bin/false' failed under valgrind with exit status 1: it printed nothing",
        ),
        (["/bin/sh", "-c", "kill -9 $$"], "'/bin/sh' failed under valgrind by signal 9"),
        (["/bin/sh", "-c", "kill -11 $$"], "by signal 11: Process terminating with default action"),
    ],
)
def test_what_goes_wrong_is_said(command: Any, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        record(command)


@needs_valgrind
def test_time_limit() -> None:
    with pytest.raises(TraceError, match=r"'/bin/sleep' did not end within timeout_s=1\.5 s"):
        record(["/bin/sleep", "60"], timeout_s=1.5)


def test_a_program_that_never_pauses_does_not_escape_the_time_limit() -> None:
    read_end, write_end = os.pipe()
    try:
        os.write(write_end, b"I  0401ab70,3\n")
        assert valgrind._read(read_end, time.monotonic() + 60, 1) == b"I"
        with pytest.raises(TimeoutError):
            valgrind._read(read_end, time.monotonic(), 1)
    finally:
        os.close(read_end)
        os.close(write_end)


@needs_valgrind
def test_what_fails_or_is_stopped_leaves_no_files(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    if hard == 0:
        pytest.skip("core dumps are forbidden here")
    environment = {"PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path)}
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    try:
        with pytest.raises(TraceError, match="signal 11"):
            record(["/bin/sh", "-c", "kill -11 $$"], folder=tmp_path, environment=environment)
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))
    with pytest.raises(TraceError, match="did not end within"):
        record(["/bin/sleep", "60"], timeout_s=1.5, folder=tmp_path, environment=environment)
    assert list(tmp_path.iterdir()) == []


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


INPUTS: dict[str, Any] = {
    "records": RECIPES["python_json"].make_input,
    "text": lambda folder: recording_inputs.text(folder / "text", 1000, 3),
    "matrices": lambda folder: recording_inputs.matrices(folder, 5, 6),
    "graph": lambda folder: recording_inputs.graph(folder, 50, 4, 8),
    "signal": lambda folder: recording_inputs.signal(folder, 8, 9),
}


@pytest.mark.parametrize("name", INPUTS)
def test_recipe_inputs_are_the_same_every_time(name: str, tmp_path: Path) -> None:
    contents = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        INPUTS[name](folder)
        contents.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert contents[0] == contents[1] != {}


def test_graph_is_well_formed_and_has_popular_vertices(tmp_path: Path) -> None:
    recording_inputs.graph(tmp_path, 1000, 8, 8)
    start, target, weight = (np.load(tmp_path / f"{n}.npy") for n in ("start", "target", "weight"))
    assert start[0] == 0
    assert start[-1] == len(target) == len(weight) == 8000
    assert (np.diff(start) >= 0).all()
    assert 0 <= target.min() <= target.max() < 1000
    assert weight.min() >= 1
    popular = np.sort(np.bincount(target, minlength=1000))[-125:].sum()
    assert popular / 8000 == pytest.approx(0.5, abs=0.03)  # the cube root of 125 of 1000


@pytest.mark.skipif(shutil.which("cjpeg") is None, reason="cjpeg is not installed")
def test_photograph_is_a_progressive_jpeg(tmp_path: Path) -> None:
    recording_inputs.photograph(tmp_path, 64, 48, 7)
    picture = (tmp_path / "photo.jpg").read_bytes()
    assert picture.startswith(b"\xff\xd8")
    frame = picture.index(b"\xff\xc2")  # start of a progressive frame: length, bits, height, width
    assert picture[frame + 5 : frame + 9] == b"\x00\x30\x00\x40"
