"""Sizes of a branch prediction unit, its storage, and its tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from archgym.envs.cpu.branch import layout as k
from archgym.errors import InvalidValueError
from archgym.reading.suggestions import did_you_mean

__all__ = ["BranchUnit"]

# Histories of the hashed perceptron's tables, branches (ChampSim's, after Seznec's O-GEHL).
_HASHED_HISTORIES = (0, 3, 4, 6, 8, 10, 14, 19, 26, 36, 49, 67, 91, 125, 170, 232)
_ENTRIES = {
    "bimodal": 16384,
    "gshare": 16384,
    "perceptron": 163,
    "hashed_perceptron": 4096,
    "tage": 1024,
}
_HISTORY = {"bimodal": 0, "perceptron": 24, "hashed_perceptron": 232, "tage": 200}
_WEIGHT_BITS, _COUNTER_BITS, _TAGE_BITS = 8, 2, 5
_TARGET_BITS = 64
# Address bits that a tag of the branch target buffer keeps, of 48, without the set and two more.
_ADDRESS_BITS = 48


@dataclass(frozen=True)
class BranchUnit:
    """A direction predictor with a branch target buffer, indirect targets and a return stack.

    Attributes:
        predictor: one of ``bimodal``, ``gshare``, ``perceptron``, ``hashed_perceptron``, ``tage``.
        entries: counters of a table, or rows of the perceptron; 0: the usual size of the predictor.
            A power of two, except for the perceptron. All tables together have 4,194,304 at most.
        history: outcomes of branches that the predictor looks at; 0: as usual for the predictor.
            TAGE and the hashed perceptron look at histories up to this length.
        tagged_tables: of TAGE.
        tag_bits: of TAGE.
        target_sets: sets of the branch target buffer, a power of two.
        target_ways: its ways.
        indirect_entries: entries of the table of indirect targets, a power of two.
        return_entries: calls on the return stack.

    Raises:
        InvalidValueError: for an unknown predictor or a size that cannot be built.

    Example:
        >>> BranchUnit("bimodal", entries=1024).storage_bits("direction")
        2048
    """

    predictor: str = "bimodal"
    entries: int = 0
    history: int = 0
    tagged_tables: int = 7
    tag_bits: int = 11
    target_sets: int = 1024
    target_ways: int = 8
    indirect_entries: int = 4096
    return_entries: int = 64

    def __post_init__(self) -> None:
        if self.predictor not in k.PREDICTORS:
            raise InvalidValueError(
                f"predictor: {self.predictor!r} is not known. "
                + did_you_mean(self.predictor, k.PREDICTORS)
            )
        if self.entries == 0:
            object.__setattr__(self, "entries", _ENTRIES[self.predictor])
        if self.history == 0:
            log2 = max(0, self.entries.bit_length() - 1)
            object.__setattr__(self, "history", _HISTORY.get(self.predictor, log2))
        powers = ["target_sets", "indirect_entries"]
        if self.predictor != "perceptron":
            powers.append("entries")
        for name in powers:
            value = getattr(self, name)
            if value < 2 or value & (value - 1):
                raise InvalidValueError(f"{name}: {value}, expected a power of two of 2 or more")
        longest = {"gshare": 24, "perceptron": 60}.get(self.predictor, k.RING - 1)
        for name, low, high in (
            ("entries", 1, 1 << 24),
            ("history", 0, longest),
            ("tagged_tables", 1, 16),
            ("tag_bits", 4, 16),
            ("target_ways", 1, 64),
            ("return_entries", 1, 4096),
        ):
            value = getattr(self, name)
            if not low <= value <= high:
                raise InvalidValueError(f"{name}: {value}, expected {low} to {high}")

        rows, row = self._counters()
        for name, size, most in (
            ("entries", rows * row, k.MAX_COUNTERS),
            ("target_sets", self.target_sets * self.target_ways, k.MAX_TARGETS),
            ("indirect_entries", self.indirect_entries, k.MAX_TARGETS),
        ):
            if size > most:
                raise InvalidValueError(
                    f"{name}: {getattr(self, name)} make a table of {size} in all, expected {most} "
                    "at most"
                )

    def _counters(self) -> tuple[int, int]:
        """Tables of the direction predictor, and counters of each."""
        if self.predictor == "perceptron":
            return self.entries, self.history + 1
        return len(self.histories()), self.entries

    def histories(self) -> tuple[int, ...]:
        """Branches in the history of each table, the shortest first."""
        if self.predictor == "hashed_perceptron":
            return tuple(min(n, self.history) for n in _HASHED_HISTORIES)
        if self.predictor == "tage":
            first, tables = min(4, self.history), self.tagged_tables
            ratio = (self.history / first) ** (1 / max(1, tables - 1))
            return (0, *(int(first * ratio**i + 0.5) for i in range(tables)))
        return (self.history,)

    def storage_bits(self, part: str = "all") -> int:
        """Bits of the tables.

        Args:
            part: ``direction``, ``targets``, or ``all`` for both.
        """
        direction = {
            "bimodal": _COUNTER_BITS * self.entries,
            "gshare": _COUNTER_BITS * self.entries + self.history,
            "perceptron": _WEIGHT_BITS * self.entries * (self.history + 1) + 2 * self.history,
            "hashed_perceptron": _WEIGHT_BITS * self.entries * len(_HASHED_HISTORIES)
            + self.history,
            "tage": _COUNTER_BITS * self.entries
            + self.entries * self.tagged_tables * (_TAGE_BITS + self.tag_bits)
            + self.history,
        }[self.predictor]
        tag = _ADDRESS_BITS - 2 - (self.target_sets.bit_length() - 1)
        targets = self.target_sets * self.target_ways * (tag + _TARGET_BITS + 2) + _TARGET_BITS * (
            self.indirect_entries + self.return_entries
        )
        return {"direction": direction, "targets": targets, "all": direction + targets}[part]

    def tables(self) -> k.Unit:
        """New tables, empty as after power-up: a record."""
        kind = k.PREDICTORS.index(self.predictor)
        lengths = np.array(self.histories(), np.int64)
        log2 = max(1, self.entries.bit_length() - 1)
        unit = np.zeros(1, k.UNIT).view(np.recarray)[0]
        s = unit["s"]
        s[k.C_KIND], s[k.C_ENTRIES], s[k.C_LOG2] = kind, self.entries, log2
        s[k.C_PRIME], s[k.C_HISTORY] = _prime(self.entries), self.history
        s[k.C_THETA], s[k.C_TAG_BITS] = round(1.93 * self.history + 14), self.tag_bits
        s[k.S_THETA], s[k.S_RANDOM], s[k.S_USE_ALTERNATE] = 10, 1, 8
        s[k.C_TABLES], s[k.C_ROW] = self._counters()
        s[k.C_SETS], s[k.C_WAYS] = self.target_sets, self.target_ways
        s[k.C_INDIRECT], s[k.C_RETURNS] = self.indirect_entries, self.return_entries
        unit["lengths"][: len(lengths)] = lengths
        unit["widths"] = log2, self.tag_bits, self.tag_bits - 1
        s[k.C_FOLDS] = 3 if self.predictor == "tage" else 1
        if self.predictor == "tage":
            unit["tags"][: s[k.C_TABLES] * s[k.C_ROW]] = -1
        unit["target_tags"][: self.target_sets * self.target_ways] = -1
        unit["call_sizes"] = 4
        return unit


def _prime(limit: int) -> int:
    """The largest prime number that is not above a limit of 2 or more."""
    for number in range(max(2, limit), 2, -1):
        if all(number % divisor for divisor in range(2, int(number**0.5) + 1)):
            return number
    return 2
