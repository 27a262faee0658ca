"""The command line; see the package."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from archgym.registry import agent_names
from benchmarks.search_quality import plan, problems, report, summary
from benchmarks.search_quality.contestants import contestant, contestants
from benchmarks.search_quality.facts import Facts
from benchmarks.search_quality.runner import Line, pack_runs, read_runs, run_tasks, update_best

FOLDER = Path("benchmarks/results/search_quality")


def main(arguments: list[str] | None = None) -> int:
    """Runs what is missing, and writes and prints the report."""
    options = _parser().parse_args(arguments)
    size = plan.SUBSET if options.subset else plan.FULL
    if options.seeds:
        every = (options.seeds, options.seeds)
        size = replace(
            size, seeds=options.seeds, slow_seeds=every, bounded_seeds=every, grid_seeds=0
        )
    if options.budget:
        n = options.budget
        size = replace(size, budget=n, slow_budget=n, bounded_budget=n, deep=(0, 0))
    skipped: list[str] = []
    chosen, players = [], []
    for name in options.problems or problems.suite():
        why = problems.missing(name)
        (skipped.append(f"{name}: {why}") if why else chosen.append(problems.problem(name).name))
    for name in options.contestants or contestants():
        why = contestant(name).missing
        (skipped.append(f"{name}: {why}") if why else players.append(name))
    if options.problems:  # they are asked for by name: no selection on top
        size = replace(size, problems=(), slowest_everywhere=bool(options.contestants))
    for line in skipped:
        print(f"skipped {line}")
    if options.list:
        print("problems:", *chosen, sep="\n  ")
        print("contestants:", *players, sep="\n  ")
        return 0
    wanted = [name for name in chosen if not size.problems or name in size.problems]
    facts = {}
    for name in wanted:
        facts[name] = problems.read_facts(problems.problem(name), options.out)
        needed = facts[name].random_evaluations
        print(f"{name}: random search needs {'unknown' if needed is None else f'{needed:,.0f}'}")
    if not options.report:
        todo = plan.tasks(size, wanted, players)
        progress = _Progress()
        run_tasks(
            todo,
            facts,
            options.out,
            processes=options.processes,
            retry=options.retry,
            on_line=progress,
        )
        pack_runs(options.out)
    _write(options.out, facts, wanted, players, skipped, arguments)
    return 0


def _write(
    folder: Path,
    facts: dict[str, Facts],
    wanted: list[str],
    players: list[str],
    skipped: list[str],
    arguments: list[str] | None,
) -> None:
    """Brings the best values up to date, then writes and prints the report."""
    lines = [x for x in read_runs(folder) if x["problem"] in wanted and x["contestant"] in players]
    best = update_best(folder, lines)
    given = sys.argv[1:] if arguments is None else arguments
    about: dict[str, Any] = {
        "command": shlex.join(["python", "-m", "benchmarks.search_quality", *given]),
        "versions": report.versions(),
        "skipped": skipped,
        "runs": len(lines),
        "seconds": round(sum(line["wall_s"] for line in lines), 1),
    }
    found = summary.summarise(lines, facts, best, frozenset(agent_names()))
    text = report.as_markdown(found, facts, about)
    (folder / "report.md").write_text(text, encoding="utf-8")
    data = json.dumps(report.as_json(found, facts, about), indent=1, allow_nan=False)
    (folder / "report.json").write_text(data + "\n", encoding="utf-8")
    print(text)


class _Progress:
    """A line on stderr every few seconds, and one for each error."""

    def __init__(self) -> None:
        self._began = self._shown = time.monotonic()

    def __call__(self, line: Line, done: int, total: int) -> None:
        if "error" in line:
            print(f"FAILED {line['key']}\n{line['error']}", file=sys.stderr)
        now = time.monotonic()
        if now - self._shown > 10 or done == total:
            self._shown = now
            left = (now - self._began) / done * (total - done)
            text = (
                f"{done:,} of {total:,} runs, {now - self._began:,.0f} s, about {left:,.0f} s left"
            )
            print(text, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.search_quality", description="Compares searches."
    )
    add = parser.add_argument
    add("--subset", action="store_true", help="five problems, few seeds: about 10 minutes")
    add("--problems", nargs="+", metavar="NAME", help="only these")
    add("--contestants", nargs="+", metavar="NAME", help="only these")
    add("--seeds", type=int, help="runs of each contestant on each problem")
    add("--budget", type=int, help="evaluations of every run")
    add("--processes", type=int, default=2, help="runs at a time (default: 2)")
    add("--out", type=Path, default=FOLDER, help=f"folder of the results (default: {FOLDER})")
    add("--report", action="store_true", help="only write the report of what has been run")
    add("--retry", action="store_true", help="run again what ended in an error")
    add("--list", action="store_true", help="list problems and contestants, and stop")
    return parser


if __name__ == "__main__":
    sys.exit(main())
