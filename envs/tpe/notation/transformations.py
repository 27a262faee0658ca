"""Transformations of a placement: each gives another placement of the same matrix product.

From `textbook_mac`, the multiply-accumulate unit of every introduction, they lead to the
optimisations of "Exploring the Performance Improvement of Tensor Processing Engines through
Transformation in the Bit-weight Dimension of MACs" (HPCA 2025):

| | steps |
|---|---|
| OPT1 | add behind accumulate, out of k, shared by the PEs |
| OPT2 | k split, its inner part spatial; bit weights outside k; shift out of k |
| OPT3 | bit weights temporal and outside k; shift out of k; zero digits skipped |
| OPT4C | encode and sparse out of the columns |
| OPT4E | k split, its inner part spatial: lanes |
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from archgym.envs.tpe.notation.loop_nest import (
    IllegalPlacementError,
    Loop,
    Placement,
    Primitive,
)
from archgym.errors import InvalidValueError, UnknownNameError

__all__ = [
    "defer",
    "hoist",
    "in_space",
    "in_time",
    "insert",
    "interchange",
    "optimised",
    "remove",
    "split",
    "textbook_mac",
]


def textbook_mac(
    rows: int, columns: int, length: int, digits: int, *, encode: bool = True
) -> Placement:
    """An array of multiply-accumulate units: all digits at once, two carry chains a cycle.

    Args:
        rows: PEs along M.
        columns: PEs along N.
        length: K, all of it in time.
        digits: of one operand A, all of them in space.
        encode: whether A has to be encoded, in every PE.

    Example:
        >>> mac = textbook_mac(16, 16, 256, 4)
        >>> mac.copies("encode"), mac.copies("add"), mac.runs("add")
        (1024, 256, 256)
    """
    loops = (
        Loop("mp", "M", rows, spatial=True),
        Loop("np", "N", columns, spatial=True),
        Loop("kt", "K", length),
        Loop("bw", "BW", digits, spatial=True),
    )
    digit, pe = frozenset({"mp", "np", "kt", "bw"}), frozenset({"mp", "np", "kt"})
    scopes: dict[Primitive, frozenset[str]] = {
        "encode": digit,
        "map": digit,
        "shift": digit,
        "half_reduce": pe,
        "add": pe,
        "accumulate": pe,
    }
    if not encode:
        del scopes["encode"]
    return Placement(loops, tuple(scopes), scopes)


def split(placement: Placement, name: str, inner: int, names: tuple[str, str]) -> Placement:
    """A loop in two, the inner one of an extent that divides it; primitives stay in both.

    Raises:
        InvalidValueError: if the extent does not divide the loop's.
    """
    loop = placement.loop(name)
    if inner < 1 or loop.extent % inner:
        raise InvalidValueError(f"loop {name} of {loop.extent} cannot be split by {inner}")
    parts = (
        replace(loop, name=names[0], extent=loop.extent // inner),
        replace(loop, name=names[1], extent=inner),
    )
    position = placement.loops.index(loop)
    loops = (*placement.loops[:position], *parts, *placement.loops[position + 1 :])
    scopes = {
        primitive: (scope - {name}) | set(names) if name in scope else scope
        for primitive, scope in placement.scopes.items()
    }
    return Placement(loops, placement.order, scopes)


def interchange(placement: Placement, outer: str, inner: str) -> Placement:
    """Two loops that follow each other, swapped; sums over both are free to.

    Raises:
        InvalidValueError: if `inner` does not follow `outer`.
        IllegalPlacementError: if a primitive is between them (in the outer one alone).
    """
    loops = list(placement.loops)
    position = loops.index(placement.loop(outer))
    if position + 1 == len(loops) or loops[position + 1].name != inner:
        raise InvalidValueError(f"loop {inner!r} does not follow {outer!r}")
    loops[position], loops[position + 1] = loops[position + 1], loops[position]
    return Placement(tuple(loops), placement.order, placement.scopes)


def in_space(placement: Placement, name: str) -> Placement:
    """A temporal loop made spatial; the compressor sums over it if K or bit weights do.

    Raises:
        IllegalPlacementError: if the result is none, as when zero digits are skipped in it.
    """
    loop = placement.loop(name)
    scopes = dict(placement.scopes)
    if loop.dimension in ("K", "BW"):
        # What sums over a spatial loop stands outside of it.
        summing: tuple[Primitive, ...] = ("half_reduce", "accumulate", "add")
        apart = loop.dimension == "BW" and _follows(placement, "shift", "half_reduce")
        for each in summing:
            if not apart or each == "add":
                scopes[each] = scopes[each] - {name}
        if loop.dimension == "K" and _follows(placement, "shift", "half_reduce"):
            scopes["shift"] = scopes["shift"] - {name}
    return _with_loop(placement, replace(loop, spatial=True), scopes)


def in_time(placement: Placement, name: str) -> Placement:
    """A spatial loop made temporal: one copy takes one iteration after the other.

    Raises:
        IllegalPlacementError: if the result is none.
    """
    loop = placement.loop(name)
    scopes = dict(placement.scopes)
    if loop.dimension in ("K", "BW"):
        # What summed over the copies now works once an iteration.
        sums: tuple[Primitive, ...] = ("half_reduce", "accumulate", "add")
        for primitive in sums:
            outside = {k.name for k in placement.over("K", spatial=False)} - scopes[primitive]
            if not outside:
                scopes[primitive] = scopes[primitive] | {name}
    return _with_loop(placement, replace(loop, spatial=False), scopes)


def hoist(placement: Placement, primitive: Primitive, *names: str) -> Placement:
    """A primitive taken out of loops.

    Out of a loop over k, shift and add come to stand behind accumulate: the sum over k of shifted
    terms is the shifted sum. Out of a spatial loop over M or N, they are shared by its copies.

    Raises:
        IllegalPlacementError: if the primitive depends on one of the loops.
        InvalidValueError: if it is not inside one.
    """
    for name in names:
        if not placement.inside(primitive, placement.loop(name).name):
            raise InvalidValueError(f"{primitive} is not inside {name}")
    scopes = {**placement.scopes, primitive: placement.scopes[primitive] - set(names)}
    order = placement.order
    steps = {loop.name for loop in placement.over("K", spatial=False)}
    if primitive in ("shift", "add") and steps & set(names):
        rest = [p for p in order if p != primitive]
        at = rest.index("accumulate") + 1
        if primitive == "shift":
            weights = {loop.name for loop in placement.over("BW")}
            sums: tuple[Primitive, ...] = ("half_reduce", "accumulate")
            for summing in sums:
                scopes[summing] = scopes[summing] | weights
            at = min(at, rest.index("add") + (rest.index("add") < at))
            if _follows(placement, "accumulate", "add"):
                raise IllegalPlacementError(
                    "hoisted_shift_accumulates_apart",
                    "the product adder joins all bit weights: it must leave k before the shift",
                )
        order = (*rest[:at], primitive, *rest[at:])
    return Placement(placement.loops, order, scopes)


def defer(placement: Placement, primitive: Primitive, after: Primitive) -> Placement:
    """A primitive moved right behind a later one in the flow of data.

    `defer(mac, "add", "accumulate")` makes the accumulator one more row of the compressor tree.

    Raises:
        IllegalPlacementError: if it makes what that one uses.
    """
    rest = [p for p in placement.order if p != primitive]
    for known, name in ((placement.order, primitive), (rest, after)):
        if name not in known:
            raise UnknownNameError("primitive of the placement", name, known)
    at = rest.index(after) + 1
    return Placement(placement.loops, (*rest[:at], primitive, *rest[at:]), placement.scopes)


def insert(
    placement: Placement,
    primitive: Primitive,
    scope: Iterable[str],
    *,
    before: Primitive | None = None,
    with_sync: Iterable[str] | None = None,
) -> Placement:
    """A primitive added.

    Args:
        placement: to what.
        primitive: which; `sparse` or `sync`.
        scope: loops that it is inside of.
        before: what uses its result; the end if nothing does.
        with_sync: scope of a `sync` added with it, at the end, without which it is illegal.

    Raises:
        IllegalPlacementError: if it cannot be there.
    """
    at = len(placement.order) if before is None else placement.order.index(before)
    order = (*placement.order[:at], primitive, *placement.order[at:])
    scopes = {**placement.scopes, primitive: frozenset(scope)}
    if with_sync is not None:
        order = (*order, "sync")
        scopes["sync"] = frozenset(with_sync)
    return Placement(placement.loops, order, scopes)


def remove(placement: Placement, primitive: Primitive) -> Placement:
    """A primitive taken away: `encode` of an operand that is stored encoded.

    Raises:
        IllegalPlacementError: if it is needed.
    """
    order = tuple(p for p in placement.order if p != primitive)
    scopes = {p: scope for p, scope in placement.scopes.items() if p != primitive}
    return Placement(placement.loops, order, scopes)


def optimised(mac: Placement, name: str, depth: int = 4) -> Placement:
    """The published optimisation of a textbook MAC, by the steps of the module's table.

    Args:
        mac: from `textbook_mac`.
        name: `OPT1`, `OPT2`, `OPT3`, `OPT4C` or `OPT4E`.
        depth: operand pairs (OPT2) or lanes (OPT4E) of a PE.

    Raises:
        InvalidValueError: for another name.
    """
    opt1 = hoist(defer(mac, "add", "accumulate"), "add", "kt")
    opt1 = hoist(opt1, "add", "mp", "np")
    if name == "OPT1":
        return opt1
    outside = interchange(opt1, "kt", "bw")
    if name == "OPT2":
        deep = in_space(split(outside, "kt", depth, ("kt", "kp")), "kp")
        return hoist(deep, "shift", "kt", "kp", "mp", "np")
    serial = hoist(in_time(outside, "bw"), "shift", "kt", "mp", "np")
    everywhere = {"mp", "np", "bw", "kt"}
    opt3 = insert(serial, "sparse", everywhere, before="map", with_sync={"mp"})
    if name == "OPT3":
        return opt3
    opt4c = hoist(hoist(opt3, "encode", "np"), "sparse", "np")
    if name == "OPT4C":
        return opt4c
    if name == "OPT4E":
        return in_space(split(opt4c, "kt", depth, ("kt", "kp")), "kp")
    raise InvalidValueError(f"no optimisation {name!r}: OPT1, OPT2, OPT3, OPT4C or OPT4E")


def _follows(placement: Placement, late: Primitive, early: Primitive) -> bool:
    return placement.order.index(late) > placement.order.index(early)


def _with_loop(
    placement: Placement, loop: Loop, scopes: dict[Primitive, frozenset[str]]
) -> Placement:
    loops = tuple(loop if old.name == loop.name else old for old in placement.loops)
    return Placement(loops, placement.order, scopes)
