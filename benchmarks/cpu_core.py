"""Instructions per second of the model of the core, beside ChampSim's.

Run as ``python benchmarks/cpu_core.py`` (recorded programs on ChampSim's default core and caches)
or, with a ChampSim that was built with its ``champsim_config.json``, as
``python benchmarks/cpu_core.py --champsim PATH/bin/champsim``: both then run the same trace in
turns, from a cold start. Times are those of the processor, so that other work on the machine counts
less; what numba compiles is left out.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import tempfile
import time
from pathlib import Path

from archgym.envs.cpu.branch.settings import BranchUnit
from archgym.envs.cpu.core.run import CoreResult, run_core
from archgym.envs.cpu.core_run import core_stream
from archgym.envs.cpu.hierarchy.config import CacheLevel, HierarchyConfig
from archgym.envs.cpu.space import as_champsim
from archgym.envs.cpu.traces.champsim_format import write_champsim
from archgym.envs.cpu.traces.program import Program
from archgym.envs.cpu.traces.workload import load_workload

PROGRAMS = ("sort", "sqlite", "xz")
TARGET = 5_000_000
LINE = 64
CACHES = HierarchyConfig(
    CacheLevel(64 * 8 * LINE, 8),
    CacheLevel(64 * 12 * LINE, 12),
    CacheLevel(1024 * 8 * LINE, 8),
    CacheLevel(2048 * 16 * LINE, 16),
)


def ours(program: Program, instructions: int) -> tuple[CoreResult, float]:
    """The result, and seconds of the processor."""
    stream = core_stream(program)
    run_core(stream, CACHES, instructions=100)
    start = time.process_time()
    result = run_core(
        stream, as_champsim(CACHES), unit=BranchUnit("bimodal"), instructions=instructions
    )
    return result, time.process_time() - start


def champsim(binary: Path, trace: Path, instructions: int) -> tuple[float, float]:
    """Instructions in a cycle, and seconds of the processor."""
    before = os.times()
    done = subprocess.run(
        [binary, "-w", "0", "-i", str(instructions), "--hide-heartbeat", trace],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    after = os.times()
    found = re.search(r"Simulation complete CPU 0 .*cumulative IPC: ([\d.]+)", done.stdout)
    if found is None:
        raise SystemExit(f"{binary} printed no IPC")
    return float(found.group(1)), after.children_user - before.children_user


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instructions", type=int, default=250_000)
    parser.add_argument("--champsim", type=Path, help="ChampSim's program")
    args = parser.parse_args()
    for name in PROGRAMS:
        program = load_workload(name).programs[0]
        count = min(args.instructions, len(program) - 1000)
        result, seconds = ours(program, count)
        rate = count / seconds
        print(
            f"{name}: {rate / 1e6:.1f} M instructions/s, {rate / TARGET:.2f} times the target; "
            f"IPC {result.ipc:.3f}"
        )
        if args.champsim is None:
            continue
        with tempfile.TemporaryDirectory() as folder:
            trace = Path(folder, f"{name}.champsimtrace")
            write_champsim(program, trace)
            ipc, theirs = champsim(args.champsim, trace, count)
        print(
            f"  ChampSim {count / theirs / 1e6:.2f} M instructions/s, {theirs / seconds:.0f} times "
            f"as long; IPC {ipc:.3f}, ours {result.ipc / ipc - 1:+.1%}"
        )


if __name__ == "__main__":
    main()
