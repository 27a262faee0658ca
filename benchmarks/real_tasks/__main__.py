"""The command line; see the package."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.real_tasks.report import as_markdown
from benchmarks.real_tasks.runs import Run, read_runs, run_all
from benchmarks.real_tasks.tasks import TASKS

FOLDER = Path("benchmarks/results/real_tasks")
CONTESTANTS = ("auto", "gp", "local", "ga", "sa", "random", "optuna TPE", "optuna GP")


def main(arguments: list[str] | None = None) -> int:
    """Runs what is missing, and writes and prints the report."""
    options = _parser().parse_args(arguments)
    tasks = [task.name for task in TASKS if options.half in ("all", task.half)]
    tasks = [name for name in tasks if not options.tasks or name in options.tasks]
    path = options.out / "runs.jsonl"
    runs: list[Run] = [
        (task, contestant, seed, options.budget)
        for seed in range(options.seeds)
        for task in tasks
        for contestant in options.contestants
    ]
    if not options.report:
        for line, done, total in run_all(runs, path, options.processes):
            if "error" in line:
                print(f"FAILED {line['run']}\n{line['error']}", file=sys.stderr)
            if done % 10 == 0 or done == total:
                print(f"{done:,} of {total:,} runs", file=sys.stderr, flush=True)
    kept = {run: line for run, line in read_runs(path).items() if run[0] in tasks}
    text = as_markdown(kept, tasks)
    (options.out / f"report-{options.half}.md").write_text(text + "\n", encoding="utf-8")
    print(text)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.real_tasks", description="Compares searches on real tasks."
    )
    add = parser.add_argument
    add("--half", choices=("develop", "judge", "all"), default="develop", help="which tasks")
    add("--tasks", nargs="+", metavar="NAME", help="only these")
    add("--contestants", nargs="+", metavar="NAME", default=CONTESTANTS, help="who searches")
    add("--seeds", type=int, default=10, help="runs of each contestant on each task")
    add("--budget", type=int, default=300, help="evaluations of every run")
    add("--processes", type=int, default=2, help="runs at a time (default: 2)")
    add("--out", type=Path, default=FOLDER, help=f"folder of the results (default: {FOLDER})")
    add("--report", action="store_true", help="only write the report of what has been run")
    return parser


if __name__ == "__main__":
    sys.exit(main())
