"""Matrix multiplication as a loop nest over M, N, K and bit weight, with primitives in it.

C[m, n] = sum over k and bw of A[m, k, bw] * B[k, n], where A[m, k, bw] is one digit of A[m, k]. A
loop is temporal (one iteration after the other) or spatial (copies side by side). A *placement*
puts each primitive into some of the loops, its *scope*: the spatial ones give the number of
copies, the temporal ones how often a copy works. After "Exploring the Performance Improvement of
Tensor Processing Engines through Transformation in the Bit-weight Dimension of MACs" (HPCA 2025).

===========  ================================================  =============================
primitive    hardware                                          needs to be inside loops over
===========  ================================================  =============================
encode       digit encoder of A                                M, K, BW
sparse       finder of the next non-zero digit                 M, K, BW
map          selects a multiple of B                           M, N, K, BW
shift        gives a bit weight                                M, N, BW
half_reduce  compressor tree with sum and carry                M, N, temporal K
accumulate   register of what is summed over time              M, N, temporal K
add          carry-propagate adder: sum and carry to one word  M, N
sync         barrier of streams of unequal length              M
===========  ================================================  =============================

`shift` and `add` may be shared: once they are outside K, one copy can serve the PEs of a spatial
M or N loop in turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Literal

from archgym.errors import InvalidValueError, UnknownNameError

__all__ = ["NEEDS", "Dimension", "IllegalPlacementError", "Loop", "Placement", "Primitive"]

Dimension = Literal["M", "N", "K", "BW"]
Primitive = Literal["encode", "sparse", "map", "shift", "half_reduce", "accumulate", "add", "sync"]

NEEDS: Mapping[Primitive, frozenset[Dimension]] = {
    "encode": frozenset({"M", "K", "BW"}),
    "sparse": frozenset({"M", "K", "BW"}),
    "map": frozenset({"M", "N", "K", "BW"}),
    "shift": frozenset({"M", "N", "BW"}),
    "half_reduce": frozenset({"M", "N"}),
    "accumulate": frozenset({"M", "N"}),
    "add": frozenset({"M", "N"}),
    "sync": frozenset({"M"}),
}
"""Over which dimensions a primitive's operands differ, so that it must be inside their loops."""

_SUMS: tuple[Primitive, ...] = ("half_reduce", "accumulate")
_SHAREABLE: tuple[Primitive, ...] = ("shift", "add")
_REQUIRED: tuple[Primitive, ...] = ("map", "shift", "half_reduce", "accumulate", "add")


class IllegalPlacementError(InvalidValueError):
    """A placement that is no multiply-accumulate fabric.

    Attributes:
        rule: name of the rule that it breaks.
    """

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(f"{rule}: {message}")
        self.rule = rule


@dataclass(frozen=True)
class Loop:
    """One loop of the nest.

    Attributes:
        name: such as `kt`.
        dimension: what it runs over.
        extent: iterations, or copies if it is spatial.
        spatial: whether its iterations are copies side by side.
    """

    name: str
    dimension: Dimension
    extent: int
    spatial: bool = False


@dataclass(frozen=True)
class Placement:
    """Primitives in a loop nest.

    Attributes:
        loops: Outermost first. Only the order of the temporal ones means anything.
        order: Primitives in the order in which data pass them. Without `encode`, A arrives as
            digits (or as the bits that they are).
        scopes: Names of the loops that each primitive is inside of.

    Raises:
        IllegalPlacementError: if it breaks a rule; `broken_rules` lists them all.
        UnknownNameError: if a scope names a loop that there is not.
    """

    loops: tuple[Loop, ...]
    order: tuple[Primitive, ...]
    scopes: Mapping[Primitive, frozenset[str]] = field(hash=False)

    def __post_init__(self) -> None:
        names = [loop.name for loop in self.loops]
        if len(set(names)) < len(names):
            raise InvalidValueError(f"loops named twice: {', '.join(names)}")
        for loop in self.loops:
            if loop.extent < 1:
                raise InvalidValueError(
                    f"loop {loop.name}: extent={loop.extent} must be at least 1"
                )
        for primitive in self.order:
            if primitive not in NEEDS:
                raise UnknownNameError("primitive", primitive, NEEDS)
            if primitive not in self.scopes:
                raise InvalidValueError(f"scopes: the loops around {primitive} are missing")
            for name in self.scopes[primitive]:
                self.loop(name)
        for rule, message in self._broken().items():
            raise IllegalPlacementError(rule, message)

    def loop(self, name: str) -> Loop:
        """The loop of that name.

        Raises:
            UnknownNameError: if there is none.
        """
        for loop in self.loops:
            if loop.name == name:
                return loop
        raise UnknownNameError("loop", name, [loop.name for loop in self.loops])

    def over(self, dimension: Dimension, *, spatial: bool | None = None) -> tuple[Loop, ...]:
        """The loops over a dimension, outermost first; only spatial or temporal ones if asked."""
        return tuple(
            loop
            for loop in self.loops
            if loop.dimension == dimension and spatial in (None, loop.spatial)
        )

    def inside(self, primitive: Primitive, name: str) -> bool:
        """Whether a primitive of the placement is inside a loop.

        Raises:
            UnknownNameError: if the placement does not have the primitive.
        """
        if primitive not in self.order:
            raise UnknownNameError("primitive of the placement", primitive, self.order)
        return name in self.scopes[primitive]

    def copies(self, primitive: Primitive) -> int:
        """How many of a primitive are built: the product of the spatial loops around it."""
        return prod(loop.extent for loop in self._around(primitive) if loop.spatial)

    def runs(self, primitive: Primitive) -> int:
        """How often one copy works: the product of the temporal loops around it.

        A shared one works once more for each copy that it stands for.
        """
        runs = prod(loop.extent for loop in self._around(primitive) if not loop.spatial)
        return runs * prod(loop.extent for loop in self.shared_over(primitive))

    def shared_over(self, primitive: Primitive) -> tuple[Loop, ...]:
        """Spatial loops whose copies one `shift` or `add` serves in turn."""
        if primitive not in _SHAREABLE:
            return ()
        return tuple(
            loop
            for loop in self.loops
            if loop.spatial
            and loop.dimension in ("M", "N")
            and loop.name not in self.scopes[primitive]
        )

    def describe(self) -> str:
        """The placement as text, a line a loop and a primitive."""
        lines = [
            f"{'spatial' if loop.spatial else 'for'} {loop.name} in {loop.extent} "
            f"({loop.dimension})"
            for loop in self.loops
        ]
        for primitive in self.order:
            inside = ", ".join(loop.name for loop in self._around(primitive))
            lines.append(f"{primitive}: {self.copies(primitive)} copies, inside {inside}")
        return "\n".join(lines)

    def _around(self, primitive: Primitive) -> list[Loop]:
        return [loop for loop in self.loops if loop.name in self.scopes[primitive]]

    def _before(self, first: Primitive, second: Primitive) -> bool:
        return self.order.index(first) < self.order.index(second)

    def _broken(self) -> dict[str, str]:
        """Every rule that is broken, with the message."""
        found: dict[str, str] = {}
        for primitive in _REQUIRED:
            if primitive not in self.order:
                return {"every_primitive": f"{primitive} is missing"}
        self._check_flow(found)
        self._check_loops(found)
        self._check_reduction(found)
        self._check_sparsity(found)
        return found

    def _check_flow(self, found: dict[str, str]) -> None:
        flow: tuple[tuple[Primitive, Primitive], ...] = (
            ("encode", "map"),
            ("encode", "sparse"),
            ("sparse", "map"),
            ("map", "shift"),
            ("map", "half_reduce"),
            ("half_reduce", "accumulate"),
            ("half_reduce", "add"),
        )
        for first, second in flow:
            if {first, second} <= set(self.order) and not self._before(first, second):
                found.setdefault("data_flow", f"{second} uses what {first} makes")
        if self._before("add", "shift"):
            found["shift_before_the_final_add"] = (
                "add joins the bit weights, so that they must have been shifted before"
            )

    def _check_loops(self, found: dict[str, str]) -> None:
        temporal = [loop.name for loop in self.loops if not loop.spatial]
        in_time = {loop.name for loop in self.over("K", spatial=False)}
        for primitive in self.order:
            scope = self.scopes[primitive]
            shared = {loop.name for loop in self.shared_over(primitive)}
            if shared & scope or (shared and scope & in_time):
                found["shared_outside_k"] = (
                    f"{primitive} cannot be shared by PEs while it works in every step of k"
                )
            for loop in self.loops:
                if (
                    loop.dimension in NEEDS[primitive]
                    and loop.name not in scope
                    and loop.name not in shared
                ):
                    found.setdefault(
                        "inside_its_loops",
                        f"{primitive} depends on {loop.name} and cannot leave it",
                    )
            around = [name in scope for name in temporal]
            if around != sorted(around, reverse=True):
                outer = temporal[around.index(False)]
                found.setdefault(
                    "loops_nest",
                    f"{primitive} cannot leave {outer} and stay in a loop inside it: interchange",
                )

    def _check_reduction(self, found: dict[str, str]) -> None:
        in_time = {loop.name for loop in self.over("K", spatial=False)}
        weights = {loop.name for loop in self.over("BW")}
        after_shift = self._before("shift", "half_reduce")
        for primitive in _SUMS:
            if not in_time <= self.scopes[primitive]:
                found["sums_over_k"] = f"{primitive} sums over k and cannot leave its loops"
            if not after_shift and not weights <= self.scopes[primitive]:
                found["bit_weights_accumulate_apart"] = (
                    f"{primitive} sums before the shift: it must keep bit weights apart"
                )
        for primitive in _SHAREABLE:
            outside = in_time - self.scopes[primitive]
            if outside and self._before(primitive, "accumulate"):
                found["data_flow"] = f"{primitive} is outside k, so that it follows accumulate"
        if self.scopes["add"] & in_time and not after_shift:
            found["hoisted_shift_accumulates_apart"] = (
                "the product adder joins all bit weights: it must leave k with the shift"
            )
        for loop in self.over("K", spatial=True):
            if loop.name in self.scopes["half_reduce"]:
                found["reduction_in_space"] = f"half_reduce sums over {loop.name}, outside of it"
        for loop in self.over("BW", spatial=True):
            if loop.name in self.scopes["add"]:
                found["reduction_in_space"] = f"add follows the sum over {loop.name}"

    def _check_sparsity(self, found: dict[str, str]) -> None:
        temporal = self.over("BW", spatial=False)
        if "sparse" in self.order:
            if not temporal:
                found["sparse_digits_in_time"] = (
                    "zero digits are skipped in time: with spatial bit weights nothing is gained"
                )
            if "sync" not in self.order:
                found["sparse_needs_sync"] = "streams of unequal length must wait for each other"
        if "sync" in self.order:
            steps = {loop.name for loop in (*temporal, *self.over("K", spatial=False))}
            if steps & self.scopes["sync"]:
                found["sync_after_the_stream"] = "streams meet when k and bit weights are done"
        deep = [loop for loop in self.over("K", spatial=True) if loop.extent > 1]
        if temporal and deep and self._before("shift", "accumulate"):
            found["lanes_share_a_bit_weight"] = (
                "lanes that share a compressor must work on one bit weight: hoist the shift"
            )
