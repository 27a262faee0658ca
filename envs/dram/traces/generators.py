"""Seeded synthetic workloads of the DRAM environment: named generators with typed parameters.

Every draw is an integer draw of ``numpy.random.Generator`` and every later step is integer
arithmetic, so one seed gives the same trace on every machine. One request moves one line of
64 bytes. Rates are open loop: a generator sets when a request arrives, not when it is served.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from archgym.envs.dram.traces import access_patterns
from archgym.envs.dram.traces.access_patterns import LINE_BYTES, Requests
from archgym.envs.dram.traces.trace import Trace
from archgym.errors import InvalidValueError, UnknownNameError

__all__ = ["GENERATORS", "LINE_BYTES", "Generator", "Parameter", "generate"]

Value: TypeAlias = int | float

MIB = 1 << 20


@dataclass(frozen=True)
class Parameter:
    """One argument of a generator.

    Attributes:
        name: keyword; the unit is its ending (``_ns``, ``_bytes``), a fraction ends in ``_share``.
        default: value when it is not given; its type (int or float) is the parameter's type.
        low: smallest value allowed.
        high: largest value allowed.
        doc: one line of explanation.
        step: every value must be a multiple of it; 0 for no such rule.
    """

    name: str
    default: Value
    low: Value
    high: Value
    doc: str
    step: Value = 0

    @property
    def kind(self) -> str:
        """``"int"`` or ``"float"``."""
        return type(self.default).__name__

    def check(self, value: Any, owner: str) -> Value:
        """The value in the parameter's own type.

        Args:
            value: what the user gave.
            owner: name of the generator, for the message.

        Raises:
            InvalidValueError: if the type or the range is wrong.
        """
        wanted = "an integer" if self.kind == "int" else "a number"
        where = f"generator {owner!r}: {self.name}"
        good = isinstance(value, (int, float, np.integer, np.floating))
        if not good or isinstance(value, bool) or (self.kind == "int" and value != value // 1):
            raise InvalidValueError(f"{where}={value!r} must be {wanted}")
        if not self.low <= value <= self.high:
            raise InvalidValueError(
                f"{where}={value!r} is out of range: it must be {wanted} "
                f"from {self.low} to {self.high}"
            )
        exact = int(value) if self.kind == "int" else float(value)
        if self.step and Fraction(exact) % Fraction(self.step) != 0:
            raise InvalidValueError(f"{where}={value!r} must be a multiple of {self.step}")
        return exact


@dataclass(frozen=True)
class Generator:
    """A synthetic workload.

    Attributes:
        name: the name in the registry.
        description: one line.
        parameters: what can be set.
        build: makes the requests from the checked parameters.

    Example:
        >>> trace = GENERATORS["zipf"](requests=1000, seed=7)
        >>> len(trace), trace.name
        (1000, 'zipf(requests=1000,seed=7)')
    """

    name: str
    description: str
    parameters: tuple[Parameter, ...]
    build: Callable[..., Requests]

    def __call__(self, **values: Value) -> Trace:
        """Make the trace.

        Raises:
            UnknownNameError: for a parameter that the generator does not have.
            InvalidValueError: for a value of the wrong type or out of range.
        """
        checked = self.checked(values)
        arrival_ps, address, is_write = self.build(**checked)
        return Trace(self.label(values), arrival_ps, address, is_write)

    def checked(self, values: Mapping[str, Any]) -> dict[str, Value]:
        """All parameters, defaults filled in, in the order of declaration."""
        known = {parameter.name for parameter in self.parameters}
        for name in values:
            if name not in known:
                where = f"generator {self.name!r}"
                raise UnknownNameError("parameter", name, known, where=where)
        return {p.name: p.check(values.get(p.name, p.default), self.name) for p in self.parameters}

    def label(self, values: Mapping[str, Any]) -> str:
        """Short name: the generator and the parameters that differ from their defaults."""
        checked = self.checked(values)
        shown = [
            f"{p.name}={checked[p.name]:g}" if p.kind == "float" else f"{p.name}={checked[p.name]}"
            for p in sorted(self.parameters, key=lambda parameter: parameter.name)
            if checked[p.name] != p.default
        ]
        return f"{self.name}({','.join(shown)})" if shown else self.name


def generate(name: str, **values: Value) -> Trace:
    """Make a trace with the generator of that name.

    Raises:
        UnknownNameError: for a name or a parameter that does not exist.
        InvalidValueError: for a value out of range.
    """
    if name not in GENERATORS:
        raise UnknownNameError("generator", name, GENERATORS)
    return GENERATORS[name](**values)


def _common(
    *, interval_ns: float, jitter: float, read_share: float, footprint_bytes: int = 256 * MIB
) -> tuple[Parameter, ...]:
    """The parameters that every generator has, with its own defaults."""
    return (
        Parameter("requests", 20_000, 1, 50_000_000, "number of requests"),
        Parameter("interval_ns", interval_ns, 0.001, 1e9, "mean time between requests, ns"),
        Parameter(
            "jitter_share",
            jitter,
            0.0,
            1.0,
            "each interval is drawn from (1 -+ this) x the mean, uniformly; 0: evenly spaced",
        ),
        Parameter("read_share", read_share, 0.0, 1.0, "probability that a request is a read"),
        Parameter(
            "footprint_bytes",
            footprint_bytes,
            65536,
            1 << 40,
            "size of the address range, bytes; addresses start at 0",
            step=64,
        ),
        Parameter("seed", 0, 0, 2**63 - 1, "seed of the random draws"),
    )


def _table() -> dict[str, Generator]:
    run = Parameter("run_requests", 4, 1, 1 << 20, "mean length of a run of adjacent lines")
    block = Parameter("block_requests", 100, 1, 1 << 20, "requests of one tenant in a row")
    entries = [
        Generator(
            "stream",
            "reads at ascending addresses, evenly spaced: the best case for open rows",
            (
                *_common(interval_ns=6.0, jitter=0.0, read_share=1.0),
                Parameter("stride_bytes", 64, 1, 1 << 30, "distance of two requests, bytes"),
            ),
            access_patterns.stream,
        ),
        Generator(
            "copy",
            "memory copy: reads one ascending region, writes another one",
            (
                *_common(interval_ns=6.0, jitter=0.0, read_share=0.5),
                Parameter("block_requests", 1, 1, 1 << 20, "requests on a side before the other"),
            ),
            access_patterns.copy,
        ),
        Generator(
            "random",
            "reads at uniformly random lines: every request opens a row",
            _common(interval_ns=20.0, jitter=1.0, read_share=1.0),
            access_patterns.random,
        ),
        Generator(
            "mixed",
            "reads and writes in short runs of adjacent lines at random places",
            (*_common(interval_ns=12.0, jitter=1.0, read_share=0.67), run),
            access_patterns.mixed,
        ),
        Generator(
            "stride_conflict",
            "every request falls on the same bank and another row: the worst case for open rows",
            (
                *_common(interval_ns=60.0, jitter=0.0, read_share=1.0),
                Parameter("stride_bytes", MIB, 64, 1 << 30, "distance of two requests, bytes"),
            ),
            access_patterns.stride_conflict,
        ),
        Generator(
            "pointer_chase",
            "dependent reads of a linked list in random order; idle most of the time",
            _common(interval_ns=150.0, jitter=0.2, read_share=1.0),
            access_patterns.pointer_chase,
        ),
        Generator(
            "bursts",
            "busy phases of back-to-back runs, then silence: tests draining and power-down",
            (
                *_common(interval_ns=3.0, jitter=0.0, read_share=0.7),
                run,
                Parameter("burst_requests", 200, 1, 1 << 20, "requests in a busy phase"),
                Parameter("idle_ns", 2000.0, 0.0, 1e9, "silence between two busy phases, ns"),
            ),
            access_patterns.bursts,
        ),
        Generator(
            "zipf",
            "few rows take most requests (Zipf's law), at random columns",
            (
                *_common(interval_ns=12.0, jitter=1.0, read_share=0.8),
                Parameter("row_bytes", 8192, 64, 1 << 20, "size of a row, bytes", step=64),
                Parameter(
                    "exponent",
                    1.0,
                    0.0,
                    4.0,
                    "popularity of the k-th row is k to minus this; a multiple of 1/8",
                    step=0.125,
                ),
            ),
            access_patterns.zipf,
        ),
        Generator(
            "program",
            "misses of a cache with write-backs, in bursts, from several streams and anywhere",
            (
                *_common(interval_ns=4.0, jitter=1.0, read_share=0.7),
                Parameter("streams", 4, 1, 256, "ascending streams of reads"),
                run,
                Parameter("random_share", 0.2, 0.0, 1.0, "share of reads at random lines"),
                Parameter("burst_requests", 20, 1, 1 << 20, "mean number of misses in a burst"),
                Parameter("idle_ns", 100.0, 0.0, 1e9, "typical pause between two bursts, ns"),
            ),
            access_patterns.program,
        ),
        Generator(
            "cloud_1",
            "two tenants in turns, a stream and a random reader, in blocks of requests",
            (*_common(interval_ns=12.0, jitter=0.0, read_share=0.9), block),
            access_patterns.cloud_1,
        ),
        Generator(
            "cloud_2",
            "four tenants at once (read stream, copy, hot rows, random) at different rates",
            (*_common(interval_ns=12.0, jitter=1.0, read_share=0.7), block),
            access_patterns.cloud_2,
        ),
    ]
    return {entry.name: entry for entry in entries}


GENERATORS: Mapping[str, Generator] = MappingProxyType(_table())
"""Every generator by name, in the order in which listings show them."""
