"""Timing by hand on the shipped library, whose delays are linear."""

from __future__ import annotations

import json
from importlib import resources
from itertools import pairwise
from typing import Any

import pytest

from archgym.envs.tpe.eda.cell_library import CellLibrary
from archgym.envs.tpe.eda.liberty_cells import cell_library
from archgym.envs.tpe.eda.static_timing import Netlist, analyse, read_netlist
from archgym.errors import InvalidValueError, SimulationError


@pytest.fixture(scope="module")
def library() -> CellLibrary:
    path = resources.files("archgym.envs.tpe.eda") / "libraries" / "minimal.lib"
    return cell_library(path.read_text("utf-8"))


def flip_flop(d: int, q: int) -> tuple[str, dict[str, int]]:
    return "DFF_1", {"CK": 1, "D": d, "Q": q}


def test_a_ring_of_one_inverter(library: CellLibrary) -> None:
    # Q drives an inverter (0.01 pF), which drives D (0.01 pF). Rising Q: 0.18 + 2 x 0.01 = 0.20 ns
    # with slew 0.04 + 3.2 x 0.01 = 0.072; falling Q is 0.01 ns later. The inverter turns it into a
    # rising D: 0.03 + 2 x 0.01 + 0.1 x 0.072 = 0.0572, with slew 0.03 + 1.6 x 2 x 0.01 = 0.062.
    # Setup of a rising D is 0.08 + 0.04 x (0.062 - 0.01) / 0.99.
    timing = analyse(Netlist((flip_flop(3, 2), ("INV_1", {"A": 2, "Y": 3})), {}), library)
    setup = 0.08 + 0.04 * (0.062 - 0.01) / 0.99
    assert timing.min_period_ns == pytest.approx(0.21 + 0.0572 + setup, abs=3e-4)
    assert timing.path == ("DFF_1", "INV_1")
    assert (timing.cells, timing.flip_flops) == (2, 1)
    assert (timing.area, timing.sequential_area) == (7.0, 6.0)


def chain(length: int, fanout: int = 0) -> Netlist:
    cells = [flip_flop(2 + length, 2)]
    cells += [("BUF_1", {"A": 2 + i, "Y": 3 + i}) for i in range(length)]
    cells += [("INV_1", {"A": 2, "Y": 100 + i}) for i in range(fanout)]
    return Netlist(tuple(cells), {})


def test_longer_and_more_loaded_paths_are_slower(library: CellLibrary) -> None:
    periods = [analyse(chain(n), library).min_period_ns for n in range(1, 6)]
    assert periods == sorted(periods)
    steps = [b - a for a, b in pairwise(periods[1:])]
    assert max(steps) - min(steps) < 1e-9
    loaded = analyse(chain(3, fanout=5), library).min_period_ns
    # Five pins of 0.01 pF more on Q: 2 ns/pF late, and a slew 0.16 ns longer into the next buffer.
    assert loaded - periods[2] == pytest.approx(0.05 * 2.0 + 0.1 * 0.05 * 3.2, abs=2e-3)


def test_the_order_of_cells_does_not_matter(library: CellLibrary) -> None:
    netlist = chain(4, fanout=2)
    turned = Netlist(netlist.cells[::-1], {})
    assert analyse(turned, library).min_period_ns == analyse(netlist, library).min_period_ns


def test_inputs_and_constants_are_no_start(library: CellLibrary) -> None:
    cells = (
        flip_flop(4, 2),
        ("NAND2_1", {"A": 2, "B": -1, "Y": 3}),
        ("NAND2_1", {"A": 3, "B": 50, "Y": 4}),
    )
    assert analyse(Netlist(cells, {}), library).path == ("DFF_1", "NAND2_1", "NAND2_1")


def test_what_cannot_be_timed(library: CellLibrary) -> None:
    loop = (flip_flop(3, 2), ("NAND2_1", {"A": 2, "B": 3, "Y": 4}), ("INV_1", {"A": 4, "Y": 3}))
    with pytest.raises(SimulationError, match="combinational loop"):
        analyse(Netlist(loop, {}), library)
    with pytest.raises(SimulationError, match="no path"):
        analyse(Netlist((flip_flop(9, 2),), {}), library)
    with pytest.raises(InvalidValueError, match="no cell 'NAND7'"):
        analyse(Netlist((("NAND7", {"A": 2}),), {}), library)


def test_netlists_of_yosys() -> None:
    cell = {"type": "INV_1", "connections": {"A": [2], "Y": ["x"]}}
    scope = {"type": "$scopeinfo", "connections": {}}
    ports = {"q": {"direction": "output", "bits": [2, 2, "0"]}}
    module: dict[str, Any] = {"cells": {"u": cell, "s": scope}, "ports": ports}
    netlist = read_netlist(json.dumps({"modules": {"top": module}}), "top")
    assert netlist.cells == (("INV_1", {"A": 2, "Y": -1}),)
    assert netlist.outputs == {2: 2}
    with pytest.raises(SimulationError, match="no module 'pe'"):
        read_netlist(json.dumps({"modules": {"top": module}}), "pe")
    with pytest.raises(SimulationError, match="is empty"):
        read_netlist(json.dumps({"modules": {"top": {"cells": {}}}}), "top")
