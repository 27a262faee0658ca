"""Glitches: changes that a signal makes and takes back before a clock cycle ends.

Gates have delays, so that a cell whose inputs arrive at different times changes more than once. A
factor says how many changes a signal makes for each one that it would make if all gates were
instantaneous. Registers end glitches, so what counts is what stands between two of them:

- partial products: the lines that select them drive many gates, and arrive apart; behind a Booth
  encoder in the same stage more so;
- compressor tree: each full adder in series adds changes, as its inputs come from different levels;
- adders: the changes of their inputs go on into sum and carries, and the carries add some for each
  level of their network, the logarithm of the width;
- two adders in series, as in a textbook MAC: the second one takes the changes of the first.

This is why PEs without carry chains (OPT1 to OPT4 of Wu and others, HPCA 2025) save energy.

The six constants were fitted to gate-level simulations with the delays of the library's gates
(:func:`archgym.envs.tpe.eda.netlist_energy.netlist_energy`, ``settling="gate_delays"``) of the
netlists of 40 PEs in two libraries, Nangate45 and IHP sg13g2, with uniform and with N(0, 25)
operands. They have no unit and are the same for both libraries.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from archgym.envs.tpe.microarchitecture import datapath
from archgym.envs.tpe.microarchitecture.pe import PE
from archgym.envs.tpe.microarchitecture.structure import counts

__all__ = [
    "GlitchFactors",
    "chain_factor",
    "encodes_and_selects",
    "glitch_factors",
    "glitches",
    "tree_factors",
]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

SELECTION = 0.34
"""Of a partial product bit, by the lines that select it."""
ENCODER = 0.52
"""Of the same, by a Booth encoder in the same stage."""
TREE = 0.21
"""Of the outputs of a compressor tree, for each full adder in series."""
PASSED = 0.95
"""Share of the glitches at an adder's inputs that reach its cells."""
PREFIX = 0.063
"""Of an adder whose carries take a prefix network, for each doubling of its width."""
RIPPLE = 0.30
"""Of a carry chain without one, likewise."""


class GlitchFactors(NamedTuple):
    """Changes for each change without delays, shape (n,) each; 1 where there are no glitches.

    Attributes:
        selection: of a partial product bit.
        tree: of a cell of the compressor tree, in the mean.
        product_adder: of the adder that completes a product by itself, if there is one.
        last_adder: of the adder that adds to the accumulator, if there is one.
    """

    selection: FloatArray
    tree: FloatArray
    product_adder: FloatArray
    last_adder: FloatArray


def glitches(pe: PE) -> GlitchFactors:
    """The factors of one PE, shape (1,) each."""
    hardware, cells = pe.hardware(), counts(pe)
    return glitch_factors(
        encoder=np.array([encodes_and_selects(hardware)]),
        cut_select=np.array(["select" in pe.cuts]),
        cut_reduce=np.array(["reduce" in pe.cuts]),
        cut_add=np.array(["add" in pe.cuts]),
        depth=np.array([max(stage.depth for stage in cells.stages)]),
        separate=np.array([pe.accumulator == "separate"]),
        carry_save=np.array([pe.accumulator == "carry_save"]),
        ripple=np.array([hardware.final_adder == "ripple"]),
        product_width=np.array([datapath.product_width(pe)]),
        accumulator_width=np.array([pe.accumulator_width]),
    )


def encodes_and_selects(pe: PE) -> bool:
    """Whether one stage of a PE holds both a Booth encoder and what its digits select."""
    depth = datapath.TreeDepth(1, 1.0)
    return any(stage.encoder and stage.select for stage in datapath.stages(pe, depth))


def glitch_factors(
    *,
    encoder: BoolArray,
    cut_select: BoolArray,
    cut_reduce: BoolArray,
    cut_add: BoolArray,
    depth: FloatArray,
    separate: BoolArray,
    carry_save: BoolArray,
    ripple: BoolArray,
    product_width: NDArray[np.int64],
    accumulator_width: NDArray[np.int64],
) -> GlitchFactors:
    """The factors of many PEs, every array of shape (n,).

    Args:
        encoder: whether digits are encoded in the stage in which they select.
        cut_select: whether registers stand behind the partial products.
        cut_reduce: likewise behind the compressor tree of the product.
        cut_add: likewise behind the adder of the product.
        depth: of the compressor tree, full-adder delays.
        separate: whether the product is added up by itself first.
        carry_save: whether sum and carry are accumulated, without an adder.
        ripple: whether carries ripple.
        product_width: bits of the product.
        accumulator_width: bits of an accumulated word.
    """
    selection = np.where(encoder, 1.0 + SELECTION + ENCODER, 1.0 + SELECTION)
    into = np.where(cut_select, 1.0, selection)
    tree, out = tree_factors(into, depth)
    reduced = np.where(cut_reduce, 1.0, out)
    product_adder = chain_factor(reduced, product_width, ripple)
    behind = np.where(separate, np.where(cut_add, 1.0, product_adder), reduced)
    last_adder = chain_factor(behind, accumulator_width, ripple)
    return GlitchFactors(
        selection,
        tree,
        np.where(separate, product_adder, 1.0),
        np.where(carry_save, 1.0, last_adder),
    )


def tree_factors(into: FloatArray, depth: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The factors of the cells of a compressor tree: in the mean over its levels, of the last.

    Args:
        into: factor of its inputs.
        depth: of the tree, full-adder delays.
    """
    return into + TREE * depth / 2.0, into + TREE * depth


def chain_factor(into: FloatArray, width: NDArray[np.int64], ripple: BoolArray) -> FloatArray:
    """The factor of a carry-propagate adder.

    Args:
        into: factor of its inputs.
        width: bits.
        ripple: whether its carries ripple.
    """
    found: FloatArray = (
        1.0 + PASSED * (into - 1.0) + np.where(ripple, RIPPLE, PREFIX) * np.log2(width)
    )
    return found
