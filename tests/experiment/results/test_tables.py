"""Tables of a run in the terminal."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console
from rich.table import Table

from archgym.experiment.results.best_design import _changes, _Flow
from archgym.experiment.results.tables import _Fitting
from archgym.experiment.results.texts import common_values, regret_text


@pytest.mark.parametrize(("width", "lines"), [(80, 1), (38, 2), (33, 2)])
def test_a_table_wider_than_the_terminal_comes_in_parts(width: int, lines: int) -> None:
    def made(*columns: str) -> Table:
        table = Table(box=None, show_header=False)
        table.add_column(min_width=12, overflow="fold")
        for _ in columns:
            table.add_column(no_wrap=True)
        table.add_row("an_agent", *columns)
        return table

    out = io.StringIO()
    goal, counts = "1.7222e+07 / 1.3", "6061.01%"
    fitting = _Fitting(made(goal, counts), [made(goal), made(counts)])
    Console(file=out, width=width).print(fitting, crop=False)
    assert out.getvalue().count("an_agent") == lines
    assert max(map(len, out.getvalue().splitlines())) <= width


def test_values_are_not_torn_from_their_names() -> None:
    out = io.StringIO()
    texts = ["time_ns 73.5 (-1%)", "power_mw 890 (-3%)", "energy_pj 6.5e+07 (-3%)"]
    Console(file=out, width=45).print(_Flow("", texts))
    assert out.getvalue().splitlines() == [f"  {texts[0]}, {texts[1]},", f"  {texts[2]}"]


def test_what_a_design_has_otherwise_than_the_baseline() -> None:
    design = {"policy": "timeout", "timeout_cycles": 64, "ways": 4}
    baseline = {"policy": "open", "ways": 4}
    assert _changes(design, baseline) == ["policy=timeout (open)", "timeout_cycles=64"]
    assert _changes(design, {}) == []


@pytest.mark.parametrize(
    ("regret", "text"),
    [
        (0.0, "0.00%"),
        (1e-13, "0.00%"),
        (0.00001234, "0.00123%"),
        (0.0123456, "1.23%"),
        (0.5, "50.0%"),
        (12.3456, "1235%"),
        (9_999.0, "999900%"),
        (8.943303776973e19, "8.94e+21%"),
        (float("inf"), "-"),
    ],
)
def test_regrets_have_three_significant_digits(regret: float, text: str) -> None:
    assert regret_text(regret) == text


def test_what_designs_have_in_common_is_said_once() -> None:
    designs: list[dict[str, Any]] = [
        {"x": 1, "y": 2, "mode": "a"},
        {"x": 1, "y": 3},
        {"x": 1, "y": 2, "mode": "a"},
    ]
    assert common_values(designs) == {"x": 1}
    assert common_values(designs[:1]) == {}
