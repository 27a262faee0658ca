"""Seconds that `import archgym` and `archgym --help` take over `import gymnasium`.

Bars: 0.1 s and 0.3 s, minima of runs in turns, with modules compiled as an installation has them.

    python benchmarks/import_time.py [--repeats 10]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time

BARS_S = {"import archgym": 0.1, "archgym --help": 0.3}


def seconds(code: str) -> float:
    own = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL, env=own)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=10)
    arguments = parser.parse_args()
    commands = {"import gymnasium": "import gymnasium", "import archgym": "import archgym"}
    if _has_main():
        commands["archgym --help"] = (
            "import sys; sys.argv = ['archgym', '--help']; from archgym.cli import main; main()"
        )
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for code in commands.values():
        seconds(code)  # compiles
    for _ in range(arguments.repeats):
        for name, code in commands.items():
            taken[name].append(seconds(code))
    base = min(taken["import gymnasium"])
    for name, times in taken.items():
        bar = f"  (bar {BARS_S[name]:.2f} s)" if name in BARS_S else ""
        print(f"{name:18} {min(times):6.3f} s  {min(times) - base:+.3f} s{bar}")


def _has_main() -> bool:
    try:
        from archgym.cli import main as cli_main
    except ImportError:
        return False
    return callable(cli_main)


if __name__ == "__main__":
    main()
