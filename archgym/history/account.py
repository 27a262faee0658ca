"""What became of the rows of an earlier problem: which are used, and why others are not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class SourceAccount:
    """The rows that were recorded for one earlier problem, and what became of them.

    >>> print(SourceAccount("DRAM-v0 zipf", ("a",), 100, 60, {"illegal": 40}, ("workload zipf",)))
    DRAM-v0 zipf (a): 60 designs of 100 rows; differs: workload zipf; left out: 40 illegal

    Attributes:
        name: of the source.
        folders: the datasets that hold rows of it.
        rows: number of its rows.
        used: number of designs that the source has.
        left_out: number of rows that are not used, by the reason.
        differences: in what the earlier problem differs from the one that is searched now, besides
            objective, limits and values that were held; empty for the same problem.
        refused: why none of its rows can be used; empty if some are.
    """

    name: str
    folders: tuple[str, ...]
    rows: int
    used: int
    left_out: Mapping[str, int] = field(default_factory=dict)
    differences: tuple[str, ...] = ()
    refused: str = ""

    def __str__(self) -> str:
        """A line for people."""
        head = f"{self.name} ({', '.join(self.folders)}): "
        if self.refused:
            return f"{head}none of {self.rows:,} rows: {self.refused}"
        designs, rows = (
            f"{number:,} {what}{'' if number == 1 else 's'}"
            for number, what in ((self.used, "design"), (self.rows, "row"))
        )
        parts = [f"{designs} of {rows}"]
        if self.differences:
            parts.append(f"differs: {', '.join(self.differences)}")
        else:
            parts.append("same problem, its metrics are used as they are")
        if self.left_out:
            counts = (f"{n:,} {reason}" for reason, n in self.left_out.items())
            parts.append(f"left out: {', '.join(counts)}")
        return head + "; ".join(parts)
