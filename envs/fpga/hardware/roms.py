"""Small memories of constants, made of LUTs."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["rom_parts", "rom_text"]

_LUT_INPUTS = 4


def rom_text(name: str, address: str, width: int, words: Sequence[int]) -> list[str]:
    """Verilog of a memory of constants without a clock."""
    bits = max(1, (len(words) - 1).bit_length())
    lines = [f"(* keep *) reg [{width - 1}:0] {name};", "always @*", f"  case ({address})"]
    lines += [f"    {bits}'d{i}: {name} = {width}'h{w:x};" for i, w in enumerate(words[:-1])]
    return [*lines, f"    default: {name} = {width}'h{words[-1]:x};", "  endcase"]


def rom_parts(words: Sequence[int], width: int) -> tuple[int, int, int]:
    """What a memory of constants takes: LUTs, selections between two of them, and levels of those.

    Each bit is a function of the address. Up to four address bits it is one LUT; each further bit
    selects between two such functions. Equal functions exist once; constants and address bits need
    none.

    Args:
        words: what it holds, by address.
        width: bits of a word.
    """
    address = max(1, (len(words) - 1).bit_length())
    fill = [words[-1]] * (2**address - len(words))
    columns = {tuple((word >> bit) & 1 for word in (*words, *fill)) for bit in range(width)}
    seen: set[tuple[int, ...]] = set()
    for column in columns:
        _count(column, seen)
    luts = sum(len(column) <= 2**_LUT_INPUTS for column in seen)
    return luts, len(seen) - luts, max(0, address - _LUT_INPUTS)


def _count(column: tuple[int, ...], seen: set[tuple[int, ...]]) -> None:
    """Adds the functions that one column needs to those seen."""
    if column in seen or _is_trivial(column):
        return
    if len(column) > 2**_LUT_INPUTS:
        half = len(column) // 2
        low, high = column[:half], column[half:]
        _count(low, seen)
        if low == high:
            return
        _count(high, seen)
    seen.add(column)


def _is_trivial(column: tuple[int, ...]) -> bool:
    """Whether it is constant or an address bit."""
    if len(set(column)) == 1:
        return True
    size = len(column)
    return any(
        all(value == (i >> bit) & 1 for i, value in enumerate(column))
        for bit in range(size.bit_length() - 1)
    )
