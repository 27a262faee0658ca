"""The wiring of a processing element: heaps, adders, registers and stages.

One description, from which :mod:`archgym.envs.tpe.microarchitecture.structure` counts cells and
:mod:`archgym.envs.tpe.eda.verilog` writes them out.

Words of one PE are named alike everywhere: partial product `pp_<weight>_<pair>`, its negation bit
`neg_<weight>_<pair>`, accumulated words `sum_<heap>` and `carry_<heap>`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

from archgym.envs.tpe.microarchitecture.heap import Heap, Segment
from archgym.envs.tpe.microarchitecture.pe import PE, Compressor, FinalAdder

__all__ = [
    "Adder",
    "Row",
    "Stage",
    "TreeDepth",
    "adders",
    "finds_digits",
    "heaps",
    "lead",
    "product_width",
    "rows",
    "rows_of_a_pair",
    "shift_levels",
    "sparse_window_bits",
    "stages",
]


@dataclass(frozen=True)
class Adder:
    """A carry-propagate adder of two words.

    Attributes:
        form: how its carries are made; `auto` leaves it to the synthesis tool.
        width: bits.
        sign_fanout: bits above a narrower, sign-extended operand: what its sign bit drives.
    """

    form: FinalAdder
    width: int
    sign_fanout: int = 0


@dataclass(frozen=True)
class Row:
    """One partial product.

    Attributes:
        weight: index of its digit; 0 in temporal designs.
        pair: index of its operand pair.
        low: column of its lowest bit within its heap.
        length: bits, the top one inverted (the sign).
        negation: whether a negation bit goes with it, in column `low`.
        constant: what completes the inverted bits, modulo 2**width of the heap.
    """

    weight: int
    pair: int
    low: int
    length: int
    negation: bool
    constant: int


class TreeDepth(NamedTuple):
    """How deep a compressor tree is.

    Attributes:
        levels: compressors in series.
        full_adders: delay until its last bit is there, in those of a full adder.
    """

    levels: int
    full_adders: float


@dataclass(frozen=True)
class Stage:
    """The elements that a signal passes in series from one register to the next.

    Attributes:
        encoder: digit encoders (0 or 1).
        pending: digits among which the next non-zero one is found.
        window_levels: 2:1 multiplexers that pick one digit of the operand.
        select: partial product selection (0 or 1); 0 for an AND array.
        and_array: AND gates of an array multiplier (0 or 1).
        shift_levels: 2:1 multiplexers of the shifter.
        levels: compressors of the tree.
        depth: their delay in those of a full adder.
        adders: carry-propagate adders.
        select_fanout: partial product bits that one digit drives.
        operand_fanout: partial products that one bit of B drives.
    """

    encoder: int = 0
    pending: int = 0
    window_levels: int = 0
    select: int = 0
    and_array: int = 0
    shift_levels: int = 0
    levels: int = 0
    depth: float = 0.0
    adders: tuple[Adder, ...] = ()
    select_fanout: int = 0
    operand_fanout: int = 0


def product_width(pe: PE) -> int:
    """Bits of what the tree of a PE with a product adder adds up in one cycle.

    Every sum of `operand_pairs` products fits width_a + width_b + ceil(log2 operand_pairs) bits.
    """
    extra = (pe.operand_pairs - 1).bit_length()
    return min(pe.accumulator_width, pe.width_a + pe.width_b + extra)


def shift_levels(pe: PE) -> int:
    """2:1 multiplexers in series that bring a digit to its weight inside the PE."""
    return 0 if pe.shift_hoisted or not pe.temporal else (pe.digits - 1).bit_length()


def finds_digits(pe: PE) -> bool:
    """Whether the PE itself looks for the next non-zero digit of A.

    Its digit is registered before it selects a partial product, since B is fetched by its position.
    """
    return pe.has_encoder and pe.bit_weights == "temporal_sparse"


def sparse_window_bits(pe: PE) -> int:
    """Bits of A from which a PE that looks for non-zero digits makes them, one operand pair.

    One operand; with the shift outside as many operands as one has digits, of each of which
    only the bits of one digit arrive.
    """
    if not pe.shift_hoisted:
        return pe.width_a
    return pe.digits * (3 if pe.encoding == "booth" else 1)


def rows(pe: PE, heap: int = 0) -> tuple[Row, ...]:
    """The partial products of one heap, pair by pair, those of lower weight first.

    Args:
        pe: the processing element.
        heap: index of the heap; spatial designs with the shift outside have one a digit.
    """
    one = rows_of_a_pair(pe, heap)
    return tuple(replace(row, pair=pair) for pair in range(pe.operand_pairs) for row in one)


def rows_of_a_pair(pe: PE, heap: int = 0) -> tuple[Row, ...]:
    """The partial products of the first operand pair, as :func:`rows`."""
    weights = [0] if pe.temporal else ([heap] if pe.shift_hoisted else list(range(pe.digits)))
    length = pe.partial_product_width
    if shift_levels(pe):
        length += pe.radix_bits * (pe.digits - 1)
    found = []
    for weight in weights:
        low = 0 if pe.shift_hoisted or pe.temporal else weight * pe.radix_bits
        negation = pe.encoding != "radix2"
        # All bits but the sign carry weight 2**j; the sign is -s = (1 - s) - 1.
        constant = -(1 << (low + length - 1))
        if pe.encoding == "radix2" and weight == pe.digits - 1:
            # The sign bit of A has a negative weight: -x = (1 - x) - 1 for every bit below
            # B's sign, which itself turns positive (C. R. Baugh and B. A. Wooley, "A Two's
            # Complement Parallel Array Multiplication Algorithm", IEEE Trans. C-22(12), 1973).
            constant = -(((1 << (length - 1)) - 1) << low)
        found.append(Row(weight, 0, low, length, negation, constant))
    return tuple(found)


@lru_cache(maxsize=65536)
def _heap(
    rows_key: tuple[Row, ...], width: int, words: int, heap: int, tree: Compressor, settle: bool
) -> Heap:
    names = ("sum", "carry")[:words]
    built = Heap(
        width,
        tuple(Segment(f"pp_{r.weight}_{r.pair}", r.low, r.length) for r in rows_key),
        tuple(Segment(f"neg_{r.weight}_{r.pair}", r.low, 1) for r in rows_key if r.negation),
        tuple(Segment(f"{name}_{heap}", 0, width) for name in names),
        sum(r.constant for r in rows_key),
    )
    return built.settled(tree) if settle else built


def heaps(pe: PE) -> tuple[Heap, ...]:
    """The bit heaps of a PE, one for each of its accumulated numbers."""
    if pe.accumulator == "separate":
        width, words = product_width(pe), 0
    else:
        width, words = pe.accumulator_width, pe.words
    settle = pe.accumulator == "carry_save"
    return tuple(
        _heap(rows(pe, heap), width, words, heap, pe.compressor, settle)
        for heap in range(pe.accumulators)
    )


def adders(pe: PE) -> tuple[Adder, ...]:
    """The carry-propagate adders of the PE, in the order in which a product passes them."""
    if pe.accumulator == "carry_save":
        return ()
    if pe.accumulator == "merged":
        return (Adder(pe.final_adder, pe.accumulator_width),)
    width = product_width(pe)
    return (
        Adder(pe.final_adder, width),
        Adder(pe.final_adder, pe.accumulator_width, pe.accumulator_width - width),
    )


def stages(pe: PE, tree: TreeDepth) -> tuple[Stage, ...]:
    """The stages between the registers of the PE, in the order of the datapath.

    Args:
        pe: the processing element.
        tree: depth of its compressor tree.
    """
    chain = adders(pe)
    inside, dense = pe.has_encoder, pe.bit_weights == "temporal_dense"
    found: list[Stage] = []
    front: dict[str, Any] = {
        "encoder": int(inside and pe.encoding == "booth" and not finds_digits(pe)),
        "pending": pe.digits if inside and pe.bit_weights == "temporal_sparse" else 0,
        # The digits of the next operand are taken once the last one has been found.
        "window_levels": (
            1 if finds_digits(pe) else (pe.digits - 1).bit_length() if dense and inside else 0
        ),
    }
    if "encode" in pe.cuts or finds_digits(pe):
        found.append(Stage(**front))
        front = {}
    array = pe.encoding == "radix2"
    select: dict[str, Any] = {
        "select": int(not array),
        "and_array": int(array),
        "shift_levels": shift_levels(pe),
        "select_fanout": pe.partial_product_width,
        "operand_fanout": 1 if pe.temporal else pe.digits,
    }
    if "select" in pe.cuts:
        found.append(Stage(**front, **select))
        front, select = {}, {}
    if "reduce" not in pe.cuts:
        return (
            *found,
            Stage(**front, **select, levels=tree.levels, depth=tree.full_adders, adders=chain),
        )
    found.append(Stage(**front, **select, levels=tree.levels, depth=tree.full_adders))
    if "add" not in pe.cuts:
        return (*found, Stage(adders=chain))
    return (*found, Stage(adders=chain[:1]), Stage(adders=chain[1:]))


def lead(pe: PE) -> int:
    """How much later partial products reach the tree than what the registers behind it feed back.

    Hundredths of a full adder's delay: what stands in front of the tree in the same stage, with
    gates of a typical library.
    """
    front = next(stage for stage in stages(pe, TreeDepth(1, 1.0)) if stage.levels)
    return (
        90 * front.encoder
        + 100 * front.select
        + 50 * front.and_array
        + 50 * (front.shift_levels + front.window_levels)
    )
