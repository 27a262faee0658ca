"""Draw the commands that a DRAM controller sends, bank by bank.

The CSV file comes from ``archgym trace commands WORKLOAD --out commands.csv``.
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

LOOKS = {  # the beginning of a command: what it does, colour
    "act": ("activate", "#d55e00"),
    "rd": ("read", "#0072b2"),
    "wr": ("write", "#009e73"),
    "pre": ("precharge", "#555555"),
    "ref": ("refresh", "#cc79a7"),
}
Command = tuple[float, str, list[int]]
"""Time in ns, beginning of the command, banks that it concerns."""


def read(path: str, n_banks: int) -> list[Command]:
    """The commands of a file for one rank; a command without a bank concerns all banks."""
    found = []
    with open(path, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            kind = next(start for start in LOOKS if row["command"].startswith(start))
            banks = [int(row["bank"])] if row["bank"] else list(range(n_banks))
            found.append((float(row["time_ns"]), kind, banks))
    return found


def open_rows(commands: list[Command]) -> list[tuple[int, float, float]]:
    """Bank, start and end (ns) of each time in which a row of the bank is open."""
    since: dict[int, float] = {}
    spans = []
    for time, kind, banks in commands:
        for bank in banks:
            if kind == "act":
                since[bank] = time
            elif kind == "pre" and bank in since:
                spans.append((bank, since.pop(bank), time))
    return spans + [(bank, time, commands[-1][0]) for bank, time in since.items()]


def draw(commands: list[Command], n_banks: int, start_ns: float, end_ns: float) -> Figure:
    """A line for each bank: open rows as bars, commands as marks."""
    figure = Figure(figsize=(8, 3.8), layout="constrained")
    axes = figure.subplots()
    for bank, start, end in open_rows(commands):
        axes.barh(bank, end - start, left=start, height=0.55, color="#e4e4e4", zorder=1)
    marks: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for time, kind, banks in commands:
        marks[kind] += [(time, bank) for bank in banks if start_ns <= time < end_ns]
    for kind, points in marks.items():
        if points:
            axes.scatter(*zip(*points, strict=True), s=24, marker="|", color=LOOKS[kind][1])
    axes.set(xlim=(start_ns, end_ns), ylim=(-0.7, n_banks - 0.3), yticks=range(n_banks))
    axes.set(xlabel="time, ns", ylabel="bank")
    axes.spines[["top", "right"]].set_visible(False)
    look = {"marker": "|", "linestyle": "", "markersize": 9, "markeredgewidth": 2}
    handles = [Line2D([], [], color=color, label=name, **look) for name, color in LOOKS.values()]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles), frameon=False)
    return figure


def main() -> None:
    """Read a command trace, write a picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commands", help="CSV file that archgym trace commands wrote")
    parser.add_argument("picture", help="PNG or SVG file to write")
    parser.add_argument("--banks", type=int, default=16, help="banks of a rank")
    parser.add_argument("--start-ns", type=float, default=0.0)
    parser.add_argument("--end-ns", type=float, default=2000.0)
    given = parser.parse_args()
    commands = read(given.commands, given.banks)
    draw(commands, given.banks, given.start_ns, given.end_ns).savefig(given.picture, dpi=130)


if __name__ == "__main__":
    main()
