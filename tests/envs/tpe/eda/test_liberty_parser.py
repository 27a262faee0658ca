"""The Liberty reader reads what the format allows and refuses the rest with the line."""

from __future__ import annotations

import gzip
from importlib import resources
from pathlib import Path

import pytest

from archgym.envs.tpe.eda.cell_library import Table, WireLoad
from archgym.envs.tpe.eda.liberty_cells import cell_library, load_library
from archgym.envs.tpe.eda.liberty_parser import parse_liberty
from archgym.errors import InvalidValueError

MINIMAL = resources.files("archgym.envs.tpe.eda") / "libraries" / "minimal.lib"


def test_groups_attributes_and_comments() -> None:
    library = parse_liberty(
        """/* a /comment/ */ library (demo) {
          time_unit : "1ps";  // to the end of the line
          capacitive_load_unit (1, ff);
          wire_load (small) { fanout_length (1, 2.5); fanout_length (4, 9); }
          cell (X) { area : 2.5 ; pin (A, B) { direction : input; } }
          comment : "two \\
lines"
        }"""
    )
    assert library.name == "demo"
    assert library.text("time_unit") == "1ps"
    assert library.attributes["capacitive_load_unit"] == ["1", "ff"]
    cell = next(library.all("cell"))
    assert cell.number("area") == 2.5
    assert next(cell.all("pin")).arguments == ["A", "B"]
    repeated = next(library.all("wire_load")).repeated
    assert repeated == [("fanout_length", ["1", "2.5"]), ("fanout_length", ["4", "9"])]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "text ends"),
        ("module (x) { }", "a library was expected"),
        ("library (x) {\n cell (y) {\n", "text ends within cell"),
        ("library (x) {\n area } ", "line 2: ':' or '\\('"),
        ('library (x) { a : "b', "without its end"),
        ("library (x) { a (b { } }", "'\\)' was expected"),
        ("library (x) {" + "g () {" * 40, "nested beyond"),
        ("library (x) { ) }", "unexpected"),
    ],
)
def test_broken_texts_are_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        parse_liberty(text)


def test_the_shipped_library() -> None:
    library = cell_library(MINIMAL.read_text("utf-8"))
    assert library.voltage_v == 1.0
    assert library.cell("NAND2_1").area == 1.5
    assert library.cell("DFF_1").sequential
    assert library.cell("INV_1").pins["A"].capacitance_pf == pytest.approx(0.01)
    (arc,) = library.cell("INV_1").pins["Y"].arcs
    assert arc.sense == "negative_unate"
    # Its delays are linear: 0.03 ns + 2 kohm x load + 0.1 x slew, also beyond the table.
    for slew, load in ((0.01, 0.001), (0.1, 0.2), (2.0, 0.9)):
        expected = 0.03 + 2.0 * load + 0.1 * slew
        assert arc.tables["cell_rise"](slew, load) == pytest.approx(expected, abs=2e-5)
    with pytest.raises(InvalidValueError, match="no cell 'NAND9'"):
        library.cell("NAND9")


def test_compressed_files_and_units(tmp_path: Path) -> None:
    text = MINIMAL.read_text("utf-8").replace('time_unit : "1ns"', 'time_unit : "10ps"')
    path = tmp_path / "cells.lib.gz"
    path.write_bytes(gzip.compress(text.replace("(1, pf)", "(1, ff)").encode()))
    library = load_library(path)
    assert library.cell("INV_1").pins["A"].capacitance_pf == pytest.approx(1e-5)
    (arc,) = library.cell("INV_1").pins["Y"].arcs
    assert arc.tables["cell_rise"](0.0, 0.0) == pytest.approx(0.01 * 0.03, abs=1e-6)


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="there is no Liberty file"):
        load_library(tmp_path / "none.lib")
    with pytest.raises(InvalidValueError, match="no flip-flop"):
        cell_library("library (x) { cell (y) { area : 1; } }")
    with pytest.raises(InvalidValueError, match="is 'many', no number"):
        cell_library("library (x) { cell (y) { area : many; } }")


def test_tables_interpolate_and_extrapolate() -> None:
    table = Table((0.0, 1.0), (0.0, 2.0), ((0.0, 2.0), (10.0, 12.0)))
    assert table(0.5, 1.0) == pytest.approx(6.0)
    assert table(2.0, 3.0) == pytest.approx(23.0)
    assert Table((0.0,), (0.0,), ((7.0,),))(3.0, 4.0) == 7.0


def test_wire_loads_by_fanout() -> None:
    wires = WireLoad(0.1, 2.0, 5.0, ((1, 2.0), (3, 8.0)))
    assert [wires.length(n) for n in (0, 1, 2, 3, 5)] == [0.0, 2.0, 5.0, 8.0, 18.0]
    assert wires.capacitance(3) == pytest.approx(0.8)
    # Four kohm (length 8 / 2 pins... one branch of three: 8/3 long) times wire and pin.
    branch = 8 / 3
    assert wires.delay_ns(3, 0.5) == pytest.approx(2.0 * branch * (0.1 * branch + 0.5))
