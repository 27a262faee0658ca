"""All that archgym promises, run on one commit: ``python -m benchmarks.bars --out DIR``.

``benchmarks/bars.yaml`` lists what is promised, the bar, and the command that shows it. Each
command runs alone, one after the other, and what it prints is kept in DIR, below a header with the
commit, the processor and the time it took. The table that is printed says which commands ended
well; whether a bar is met is for a reader of what they printed.
"""

from __future__ import annotations

import argparse
import platform
import shlex
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import yaml

BARS = Path(__file__).with_suffix(".yaml")
_PROGRAMS = {"python": (), "archgym": ("-m", "archgym"), "pytest": ("-m", "pytest")}
_GRACE = 10.0
"""Times the minutes that a command is expected to take after which it is ended."""


@dataclass(frozen=True)
class Bar:
    """A promise.

    Attributes:
        what: is promised.
        bar: the figure.
        command: that shows it; ``python``, ``archgym`` and ``pytest`` are those of this process.
        minutes: it takes on one quiet core, about.
    """

    what: str
    bar: str
    command: str
    minutes: float

    @property
    def file_name(self) -> str:
        """Of what the command printed."""
        words = self.command.replace("/", " ").replace(".", " ").split()
        return "-".join(word.strip("-") for word in words if word not in _PROGRAMS) + ".txt"


def bars() -> list[Bar]:
    """All bars, in the order of the file."""
    return [Bar(**entry) for entry in yaml.safe_load(BARS.read_text(encoding="utf-8"))]


def run(bar: Bar, folder: Path) -> str:
    """Runs a command and keeps what it prints; gives ``ok``, or what went wrong."""
    program, *arguments = shlex.split(bar.command)
    command = [sys.executable, *_PROGRAMS[program], *arguments]
    began = time.monotonic()
    try:
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60 * bar.minutes * _GRACE,
        )
        printed, state = done.stdout, "ok" if done.returncode == 0 else f"exit {done.returncode}"
    except subprocess.TimeoutExpired as error:
        printed, state = str(error.stdout or ""), "too long"
    header = f"{bar.command}\n{_where()}\n{time.monotonic() - began:.0f} s, {state}\n\n"
    (folder / bar.file_name).write_text(header + printed, encoding="utf-8")
    return state


def main(arguments: list[str] | None = None) -> int:
    """Runs the commands and prints the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bars", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/bars"), help="folder of outputs")
    parser.add_argument("--minutes", type=float, default=5.0, help="none that takes longer")
    parser.add_argument("--only", default="", help="commands that contain this")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    print("| promised | bar | command | |\n|---|---|---|---|")
    failed = False
    for bar in bars():
        if bar.minutes <= options.minutes and options.only in bar.command:
            state = run(bar, options.out)
            failed |= state != "ok"
            print(f"| {bar.what} | {bar.bar} | `{bar.command}` | {state} |", flush=True)
    return int(failed)


def _where() -> str:
    commit = subprocess.run(
        [shutil.which("git") or "git", "rev-parse", "--short", "HEAD"],
        capture_output=True,
        text=True,
        cwd=BARS.parent,
    ).stdout.strip()
    names = [platform.processor() or platform.machine()]
    if (cpus := Path("/proc/cpuinfo")).exists():
        lines = cpus.read_text(encoding="utf-8").splitlines()
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"commit {commit}, {names[0]}, Python {platform.python_version()}"


if __name__ == "__main__":
    sys.exit(main())
