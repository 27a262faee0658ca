"""Figures and tables of a report as files, for papers and slides.

Figures are the charts of the page, drawn with Matplotlib; tables are CSV and LaTeX.
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

from archgym.analysis.study import Study
from archgym.charts.draw import Panel, draw_grid
from archgym.data.problems import identifier
from archgym.errors import InvalidValueError, ReportError, UnknownNameError, check_received
from archgym.export.formulas import without_formula
from archgym.report.content import overview, problem_sections
from archgym.report.designs import front_designs
from archgym.report.problem_tables import front_table, pairs_table, results_table, settings_table
from archgym.report.table import Table

FORMATS = ("pdf", "png", "svg")
"""Formats of figures."""
_POINTS = 400
_DESIGNS = 300
_PANELS = 12  # of a figure; of more there are several
_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "^": r"\textasciicircum{}",
        "~": r"\textasciitilde{}",
        "<": "$<$",
        ">": "$>$",
        "\u00b5": r"\textmu{}",
        "\u00b2": "$^2$",
        **{character: f"\\{character}" for character in "&%$#_{}"},
    }
)


def check_formats(text: str) -> list[str]:
    """The formats that a text such as ``"pdf,png"`` names.

    Raises:
        UnknownNameError: for one that there is not.
        InvalidValueError: if it names none.
    """
    found = list(dict.fromkeys(part.strip().lower() for part in text.split(",") if part.strip()))
    for one in found:
        if one not in FORMATS:
            raise UnknownNameError("format", one, FORMATS)
    if not found:
        raise InvalidValueError(f"name at least one format of {', '.join(FORMATS)}")
    return found


def write_figures(study: Study, folder: str | Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Writes every kind of chart as a figure, with a panel for each problem.

    Args:
        study: what is reported.
        folder: that takes the files; made if it is not there.
        formats: any of :data:`FORMATS`.

    Returns:
        The files, such as ``best_by_budget.pdf``.

    Raises:
        ReportError: if they cannot be written.
    """
    charts: dict[str, list[Panel]] = {}
    for chart in overview(study).charts:
        charts.setdefault(chart.key, []).append(Panel(chart, chart.title))
    for problem in study.problems:
        for section in problem_sections(study, problem, _POINTS, _DESIGNS):
            for chart in section.charts:
                charts.setdefault(chart.key, []).append(Panel(chart, problem.name))
    files: list[Path] = []
    target = Path(folder)
    try:
        check_received(target, ReportError)
        target.mkdir(parents=True, exist_ok=True)
        for key, panels in charts.items():
            for start in range(0, len(panels), _PANELS):
                number = f"_{start // _PANELS + 1}" if len(panels) > _PANELS else ""
                paths = [target / f"{identifier(key)}{number}.{one}" for one in formats]
                draw_grid(panels[start : start + _PANELS], paths, study.looks)
                files += paths
    except OSError as error:
        raise ReportError(f"cannot write to {target}: {error.strerror or error}") from error
    return files


def write_tables(study: Study, folder: str | Path) -> list[Path]:
    """Writes the tables over all problems, and of each its results, Pareto set, tests and settings.

    Args:
        study: what is reported.
        folder: that takes the files; made if it is not there.

    Returns:
        The files, such as ``ranking.csv`` and ``ranking.tex``.

    Raises:
        ReportError: if they cannot be written.
    """
    target, files = Path(folder), list[Path]()
    try:
        check_received(target, ReportError)
        target.mkdir(parents=True, exist_ok=True)
        for name, table in _named(study):
            path = target / f"{name}.csv"
            with path.open("w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file, lineterminator="\n")
                headings = (heading.removeprefix(">") for heading in table.columns)
                writer.writerow(map(without_formula, headings))
                rows = ((cell.removeprefix("*") for cell in row) for row in table.rows)
                writer.writerows(map(without_formula, row) for row in rows)
            text = path.with_suffix(".tex")
            text.write_text(latex(table), encoding="utf-8")
            files += [path, text]
    except OSError as error:
        raise ReportError(f"cannot write to {target}: {error.strerror or error}") from error
    return files


def latex(table: Table) -> str:
    """A ``tabular`` for the package booktabs; how to read it stands above as a comment."""
    numbers = [heading.startswith(">") for heading in table.columns]
    heading = [_cell(heading.removeprefix(">")) for heading in table.columns]
    rows = [
        [
            f"\\textbf{{{_cell(cell.removeprefix('*'))}}}" if cell.startswith("*") else _cell(cell)
            for cell in row
        ]
        for row in table.rows
    ]
    lines = [
        *(f"% {line}" for line in [table.title, *table.note.splitlines()] if line),
        "\\begin{tabular}{" + "".join("r" if number else "l" for number in numbers) + "}",
        "\\toprule",
        " & ".join(heading) + " \\\\",
        "\\midrule",
        *(" & ".join(row) + " \\\\" for row in rows),
        "\\bottomrule",
        "\\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    """A text in LaTeX; braces keep one that begins with a bracket from being an option."""
    escaped = " ".join(text.split()).translate(_LATEX)
    return f"{{{escaped}}}" if escaped.startswith(("[", "*")) else escaped


def _named(study: Study) -> Iterator[tuple[str, Table]]:
    """Every table with the name of its files; no two have one."""
    tables = [(table.title.lower().replace(" ", "_"), table) for table in overview(study).tables]
    for problem in (problem for problem in study.problems if problem.found):
        front = front_designs(problem)
        for kind, some in (
            ("results", [results_table(study, problem)]),
            ("pareto", [front_table(problem, front)] if front else []),
            ("pairs", pairs_table(problem)),
            ("hyperparameters", settings_table(study, problem)),
        ):
            tables += [(f"{kind}_{problem.name}", table) for table in some]
    taken: set[str] = set()
    for wanted, table in tables:
        name = identifier(wanted)
        numbered = (f"{name}_{number}" for number in itertools.count(2))
        free = next(one for one in itertools.chain([name], numbered) if one not in taken)
        taken.add(free)
        yield free, table
