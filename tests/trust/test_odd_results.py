"""Whatever a simulator gives or raises is a row, which can be read."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from archgym.data import Dataset, validate
from archgym.errors import NotCoveredError, SimulationError
from archgym.registry import make_agent
from tests.helpers import Adder


class Silent(Exception):
    """An error without a text."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class SilentUncovered(NotCoveredError):
    __str__ = __repr__ = Silent.__str__


class SilentTimeout(TimeoutError):
    __str__ = __repr__ = Silent.__str__


class Ending(BaseException):
    """Not an Exception."""


class Odd(Mapping[str, float]):
    """A mapping that cannot be read."""

    def __getitem__(self, name: str) -> float:
        raise ZeroDivisionError

    def __iter__(self) -> Iterator[str]:
        raise ZeroDivisionError

    def __len__(self) -> int:
        raise ZeroDivisionError


class OddNumber(float):
    def __float__(self) -> float:
        raise RuntimeError


def raised(error: BaseException) -> Any:
    def act() -> Any:
        raise error

    return act


RESULTS: dict[str, Any] = {
    "half a character": raised(ValueError("\udcff and \ud800")),
    "half a character, said": raised(SimulationError("\udcff")),
    "no text": raised(Silent()),
    "not covered, no text": raised(SilentUncovered()),
    "timeout, no text": raised(SilentTimeout()),
    "system exit": lambda: sys.exit("bye"),
    "base exception": raised(Ending()),
    "generator exit": raised(GeneratorExit()),
    "long text": raised(ValueError("x" * 1_000_000)),
    "deep": raised(RecursionError()),
    "no memory": raised(MemoryError()),
    "stop": raised(StopIteration()),
    "huge": lambda: {"total_ns": 10**400},
    "huge below zero": lambda: {"total_ns": -(10**400)},
    "more digits than are shown": lambda: {"total_ns": 10**5000},
    "numpy": lambda: {"total_ns": np.float128(1.5)},
    "too large for a float": lambda: {"total_ns": np.longdouble("1e4000")},
    "array": lambda: {"total_ns": np.arange(3)},
    "object": lambda: {"total_ns": Silent()},
    "odd mapping": Odd,
    "odd number": lambda: {"total_ns": OddNumber(1)},
    "text": lambda: {"total_ns": "\udcff"},
    "true": lambda: {"total_ns": True},
    "other names": lambda: {"\udcff": 1, Silent: 2, 3: 4},
    "none": lambda: None,
    "itself": lambda: Silent(),
    "nan": lambda: {"total_ns": math.nan},
}


class Moody(Adder):
    def __init__(self, result: str = "none", **arguments: Any) -> None:
        self.result = result
        super().__init__(**arguments)

    @property
    def settings(self) -> dict[str, Any]:
        return {"result": self.result}

    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        if design["x"] == 3:
            found: dict[str, float] = RESULTS[self.result]()
            return found
        return super().simulate(design)


@pytest.mark.parametrize("result", RESULTS)
def test_every_result_is_a_row(result: str, tmp_path: Path) -> None:
    env = Moody(result=result, record=tmp_path)
    make_agent("random", env.design_space, seed=0).search(env, budget=20)
    env.close()
    for sealed in (False, True):
        if sealed:
            Dataset(tmp_path).seal()
        found = Dataset(tmp_path).evaluations(["param.x", "status", "reason"]).to_pylist()
        odd = [row for row in found if row["param.x"] == 3]
        assert len(odd) >= 1
        assert all(len(row["reason"] or "") < 20_000 for row in odd)
        if result not in ("numpy", "true"):
            assert {row["status"] for row in odd} <= {"failed", "illegal", "timeout"}
            assert all(row["reason"] for row in odd)
        assert all(check.passed for check in validate(Dataset(tmp_path)))


def test_ctrl_c_ends_a_search(tmp_path: Path) -> None:
    RESULTS["ctrl-c"] = raised(KeyboardInterrupt())
    try:
        env = Moody(result="ctrl-c", record=tmp_path)
        with pytest.raises(KeyboardInterrupt):
            make_agent("random", env.design_space, seed=0).search(env, budget=20)
        env.close()
    finally:
        del RESULTS["ctrl-c"]
