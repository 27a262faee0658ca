"""What a trace asks for, and the warning where a memory cannot give it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import archgym
from archgym.envs.dram.device.memory import load_memory
from archgym.envs.dram.traces.demand import asked_gb_per_s, demand_of, demand_warning, peak_gb_per_s
from archgym.envs.dram.traces.trace import Trace
from tests.cli.conftest import Called, call

__all__ = ["Called", "call"]


def evenly(gap_ps: int, n: int = 1001) -> Trace:
    """Reads and writes in turn, of lines that follow each other."""
    kinds = (np.arange(n) % 2).astype(np.uint8)
    return Trace("even", np.arange(n) * gap_ps, np.arange(n) * 64, kinds)


def test_known_demand() -> None:
    memory = load_memory("DDR4-2400")
    assert peak_gb_per_s(memory) == pytest.approx(2400e6 * 8 / 1e9, rel=1e-3)
    assert asked_gb_per_s(evenly(10_000), memory) == pytest.approx(6.4, rel=1e-2)
    demand = demand_of(evenly(10_000))
    assert (demand.requests, demand.footprint_bytes) == (1001, 64 * 1001)
    assert demand.read_share == pytest.approx(501 / 1001)
    assert demand.span_ns == pytest.approx(10_000)
    assert demand.burst_gb_per_s == pytest.approx(6.4, rel=1e-2)


def test_the_warning_depends_on_the_memory() -> None:
    trace = evenly(2_000)  # 32 GB/s
    assert "asks for 32.0 GB/s" in demand_warning(trace, load_memory("DDR4-2400"))
    two = load_memory({"device": "DDR4-2400", "channels": 2})
    assert demand_warning(trace, two) == ""
    assert "all at once" in demand_warning(evenly(0), two)
    assert demand_warning(evenly(0, 1), two) == ""


def test_a_trace_that_begins_late_is_named_with_its_cycle(tmp_path: Path) -> None:
    late = tmp_path / "late.stl"
    late.write_text("".join(f"{10**7 + 40 * i}: read {64 * i:#x}\n" for i in range(200)))
    workload = {"file": str(late), "clock_mhz": 1000}
    (text,) = archgym.make("DRAM-v0", workload=workload).warnings
    assert "'late': the first request arrives at 10,000 us" in text
    assert "cycle 12,004,802 of" in text
    late.write_text("".join(f"{10**7 * i}: read {64 * i:#x}\n" for i in range(1, 9)))
    assert archgym.make("DRAM-v0", workload=workload).warnings == []


@pytest.mark.parametrize("workload", ["sort", "stream", "cloud_2"])
def test_what_ships_can_be_served(workload: str) -> None:
    assert archgym.make("DRAM-v0", workload=workload).warnings == []


def test_commands_say_so(call: Any, tmp_path: Path) -> None:
    fast = tmp_path / "fast.stl"
    fast.write_text("".join(f"{i}: read {64 * i:#x}\n" for i in range(200)))
    shown = call("trace", "info", fast, "--memory", "DDR4-2400")
    assert shown.code == 0
    assert "requests wait ever longer" in " ".join(shown.out.split())
    data = call("trace", "info", fast, "--json").json
    assert data["requests"] == 200
    assert len(data["memories"]) > 5
    assert "wait ever longer" in " ".join(
        call("evaluate", "DRAM-v0", "--workload", fast).out.split()
    )
    (tmp_path / "e.yaml").write_text(
        f"""
name: e
budget: 2
seeds: 1
environments: [{{id: DRAM-v0, workload: {fast}}}]
agents: [{{name: random}}]
"""
    )
    ran = call("run", tmp_path / "e.yaml", "--local", "--out", tmp_path / "out")
    assert "wait ever longer" in " ".join(ran.err.split())


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nosuch.stl"], "no such trace file"),
        (["srot"], "Did you mean 'sort'"),
        (["sort", "--memory", "DDR4-2401"], "Did you mean 'DDR4-2400'"),
    ],
)
def test_bad_input(words: list[str], says: str, call: Any) -> None:
    called = call("trace", "info", *words)
    assert called.code == 2
    assert says in " ".join(called.err.split())
