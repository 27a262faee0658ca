"""Instruction streams: formats, generators, workloads and recordings."""

from __future__ import annotations

import lzma
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from archgym.envs.cpu.traces.champsim_format import RECORD, read_champsim, write_champsim
from archgym.envs.cpu.traces.decoding import decode
from archgym.envs.cpu.traces.filtering import filtered_trace
from archgym.envs.cpu.traces.npz_format import read_npz, write_npz
from archgym.envs.cpu.traces.program import LOAD, MODIFY, STORE, Program
from archgym.envs.cpu.traces.recording import record_program, save_program
from archgym.envs.cpu.traces.workload import (
    canonical_workload,
    load_program,
    load_workload,
    program_card,
    program_label,
    recorded_names,
)
from archgym.envs.dram.traces.npz_format import write_npz as write_trace
from archgym.envs.dram.traces.trace import Trace
from archgym.errors import (
    InvalidValueError,
    MissingDependencyError,
    TraceError,
    UnknownNameError,
)
from tests.cli.conftest import Called, call  # noqa: F401 - a fixture

needs_valgrind = pytest.mark.skipif(
    shutil.which("valgrind") is None, reason="valgrind is not installed (apt-get install valgrind)"
)


def same(one: Program, other: Program) -> bool:
    return all(
        np.array_equal(getattr(one, field.name), getattr(other, field.name))
        for field in fields(one)
        if field.name != "name"
    )


class TestFormats:
    def test_npz_keeps_every_instruction(self, tmp_path: Path) -> None:
        program = load_program({"recorded": "sqlite", "instructions": 20_000})
        assert same(read_npz(write_npz(program, tmp_path / "x.npz"), "x"), program)

    @pytest.mark.parametrize("ending", ["", ".xz", ".gz"])
    def test_champsim_records_round(self, tmp_path: Path, ending: str) -> None:
        path = tmp_path / f"x.champsimtrace{ending}"
        write_champsim(load_program({"recorded": "zstd", "instructions": 5000}), path)
        read = read_champsim(path, "x")
        again = write_champsim(read, tmp_path / "y.champsimtrace")
        if ending == ".xz":
            assert again.read_bytes() == lzma.decompress(path.read_bytes())
        assert len(read) == 5000
        assert read.data_size.max() == 1

    def test_champsim_fields_by_hand(self, tmp_path: Path) -> None:
        records = np.zeros(3, RECORD)
        records["ip"] = [0x1000, 0x1003, 0x1000]
        records["branch"] = records["taken"] = [0, 1, 0]
        records["read"][0, :2] = [0x5000, 0x6000]
        records["written"][0, 0] = 0x5000
        records["written"][2, 1] = 0x7000
        path = tmp_path / "hand.champsimtrace"
        path.write_bytes(records.tobytes())
        program = read_champsim(path, "hand")
        assert program.ip[program.code].tolist() == [0x1000, 0x1003, 0x1000]
        assert program.length[program.code].tolist() == [3, 0, 3]
        assert program.data_instruction.tolist() == [0, 0, 2]
        assert program.data_kind.tolist() == [MODIFY, LOAD, STORE]
        assert program.data_address.tolist() == [0x5000, 0x6000, 0x7000]

    def test_a_small_file_that_unpacks_to_gigabytes_is_refused(self, tmp_path: Path) -> None:
        zeros = lzma.compress(bytes(1 << 24), preset=0)
        path = tmp_path / "zeros.champsimtrace.xz"
        path.write_bytes(zeros * 400)
        with pytest.raises(TraceError, match="65536 records in a row have no address"):
            read_champsim(path, "zeros")

    def test_a_long_trace_needs_a_number_of_instructions(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("archgym.envs.cpu.traces.champsim_format._MAX_WHOLE", 1000)
        path = tmp_path / "long.champsimtrace.gz"
        write_champsim(load_program({"recorded": "zstd", "instructions": 1001}), path)
        with pytest.raises(TraceError, match="more than 1000 instructions: say how many"):
            read_champsim(path, "long")
        assert len(read_champsim(path, "long", 1000)) == 1000

    def test_a_damaged_champsim_trace_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "damaged.champsimtrace.gz"
        write_champsim(load_program({"recorded": "zstd", "instructions": 3000}), path)
        content = bytearray(path.read_bytes())
        content[15:40] = bytes([255]) * 25
        path.write_bytes(content)
        with pytest.raises(TraceError, match="cannot read the trace"):
            read_champsim(path, "damaged")

    def test_another_file_under_the_name_says_which_record_cannot_be(self, tmp_path: Path) -> None:
        records = np.zeros(3, RECORD)
        records["ip"] = [0x1000, 0xFFFF_0000_0000_0000, 0x1000]
        path = tmp_path / "noise.champsimtrace"
        path.write_bytes(records.tobytes())
        with pytest.raises(TraceError, match=r"record 1 .* 0xffff000000000000, which must be"):
            read_champsim(path, "noise")

    def test_a_pipe_is_no_trace(self, tmp_path: Path) -> None:
        path = tmp_path / "pipe.champsimtrace"
        os.mkfifo(path)
        with pytest.raises(TraceError, match="a pipe or a device, not a file"):
            read_champsim(path, "pipe")

    @pytest.mark.parametrize("length", [10, 100])
    def test_a_cut_champsim_trace_is_refused(self, tmp_path: Path, length: int) -> None:
        path = tmp_path / "cut.champsimtrace"
        path.write_bytes(b"\1" * length)
        with pytest.raises(TraceError, match="cut off"):
            read_champsim(path, "cut")

    def test_a_damaged_archive_is_refused(self, tmp_path: Path) -> None:
        program = load_program({"generator": "stream", "instructions": 1000})
        path = write_npz(program, tmp_path / "x.npz")
        good = dict(np.load(path))
        for name, wrong in {
            "executed": np.int64(10**12),
            "jump_gap": good["jump_gap"][:, :1] + 9,
            "data_gap": np.full_like(good["data_gap"], 255),
            "version": np.int64(9),
            "length": good["length"].astype(np.int64),
            "branch": good["branch"][:1],
        }.items():
            np.savez(path, **{**good, name: wrong})
            with pytest.raises(TraceError, match=r"x\.npz"):
                read_npz(path, "x")
        np.savez(path, **{name: field for name, field in good.items() if name != "branch"})
        with pytest.raises(
            TraceError, match=r"not an archgym stream: the field 'branch' is missing$"
        ):
            read_npz(path, "x")

    def test_an_archive_with_objects_is_not_unpickled(self, tmp_path: Path) -> None:
        path = tmp_path / "x.npz"
        np.savez(path, version=np.array([print], dtype=object))
        with pytest.raises(TraceError, match="cannot read"):
            read_npz(path, "x")


class TestProgram:
    def test_parts_join(self) -> None:
        program = load_program({"recorded": "xz", "instructions": 3000})
        first, second = program.part(0, 1000), program.part(1000, 3000)
        assert len(first) + len(second) == len(program)
        assert np.array_equal(
            np.concatenate([first.data_address, second.data_address]), program.data_address
        )
        assert np.array_equal(second.ip[second.code], program.ip[program.code[1000:]])

    def test_arrays_that_do_not_fit(self) -> None:
        program = load_program({"generator": "stream", "instructions": 1000})
        values = {field.name: getattr(program, field.name) for field in fields(program)}
        with pytest.raises(TraceError, match="data_size has the shape"):
            Program(**{**values, "data_size": values["data_size"][:1]})


class TestWorkloads:
    def test_six_programs_ship_in_less_than_four_megabytes(self) -> None:
        names = recorded_names()
        assert names == ("perl", "python_json", "sort", "sqlite", "xz", "zstd")
        for name in names:
            card = program_card(name)
            assert load_program(name).sha256 == card["sha256"]
            assert len(load_program(name)) == card["instructions"] == 2_000_000

    def test_a_list_and_what_is_held_out(self) -> None:
        spec = {"programs": ["xz", {"generator": "chase", "seed": 3}], "held_out": ["zstd"]}
        loaded = load_workload(spec)
        assert loaded.labels == ("xz", "chase(seed=3)")
        assert loaded.held_out == ({"recorded": "zstd"},)
        assert load_workload(["xz"]).labels == ("xz",)
        chosen = canonical_workload(spec)
        assert canonical_workload(chosen) == chosen

    @pytest.mark.parametrize(
        ("spec", "message"),
        [
            ("sqlit", "Did you mean 'sqlite'"),
            ({"recorded": "sorted"}, "Did you mean 'sort'"),
            ({"generator": "chase", "footprint": 3}, "footprint_bytes"),
            ({"recorded": "xz", "instruction": 3}, "Did you mean 'instructions'"),
            ({"programs": ["xz"], "heldout": []}, "Did you mean 'held_out'"),
        ],
    )
    def test_unknown_names(self, spec: Any, message: str) -> None:
        with pytest.raises(UnknownNameError, match=message):
            load_workload(spec)

    @pytest.mark.parametrize(
        "spec",
        [
            {"generator": "chase", "seed": -1},
            {"recorded": "xz", "instructions": 0},
            {"recorded": "xz", "instructions": 10**9},
            {"programs": []},
            {"programs": "xz"},
            [["xz"]],
            {"file": 3},
        ],
    )
    def test_values_out_of_range(self, spec: Any) -> None:
        with pytest.raises(InvalidValueError):
            load_workload(spec)

    def test_a_file(self, tmp_path: Path) -> None:
        write_npz(load_program({"recorded": "xz", "instructions": 1000}), tmp_path / "mine.npz")
        assert program_label(tmp_path / "mine.npz") == "mine"
        assert len(load_program(str(tmp_path / "mine.npz"))) == 1000
        with pytest.raises(TraceError, match=r"must end in one of"):
            load_program(tmp_path / "mine.txt")
        with pytest.raises(TraceError, match="no such trace file"):
            load_program(tmp_path / "other.npz")

    def test_generators_touch_what_they_say(self) -> None:
        chase = load_program({"generator": "chase", "instructions": 8192, "footprint_bytes": 65536})
        assert len(np.unique(chase.data_address >> 6)) == 1024
        stream = load_program({"generator": "stream", "instructions": 8000})
        assert (stream.data_kind == STORE).sum() == 250
        assert (
            load_program({"generator": "random", "seed": 1}).sha256
            != load_program({"generator": "random", "seed": 2}).sha256
        )


class TestRecording:
    def test_missing_valgrind(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", "")
        with pytest.raises(MissingDependencyError, match="apt-get install valgrind"):
            record_program(["/bin/true"])

    @needs_valgrind
    def test_a_program_and_its_parts(self, tmp_path: Path) -> None:
        # Why LD_PRELOAD: see tests/envs/cpu/validation/test_reference.py.
        alone = {"LD_PRELOAD": "", "PATH": "/usr/bin:/bin", "LC_ALL": "C"}
        whole, card = record_program(["true"], environment=alone)
        assert card["ended_by"] == "exit"
        assert whole.length.min() > 0
        assert 0.05 < card["branch_share"] < 0.4
        _, slowly = record_program(
            ["true"], environment=alone, progress=lambda *_: time.sleep(0.02)
        )
        assert slowly["branch_share"] == card["branch_share"]  # its code was read before it ended
        part, card = record_program(
            ["true"], environment=alone, skip_instructions=1000, max_instructions=2000
        )
        assert card["ended_by"] == "max_instructions"
        assert np.array_equal(part.ip[part.code], whole.ip[whole.code[1000:3000]])
        assert np.array_equal(part.data_address, whole.part(1000, 3000).data_address)
        path = save_program(part, card, tmp_path / "true.npz")
        assert load_program(path).sha256 == part.sha256

    @needs_valgrind
    def test_too_short_a_program(self) -> None:
        with pytest.raises(TraceError, match="none is left"):
            record_program(["true"], skip_instructions=10**9)

    def test_settings_out_of_range(self) -> None:
        with pytest.raises(TraceError, match="max_instructions=0"):
            record_program(["true"], max_instructions=0)
        with pytest.raises(TraceError, match="skip_instructions=-1"):
            record_program(["true"], skip_instructions=-1)

    def test_branches_by_their_bytes(self) -> None:
        texts = ["74 05", "e8 00 00 00 00", "c3", "ff e0", "ff 15 00 00 00 00", "0f 85 00 00 00 00"]
        plain = ["90", "48 89 c8", "f3 a4", ""]
        code = [bytes.fromhex(text) for text in (*texts, *plain)]
        found = decode(code, np.arange(len(code)) * 16)
        assert found.branch.tolist() == [1] * len(texts) + [0] * len(plain)
        # Conditional: reads flags and instruction pointer; return: reads the stack pointer only.
        assert found.sources[0].tolist() == [26, 25, 0, 0]
        assert found.sources[2].tolist() == [6, 0, 0, 0]
        assert found.destinations[2].tolist() == [26, 6]


def test_what_leaves_the_caches_is_a_workload_of_dram(tmp_path: Path) -> None:
    spec = {"generator": "stream", "instructions": 800_000, "footprint_bytes": 1 << 20}
    trace = filtered_trace(spec, {"llc_kib": 256, "l2_kib": 64})
    assert trace.is_write.any()
    reads = trace.address[trace.is_write == 0]
    assert len(np.unique(reads)) >= 12_500  # 100,000 elements of 8 bytes
    assert (trace.address % 64 == 0).all()
    with pytest.raises(UnknownNameError, match="llc_kib"):
        filtered_trace(spec, {"llc_kb": 256})


def test_a_longer_line_leaves_the_caches_as_several_requests() -> None:
    spec = {"generator": "stream", "instructions": 400_000, "footprint_bytes": 1 << 20}
    short = filtered_trace(spec, {"llc_kib": 256, "l2_kib": 64})
    long = filtered_trace(spec, {"llc_kib": 256, "l2_kib": 64, "line_bytes": 128})
    assert (long.address[::2] % 128 == 0).all()
    assert (long.address[1::2] == long.address[::2] + 64).all()
    assert (long.arrival_ps[1::2] == long.arrival_ps[::2]).all()
    assert (long.is_write[1::2] == long.is_write[::2]).all()
    # A program that reads all of its data in order moves the same bytes with lines of any length.
    assert set(long.address) >= set(short.address)


def test_a_look_into_a_stream(call: Callable[..., Called]) -> None:  # noqa: F811
    spec = "{generator: stream, instructions: 80000}"
    found = call("trace", "info", "--cpu", spec, "--json").json
    assert found["instructions"] == 80_000
    assert found["loads"] == 10_000  # one of eight instructions reads, and every fourth time
    assert found["stores"] == 2_500  # it writes
    assert found["data_lines_64b"] == 1_250
    assert "80,000" in call("trace", "info", "--cpu", spec).out
    assert call("trace", "info", "--cpu", spec, "--memory", "DDR4-2400").code == 2


def test_a_recording_of_the_other_kind(
    call: Callable[..., Called],  # noqa: F811
    tmp_path: Path,
) -> None:
    stream, trace = tmp_path / "stream.npz", tmp_path / "trace.npz"
    write_npz(load_workload({"generator": "chase", "instructions": 1000}).programs[0], stream)
    called = call("trace", "info", stream)
    assert called.code == 2
    assert "trace info --cpu" in " ".join(called.err.split())
    write_trace(Trace("t", np.arange(4), np.arange(4), np.zeros(4, np.uint8)), trace)
    called = call("evaluate", "CPU-v0", "--workload", trace)
    assert called.code == 2
    assert "record the program with --cpu" in " ".join(called.err.split())
