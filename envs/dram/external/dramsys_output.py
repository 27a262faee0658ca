"""Reads what DRAMSys prints and records about a run, in the units of the environment.

The printed lines are those of DRAMSys 4.0 to 5.5; their units vary from run to run and from
version to version, so each is read with its unit.
"""

from __future__ import annotations

import math
import re
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from archgym.envs.dram.controller.config import ControllerConfig
from archgym.errors import SimulationError
from archgym.simulators.external import last_lines

__all__ = ["Printed", "Recorded", "read_database", "read_printed"]

_TO_NS = {"fs": 1e-6, "ps": 1e-3, "ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_TO_PJ = {"fJ": 1e-3, "pJ": 1.0, "nJ": 1e3, "uJ": 1e6, "mJ": 1e9, "J": 1e12}
_TO_GBIT_PER_S = {"Gb/s": 1.0, "Mb/s": 1e-3}


@dataclass(frozen=True)
class Printed:
    """The figures that DRAMSys prints at its end.

    Attributes:
        time_ns: simulated time, ns.
        energy_pj: energy of all channels, pJ; NaN without power analysis.
        peak_gbit_per_s: bandwidth of one channel's data bus, Gbit/s; NaN if it is not printed.
    """

    time_ns: float
    energy_pj: float
    peak_gbit_per_s: float


def read_printed(text: str, *, power: bool) -> Printed:
    """Read the printed lines.

    The printed power is left out: it is the energy by the time of which DRAMPower keeps account,
    which ends with a channel's last command and with power-down counts some clocks twice.

    Args:
        text: standard output.
        power: whether there must be an energy.

    Raises:
        SimulationError: for a line that is missing, or a number or a unit that is not known.
    """
    times = _values(text, "Total Time", _TO_NS)
    energies = _values(text, "Total Energy", _TO_PJ) if power else [math.nan]
    peaks = _values(text, "MAX BW", _TO_GBIT_PER_S, needed=False) or [math.nan]
    return Printed(max(times), math.fsum(energies), peaks[0])


def _values(text: str, label: str, units: dict[str, float], needed: bool = True) -> list[float]:
    """The values on the lines with a label, one for each channel."""
    values = []
    for match in re.finditer(rf"\b{label}:[ \t]*([^\r\n]*)", text):
        number, _, rest = match.group(1).strip().partition(" ")
        unit = rest.split()[0] if rest.split() else ""
        try:
            value = float(number)
        except ValueError:
            raise SimulationError(
                f"DRAMSys printed {match.group(0)!r}: {number!r} is not a number"
            ) from None
        if not math.isfinite(value):
            raise SimulationError(f"DRAMSys printed {match.group(0)!r}, not a finite number")
        if unit not in units:
            raise SimulationError(
                f"DRAMSys printed {match.group(0)!r}: the unit {unit!r} is none of "
                f"{', '.join(units)}"
            )
        values.append(value * units[unit])
    if needed and not values:
        raise SimulationError(
            f"DRAMSys printed no {label!r} line; its output ends with: {last_lines(text)}"
        )
    return values


@dataclass(frozen=True)
class Recorded:
    """Times of the requests in the database of a run, in the order of the trace.

    Attributes:
        done_ps: when the initiator has the response, ps, shape (n,).
        offered_ps: when the request was at the head of the input and offered, ps, shape (n,).
        hits: column commands that were not the first since their row's activate.
    """

    done_ps: NDArray[np.int64]
    offered_ps: NDArray[np.int64]
    hits: int


def read_database(
    databases: Sequence[Path],
    arrival_ps: NDArray[np.int64],
    channel: NDArray[np.int64],
    config: ControllerConfig,
    t_ck_ps: int,
) -> Recorded:
    """Read when each request was taken and answered.

    The database has the times at the memory controller. What the front end does before and after,
    and the latencies that follow from it, agree with the sums that DRAMSys can be made to print
    (``avg_read_latency_ns`` and ``avg_read_latency_from_arrival_ns`` of the reference tables).

    Args:
        databases: one file for each channel.
        arrival_ps: arrival of each request in the trace, ps, shape (n,).
        channel: channel of each request, shape (n,).
        config: the controller, for its arbiter.
        t_ck_ps: clock period, ps.

    Raises:
        SimulationError: if a file is not as DRAMSys 4.0 to 5.5 write it, or a request is missing.
    """
    n = len(arrival_ps)
    taken = np.zeros(n, np.int64)
    response = np.zeros(n, np.int64)
    hits = 0
    for number, path in enumerate(databases):
        mine = np.flatnonzero(channel == number)
        try:
            found, channel_hits = _read_channel(path, config.arbiter)
        except (sqlite3.Error, ValueError, TypeError, OverflowError) as error:
            raise SimulationError(f"the database of DRAMSys cannot be read: {error}") from error
        if len(found) != len(mine):
            raise SimulationError(
                f"the database of DRAMSys holds {len(found)} requests of channel {number}, the "
                f"trace {len(mine)}"
            )
        taken[mine], response[mine] = found.T
        hits += channel_hits
    offered = np.maximum(arrival_ps, np.concatenate([[0], taken[:-1]]))
    bw_ps = config.arbitration_delay_bw_cycles * t_ck_ps
    done = _leave_arbiter(response + bw_ps, config.arbiter, t_ck_ps)
    if (done < offered).any() or (offered < arrival_ps).any():
        raise SimulationError("the database of DRAMSys has a response before its request")
    return Recorded(done, offered, hits)


# The order of the R and W transactions' numbers is that of the trace. "Simple" takes a request
# when the controller does (end of REQ), the other arbiters do so themselves.
_REQUESTS = """
    SELECT {taken}, response.PhaseBegin
    FROM Transactions AS t
    JOIN Phases AS request ON request.Transact = t.ID AND request.PhaseName = 'REQ'
    JOIN Phases AS response ON response.Transact = t.ID AND response.PhaseName = 'RESP'
    WHERE t.Command IN ('R', 'W')
    ORDER BY t.ID
"""
_HITS = """
    SELECT COUNT(*) FROM (
        SELECT PhaseName AS name,
               LAG(PhaseName) OVER (PARTITION BY Rank, Bank ORDER BY PhaseBegin, ID) AS before
        FROM Phases WHERE PhaseName IN ('ACT', 'RD', 'RDA', 'WR', 'WRA')
    ) WHERE name <> 'ACT' AND before <> 'ACT'
"""


def _read_channel(path: Path, arbiter: str) -> tuple[NDArray[np.int64], int]:
    """When each request of a channel was taken and left the controller, ps; and the row hits."""
    taken = "request.PhaseEnd" if arbiter == "simple" else "t.TimeOfGeneration"
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)
    try:
        rows = connection.execute(_REQUESTS.format(taken=taken)).fetchall()
        (hits,) = connection.execute(_HITS).fetchone()
    finally:
        connection.close()
    return np.array(rows, np.int64).reshape(-1, 2), int(hits)


def _leave_arbiter(response_ps: NDArray[np.int64], arbiter: str, t_ck_ps: int) -> NDArray[np.int64]:
    """When each response leaves the arbiter, given when it could, both in the trace's order.

    ``fifo`` and ``reorder`` give a response, wait a clock for the initiator and, if the next one
    is there by then, need one more clock for it. ``simple`` leaves that to the controller.
    """
    if arbiter == "simple":
        return response_ps
    order = np.arange(len(response_ps))
    if arbiter == "fifo":
        order = np.argsort(response_ps, kind="stable")
    done = np.empty_like(response_ps)
    last = -2 * t_ck_ps
    left = []
    for at in response_ps[order].tolist():
        last = at if at > last + t_ck_ps else last + 2 * t_ck_ps
        left.append(last)
    done[order] = left
    return done
