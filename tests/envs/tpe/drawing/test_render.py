"""Pictures: what is in the design is in the picture, in both formats, for every legal design."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

from archgym.envs.tpe.drawing import render
from archgym.envs.tpe.microarchitecture.edge import OperandEncoder, edge_blocks
from archgym.envs.tpe.microarchitecture.pe import Array
from archgym.envs.tpe.microarchitecture.structure import counts
from archgym.envs.tpe.space.design_space import array_of, design_space
from archgym.envs.tpe.space.named import named_array, named_designs
from archgym.errors import InvalidValueError, UnknownNameError


def words(array: Array) -> str:
    """All text of the picture."""
    return "\n".join(text.get_text() for axes in render.draw(array).axes for text in axes.texts)


def test_svg_keeps_text_as_text() -> None:
    array = named_array("OPT4E")
    tree = ElementTree.fromstring(render.svg(array))
    texts = "\n".join("".join(e.itertext()) for e in tree.iter() if e.tag.endswith("}text"))
    for line in words(array).splitlines():
        assert line in texts


@pytest.mark.parametrize("name", named_designs())
def test_the_picture_says_what_is_built(name: str) -> None:
    array = named_array(name)
    pe, text = array.pe, words(array)
    assert f"{array.rows} x {array.columns} PEs" in text
    assert f"accumulator {pe.accumulator_width} bits" in text
    cells = counts(pe)
    fulls = cells["full_adder"] + cells["full_adder_one"]
    assert f"{fulls} full" in text
    assert ("carry  " in text) == (pe.accumulator == "carry_save")
    assert ("accumulate adder" in text) == (pe.carry_chains > 0)
    assert ("product adder" in text) == (pe.carry_chains == 2)
    assert ("final adder" in text) == (pe.accumulator == "carry_save")
    assert ("encoder:" in text or "next non-zero" in text) == pe.has_encoder
    at_edge = any(isinstance(block, OperandEncoder) for block, _ in edge_blocks(array))
    assert ("of a row" in text) == at_edge


def test_pipeline_registers_are_drawn() -> None:
    space = design_space()
    deep = next(
        a
        for a in map(array_of, space.sample(300, np.random.default_rng(1)))
        if len(a.pe.cuts) == 2 and a.pe.accumulator == "separate"
    )
    assert words(deep).count("pipeline registers") == 2


def test_every_legal_design_can_be_drawn() -> None:
    for design in design_space().sample(6, np.random.default_rng(4)):
        render.draw(array_of(design))


def test_nothing_leaves_the_sheet() -> None:
    """The margin of the picture stays white."""
    for name in ("systolic_os", "OPT4E"):
        picture = render.pixels(named_array(name))
        assert picture.dtype == np.uint8
        assert picture.shape[2] == 3
        edge = [picture[:3], picture[-3:], picture[:, :3], picture[:, -3:]]
        assert all((side == 255).all() for side in edge)
        assert (picture < 128).any()


def test_equal_arrays_give_equal_files(tmp_path: Path) -> None:
    array = named_array("cube/OPT1")
    for kind in render.FORMATS:
        files = [tmp_path / f"{i}.{kind}" for i in range(2)]
        for file in files:
            render.write(array, file)
        assert files[0].read_bytes() == files[1].read_bytes()
    assert (tmp_path / "0.png").read_bytes().startswith(b"\x89PNG")


def test_an_unknown_format(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="svg"):
        render.write(named_array("cube"), tmp_path / "pe.sgv")


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="there is no folder"):
        render.write(named_array("cube"), tmp_path / "lost" / "pe.png")
