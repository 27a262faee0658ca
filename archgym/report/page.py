"""The report as one HTML file that needs nothing else, and the data beside it."""

from __future__ import annotations

import importlib.resources
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import archgym
from archgym.analysis.study import Problem, Study
from archgym.charts.description import COLOURS, DASHES, PART_COLOURS
from archgym.errors import ReportError
from archgym.problem.goals import direction, goal_label
from archgym.problem.spread import change_of, plus_minus
from archgym.report.content import Section, overview, problem_sections
from archgym.report.designs import ShownDesign
from archgym.report.files import write_data
from archgym.report.study_tables import failed_trials_table

MAX_BYTES = 8_000_000
"""A page that comes out larger is made again with fewer points in each curve."""
_DARK = ("#4aa8f0", "#f58b45", "#2fc79a", "#e59cc5", "#f2b632", "#8fd0f7", "#a8a8a8", "#ffffff")
_DETAILS = ((128, 300), (64, 160), (32, 80), (16, 40), (8, 20))
"""Points of a curve and lines of parallel coordinates, the finest first."""
_POINTS = 1_500_000  # of all curves together
_FIRST_SCREEN_POINTS = 128
_TITLES = (
    ("progress", "Best so far"),
    ("regret", "Regret"),
    ("pareto", "Pareto"),
    ("results", "Significance"),
    ("lottery", "Spread"),
    ("parameters", "Parameters"),
    ("proposals", "Feasibility and time"),
    ("designs", "Best designs"),
    ("explained", "Why the best"),
)


def write_report(study: Study, out: str | Path, command: str = "") -> Path:
    """Writes the report of a study, and its data as Parquet into a folder beside it.

    Args:
        study: what is reported.
        out: the HTML file; folders on its way are made.
        command: that made it, for the reader.

    Returns:
        The file.

    Raises:
        ReportError: if it cannot be written.
    """
    path = Path(out)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        links = write_data(study, path)
        text = _fitting(study, links, command)
        temporary = path.with_name(f".tmp-{os.getpid()}-{path.name}")
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    except OSError as error:
        raise ReportError(f"cannot write {path}: {error.strerror or error}") from error
    return path


def _fitting(study: Study, links: Sequence[dict[str, str]], command: str) -> str:
    """The page, with as much detail as keeps it small enough."""
    lines = sum(4 * 3 * len(set(p.searcher.tolist())) for p in study.problems)
    text = ""
    for points, designs in _DETAILS:
        if points * lines > _POINTS and points > _DETAILS[-1][0]:
            continue
        sections = [problem_sections(study, problem, points, designs) for problem in study.problems]
        text = _page(study, sections, links, command)
        if len(text.encode()) <= MAX_BYTES:
            break
    return text


def _page(
    study: Study,
    sections: Sequence[Sequence[Section]],
    links: Sequence[dict[str, str]],
    command: str,
) -> str:
    import jinja2
    from markupsafe import Markup
    from plotly.offline import get_plotlyjs

    general = overview(study, _FIRST_SCREEN_POINTS)
    shown = {section.key for some in sections for section in some}
    charts = {f"o-{chart.key}": chart.to_json() for chart in general.charts}
    for number, some in enumerate(sections):
        for section in some:
            charts |= {f"p{number}-{chart.key}": chart.to_json() for chart in section.charts}
    data = {
        "colours": {"light": COLOURS, "dark": _DARK},
        "dashes": DASHES,
        "parts": PART_COLOURS,
        "looks": study.looks,
        "charts": charts,
    }
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(_own("page.html")).render(
        study=study,
        searchers={s.name: i for i, s in enumerate(study.searchers)},
        version=archgym.__version__,
        command=command,
        facts=_facts(study),
        overview=general,
        section_names=[{"key": k, "title": t} for k, t in _TITLES if k in shown],
        problems=list(zip(study.problems, sections, strict=True)),
        goals=_goals,
        summary=_summary,
        change=change_of,
        around=plus_minus,
        links=links,
        closing=failed_trials_table(study),
        texts=_texts(study),
        style=Markup(_own("page.css")),
        script=Markup(_own("page.js")),
        plotly=Markup(get_plotlyjs()),
        data=Markup(_script_json(data)),
    )


def _own(name: str) -> str:
    return (importlib.resources.files("archgym.report") / name).read_text(encoding="utf-8")


def _script_json(data: Any) -> str:
    """JSON that no HTML parser takes for the end of a script, whatever is in it."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _goals(problem: Problem) -> list[str]:
    """What stands below the name of a problem: goals, limits, what is held, and the simulator."""
    goals = [
        f"{direction(goal, problem.metrics)} {goal_label(goal, problem.metrics)}"
        for goal in problem.objective.goals
    ]
    goals += [f"limit {limit}" for limit in problem.objective.limits]
    held = ", ".join(f"{name} = {value}" for name, value in problem.fixed.items())
    goals += [f"held: {held}"] if held else []
    excluded = [f"{n} = {', '.join(map(str, out))}" for n, out in problem.space.excluded.items()]
    goals += [f"excluded: {'; '.join(excluded)}"] if excluded else []
    if problem.baseline_breaks:
        goals.append(f"the baseline is not feasible: {' and '.join(problem.baseline_breaks)}")
    if not problem.found:
        goals.append("no design that was simulated keeps all limits")
    goals += [f"workload {problem.workload}"] if problem.workload else []
    simulator = problem.simulator
    goals.append(f"{problem.environment}, simulator {simulator['name']} {simulator['version']}")
    return goals


def _summary(problem: Problem, best: ShownDesign) -> str:
    """What stands beside the name of a design that is shown."""
    parts = [] if best.seed is None else [f"seed {best.seed}"]
    if best.at is not None:
        parts.append(f"after {best.at:,.6g} simulations")
    else:
        names = problem.scorer.metric_names
        parts.append(", ".join(f"{name} {best.metrics[name]:,.5g}" for name in names))
    if best.regret is not None:
        target = "the optimum" if problem.exact else "the best known"
        parts.append(f"{best.regret:.2%} worse than {target}" if best.regret else f"is {target}")
    return ", ".join(parts)


def _facts(study: Study) -> list[str]:
    running = sum(trial.state == "running" for p in study.problems for trial in p.trials)
    facts = [
        f"{study.n_trials:,} trials",
        f"{study.n_proposals:,} proposals, {study.n_simulations:,} simulations",
        _counted(len(study.problems), "problem"),
        f"{_counted(len(study.settings), 'set')} of hyperparameters"
        if study.pooled
        else _counted(len(study.searchers), "agent"),
    ]
    for number, text in (
        (study.missing, "trials have evaluated nothing"),
        (len(study.failures), "trials failed"),
        (running, "trials have not ended"),
    ):
        facts += [f"{number:,} {text}"] if number else []
    for one in study.facts:
        wall = one.get("wall_s")
        if isinstance(wall, int | float):
            since = " since it was resumed" if one.get("resumed") else ""
            facts.append(f"{wall:,.0f} s wall time{since} ({one.get('runner', 'run')})")
    return facts


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' if number != 1 else ''}"


def _texts(study: Study) -> list[str]:
    versions = ", ".join(f"{name} {version}" for name, version in study.versions.items())
    return [
        "Best values, curves and ranks are of full simulations that were feasible. Budgets count "
        "distinct legal designs that were simulated, at a lower fidelity by their relative cost; "
        "duplicates and illegal designs are free. Ranking and regret use metrics, never rewards.",
        f"Recorded with {versions}." if versions else "",
    ]
