"""``archgym best``."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from archgym.cli.options import Json
from archgym.cli.output import console, paragraph, print_json, print_table
from archgym.evaluation.outcome import Outcome

if TYPE_CHECKING:
    from archgym.analysis.held_out import HeldOut
    from archgym.analysis.trials import TrialSummary
    from archgym.experiment.spec.expand import Trial
    from archgym.history.account import SourceAccount

__all__ = ["best"]


def best(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a run, or a dataset.")],
    json: Json = False,
) -> None:
    """Show the best designs of a run or a dataset."""
    from archgym.analysis.trials import read_trials
    from archgym.data import find_datasets
    from archgym.experiment.folder.run_folder import RunFolder
    from archgym.experiment.folder.trial_states import read_ends
    from archgym.experiment.results.reproduce import trials_in
    from archgym.history.kept import read_accounts

    problems: dict[tuple[str, ...], list[TrialSummary]] = {}
    datasets = find_datasets(folder)
    trials = trials_in(folder, [(one, one.trials().to_pylist()) for one in datasets])
    held_out = {name: end.held_out for name, end in read_ends(RunFolder(folder).logs).items()}
    for dataset in datasets:
        for summary in read_trials(dataset):
            problems.setdefault(summary.problem, []).append(summary)
    if json:
        print_json([_json(summaries, trials, held_out) for summaries in problems.values()])
    else:
        for summaries in problems.values():
            file = RunFolder(folder).history_file(trials[summaries[0].trial_id].setting)
            _show(summaries, trials, held_out, read_accounts(file) if file.exists() else ())


def _json(
    summaries: list[TrialSummary],
    trials: Mapping[str, Trial],
    held_out: Mapping[str, HeldOut | None],
) -> dict[str, Any]:
    from archgym.experiment.results.best_design import best_of
    from archgym.experiment.results.reproduce import evaluate_command

    def found_json(summary: TrialSummary, outcome: Outcome) -> dict[str, Any]:
        command = evaluate_command(trials[summary.trial_id], outcome.design)
        return {**summary.outcome_json(outcome), "command": command}

    some, found = summaries[0], best_of(summaries)
    data: dict[str, Any] = {
        **{name: getattr(some, name) for name in ("environment", "settings", "workload", "fixed")},
        "objective": some.objective.to_json(),
        "trials": len(summaries),
        "simulations": sum(summary.simulations for summary in summaries),
        "spent": sum(summary.spent for summary in summaries),
        "best": None,
    }
    if found is not None and found.best is not None:
        origin = {"trial_id": found.trial_id, "agent": found.agent, "seed": found.seed}
        data["best"] = {**origin, "at": found.best_at, **found_json(found, found.best)}
        data["best"]["regret"] = found.regret
        data["best"]["from_history"] = found.from_history
        left_out = held_out.get(found.trial_id)
        data["best"]["held_out"] = None if left_out is None else dataclasses.asdict(left_out)
    if len(some.objective.goals) > 1:
        data["front"] = [
            {"trial_id": summary.trial_id, **found_json(summary, outcome)}
            for summary, outcome in _front(summaries)
        ]
    return data


def _front(summaries: list[TrialSummary]) -> list[tuple[TrialSummary, Outcome]]:
    """Non-dominated outcomes of all trials together, ordered by the first goal."""
    import numpy as np

    from archgym.analysis.measures import non_dominated

    all_of_them = [(summary, outcome) for summary in summaries for outcome in summary.front]
    if not all_of_them:
        return []
    values = np.array([outcome.objectives for _, outcome in all_of_them])
    keep = non_dominated(values).tolist()
    return sorted((all_of_them[i] for i in keep), key=lambda pair: pair[1].objectives)


def _show(
    summaries: list[TrialSummary],
    trials: Mapping[str, Trial],
    held_out: Mapping[str, HeldOut | None],
    accounts: Sequence[SourceAccount],
) -> None:
    from archgym.experiment.results.best_design import best_design, best_held_out, best_of
    from archgym.experiment.results.tables import title
    from archgym.experiment.results.texts import common_values, design_text, value_text

    some, found = summaries[0], best_of(summaries)
    plain = {k: v for k, v in some.settings.items() if v and not k.endswith("_sha256")}
    settings = " ".join(f"{k}={v}" for k, v in {**plain, **some.fixed}.items())
    name = " ".join(part for part in (some.environment, some.workload, settings) if part)
    console().print(title(name, summaries))
    for account in accounts:
        paragraph(f"  read: {account}", "dim")
    count = f"{len(summaries)} trials, {sum(s.simulations for s in summaries):,} simulations"
    full = sum(s.full_simulations for s in summaries)
    if any(s.spent != s.simulations for s in summaries):
        count += f", {full:,} of them full"
    paragraph(count, "dim")
    if found is None:
        partial = "" if full or not any(s.simulations for s in summaries) else " fully yet"
        paragraph(f"nothing could be simulated{partial}\n")
        return
    console().print(best_design(found, trials[found.trial_id]), crop=False)
    left_out = held_out.get(found.trial_id)
    if left_out is not None:
        console().print(best_held_out(left_out), crop=False)
    goals = some.objective.goals
    if len(goals) > 1:
        front = _front(summaries)
        alike = common_values([outcome.design for _, outcome in front])
        rows = [
            [
                *(value_text(summary, i, v) for i, v in enumerate(outcome.objectives)),
                summary.agent,
                design_text({k: v for k, v in outcome.design.items() if k not in alike}),
            ]
            for summary, outcome in front
        ]
        columns = [*(f">{goal.name}" for goal in goals), "agent", "design"]
        print_table(columns, rows, title="Pareto set")
        if alike:
            paragraph(f"all of them: {design_text(alike)}")
        paragraph("--json has all their metrics, and the command of each", "dim")
    paragraph()
