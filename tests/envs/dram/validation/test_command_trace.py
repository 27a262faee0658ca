"""Command traces: the CSV file, and ``archgym trace commands``."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from archgym.cli import main
from archgym.envs.dram.validation.command_trace import COLUMNS, command_trace
from archgym.errors import InvalidValueError, UnknownNameError

STREAM = {"generator": "stream", "requests": 300}
Call = Callable[..., int]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch) -> Call:
    """The command line, in this process; gives the exit code."""
    monkeypatch.setenv("COLUMNS", "120")

    def run(*arguments: str | Path) -> int:
        monkeypatch.setattr(sys, "argv", ["archgym", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
        return left.value.code if isinstance(left.value.code, int) else 0

    return run


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_by_hand(tmp_path: Path) -> None:
    # Two reads of a row, DDR3-1600: activate in clock 1, reads in 11 and 15.
    (tmp_path / "two.stl").write_text("0: read 0x0\n0: read 0x40\n")
    workload = {"file": str(tmp_path / "two.stl"), "clock_mhz": 800}
    trace = command_trace(workload, "DDR3-1600", {"refresh_policy": "none"})
    assert trace.write_csv(tmp_path / "out.csv") == 3
    assert (tmp_path / "out.csv").read_text().splitlines() == [
        "time_ns,cycle,command,channel,rank,bank,row",
        "1.250,1,act,0,0,0,0",
        "13.750,11,rd,0,0,0,0",
        "18.750,15,rd,0,0,0,0",
    ]
    assert trace.violations() == []


def test_channels_are_in_the_order_of_time(tmp_path: Path) -> None:
    memory = {"device": "DDR4-2400", "channels": 4, "ranks": 2}
    trace = command_trace(STREAM, memory)
    number = trace.write_csv(tmp_path / "out.csv")
    found = rows(tmp_path / "out.csv")
    assert len(found) == number == sum(len(log) for log in trace.logs.values())
    cycles = [int(row["cycle"]) for row in found]
    assert cycles == sorted(cycles)
    assert {row["channel"] for row in found} == {"0", "1", "2", "3"}
    assert tuple(found[0]) == COLUMNS
    assert float(found[-1]["time_ns"]) == pytest.approx(cycles[-1] * 0.833)


def test_channels_keep_their_numbers(tmp_path: Path) -> None:
    # The channel is bits 6 and 7: only 2 has a request.
    (tmp_path / "one.stl").write_text("0: read 0x80\n")
    workload = {"file": str(tmp_path / "one.stl"), "clock_mhz": 800}
    trace = command_trace(workload, {"device": "DDR4-2400", "channels": 4})
    assert list(trace.logs) == [2]


def test_place_is_empty_where_there_is_none(tmp_path: Path) -> None:
    workload = {"generator": "random", "requests": 2000, "seed": 1}
    command_trace(workload, "DDR4-2400").write_csv(tmp_path / "out.csv")
    refreshes = [row for row in rows(tmp_path / "out.csv") if row["command"] == "refab"]
    assert refreshes
    assert {(row["bank"], row["row"]) for row in refreshes} == {("", "")}


def test_the_command_line(tmp_path: Path, call: Call, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.csv"
    code = call(
        *("trace", "commands", json.dumps(STREAM), "--memory", "{device: LPDDR4-3200, ranks: 2}"),
        *("--set", "page_policy=closed", "--set", "refresh_policy=per_bank", "--out", out),
        "--check",
    )
    assert code == 0
    shown = capsys.readouterr().out
    assert "LPDDR4-3200 x 1 channels x 2 ranks" in shown
    assert "No timing rule is broken." in shown
    found = {row["command"] for row in rows(out)}
    assert {"act", "rda"} <= found
    assert "rd" not in found


def test_a_violation_is_exit_1(
    tmp_path: Path, call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    # DRAMSys 5.1 does not keep tRC after a read with auto-precharge on DDR4.
    workload = json.dumps({"generator": "random", "requests": 2000, "footprint_bytes": 2**20})
    arguments = ["trace", "commands", workload, "--out", tmp_path / "out.csv"]
    arguments += ["--set", "page_policy=closed", "--set", "timing_rules=dramsys51"]
    assert call(*arguments) == 0
    assert call(*arguments, "--check") == 1
    captured = capsys.readouterr()
    assert "timing violations" in captured.err
    assert "tRC needs 55 cycles" in captured.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["zipff"], "Did you mean 'zipf'"),
        (["zipf", "--memory", "DDR4-2401"], "Did you mean 'DDR4-2400'"),
        (["zipf", "--set", "page_polcy=open"], "Did you mean 'page_policy'"),
        (["zipf", "--set", "page_policy=opne"], "Did you mean 'open'"),
        (["zipf", "--set", "page_policy"], "not of the form key=value"),
        (["zipf", "--set", "request_buffer_size=0"], "request_buffer_size is 0"),
        (["zipf", "--set", "refresh_policy=per_bank"], "'per_bank'"),
    ],
)
def test_what_goes_wrong_is_said(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    call: Call,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert call("trace", "commands", *arguments, "--out", tmp_path / "out.csv") == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out.csv").exists()


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    trace = command_trace(STREAM, "DDR4-2400")
    with pytest.raises(InvalidValueError, match=r"none.out\.csv: cannot be written"):
        trace.write_csv(tmp_path / "none" / "out.csv")


def test_unknown_settings() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'scheduler'"):
        command_trace(STREAM, "DDR4-2400", {"schedular": "fifo"})
