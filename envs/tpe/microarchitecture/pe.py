"""The micro-architecture that a design stands for: one processing element and the array of it.

Both classes are frozen and hashable: structure, area, period, energy and Verilog are pure functions
of them and are memoised by them. They hold what is built, not how it is searched
(`archgym.envs.tpe.space.design_space` does that), and they check nothing but the words: the
legality rules live in `archgym.envs.tpe.space.design_space`.

A *processing element* (PE) owns one accumulator (one per bit weight once the shift has left it)
and consumes `operand_pairs` pairs of operands at a time. Operand A is the encoded one: it is a
sum of signed digits, A = sum over bw of digit[bw] * radix**bw; operand B is the one that the
digits select multiples of.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

__all__ = [
    "ACCUMULATORS",
    "ARRAY_KINDS",
    "BIT_WEIGHTS",
    "COMPRESSORS",
    "ENCODER_PLACES",
    "ENCODINGS",
    "FINAL_ADDERS",
    "PE",
    "PLACES",
    "Accumulator",
    "Array",
    "ArrayKind",
    "BitWeights",
    "Compressor",
    "Cut",
    "EncoderPlace",
    "Encoding",
    "FinalAdder",
    "Place",
]

Encoding = Literal["booth", "ent", "csd", "radix2", "serial_twos", "serial_sign_magnitude"]
EncoderPlace = Literal["pe", "edge", "memory"]
BitWeights = Literal["spatial", "temporal_dense", "temporal_sparse"]
Place = Literal["pe", "edge", "simd"]
Accumulator = Literal["separate", "merged", "carry_save"]
FinalAdder = Literal["auto", "ripple", "brent_kung", "kogge_stone", "sklansky"]
Compressor = Literal["wallace", "dadda", "4to2", "linear"]
ArrayKind = Literal["systolic_os", "systolic_ws", "cube", "tree", "matrix", "bit_serial_column"]
Cut = Literal["encode", "select", "reduce", "add"]

ENCODINGS: tuple[Encoding, ...] = (
    "booth",
    "ent",
    "csd",
    "radix2",
    "serial_twos",
    "serial_sign_magnitude",
)
ENCODER_PLACES: tuple[EncoderPlace, ...] = ("pe", "edge", "memory")
BIT_WEIGHTS: tuple[BitWeights, ...] = ("spatial", "temporal_dense", "temporal_sparse")
PLACES: tuple[Place, ...] = ("pe", "edge", "simd")
ACCUMULATORS: tuple[Accumulator, ...] = ("separate", "merged", "carry_save")
FINAL_ADDERS: tuple[FinalAdder, ...] = (
    "auto",
    "ripple",
    "brent_kung",
    "kogge_stone",
    "sklansky",
)
COMPRESSORS: tuple[Compressor, ...] = ("wallace", "dadda", "4to2", "linear")
ARRAY_KINDS: tuple[ArrayKind, ...] = (
    "systolic_os",
    "systolic_ws",
    "cube",
    "tree",
    "matrix",
    "bit_serial_column",
)

#: Encodings whose digits have radix 4 (values -2 to 2, one digit for two bits of A); the others
#: have radix 2. A CSD number has no two adjacent non-zero digits, so that two of its binary
#: digits make one radix-4 digit and as many digits are non-zero.
_RADIX_4 = ("booth", "ent", "csd")


@dataclass(frozen=True)
class PE:
    """One processing element.

    Attributes:
        width_a: Bits of operand A (two's complement), the encoded one.
        width_b: Bits of operand B (two's complement).
        accumulator_width: Bits of one accumulated word: of the whole sum where the shift is in
            the PE, of the sum of one bit weight where the shift is outside.
        encoding: How A becomes digits: `booth` (modified Booth, radix 4), `ent` (EN-T, radix 4),
            `csd` (canonical signed digits, in radix-4 pairs), `radix2` (Baugh-Wooley array, no
            encoder), `serial_twos` and `serial_sign_magnitude` (one bit at a time).
        encoder_place: In the PE, at the array's edge (digits arrive), or in the memory path
            (the operand is stored encoded; digits arrive, no encoder at all). A `radix2` PE has
            no encoder and says `pe`.
        bit_weights: `spatial`: all digits in one cycle; `temporal_dense`: one digit a cycle;
            `temporal_sparse`: one non-zero digit a cycle.
        shift_place: Where digits get their weight: in the PE before the reduction, or after the
            reduction over K at the edge or in the SIMD unit (then every bit weight accumulates
            by itself: at once in spatial designs, one after the other in temporal ones).
        accumulator: `separate`: product adder, then accumulate adder (two carry chains);
            `merged`: the accumulator is one more row of the compressor tree, one carry chain;
            `carry_save`: sum and carry are kept, no carry chain.
        final_adder_place: Where sum and carry become one word; `pe` for the accumulators that
            have a carry chain, `edge` or `simd` for `carry_save`.
        final_adder: Form of the carry-propagate adders, wherever they are; `auto` leaves it to
            the synthesis tool.
        compressor: Form of the compressor tree.
        pipeline_depth: Stages in the PE, 1 to 3; `cuts` says where.
        lanes: Temporal designs: operand pairs whose digits of one bit weight share the
            compressor (OPT4E); 1, 2, 4 or 8. 1 in spatial designs.
        reduction: Spatial designs: operand pairs reduced in the PE in one cycle (KP). 1 in
            temporal designs.

    Example:
        >>> mac = PE(8, 8, 32)
        >>> mac.digits, mac.carry_chains, mac.accumulated_bits
        (4, 2, 32)
        >>> PE(8, 8, 32, accumulator="carry_save", final_adder_place="simd").accumulated_bits
        64
    """

    width_a: int
    width_b: int
    accumulator_width: int
    encoding: Encoding = "booth"
    encoder_place: EncoderPlace = "pe"
    bit_weights: BitWeights = "spatial"
    shift_place: Place = "pe"
    accumulator: Accumulator = "separate"
    final_adder_place: Place = "pe"
    final_adder: FinalAdder = "auto"
    compressor: Compressor = "dadda"
    pipeline_depth: int = 1
    lanes: int = 1
    reduction: int = 1

    @property
    def radix_bits(self) -> int:
        """Bits of A that one digit stands for: 2 for the radix-4 encodings, 1 for the others."""
        return 2 if self.encoding in _RADIX_4 else 1

    @property
    def digits(self) -> int:
        """Digits of one operand A: ceil(width_a / 2) in radix 4, width_a in radix 2."""
        return -(-self.width_a // self.radix_bits)

    @property
    def temporal(self) -> bool:
        """Whether one digit of an operand is worked on in a cycle, rather than all."""
        return self.bit_weights != "spatial"

    @property
    def digit_bits(self) -> int:
        """Bits that carry one digit: 3 in radix 4 (negate, two, one), else 2 or 1.

        A temporal two's complement bit needs one line more, which tells the sign bit apart; an
        array of AND gates (`radix2`) takes the bits of A as they are.
        """
        if self.radix_bits == 2:
            return 3
        return 1 if self.encoding == "radix2" else 2

    @property
    def operand_pairs(self) -> int:
        """Pairs of operands that the PE works on side by side: `reduction * lanes` (KP)."""
        return self.reduction * self.lanes

    @property
    def partial_products(self) -> int:
        """Partial products that reach the compressor in one cycle, all operand pairs together."""
        return self.operand_pairs * (1 if self.temporal else self.digits)

    @property
    def partial_product_width(self) -> int:
        """Bits of a partial product: width_b + 1 in radix 4 (plus a negation bit), else width_b.

        -2B of the most negative B needs one more, width_b + 2, once it is one signed word.
        """
        return self.width_b + (self.radix_bits - 1)

    @property
    def shift_hoisted(self) -> bool:
        """Whether the shift has left the PE, so that bit weights accumulate apart."""
        return self.shift_place != "pe"

    @property
    def accumulators(self) -> int:
        """Accumulated numbers side by side: one per digit if spatial and hoisted, else 1."""
        return self.digits if self.shift_hoisted and not self.temporal else 1

    @property
    def words(self) -> int:
        """Words that hold one accumulated number: 2 (sum and carry) if carry-save, else 1."""
        return 2 if self.accumulator == "carry_save" else 1

    @property
    def accumulated_bits(self) -> int:
        """Bits of all accumulated words of the PE."""
        return self.accumulators * self.words * self.accumulator_width

    @property
    def carry_chains(self) -> int:
        """Carry-propagate adders in series in the PE's cycle: 2, 1 or 0."""
        return {"separate": 2, "merged": 1, "carry_save": 0}[self.accumulator]

    @property
    def has_encoder(self) -> bool:
        """Whether the PE itself turns A into digits (or finds the next digit of A)."""
        return self.encoder_place == "pe" and self.encoding != "radix2"

    @property
    def cuts(self) -> tuple[Cut, ...]:
        """After which primitives a pipeline register stands, in the order of the datapath.

        `encode`: digits; `select`: partial products; `reduce`: sum and carry of the product;
        `add`: the product. With two carry chains the product tree and the product adder are cut
        off first; where the accumulator is a row of the tree, a cut after it would lie inside
        the accumulation loop, so that the cuts move in front of the tree.
        """
        cuts: tuple[Cut, ...]
        cuts = ("reduce", "add") if self.accumulator == "separate" else ("select", "encode")
        chosen = cuts[: self.pipeline_depth - 1]
        order: tuple[Cut, ...] = ("encode", "select", "reduce", "add")
        return tuple(cut for cut in order if cut in chosen)

    def hardware(self) -> PE:
        """The PE with every field that leaves its own gates alone set to one fixed value.

        Two PEs with equal `hardware()` are the same netlist: an operand encoded in memory or at
        the edge arrives as the same digits; zero digits that are never sent cost no gate
        unless the PE itself looks for them; an adder outside the PE is not in it.
        """
        outside = self.accumulator == "carry_save"
        return replace(
            self,
            encoder_place="pe" if self.encoder_place == "pe" else "edge",
            bit_weights=(
                "temporal_dense" if self.temporal and not self.has_encoder else self.bit_weights
            ),
            shift_place="simd" if self.shift_hoisted else "pe",
            final_adder_place="simd" if outside else "pe",
            final_adder="auto" if outside else self.final_adder,
        )


@dataclass(frozen=True)
class Array:
    """An array of equal processing elements with what stands at its edge.

    Attributes:
        kind: `systolic_os` and `systolic_ws` (operands, or operand A and partial sums, move from
            PE to PE), `cube` (rows x columns dot products of depth KP), `tree` (one row of
            multiplier-adder trees, B stationary), `matrix` (operands broadcast along rows and
            columns, each PE reduces its KP pairs), `bit_serial_column` (columns of temporal PEs
            that share one stream of digits).
        rows: MP, PEs that differ in the row of A (for `systolic_ws`: K steps that a partial sum
            collects on its way down the column).
        columns: NP, PEs that differ in the column of B.
        pe: The processing element.
        accumulation_length: Products that one accumulator collects before it is drained
            (K of one tile); `rows * pe.operand_pairs` for `systolic_ws`.
        columns_per_encoder: PEs along a row that share one encoder outside the PE (fan-out).
        clock_mhz: Clock to run at, MHz; 0 runs at the fastest clock of the technology.
    """

    kind: ArrayKind
    rows: int
    columns: int
    pe: PE
    accumulation_length: int = 256
    columns_per_encoder: int = 8
    clock_mhz: float = 0.0

    @property
    def depth(self) -> int:
        """KP: operand pairs that one PE reduces in space."""
        return self.pe.operand_pairs

    @property
    def pes(self) -> int:
        """Processing elements in the array."""
        return self.rows * self.columns

    @property
    def multipliers(self) -> int:
        """Operand pairs that the whole array works on side by side: rows * columns * KP."""
        return self.pes * self.depth
