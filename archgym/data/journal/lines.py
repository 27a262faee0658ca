"""The lines of a journal: what they hold, and their checksums."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from archgym.errors import DatasetError

ROW_FIELDS = (
    "n",
    "step",
    "parent_step",
    "codes",
    "metrics",
    "reward",
    "status",
    "reason",
    "feasible",
    "cached",
    "fidelity",
    "simulation_ns",
    "agent_ns",
    "timestamp_us",
)
FLIGHT_FIELDS = ("proposal", "proposed", "worker", "started_us", "partial")
"""Further fields of a row whose design was simulated by an executor; the last one is left out
where nothing looked at the run while it went on."""
ROW_LENGTHS = (
    len(ROW_FIELDS),
    len(ROW_FIELDS) + len(FLIGHT_FIELDS) - 1,
    len(ROW_FIELDS) + len(FLIGHT_FIELDS),
)
"""Numbers of values that a row without its checksum may have."""
_LENGTHS = ROW_LENGTHS[:2]
"""Those of versions that wrote no checksums."""
WRONG_CHECKSUM = "its checksum is wrong: it was changed, or a line before it is missing or doubled"
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


class Checksums:
    """Checks the lines of one journal, in order.

    Journals of an earlier version have no checksums, and pass.
    """

    def __init__(self) -> None:
        self._last: dict[int, int | None] = {}
        self._rows: dict[int, int] = {}

    def problem(self, line: bytes, data: Any) -> str:
        """What is wrong with a line; empty if nothing is.

        Args:
            line: as it is in the file.
            data: what it holds.
        """
        row = isinstance(data, list)
        n = data[0] if row else data.get("n", data.get("end"))
        n = n if isinstance(n, int) else -1
        if not row and "trial" in data:
            self._last[n] = 0 if "crc" in data else None
            self._rows[n] = 0
        before = self._last.get(n)
        if before is None:
            more = row and len(data) not in _LENGTHS
            return "it has a checksum, but the beginning of its trial has none" if more else ""
        now = checksum_of(line, before)
        if now is None:
            return WRONG_CHECKSUM
        self._last[n] = now
        self._rows[n] += row
        if not row and "end" in data and data.get("rows") != self._rows[n]:
            return f"its trial has {self._rows[n]} rows, not {data.get('rows')}"
        return ""


def with_checksum(data: dict[str, Any], before: int) -> tuple[bytes, int]:
    """A line of a JSON object, with a checksum continued from that of a line before; and it."""
    content = _encode(data).encode()
    checksum = zlib.crc32(content, before)
    return b'%b,"crc":%d}\n' % (content[:-1], checksum), checksum


def checksum_of(line: bytes, before: int) -> int | None:
    """The checksum of a line, continued from that of a line before; None if it has another."""
    row = line.startswith(b"[")
    content, _, given = line.rpartition(b"," if row else b',"crc":')
    checksum = zlib.crc32(content if row else content + b"}", before)
    return checksum if given == b"%d%c\n" % (checksum, b"]" if row else b"}") else None


def read_journal(
    path: Path, lines: Iterable[tuple[int, bytes]]
) -> Iterator[tuple[int, bytes, Any]]:
    """What the lines of a journal hold; a last line cut off by a kill is left out.

    Args:
        path: the journal, for messages.
        lines: of it, each with its number, counted from 1.

    Returns:
        The number of each line, the line, and what it holds.

    Raises:
        DatasetError: if a line before the last one cannot be read.
    """
    for number, line in lines:
        if not line.endswith(b"\n"):
            return
        try:
            data = json.loads(line)
        except (ValueError, RecursionError) as error:
            reason = str(error) or "it is nested too deeply"
            raise DatasetError(f"{path}, line {number} is not JSON: {reason}") from error
        if isinstance(data, list) and not data:
            raise DatasetError(f"{path}, line {number} is damaged: an empty row")
        yield number, line, data


def row_values(row: list[Any]) -> list[Any]:
    """The values of a row of a journal, without a checksum behind them."""
    return row[:-1] if len(row) - 1 in ROW_LENGTHS else row
