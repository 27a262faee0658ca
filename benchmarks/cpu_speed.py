"""Speed of CPU-v0's caches beside cachegrind: references a second of CPU time, one thread.

Run as ``python benchmarks/cpu_speed.py``. Ours: designs drawn from the space ``caches``, one after
another on each program that ships; first those with a non-inclusive last level, then any. All is
counted but loading the file and compiling: the references of the program, which do not depend on
the design, the filtered references, which are kept for designs with the same lines, sets and kind
of policy, the first levels, which are kept for designs with the same ones, and the rest, which
every design needs. The time of one more design is shown too. cachegrind (if valgrind is
installed): one design a run.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import tempfile
import time
from collections.abc import Collection
from pathlib import Path

import numpy as np

import archgym
from archgym.envs.cpu.hierarchy.config import INCLUSIONS
from archgym.envs.cpu.hierarchy.fast import LevelByLevel
from archgym.envs.cpu.space import hierarchy_of
from archgym.envs.cpu.traces.preparation import references_of
from archgym.envs.cpu.traces.workload import load_program

PROGRAMS = ("perl", "python_json", "sort", "sqlite", "xz", "zstd")


def ours(program: str, designs: int, inclusions: Collection[str]) -> None:
    """References of all designs by the CPU time."""
    others = [one for one in INCLUSIONS if one not in inclusions]
    env = archgym.make("CPU-v0", workload=program, exclude={"llc_inclusion": others})
    drawn = env.design_space.sample(designs, np.random.default_rng(0))
    configs = [hierarchy_of(design) for design in drawn]
    loaded = load_program(program)
    compiling = LevelByLevel(references_of(loaded.part(0, 1000)))
    for config in configs:
        compiling.run(config)
    start = time.process_time()
    model = LevelByLevel(references_of(loaded))
    times = [time.process_time()]
    for config in configs:
        model.run(config)
        times.append(time.process_time())
    spent = times[-1] - start
    total = designs * len(model.references)
    print(
        f"{program}, {' or '.join(inclusions)}: {designs} designs x "
        f"{len(model.references):,} references in {spent:.2f} s "
        f"({times[0] - start:.2f} s to prepare, {1000 * np.median(np.diff(times)):.0f} ms a design "
        f"in the median): {total / spent / 1e6:.0f} million a second",
        flush=True,
    )


def cachegrind() -> None:
    """Instructions and data references of one run of gzip by its CPU time."""
    with tempfile.TemporaryDirectory() as folder:
        words = np.random.default_rng(0).integers(0, 500, 20_000)
        Path(folder, "text").write_text(" ".join(f"w{word}" for word in words), "utf-8")
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        subprocess.run(
            [
                *("valgrind", "--tool=cachegrind", "--cache-sim=yes", "--log-file=log"),
                *("--cachegrind-out-file=out", "gzip", "-9", "-c", "-n", "text"),
            ],
            cwd=folder,
            check=True,
            stdout=subprocess.DEVNULL,
            timeout=600,
        )
        spent = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        lines = Path(folder, "out").read_text("utf-8").splitlines()
    names = next(line for line in lines if line.startswith("events:")).split()
    values = next(line for line in lines if line.startswith("summary:")).split()
    counts = dict(zip(names[1:], map(int, values[1:]), strict=True))
    total = sum(counts[name] for name in ("Ir", "Dr", "Dw"))
    print(
        f"cachegrind, gzip: 1 design x {total:,} references in {spent:.2f} s: "
        f"{total / spent / 1e6:.0f} million a second"
    )


def main() -> None:
    """Both, on the same machine at the same time of day."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--designs", type=int, default=100)
    designs = parser.parse_args().designs
    for inclusions in (("non_inclusive",), INCLUSIONS):
        for program in PROGRAMS:
            ours(program, designs, inclusions)
    try:
        cachegrind()
    except (OSError, subprocess.SubprocessError) as error:
        print(f"cachegrind: {error}")


if __name__ == "__main__":
    main()
