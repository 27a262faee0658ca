"""Record a program: its memory accesses under valgrind, through a cache model, as a trace.

The time of a request is the number of instructions executed until then, divided by the clock and
by the instructions per clock, both of which are given, not measured: the trace is open loop and
gives the rate of requests if memory never made the program wait. Vector code that copies memory
would then demand 100 GB/s, which no core does; ``requests_under_way`` limits it as the fill buffers
of a core do.

Virtual addresses become physical ones page by page: a 4 KiB page gets the next free page frame
when it is first touched, from address 0 up. That is what an operating system with free memory
does, it is the same in every run, and it keeps the footprint as small as the program's.

Recorded are the accesses of the program's process in user mode, one thread at a time. Not recorded
are those of the kernel (file reads, zeroing of pages), of child processes, or of a prefetcher.
"""

from __future__ import annotations

import datetime
import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.envs.dram.traces.cache_model import CacheHierarchy, CacheModel, DramRequests
from archgym.envs.dram.traces.line_formats import scaled
from archgym.envs.dram.traces.npz_format import write_npz
from archgym.envs.dram.traces.trace import Trace
from archgym.envs.dram.traces.valgrind import run_under_lackey, valgrind_version
from archgym.errors import TraceError

__all__ = ["PAGE_BYTES", "PAGE_MAPPING", "PageMap", "record", "save_recording", "with_stalls"]

PAGE_BYTES = 4096
PAGE_MAPPING = (
    "virtual 4 KiB pages to consecutive page frames from address 0 up, in the order in which "
    "the program first touches them"
)

_LIMITS = {
    "clock_ghz": (0.001, 100),
    "instructions_per_clock": (0.001, 64),
    "requests_under_way": (1, 10**6),
    "request_ns": (0.001, 10**6),
    "skip_instructions": (0, 10**15),
    "max_requests": (1, 10**9),
    "timeout_s": (0.001, 10**7),
}


def record(
    command: Sequence[str],
    *,
    cache: CacheHierarchy | None = None,
    clock_ghz: float = 4.0,
    instructions_per_clock: float = 2.0,
    requests_under_way: int | None = None,
    request_ns: float = 60.0,
    skip_instructions: int = 0,
    max_requests: int | None = None,
    timeout_s: float = 600.0,
    name: str | None = None,
    folder: str | os.PathLike[str] | None = None,
    stdin: str | os.PathLike[str] | None = None,
    environment: Mapping[str, str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Trace, dict[str, Any]]:
    """Run a program and return the requests that it makes to DRAM.

    Args:
        command: the program and its arguments; no shell is involved.
        cache: caches between the core and DRAM; the defaults of the class if None.
        clock_ghz: clock of the core, GHz.
        instructions_per_clock: instructions that the core completes in a clock while memory does
            not make it wait, on average.
        requests_under_way: the core waits while this number of requests is in flight; any number
            may be if None. A core of Intel's Skylake has 12 fill buffers.
        request_ns: how long a request is under way for that count, ns.
        skip_instructions: what the program does before is not recorded; it warms the caches.
        max_requests: end the program after so many recorded requests; all of them if None.
        timeout_s: limit on the wall time, s. Valgrind runs a program about 100 times slower.
        name: name of the trace; the program's if None.
        folder: working folder of the program.
        stdin: file that the program reads as its standard input.
        environment: all its environment variables; those of this process if None.
        progress: called many times a second with the instructions executed and the requests
            recorded so far.

    Returns:
        The trace, and its card: a mapping for JSON with everything that made it.

    Raises:
        MissingDependencyError: if valgrind is not installed.
        TraceError: if the program does not exist, fails, takes too long or makes no request, or
            for a setting out of range.
    """
    _check(
        clock_ghz=clock_ghz,
        instructions_per_clock=instructions_per_clock,
        requests_under_way=requests_under_way,
        request_ns=request_ns,
        skip_instructions=skip_instructions,
        max_requests=max_requests,
        timeout_s=timeout_s,
    )
    hierarchy = cache or CacheHierarchy()
    stream = run_under_lackey(
        command,
        timeout_s=timeout_s,
        folder=None if folder is None else Path(folder),
        stdin=None if stdin is None else Path(stdin),
        environment=environment,
    )
    model, pages = CacheModel(hierarchy), PageMap()
    kept: list[DramRequests] = []
    count = 0
    with closing(stream):  # type: ignore[type-var]
        for chunk in stream:
            requests = pages.translate(model.access(chunk.kind, chunk.address, chunk.size))
            after = int(np.searchsorted(requests.instruction, skip_instructions, side="right"))
            kept.append(_part(requests, slice(after, None)))
            count += len(kept[-1])
            if progress is not None:
                progress(model.instructions, count)
            if max_requests is not None and count >= max_requests:
                break
    if count == 0:
        raise TraceError(
            f"{command[0]!r} made no DRAM request after the first {skip_instructions} "
            f"instructions; it executed {model.instructions}"
        )
    stopped = max_requests is not None and count >= max_requests
    all_requests = _part(_joined(kept), slice(max_requests))
    ps_per_instruction = _ps_per_instruction(clock_ghz, instructions_per_clock)
    arrival = scaled(all_requests.instruction - skip_instructions, ps_per_instruction)
    if requests_under_way is not None:
        arrival = with_stalls(arrival, requests_under_way, round(1000 * request_ns))
    trace = Trace(
        name or Path(command[0]).name,
        arrival,
        all_requests.address,
        all_requests.is_write,
    )
    last = int(all_requests.instruction[-1]) if stopped else model.instructions
    card = {
        "command": list(command),
        "recorded_on": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "recorded_with": f"valgrind {valgrind_version()}, tool lackey, --trace-mem=yes",
        "cache": hierarchy.as_dict(),
        "clock_ghz": clock_ghz,
        "instructions_per_clock": instructions_per_clock,
        "requests_under_way": requests_under_way,
        "request_ns": None if requests_under_way is None else request_ns,
        "page_mapping": PAGE_MAPPING,
        "instructions_skipped": skip_instructions,
        "instructions_recorded": last - skip_instructions,
        "ended_by": "max_requests" if stopped else "exit",
    }
    return trace, card | _statistics(trace, hierarchy.line_bytes)


def with_stalls(
    arrival_ps: NDArray[np.int64], under_way: int, request_ps: int
) -> NDArray[np.int64]:
    """Times of requests of a core that stands still while too many of them are under way.

    Args:
        arrival_ps: when the core would ask if it never stood still, ps, ascending, shape (n,).
        under_way: how many requests may be under way at once.
        request_ps: how long each is, ps.

    Returns:
        When it asks, ps, shape (n,). Every stall makes all that follows later.
    """
    times: list[int] = []
    stalled = 0
    for number, wanted in enumerate(arrival_ps.tolist()):
        time = wanted + stalled
        if number >= under_way:
            time = max(time, times[number - under_way] + request_ps)
        stalled = time - wanted
        times.append(time)
    return np.array(times, np.int64)


def save_recording(trace: Trace, card: dict[str, Any], path: str | os.PathLike[str]) -> Path:
    """Write ``NAME.npz`` and, beside it, the card ``NAME.json``.

    Args:
        trace: what was recorded.
        card: what :func:`record` returned, with any entries added.
        path: the ``.npz`` file; its folder must exist.

    Returns:
        The path of the trace, which ``load_workload`` reads.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise TraceError(f"{path}: the folder {str(path.parent)!r} does not exist")
    text = json.dumps(card, indent=2, ensure_ascii=False) + "\n"
    # Written aside and renamed: an interruption leaves no half a file.
    with tempfile.TemporaryDirectory(prefix=f".{path.stem}-", dir=path.parent) as aside:
        new = write_npz(trace, Path(aside) / path.name)
        new.with_suffix(".json").write_text(text, encoding="utf-8")
        for file in (new.with_suffix(".json"), new):
            os.replace(file, path.parent / file.name)
    return path


class PageMap:
    """Page frames in the order of first touch; see the module's text.

    The first access to a page misses every cache, so the DRAM requests alone give the order.
    """

    def __init__(self) -> None:
        self._frame: dict[int, int] = {}

    def __len__(self) -> int:
        """Pages touched so far."""
        return len(self._frame)

    def translate(self, requests: DramRequests) -> DramRequests:
        """The requests with physical addresses."""
        page, offset = np.divmod(requests.address, np.int64(PAGE_BYTES))
        distinct, first, which = np.unique(page, return_index=True, return_inverse=True)
        for number in distinct[np.argsort(first, kind="stable")].tolist():
            self._frame.setdefault(number, len(self._frame))
        frame = np.array([self._frame[number] for number in distinct.tolist()], np.int64)
        address = frame[which] * PAGE_BYTES + offset
        return DramRequests(requests.instruction, address, requests.is_write)


def _statistics(trace: Trace, line_bytes: int) -> dict[str, Any]:
    lines: NDArray[np.int64] = np.unique(trace.address)
    return {
        "requests": len(trace),
        "write_share": round(float(trace.is_write.mean()), 4),
        "span_ns": int(trace.arrival_ps[-1]) // 1000,
        "footprint_bytes": line_bytes * len(lines),
        "pages_4kib": len(np.unique(trace.address // PAGE_BYTES)),
        "address_max": int(trace.address.max()),
        "sha256": trace.sha256,
    }


def _part(requests: DramRequests, which: slice) -> DramRequests:
    return DramRequests(
        requests.instruction[which], requests.address[which], requests.is_write[which]
    )


def _joined(parts: list[DramRequests]) -> DramRequests:
    return DramRequests(
        np.concatenate([part.instruction for part in parts]),
        np.concatenate([part.address for part in parts]),
        np.concatenate([part.is_write for part in parts]),
    )


def _ps_per_instruction(clock_ghz: float, instructions_per_clock: float) -> Fraction:
    """Exact, with the clock rounded to 1 MHz and the instructions per clock to 0.001."""
    return Fraction(10**9, round(clock_ghz * 1000) * round(instructions_per_clock * 1000))


def _check(**settings: float | None) -> None:
    for name, (low, high) in _LIMITS.items():
        value = settings[name]
        if value is not None and not low <= value <= high:
            raise TraceError(f"record: {name}={value!r} must be from {low} to {high}")
