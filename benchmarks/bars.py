"""All that archgym promises, run on one commit: ``python -m benchmarks.bars --out DIR``.

``benchmarks/bars.yaml`` lists what is promised, the bar, and the command that shows it. Each
command runs alone, one after the other, and what it prints is kept in DIR, below a header with the
commit, the processor and the time it took. The table that is printed says which commands ended
well; whether a bar is met is for a reader of what they printed. What was found last stands beside
each bar in the file too, and ``--table`` prints all of it as ``RESULTS.md`` shows it.
"""

from __future__ import annotations

import argparse
import platform
import re
import shlex
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import yaml

BARS = Path(__file__).with_suffix(".yaml")
_PROGRAMS = {"python": (), "archgym": ("-m", "archgym"), "pytest": ("-m", "pytest")}
_GRACE = 10.0
"""Times the minutes that a command is expected to take after which it is ended."""
_LONGEST = 80
"""Characters of a command in the name of a file."""


@dataclass(frozen=True)
class Bar:
    """A promise.

    Attributes:
        what: is promised.
        bar: the figure.
        command: that shows it; ``python``, ``archgym`` and ``pytest`` are those of this process.
        minutes: it takes on one quiet core, about.
        found: the last time.
        measured: on which commit or date.
    """

    what: str
    bar: str
    command: str
    minutes: float
    found: str
    measured: str

    @property
    def file_name(self) -> str:
        """Of what the command printed."""
        words = re.findall(r"\w+", self.command)
        name = "-".join(word for word in words if word not in _PROGRAMS)
        if len(name) > _LONGEST:
            name = f"{name[:_LONGEST]}-{crc32(name.encode()):08x}"
        return f"{name}.txt"


def bars() -> list[Bar]:
    """All bars, in the order of the file."""
    return [Bar(**entry) for entry in yaml.safe_load(BARS.read_text(encoding="utf-8"))]


def table() -> str:
    """What is promised and what was found last, in Markdown."""
    head = "| promised | bar | found | measured on | command |\n|---|---|---|---|---|\n"
    return head + "\n".join(
        f"| {bar.what} | {bar.bar} | {bar.found} | {bar.measured} | `{bar.command}` |"
        for bar in bars()
    )


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
    parser.add_argument("--out", type=Path, default=Path("runs/bars"), help="folder of outputs")
    parser.add_argument("--minutes", type=float, default=5.0, help="none that takes longer")
    parser.add_argument("--only", default="", help="commands that contain this")
    parser.add_argument(
        "--table", action="store_true", help="print what was found last, run nothing"
    )
    options = parser.parse_args(arguments)
    if options.table:
        print(table())
        return 0
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
