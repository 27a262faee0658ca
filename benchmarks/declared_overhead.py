"""What a declared environment adds to running its program by hand: milliseconds a design.

Run as ``python -m benchmarks.declared_overhead``. Both sides make a folder, write the same file,
run the same program and read the same number, alternating, so that a busy machine slows both.
By hand is Python's ``subprocess`` without any limits. Programs compute for about 0 s, 0.1 s and
0.5 s, or wait for 0.3 s, which a machine that others use disturbs less. Processor time is that of
this process and of what it started, so it does not depend on what others do.
"""

from __future__ import annotations

import argparse
import itertools
import re
import resource
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
    run: [sh, -c, 'sleep {waits}; exec awk "$0" design.txt', '{script}']
metrics:
  sum_count: {{key: sum}}
"""


SCRIPT = '{{ for (i = 0; i < {loops}; i++) s += i * $1; print "sum = " s }}'


def by_hand(depth: int, loops: int, waits: float) -> float:
    """Runs the program for a design without archgym; gives the metric."""
    script = SCRIPT.format(loops=loops)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "design.txt").write_text(f"{depth}\n")
        done = subprocess.run(
            ["sh", "-c", f'sleep {waits}; exec awk "$0" design.txt', script],  # noqa: S607
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        )
    found = re.search(r"sum = (\S+)", done.stdout)
    assert found is not None
    return float(found[1])


def processor_s() -> float:
    """Processor time of this process and of all that it started, s."""
    some = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in some)


def measured(loops: int, waits: float, designs: int, folder: Path) -> tuple[float, float, float]:
    """Median seconds a design by hand, median of what archgym takes more, and of processor time."""
    path = folder / f"loops_{loops}_{waits:g}.yaml"
    path.write_text(DECLARATION.format(script=SCRIPT.format(loops=loops), waits=waits))
    env = archgym.make(str(path))
    env.simulate_baseline()
    hand, more, processor = [], [], []
    for depth in range(2, designs + 2):
        times = [(time.perf_counter(), processor_s())]
        wanted = by_hand(depth, loops, waits)
        times.append((time.perf_counter(), processor_s()))
        outcome = env.evaluate({"depth": depth})
        times.append((time.perf_counter(), processor_s()))
        assert outcome.metrics["sum_count"] == wanted, (outcome, wanted)
        first, second = (
            [after - before for before, after in zip(one, two, strict=True)]
            for one, two in itertools.pairwise(times)
        )
        hand.append(first[0])
        more.append(second[0] - first[0])
        processor.append(second[1] - first[1])
    return statistics.median(hand), statistics.median(more), statistics.median(processor)


def main() -> None:
    """Prints a line for each duration of the program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--designs", type=int, default=60)
    designs = parser.parse_args().designs
    with tempfile.TemporaryDirectory() as folder:
        for loops, waits in ((1, 0.0), (1, 0.3), (2_000_000, 0.0), (10_000_000, 0.0)):
            hand, more, processor = measured(loops, waits, designs, Path(folder))
            print(
                f"program {1e3 * hand:7.1f} ms by hand, {1e3 * more:+6.2f} ms in the environment "
                f"({more / hand:+.1%}), processor time {1e3 * processor:+6.2f} ms",
                flush=True,
            )


if __name__ == "__main__":
    main()
