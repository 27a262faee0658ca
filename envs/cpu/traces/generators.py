"""Seeded synthetic programs: small loops over memory with a known pattern."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from archgym.envs.cpu.traces.program import LOAD, STORE, Program
from archgym.envs.dram.traces.generators import Parameter
from archgym.errors import UnknownNameError

__all__ = ["GENERATORS", "check_settings", "generate", "parameters_of"]

_CODE: Final = 0x400000
_DATA: Final = 0x10000000
_ELEMENT: Final = 8  # bytes
_LENGTH: Final = 4  # bytes of every instruction


def _stream(count: int, footprint: int, rng: np.random.Generator) -> NDArray[np.int64]:
    return np.arange(count) * _ELEMENT % footprint


def _stride(count: int, footprint: int, rng: np.random.Generator) -> NDArray[np.int64]:
    lines = max(1, footprint // 256)
    return np.arange(count) % lines * 256


def _random(count: int, footprint: int, rng: np.random.Generator) -> NDArray[np.int64]:
    return rng.integers(0, footprint // _ELEMENT, count) * _ELEMENT


def _chase(count: int, footprint: int, rng: np.random.Generator) -> NDArray[np.int64]:
    nodes = max(2, footprint // 64)
    order = rng.permutation(nodes)
    following = np.empty(nodes, np.int64)
    following[order] = np.roll(order, -1)
    walk = np.empty(min(count, nodes), np.int64)
    node = 0
    for i in range(len(walk)):
        walk[i] = node
        node = following[node]
    return np.resize(walk, count) * 64


GENERATORS: Final[dict[str, tuple[str, Callable[..., NDArray[np.int64]]]]] = {
    "stream": ("a loop that reads an array in order and writes every fourth element", _stream),
    "stride": ("a loop that reads one element in every 256 bytes of an array", _stride),
    "random": ("a loop that reads elements of an array at random", _random),
    "chase": ("a walk along a linked list whose nodes lie in a random order", _chase),
}
"""Description and address pattern of each generator."""

_PARAMETERS: Final = (
    Parameter("instructions", 400_000, 1000, 50_000_000, "executed instructions"),
    Parameter("footprint_bytes", 1 << 20, 4096, 1 << 30, "bytes of data", step=4096),
    Parameter("body", 8, 4, 4096, "instructions of the loop, one of which reads"),
    Parameter("seed", 0, 0, 2**31 - 1, "of what is random"),
)


def parameters_of(name: str) -> tuple[Parameter, ...]:
    """The parameters of a generator; all have the same."""
    del name
    return _PARAMETERS


def check_settings(name: str, settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of a generator with every default filled in.

    Raises:
        UnknownNameError, InvalidValueError: for a setting that is not possible.
    """
    known = {parameter.name: parameter for parameter in _PARAMETERS}
    for key in settings:
        if key not in known:
            raise UnknownNameError(f"setting of generator {name!r}", key, known)
    return {
        key: parameter.check(settings.get(key, parameter.default), name)
        for key, parameter in known.items()
    }


def generate(name: str, settings: dict[str, Any]) -> Program:
    """A synthetic program; integer draws only, so a seed gives the same one everywhere."""
    executed, body = int(settings["instructions"]), int(settings["body"])
    rng = np.random.default_rng(int(settings["seed"]))
    rounds = -(-executed // body)
    address = _DATA + GENERATORS[name][1](rounds, int(settings["footprint_bytes"]), rng)
    code = np.arange(executed, dtype=np.int32) % body
    reads = np.arange(rounds, dtype=np.int64) * body
    writes = reads[3::4] + 2 if name == "stream" else reads[:0]
    instruction = np.concatenate([reads, writes])
    order = np.argsort(instruction, kind="stable")
    order = order[instruction[order] < executed]
    kind = np.repeat([LOAD, STORE], [len(reads), len(writes)]).astype(np.uint8)
    touched = np.concatenate([address, address[3::4] if len(writes) else address[:0]])
    branch = np.zeros(body, np.uint8)
    branch[-1] = 1
    destinations = np.zeros((body, 2), np.uint8)
    sources = np.zeros((body, 4), np.uint8)
    # The element goes to register 1, from an address in it (a list) or in register 2.
    destinations[0, 0] = 1
    sources[0, 0] = 1 if name == "chase" else 2
    sources[2, 0] = 1
    destinations[1:-1, 0] = np.where(np.arange(1, body - 1) == 1, 2, 3)
    destinations[-1, 0], sources[-1, :2] = 26, (26, 25)
    taken = (code == body - 1).astype(np.uint8)
    taken[-1] = 0
    return Program(
        name,
        _CODE + np.arange(body, dtype=np.int64) * _LENGTH,
        np.full(body, _LENGTH, np.uint8),
        branch,
        destinations,
        sources,
        code,
        taken,
        instruction[order].astype(np.int32),
        kind[order],
        touched[order],
        np.full(len(order), _ELEMENT, np.uint16),
    )
