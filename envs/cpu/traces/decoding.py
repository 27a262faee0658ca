"""The bytes of a running program's instructions, and the branches and registers that they name."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["FLAGS", "INSTRUCTION_POINTER", "STACK_POINTER", "Decoded", "MappedCode", "decode"]

STACK_POINTER: Final = 6
FLAGS: Final = 25
INSTRUCTION_POINTER: Final = 26
_OTHERS: Final = tuple(
    number for number in range(1, 250) if number not in (STACK_POINTER, FLAGS, INSTRUCTION_POINTER)
)
_WORKING: Final = _OTHERS[0]
"""The register that an indirect branch reads if its bytes are not decoded further."""


class MappedCode:
    """The executable files that a running process has mapped, on Linux."""

    def __init__(self) -> None:
        self._maps: Path | None = None
        self._found: dict[int, tuple[int, int, str]] = {}
        self._text = ""

    def watch(self, process: int) -> None:
        """Look at that process from now on."""
        self._maps = Path(f"/proc/{process}/maps")

    def look(self) -> None:
        """Note what it has mapped now."""
        try:
            text = self._maps.read_text("utf-8", "replace") if self._maps else ""
        except OSError:
            return
        if text == self._text:
            return
        self._text = text
        for line in text.splitlines():
            words = line.split(maxsplit=5)
            if len(words) == 6 and "x" in words[1] and words[5].startswith("/"):
                start, end = (int(word, 16) for word in words[0].split("-"))
                self._found[start] = (end, int(words[2], 16), words[5])

    def bytes_of(self, ip: NDArray[np.int64], length: NDArray[np.uint8]) -> list[bytes]:
        """The bytes of instructions; empty where no file is mapped there."""
        starts = sorted(self._found)
        files: dict[str, bytes] = {}
        code = []
        for address, size in zip(ip.tolist(), length.tolist(), strict=True):
            place = bisect_right(starts, address) - 1
            end, offset, name = self._found[starts[place]] if place >= 0 else (0, 0, "")
            if address + size > end:
                code.append(b"")
                continue
            if name not in files:
                try:
                    files[name] = Path(name).read_bytes()
                except OSError:
                    files[name] = b""
            begin = address - starts[place] + offset
            code.append(files[name][begin : begin + size])
        return code


@dataclass(frozen=True, eq=False)
class Decoded:
    """What the bytes say, one row an instruction.

    Attributes:
        branch: 1 for branches, shape (s,).
        destinations: shape (s, 2).
        sources: shape (s, 4).
        decoder: what decoded them.
    """

    branch: NDArray[np.uint8]
    destinations: NDArray[np.uint8]
    sources: NDArray[np.uint8]
    decoder: str


def decode(code: list[bytes], ip: NDArray[np.int64]) -> Decoded:
    """Branches and registers of x86-64 instructions.

    A branch reads and writes the registers by which ChampSim tells its kind (jump, conditional,
    call, return; direct or indirect). Without capstone other registers stay empty.
    """
    try:
        import capstone
    except ImportError:
        reader, decoder = None, "the opcodes of branches; no registers, since capstone is missing"
    else:
        reader = _Registers(capstone)
        decoder = f"capstone {capstone.__version__}"
    branch = np.zeros(len(code), np.uint8)
    destinations = np.zeros((len(code), 2), np.uint8)
    sources = np.zeros((len(code), 4), np.uint8)
    for row, (text, address) in enumerate(zip(code, ip.tolist(), strict=True)):
        if not text:
            continue
        kind = _branch_kind(text)
        reads, writes = reader.of(text, address) if reader else ([], [])
        if kind is not None:
            branch[row] = 1
            reads, writes = _branch_registers(kind, reads)
        destinations[row, : len(writes[:2])] = writes[:2]
        sources[row, : len(reads[:4])] = reads[:4]
    return Decoded(branch, destinations, sources, decoder)


_PREFIXES: Final = frozenset(b"\x26\x2e\x36\x3e\x64\x65\x66\x67\xf0\xf2\xf3")


def _branch_kind(text: bytes) -> str | None:
    """``jump``, ``conditional``, ``call``, ``return``, ``jump_to`` or ``call_to`` (indirect)."""
    at = 0
    while at < len(text) - 1 and (text[at] in _PREFIXES or text[at] & 0xF0 == 0x40):
        at += 1
    opcode, second = text[at], text[at + 1] if at + 1 < len(text) else 0
    if 0x70 <= opcode <= 0x7F or 0xE0 <= opcode <= 0xE3:
        return "conditional"
    if opcode == 0x0F and 0x80 <= second <= 0x8F:
        return "conditional"
    known = {0xE8: "call", 0xE9: "jump", 0xEB: "jump", 0xC2: "return", 0xC3: "return"}
    if opcode in known:
        return known[opcode]
    if opcode == 0xFF:
        return {2: "call_to", 3: "call_to", 4: "jump_to", 5: "jump_to"}.get(second >> 3 & 7)
    return None


def _branch_registers(kind: str, reads: list[int]) -> tuple[list[int], list[int]]:
    special = (STACK_POINTER, FLAGS, INSTRUCTION_POINTER)
    others = [number for number in reads if number not in special] or [_WORKING]
    if kind == "conditional":
        return [INSTRUCTION_POINTER, FLAGS], [INSTRUCTION_POINTER]
    if kind == "jump":
        return [INSTRUCTION_POINTER], [INSTRUCTION_POINTER]
    if kind == "jump_to":
        return others[:3], [INSTRUCTION_POINTER]
    if kind == "return":
        return [STACK_POINTER], [INSTRUCTION_POINTER, STACK_POINTER]
    both = [INSTRUCTION_POINTER, STACK_POINTER]
    return both + (others[:2] if kind == "call_to" else []), both


class _Registers:
    """Registers by capstone, each with all its parts as one number."""

    def __init__(self, capstone: Any) -> None:
        self._error = capstone.CsError
        self._engine = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
        self._engine.detail = True
        self._numbers: dict[str, int] = {
            "rsp": STACK_POINTER,
            "rflags": FLAGS,
            "rip": INSTRUCTION_POINTER,
        }

    def of(self, text: bytes, address: int) -> tuple[list[int], list[int]]:
        """The registers that an instruction reads and writes."""
        for one in self._engine.disasm(text, address, 1):
            try:
                reads, writes = one.regs_access()
            except self._error:
                return [], []
            return self._of(one, reads), self._of(one, writes)
        return [], []

    def _of(self, one: Any, registers: Any) -> list[int]:
        found: list[int] = []
        for register in registers:
            name = _whole(one.reg_name(register) or "")
            if not name:
                continue
            if name not in self._numbers:
                self._numbers[name] = _OTHERS[len(self._numbers)]
            if self._numbers[name] not in found:
                found.append(self._numbers[name])
        return found


_BYTES: Final = {
    **{f"{letter}{half}": f"r{letter}x" for letter in "abcd" for half in "lh"},
    **{f"{name}l": f"r{name}" for name in ("si", "di", "bp", "sp")},
}


def _whole(name: str) -> str:
    """The register that a part of it belongs to: ``rax`` for ``eax``."""
    if name in _BYTES:
        return _BYTES[name]
    if name[:1] in "er" and name[1:] in ("ax", "bx", "cx", "dx", "si", "di", "bp", "sp", "ip"):
        return "r" + name[1:]
    if name in ("ax", "bx", "cx", "dx", "si", "di", "bp", "sp"):
        return "r" + name
    if name in ("eflags", "rflags"):
        return "rflags"
    if name[:1] == "r" and name[1:-1].isdigit() and name[-1] in "bwd":
        return name[:-1]
    if name[:1] in "xyz" and name[1:3] == "mm":
        return "v" + name[3:]
    return "" if name in ("fs", "gs", "cs", "ds", "es", "ss", "riz", "eiz") else name
