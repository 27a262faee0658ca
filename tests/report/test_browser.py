"""The page in Debian's chromium: it is opened, clicked through, and looked at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from archgym.report import read_study, write_report
from tests.report.chromium import Chromium, chromium_path
from tests.report.studies import run

pytestmark = pytest.mark.skipif(
    chromium_path() is None, reason="chromium is not installed (Debian: apt-get install chromium)"
)
NAME = "<b onclick=alert(1)>random</b>"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    folder = tmp_path_factory.mktemp("browser")
    entry = {"id": "Conformance-v0", "space": "finite"}
    goals = {"objective": {"minimize": ["access_ns", "energy_pj"]}}
    study = read_study([run(folder / "run", environments=[entry, {**entry, **goals}], budget=70)])
    study.searchers[0] = type(study.searchers[0])(NAME, "random")
    page = write_report(study, folder / "report.html")
    browser = Chromium(folder / "profile")
    try:
        browser.open(page.as_uri())
        browser.evaluate("archgymReport.drawAll()")
        yield browser
    finally:
        browser.close()


def visible(browser: Chromium, what: str) -> list[Any]:
    """Something of every chart that is shown."""
    found: list[Any] = browser.evaluate(
        "[...document.querySelectorAll('figure.chart')].filter((f) => f.offsetParent !== null)"
        f".map((f) => {what})"
    )
    return found


def test_every_chart_is_drawn_without_an_error(browser: Chromium) -> None:
    drawn = visible(browser, "[f.dataset.chart, f.querySelectorAll('.main-svg').length]")
    assert len(drawn) >= 8
    assert [chart for chart, pictures in drawn if not pictures] == []
    assert browser.problems == []


def test_nothing_is_asked_of_the_network(browser: Chromium) -> None:
    assert [r for r in browser.requests if not r.startswith(("file:", "data:", "blob:"))] == []


def test_lines_are_those_of_the_data(browser: Chromium) -> None:
    chart = "document.querySelector('[data-chart=\"p0-best_by_budget\"] .plot')"
    ends = browser.evaluate(
        f"{chart}.data.filter((t) => t.hoverinfo !== 'skip').map((t) => t.y[t.y.length - 1])"
    )
    known = browser.evaluate(
        "JSON.parse(document.getElementById('report-data').textContent)"
        ".charts['p0-best_by_budget'].series.map((s) => s.y[s.y.length - 1])"
    )
    assert ends == known


def test_the_legend_hides_an_agent_everywhere(browser: Chromium) -> None:
    names = "(f.querySelector('.plot').data || []).map((t) => t.name)"
    before = visible(browser, names)
    browser.click(".chip[data-searcher='1']")
    browser.wait("document.querySelector(\".chip[data-searcher='1']\").ariaPressed === 'false'")
    hidden = "ga population_size=4"
    assert any(hidden in some for some in before)
    browser.evaluate("archgymReport.drawAll()")
    assert not any(hidden in some for some in visible(browser, names))
    browser.click(".chip[data-searcher='1']")
    browser.evaluate("archgymReport.drawAll()")
    assert visible(browser, names) == before


def test_the_theme_changes_paper_and_ink(browser: Chromium) -> None:
    colours = (
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.querySelector("
        "'[data-chart=\"p0-best_by_budget\"] .xtick text')).fill]"
    )
    browser.evaluate("archgymReport.setTheme('light')")
    light = browser.evaluate(colours)
    browser.click("#theme")
    browser.wait("document.documentElement.dataset.theme === 'dark'")
    browser.evaluate("archgymReport.drawAll()")
    dark = browser.evaluate(colours)
    browser.evaluate("archgymReport.setTheme('light')")
    assert light[0] == "rgb(255, 255, 255)"
    assert brightness(light[0]) - brightness(light[1]) > 150
    assert brightness(dark[1]) - brightness(dark[0]) > 150


def brightness(colour: str) -> float:
    numbers = [float(part) for part in colour.partition("(")[2].rstrip(")").split(",")[:3]]
    return sum(numbers) / 3


def test_another_problem_is_chosen(browser: Chromium) -> None:
    browser.evaluate(
        "(() => { const s = document.getElementById('problem'); s.value = '1';"
        "s.dispatchEvent(new Event('change')); })()"
    )
    assert browser.evaluate("archgymReport.drawAll()") >= 8
    charts = visible(browser, "f.dataset.chart")
    assert "p1-hypervolume" in charts
    assert not any(chart.startswith("p0-") for chart in charts)
    browser.evaluate("archgymReport.showProblem(0)")


def test_names_are_texts(browser: Chromium) -> None:
    assert browser.evaluate("document.querySelectorAll('[onclick]').length") == 0
    legend = browser.evaluate("document.querySelector('.chip').textContent")
    assert legend == NAME
    ticks = browser.evaluate(
        "[...document.querySelectorAll('[data-chart=\"p0-lottery\"] .xtick')]"
        ".map((t) => t.textContent)"
    )
    assert ticks[0].replace(" ", "") == NAME.replace(" ", "")


def test_the_command_of_a_design_is_copied(browser: Chromium) -> None:
    browser.evaluate("document.querySelector('.problem:not([hidden]) details').open = true")
    browser.click(".problem:not([hidden]) .copy")
    browser.wait("document.querySelector('.problem:not([hidden]) .copy').textContent === 'Copied'")


def test_labels_do_not_run_into_each_other(browser: Chromium) -> None:
    overlapping = browser.evaluate(
        """(() => {
          const found = [];
          for (const plot of document.querySelectorAll('.problem:not([hidden]) .plot')) {
            for (const axis of ['.xtick', '.ytick']) {
              const boxes = [...plot.querySelectorAll(axis)].map((t) => t.getBoundingClientRect());
              boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b) => {
                const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
                const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
                if (wide > 1 && high > 1) found.push(plot.closest('figure').dataset.chart + axis);
              }));
            }
          }
          return found;
        })()"""
    )
    assert overlapping == []
