"""Figures as files, for papers and slides: the charts of the page, drawn with Matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from archgym.analysis.study import Study
from archgym.charts.draw import Panel, draw_grid
from archgym.data.problems import identifier
from archgym.errors import InvalidValueError, ReportError, UnknownNameError
from archgym.report.content import overview, problem_sections

FORMATS = ("pdf", "png", "svg")
"""Formats of figures."""
_POINTS = 400
_DESIGNS = 300
_PANELS = 12  # of a figure; of more there are several


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
