"""What a declared environment adds to running its program by hand: milliseconds a design.

Run as ``python -m benchmarks.declared_overhead``. Both sides make a folder, write the same file,
run the same program and read the same number, alternating, so that a busy machine slows both.
By hand is Python's ``subprocess`` without any limits. Programs take about 0 s, 0.1 s and 0.5 s.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import archgym

DECLARATION = """
parameters:
  depth: {{integer: [1, 100000], baseline: 1}}
files:
  - {{path: design.txt, text: "{{{{ depth }}}}\\n"}}
stages:
  run:
    run: [awk, '{{ for (i = 0; i < {loops}; i++) s += i * $1; print "sum = " s }}', design.txt]
metrics:
  sum_count: {{key: sum}}
"""


def by_hand(depth: int, loops: int) -> float:
    """Runs the program for a design without archgym; gives the metric."""
    script = f'{{ for (i = 0; i < {loops}; i++) s += i * $1; print "sum = " s }}'
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "design.txt").write_text(f"{depth}\n")
        done = subprocess.run(
            ["awk", script, "design.txt"],  # noqa: S607
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        )
    found = re.search(r"sum = (\S+)", done.stdout)
    assert found is not None
    return float(found[1])


def measured(loops: int, designs: int, folder: Path) -> tuple[float, float]:
    """Median seconds a design by hand, and median of what the environment takes more."""
    path = folder / f"loops_{loops}.yaml"
    path.write_text(DECLARATION.format(loops=loops))
    env = archgym.make(str(path))
    env.simulate_baseline()
    hand, more = [], []
    for depth in range(2, designs + 2):
        began = time.perf_counter()
        wanted = by_hand(depth, loops)
        middle = time.perf_counter()
        outcome = env.evaluate({"depth": depth})
        ended = time.perf_counter()
        assert outcome.metrics["sum_count"] == wanted, (outcome, wanted)
        hand.append(middle - began)
        more.append(ended - middle - (middle - began))
    return statistics.median(hand), statistics.median(more)


def main() -> None:
    """Prints a line for each duration of the program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--designs", type=int, default=60)
    designs = parser.parse_args().designs
    with tempfile.TemporaryDirectory() as folder:
        for loops in (1, 2_000_000, 10_000_000):
            hand, more = measured(loops, designs, Path(folder))
            print(
                f"program {1e3 * hand:7.1f} ms by hand, {1e3 * more:+6.2f} ms in the environment "
                f"({more / hand:+.1%})"
            )


if __name__ == "__main__":
    main()
