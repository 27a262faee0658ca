"""Speed of CPU-v0's caches beside cachegrind: references a second of CPU time, one thread.

Run as ``python benchmarks/cpu_speed.py``. Ours: designs one after another on one program, the
preparation of the program included; cachegrind (if valgrind is installed): one design a run.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

import archgym
from archgym.envs.cpu.hierarchy.fast import LevelByLevel
from archgym.envs.cpu.space import hierarchy_of
from archgym.envs.cpu.traces.preparation import references_of
from archgym.envs.cpu.traces.workload import load_program


def ours(program: str, designs: int) -> None:
    """References of all designs by the CPU time."""
    env = archgym.make(
        "CPU-v0", workload=program, exclude={"llc_inclusion": ["inclusive", "exclusive"]}
    )
    drawn = env.design_space.sample(designs, np.random.default_rng(0))
    configs = [hierarchy_of(design) for design in drawn]
    loaded = load_program(program)
    LevelByLevel(references_of(loaded.part(0, 1000))).run(configs[0])  # compiles
    start = time.process_time()
    model = LevelByLevel(references_of(loaded))
    for config in configs:
        model.run(config)
    spent = time.process_time() - start
    total = designs * len(model.references)
    print(
        f"{program}: {designs} designs x {len(model.references):,} references in {spent:.2f} s: "
        f"{total / spent / 1e6:.0f} million a second"
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
    for program in ("sqlite", "xz", "zstd"):
        ours(program, parser.parse_args().designs)
    try:
        cachegrind()
    except (OSError, subprocess.SubprocessError) as error:
        print(f"cachegrind: {error}")


if __name__ == "__main__":
    main()
