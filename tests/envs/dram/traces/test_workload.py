"""Workloads by name, path and mapping."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from archgym.envs.dram.traces.generators import GENERATORS, generate
from archgym.envs.dram.traces.trace_files import write_trace
from archgym.envs.dram.traces.workload import (
    canonical_workload,
    load_workload,
    recorded_names,
    workload_card,
    workload_label,
    workload_names,
)
from archgym.errors import InvalidValueError, TraceError, UnknownNameError

FOLDER = Path(__file__).parents[4] / "envs" / "dram" / "traces" / "recorded"
CARD_KEYS = {
    "title",
    "program",
    "command",
    "input",
    "licence",
    "recipe",
    "environment",
    "recorded_on",
    "recorded_with",
    "cache",
    "clock_ghz",
    "instructions_per_clock",
    "page_mapping",
    "instructions_skipped",
    "instructions_recorded",
    "ended_by",
    "requests",
    "write_share",
    "span_ns",
    "footprint_bytes",
    "sha256",
}


def test_names_are_unique_and_described() -> None:
    names = workload_names()
    assert set(names) == {*recorded_names(), *GENERATORS}
    assert len(names) == len(recorded_names()) + len(GENERATORS)
    assert all(text and "\n" not in text for text in names.values())
    assert {"sqlite", "xz", "python_json", "stream", "zipf", "cloud_1"} <= set(names)


@pytest.mark.parametrize("name", recorded_names())
def test_recorded_programs_match_their_cards(name: str) -> None:
    trace, card = load_workload(name), workload_card(name)
    assert set(card) >= CARD_KEYS
    assert card["kind"] == "recorded"
    assert trace.name == name
    assert trace.sha256 == card["sha256"]
    assert len(trace) == card["requests"] >= 50_000
    assert trace.is_write.mean() == pytest.approx(card["write_share"], abs=1e-4)
    assert trace.arrival_ps[-1] // 1000 == card["span_ns"]
    assert 64 * len(np.unique(trace.address)) == card["footprint_bytes"]
    assert (trace.address % 64 == 0).all()
    rate = card["clock_ghz"] * card["instructions_per_clock"]
    running_ns = card["instructions_recorded"] / rate
    if card.get("requests_under_way") is None:
        assert card["span_ns"] == pytest.approx(running_ns, rel=1e-3)
    else:
        assert running_ns < card["span_ns"] < 1.5 * running_ns
        under_way = card["requests_under_way"]
        minimum = trace.arrival_ps[under_way:] - trace.arrival_ps[:-under_way]
        assert minimum.min() >= 1000 * card["request_ns"]


def test_shipped_files_are_small() -> None:
    sizes = {path.name: path.stat().st_size for path in FOLDER.iterdir()}
    assert {f"{name}.npz" for name in recorded_names()} <= set(sizes)
    assert max(sizes.values()) < 2_000_000
    assert sum(sizes.values()) < 10_000_000


@pytest.mark.parametrize("name", recorded_names())
def test_characteristics_are_those_of_the_table(name: str) -> None:
    """A row of recorded/README.md has the characteristics of its file."""
    trace = load_workload(name)
    gap_ns = trace.arrival_ps[-1] / len(trace) / 1000
    # DDR4-2400, mapping rbc: bank and bank group are bits 13 to 16, the row the bits above.
    bank, row = (trace.address >> 13) & 15, trace.address >> 17
    order = np.argsort(bank, kind="stable")
    same = (np.diff(bank[order]) == 0) & (np.diff(row[order]) == 0)
    cells = [
        f"`{name}`",
        f"{len(trace):,}",
        f"{1 - trace.is_write.mean():.0%}",
        f"{64 * len(np.unique(trace.address)) / 1e6:.1f}",
        f"{gap_ns:.1f}",
        f"{1000 / gap_ns:.1f}",
        f"{64 / gap_ns:.2f}",
        f"{same.sum() / len(trace):.0%}",
    ]
    assert "| " + " | ".join(cells) + " |" in (FOLDER / "README.md").read_text("utf-8").splitlines()


def test_the_recordings_cover_the_range() -> None:
    """Neither one kind of program only, nor arrivals that no memory could follow."""
    gaps = {}
    for name in recorded_names():
        trace = load_workload(name)
        gaps[name] = trace.arrival_ps[-1] / len(trace) / 1000
    # 64 bytes at the 19.2 GB/s of a DDR4-2400 channel take 3.3 ns.
    assert min(gaps.values()) > 3.4
    assert min(gaps.values()) < 10
    assert max(gaps.values()) > 100


@pytest.mark.parametrize("name", GENERATORS)
def test_generators_by_name_and_by_mapping(name: str) -> None:
    assert load_workload(name).sha256 == generate(name).sha256
    spec = {"generator": name, "requests": 100, "seed": 2}
    assert load_workload(spec).sha256 == generate(name, requests=100, seed=2).sha256
    card = workload_card(name)
    assert card["kind"] == "generator"
    assert {parameter["name"] for parameter in card["parameters"]} >= {"requests", "seed"}
    assert json.loads(json.dumps(card)) == card


def test_first_requests_of_a_recording() -> None:
    whole, part = load_workload("sqlite"), load_workload({"recorded": "sqlite", "requests": 1000})
    assert len(part) == 1000
    assert (part.address == whole.address[:1000]).all()
    assert part.name == "sqlite(requests=1000)"
    with pytest.raises(InvalidValueError, match=r"requests=999999999 is out of .*holds 100000"):
        load_workload({"recorded": "sqlite", "requests": 999_999_999})


def test_files(tmp_path: Path) -> None:
    trace = generate("zipf", requests=300)
    path = write_trace(trace, tmp_path / "run.stl.gz", clock_mhz=1e6)
    for spec in (path, str(path), {"file": str(path)}, {"file": path, "format": "stl"}):
        assert load_workload(spec).sha256 == trace.sha256
        assert load_workload(spec).name == "run"
    slow = load_workload({"file": str(path), "clock_mhz": 100, "requests": 10})
    assert len(slow) == 10
    assert slow.arrival_ps.tolist() == (trace.arrival_ps[:10] * 10_000).tolist()
    assert slow.name == "run(requests=10)"
    evenly = write_trace(trace, tmp_path / "b.trace", "ramulator")
    assert load_workload({"file": str(evenly), "interval_ns": 2}).arrival_ps[1] == 2000


def test_files_need_no_known_ending(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plain").write_text("0 R 0x40\n", encoding="utf-8")
    assert len(load_workload("plain")) == 1
    Path("zipf").write_text("0 R 0x40\n", encoding="utf-8")
    assert len(load_workload("zipf")) == 20_000, "a name wins over a file"
    assert len(load_workload("./zipf")) == 1


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("0 R 0x40\n")
    assert load_workload(path).address.tolist() == [0x40]
    path.write_text("0 R 0x80\n")
    os.utime(path, ns=(1, 1))
    assert load_workload(path).address.tolist() == [0x80]


def test_traces_are_shared_and_read_only(tmp_path: Path) -> None:
    trace = load_workload("random")
    assert load_workload({"generator": "random"}) is trace
    assert load_workload({"generator": "random", "seed": 0}) is trace
    text = write_trace(generate("random", requests=5), tmp_path / "a.txt", "text")
    for shared in (trace, load_workload("xz"), load_workload(text)):
        for column in (shared.arrival_ps, shared.address, shared.is_write):
            with pytest.raises(ValueError, match="read-only"):
                column[0] = 1


@pytest.mark.parametrize(
    ("spec", "label"),
    [
        ("zipf", "zipf"),
        ({"generator": "zipf", "requests": 20_000}, "zipf"),
        ({"generator": "zipf", "seed": 3, "requests": 500}, "zipf(requests=500,seed=3)"),
        ({"generator": "mixed", "interval_ns": 2.5}, "mixed(interval_ns=2.5)"),
        ("sqlite", "sqlite"),
        ({"recorded": "sqlite", "requests": 50}, "sqlite(requests=50)"),
        ("some/folder/run-1.stl.gz", "run-1"),
        ({"file": "a.trace", "format": "text"}, "a"),
        (Path("b.npz"), "b"),
    ],
)
def test_labels(spec: Any, label: str) -> None:
    assert workload_label(spec) == label


@pytest.mark.parametrize("spec", ["zipf", "sqlite", {"recorded": "xz", "requests": 5}, "a/b.stl"])
def test_canonical_form_is_stable_json(spec: Any) -> None:
    once = canonical_workload(spec)
    assert canonical_workload(json.loads(json.dumps(once))) == once


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("sqlit", "unknown workload 'sqlit'. Did you mean 'sqlite'"),
        ("zip", "unknown workload 'zip'. Did you mean 'zipf'"),
        ({"generator": "zip"}, "workload: unknown generator 'zip'. Did you mean 'zipf'"),
        ({"generator": "zipf", "seeds": 1}, "unknown parameter 'seeds'. Did you mean 'seed'"),
        ({"recorded": "sqlit"}, "unknown recorded workload 'sqlit'. Did you mean 'sqlite'"),
        ({"recorded": "zipf"}, "unknown recorded workload 'zipf'"),
        ({"recorded": "xz", "request": 4}, "unknown workload key 'request'. Did you mean 'req"),
        ({"file": "a", "clock": 4}, "unknown workload key 'clock'. Did you mean 'clock_mhz'"),
        ({"file": "a", "format": "stlx"}, "unknown trace format 'stlx'. Did you mean 'stl'"),
    ],
)
def test_unknown_names_and_keys(spec: Any, message: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        load_workload(spec)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({}, "must have exactly one of the keys generator, recorded, file"),
        ({"generator": "zipf", "file": "a"}, "must have exactly one of the keys"),
        (7, "workload 7 must be a name, a path or a mapping"),
        (None, "workload None must be a name, a path or a mapping"),
        ({"recorded": "xz", "requests": 0}, "requests=0 must be an integer of at least 1"),
        ({"recorded": "xz", "requests": 1.5}, "requests=1.5 must be an integer"),
        ({"file": 4}, "file=4 must be a path"),
        ({"file": "a", "clock_mhz": "fast"}, "clock_mhz='fast' must be a number"),
        ({"generator": "zipf", "requests": 0}, "requests=0 is out of range"),
    ],
)
def test_bad_values(spec: Any, message: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        load_workload(spec)
    assert message in str(caught.value)


def test_missing_file_and_unknown_card(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"none\.stl: there is no such trace file"):
        load_workload(tmp_path / "none.stl")
    with pytest.raises(UnknownNameError, match="unknown workload 'sqlit'"):
        workload_card("sqlit")


@pytest.mark.parametrize(("name", "line"), [("t.stl", "5: read 0x40"), ("t.trace", "0x40 READ 5")])
def test_a_text_file_of_windows_is_read(tmp_path: Path, name: str, line: str) -> None:
    path = tmp_path / name
    path.write_bytes(f"\ufeff# clock_mhz: 1000\r\n{line}\r\n".encode())
    trace = load_workload(path)
    assert trace.arrival_ps.tolist() == [5000]
    assert trace.address.tolist() == [64]
