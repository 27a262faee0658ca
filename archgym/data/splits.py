"""Splits that do not leak: no design is in two parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from archgym.data.designs import looked_up, uniform
from archgym.data.rows import Numbered, Rows, gathered
from archgym.errors import InvalidValueError, check_choice

SPLIT_BY = ("design", "workload", "agent", "time")
_GROUPS = ("workload", "agent")
_DEFAULT_SHARES = {"train": 0.8, "test": 0.2}

R = TypeVar("R", bound=Rows)


@dataclass(frozen=True)
class Split(Generic[R]):
    """Parts of some rows.

    Attributes:
        parts: the rows of each part, by name, in the order of the shares.
        dropped: rows that were left out of each part because an earlier one has their design.
    """

    parts: dict[str, R]
    dropped: dict[str, int]

    def __getitem__(self, name: str) -> R:
        check_choice("part", name, self.parts)
        return self.parts[name]


def split(
    selection: R,
    by: str,
    shares: Mapping[str, float] | None = None,
    *,
    seed: int = 0,
    hold_out: Sequence[str] = (),
) -> Split[R]:
    """Parts with no design in two of them; never by row, since trajectories repeat designs.

    =============  =============================================================================
    by             what is kept together
    =============  =============================================================================
    ``design``     all rows of a design, whatever workload and agent
    ``workload``   all rows of a workload; the parts share designs, but no design on a workload
    ``agent``      all rows of an agent; a later part loses designs that an earlier one has
    ``time``       rows up to a moment; a later part loses designs that an earlier one has
    =============  =============================================================================

    Args:
        selection: the rows.
        by: one of :data:`SPLIT_BY`.
        shares: share of each part, by name, in sum 1; of the designs, of the workloads or agents,
            or of the rows in the order of time. By default 0.8 for ``train``, 0.2 for ``test``.
        seed: which designs, workloads or agents go where.
        hold_out: workloads or agents that make up the second of two parts, in place of drawing.

    Raises:
        InvalidValueError: if the shares are not possible, or a part would be empty.
        UnknownNameError: if ``by`` or a name to hold out does not exist.
    """
    check_choice("kind of split", by, SPLIT_BY)
    shares = _DEFAULT_SHARES if shares is None else dict(shares)
    _check_shares(shares)
    if hold_out and by not in _GROUPS:
        raise InvalidValueError(f"hold_out names workloads or agents, not with by={by!r}")
    ends = np.cumsum(list(shares.values()))[:-1]
    if by == "design":
        numbers, places = gathered(
            (some, uniform(keys, seed)) for some, keys in selection.fingerprints(of="design")
        )
        part = np.searchsorted(ends, places, side="right")
    elif by == "time":
        numbers, part = _by_time(selection, ends)
    else:
        found = sorted(selection.values_of(by))
        groups = _draw_groups(by, found, np.diff([0.0, *ends, 1.0]), seed, hold_out)
        numbers, part = gathered(
            (some, looked_up(table[by], lambda name: groups.get(name, 0), np.int64))
            for some, table in selection.numbered([by])
        )
    dropped = dict.fromkeys(shares, 0)
    if by != "design":
        dropped = _without_leaks(selection, by, part, list(shares))
    step = {"operation": "split", "by": by, "shares": dict(shares), "seed": seed}
    if hold_out:
        step["hold_out"] = list(hold_out)
    parts = {}
    for number, name in enumerate(shares):
        parts[name] = selection.narrowed(numbers[part == number], {**step, "part": name})
        if not len(parts[name]):
            why = ": earlier parts have all its designs" if dropped[name] else ""
            raise InvalidValueError(f"part {name!r} would be empty{why}")
    return Split(parts, dropped)


def _by_time(rows: Rows, ends: NDArray[np.float64]) -> Numbered:
    numbers, times = gathered(
        (some, table["timestamp"].to_numpy().astype(np.int64))
        for some, table in rows.numbered(["timestamp"])
    )
    # The last moment of each part; rows of one moment stay together.
    cuts = np.quantile(times, ends, method="inverted_cdf") if len(times) else np.empty(0)
    return numbers, np.searchsorted(cuts, times, side="left").astype(np.int64)


def _draw_groups(
    by: str,
    found: Sequence[str],
    shares: NDArray[np.float64],
    seed: int,
    hold_out: Sequence[str],
) -> dict[str, int]:
    """The part of each workload or agent."""
    if hold_out:
        if len(shares) != 2:
            raise InvalidValueError(f"hold_out makes two parts, not {len(shares)}")
        for name in hold_out:
            check_choice(by, name, found)
        return {name: int(name in hold_out) for name in found}
    if len(found) < len(shares):
        raise InvalidValueError(
            f"{len(found)} {by}{'s' * (len(found) != 1)} ({', '.join(found)}) cannot make "
            f"{len(shares)} parts"
        )
    order = np.random.default_rng(seed).permutation(len(found))
    numbers = np.repeat(np.arange(len(shares)), _counts(shares, len(found)))
    return {found[i]: int(part) for i, part in zip(order, numbers, strict=True)}


def _counts(shares: NDArray[np.float64], total: int) -> NDArray[np.int64]:
    """Whole numbers near the shares of a total, at least one each, by largest remainder."""
    spare = total - len(shares)
    exact = np.maximum(shares * total - 1, 0.0)
    exact *= spare / exact.sum() if exact.sum() else 0.0
    counts = np.floor(exact).astype(np.int64)
    rest = np.argsort(-(exact - counts), kind="stable")[: spare - int(counts.sum())]
    counts[rest] += 1
    return np.asarray(counts + 1)


def _without_leaks(
    rows: Rows, by: str, part: NDArray[np.int64], names: Sequence[str]
) -> dict[str, int]:
    """Sets the part of rows to -1 where an earlier part has their design, and counts them."""
    _, keys = gathered(rows.fingerprints(of="example" if by == "workload" else "design"))
    taken, dropped = np.unique(keys[part == 0]), {names[0]: 0}
    for number, name in enumerate(names[1:], start=1):
        mine = np.flatnonzero(part == number)
        leaks = np.isin(keys[mine], taken)
        part[mine[leaks]] = -1
        dropped[name] = int(leaks.sum())
        taken = np.union1d(taken, keys[mine])
    return dropped


def _check_shares(shares: Mapping[str, float]) -> None:
    for name, share in shares.items():
        if not isinstance(share, int | float) or isinstance(share, bool) or not 0 < share < 1:
            raise InvalidValueError(f"share of {name!r} must be between 0 and 1, not {share!r}")
    if len(shares) < 2 or abs(sum(shares.values()) - 1) > 1e-9:
        raise InvalidValueError(
            f"shares of two or more parts with the sum 1 are needed, got {dict(shares)}"
        )
