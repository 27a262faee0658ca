"""The page: everything is in it, nothing is fetched, and no name in it does harm."""

from __future__ import annotations

import csv
import json
import re
import shlex
from collections.abc import Callable
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

import pyarrow.parquet as pq
import pytest

from archgym.charts.description import Kind
from archgym.charts.draw import _KINDS
from archgym.data import Dataset
from archgym.report import read_study, write_report
from archgym.report.designs import front_designs
from archgym.report.papers import latex
from archgym.report.problem_tables import front_table
from archgym.report.table import Table
from tests.cli.conftest import Called, call
from tests.report.studies import run

__all__ = ["call"]

HOSTILE = "</script><img src=x onerror=alert(1)>'\"&"


class Page(HTMLParser):
    """Tags with their attributes, texts of tables, and scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[list[str]] = []
        self.text = ""
        self.scripts: dict[str, str] = {}
        self._in = ""
        self._cell = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
            self._cell = True
        if tag in ("script", "style"):
            self._in = dict(attrs).get("id") or tag

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style"):
            self._in = ""
        self._cell = self._cell and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self._in:
            self.scripts[self._in] = self.scripts.get(self._in, "") + data
            return
        self.text += data
        if self._cell:
            self.rows[-1][-1] += data

    @property
    def data(self) -> Any:
        return json.loads(self.scripts["report-data"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    entry = {"id": "Conformance-v0", "space": "finite"}
    environments = [
        entry,
        {**entry, "objective": {"minimize": ["access_ns", "energy_pj"]}},
        {**entry, "objective": {"minimize": "access_ns", "limits": ["energy_pj <= 20"]}},
    ]
    return run(tmp_path_factory.mktemp("study") / "run", environments=environments, budget=60)


@pytest.fixture(scope="module")
def page(folder: Path) -> Page:
    return Page(write_report(read_study([folder]), folder / "report.html").read_text())


def test_nothing_is_fetched(page: Page) -> None:
    for tag, attributes in page.tags:
        assert tag not in ("link", "iframe", "object", "embed", "img")
        assert "src" not in attributes
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, attributes)
            if name == "href":
                assert not re.match(r"[a-z]+:|//", value or ""), value
    policy = next(a["content"] or "" for t, a in page.tags if "http-equiv" in a)
    assert "default-src 'none'" in policy
    assert "connect-src" not in policy  # so that it is 'none' too


def test_every_kind_of_chart_is_there(page: Page) -> None:
    keys = {key.partition("-")[2] for key in page.data["charts"]}
    expected = {
        "first_1",
        "first_2",
        "ranking",
        "best_by_budget",
        "best_by_budget_2",
        "best_by_time",
        "best_by_time_2",
        "regret",
        "reaching",
        "hypervolume",
        "front_1_2",
        "lottery",
        "importance",
        "values",
        "parallel",
        "feasibility",
        "time_split",
    }
    assert keys == expected, "name a new chart here and in docs/guides/reports.md"
    placed = {a["data-chart"] for t, a in page.tags if t == "figure"}
    assert placed == set(page.data["charts"])


def test_every_kind_of_chart_is_drawn() -> None:
    script = files("archgym.report").joinpath("page.js").read_text("utf-8")
    drawn = re.search(r"const makers = \{ (.*?) \}", script)
    assert drawn is not None
    assert set(drawn[1].split(", ")) == set(get_args(Kind)), "draw it in archgym/report/page.js"
    assert set(_KINDS) == set(get_args(Kind)), "draw it in archgym/charts/draw.py"


def test_axes_have_units(page: Page) -> None:
    charts = page.data["charts"]
    assert charts["p0-best_by_budget"]["y"]["label"] == "access_ns [ns]"
    assert charts["p0-best_by_time"]["x"]["label"] == "time in simulator and agent [s]"
    assert charts["p1-front_1_2"]["y"]["label"] == "energy_pj [pJ]"
    headings = [row for row in page.rows if row[:1] == ["metric"]]
    assert headings[0] == ["metric", "value", "unit", "baseline", "change"]
    assert any(row[:1] == ["energy_pj"] and row[2] == "pJ" for row in page.rows)


def test_tables_say_what_was_found(folder: Path, page: Page) -> None:
    study = read_study([folder])
    names = {problem.name for problem in study.problems}
    rows = {row[0]: row for row in page.rows if len(row) == 8 and row[0] in names}
    for problem in study.problems:
        if not problem.several:
            best = float(rows[problem.name][4].replace(",", ""))
            assert best == pytest.approx(problem.score.min(), rel=1e-4)


def test_the_pareto_set_is_that_of_the_summary(folder: Path, call: Callable[..., Called]) -> None:
    found = call("best", folder, "--json").json
    (front,) = (problem["front"] for problem in found if "front" in problem)
    study = read_study([folder])
    (problem,) = (problem for problem in study.problems if problem.several)
    everything = front_designs(problem, most=1000)
    assert [one.command for one in everything] == [one["command"] for one in front]
    assert [one.metrics for one in everything] == [one["metrics"] for one in front]
    few = front_designs(problem, most=5)
    assert 3 <= len(few) <= 5 < len(everything)
    shown = {one.command for one in few}
    assert [one.command for one in few] == [c for one in front if (c := one["command"]) in shown]
    for name in ("access_ns", "energy_pj"):
        assert min(one["metrics"][name] for one in front) in {one.metrics[name] for one in few}
    (best,) = (problem["best"]["command"] for problem in found if "front" in problem)
    assert best in shown
    table = front_table(problem, everything)
    assert [float(row[0]) for row in table.rows] == pytest.approx(
        [one["metrics"]["access_ns"] for one in front], rel=1e-4
    )


def test_hostile_names_stay_text(folder: Path, tmp_path: Path) -> None:
    study = read_study([folder], by="agent")
    problem = study.problems[0]
    problem.name = problem.workload = study.name = HOSTILE
    study.searchers[0] = type(study.searchers[0])(HOSTILE, HOSTILE)
    study.failures[HOSTILE] = 0, HOSTILE
    problem.measures.reasons[0, HOSTILE] = 3
    text = write_report(study, tmp_path / "page.html", f"archgym report {HOSTILE}").read_text()
    assert HOSTILE not in text
    found = Page(text)
    assert "img" not in [tag for tag, _ in found.tags]
    assert sum(tag == "script" for tag, _ in found.tags) == 3
    assert HOSTILE in found.text  # and is shown as it is
    series = found.data["charts"]["p0-best_by_budget"]["series"]
    assert HOSTILE in [one["name"] for one in series]


def test_the_data_lie_beside_it(folder: Path, page: Page) -> None:
    links = [a["href"] or "" for t, a in page.tags if t == "a" and ".parquet" in (a["href"] or "")]
    assert links == ["report_data/trials.parquet", "report_data/improvements.parquet"]
    trials, steps = (pq.read_table(folder / link) for link in links)
    study = read_study([folder])
    assert trials.num_rows == study.n_trials
    assert set(steps["trial_id"].to_pylist()) <= set(trials["trial_id"].to_pylist())
    first = study.problems[0]
    mine = [row for row in trials.to_pylist() if row["problem"] == first.name]
    assert [row["score"] for row in mine] == first.score.tolist()


def test_a_design_comes_out_again_by_its_command(
    folder: Path, page: Page, call: Callable[..., Called]
) -> None:
    commands = re.findall(r"archgym evaluate Conformance-v0 .*?(?=Copy)", page.text)
    fronts = sum(len(front_designs(problem)) for problem in read_study([folder]).problems)
    assert len(commands) == 9 + fronts  # three searchers on three problems, and a Pareto set
    study = read_study([folder])
    for command in commands[:4]:
        found = call(*shlex.split(command)[1:], "--json").json
        assert found["status"] == "ok"
        known = [
            chosen.metrics
            for problem in study.problems
            for chosen in problem.chosen.values()
            if problem.space.design(chosen.codes.tolist()) == found["design"]
        ]
        assert found["metrics"] in known


@pytest.mark.full
def test_command_makes_page_and_figures(
    folder: Path, tmp_path: Path, call: Callable[..., Called]
) -> None:
    out = tmp_path / "deep" / "page.html"
    figures = tmp_path / "figures"
    found = call(
        "report", folder, "--out", out, "--figures", figures, "--format", "svg,pdf", "--by", "agent"
    )
    assert found.code == 0, found.err
    assert "page.html" in found.out
    assert out.stat().st_size < 8_000_000
    names = {path.name for path in figures.iterdir()}
    assert {"best_by_budget.pdf", "best_by_budget.svg", "lottery.pdf", "front_1_2.svg"} <= names
    assert (figures / "regret.pdf").read_bytes().startswith(b"%PDF")
    assert "<svg" in (figures / "regret.svg").read_text()[:2000]


def test_tables_are_files_too(folder: Path, tmp_path: Path, call: Callable[..., Called]) -> None:
    tables = tmp_path / "tables"
    found = call("report", folder, "--out", tmp_path / "page.html", "--tables", tables)
    assert found.code == 0, found.err
    assert f"tables:   {len(list(tables.iterdir()))} files" in found.out
    names = [problem.name for problem in read_study([folder]).problems]
    with (tables / "problems.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0][:3] == ["problem", "goal", "trials"]
    assert [row[0] for row in rows[1:]] == names
    assert len(list(tables.glob("results_*.csv"))) == len(names)
    assert (tables / "ranking.tex").read_text().count("\\\\\n") == 4  # a heading, three sets
    assert "access\\_ns [ns] & " in (tables / "problems.tex").read_text()


def test_latex_takes_every_text() -> None:
    rows = [["50 % & {up} [\u00b5m\u00b2]", "*< 0.01"], ["[1 to 2]", "1"]]
    lines = latex(Table("T", ["a_b", ">p #1"], rows, "How.\nMore.")).splitlines()
    assert lines[:4] == ["% T", "% How.", "% More.", "\\begin{tabular}{lr}"]
    assert lines[5] == "a\\_b & p \\#1 \\\\"
    assert lines[7] == "50 \\% \\& \\{up\\} [\\textmu{}m$^2$] & \\textbf{$<$ 0.01} \\\\"
    assert lines[8] == "{[1 to 2]} & 1 \\\\"


@pytest.mark.full
def test_figures_are_the_same_each_time(folder: Path, tmp_path: Path) -> None:
    from archgym.report import write_figures

    study = read_study([folder])
    first, second = (write_figures(study, tmp_path / name, ["svg"]) for name in ("a", "b"))
    assert len(first) >= 10
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes(), one.name


def test_compares_two_runs(folder: Path, tmp_path: Path, call: Callable[..., Called]) -> None:
    # The second run searched eighty times as long: it is better, and that shows.
    entry = {"id": "Conformance-v0", "space": "finite"}
    seeds = list(range(8))
    agents = [{"name": "random"}]
    first = run(tmp_path / "a", environments=[entry], agents=agents, seeds=seeds, budget=5)
    second = run(tmp_path / "b", environments=[entry], agents=agents, seeds=seeds, budget=400)
    out = tmp_path / "both.html"
    found = call("report", "--compare", first, second, "--out", out)
    assert found.code == 0, found.err
    page = Page(out.read_text())
    (row,) = [row for row in page.rows if len(row) == 10 and row[0] == "access_ns"]
    assert row[1:4] == ["random", "8 / 8", "5 / 400"]
    assert row[-1] == "b is better"
    assert "unequal numbers of designs" in out.read_text()
    both = page.data["charts"]["p0-best_by_budget"]["series"]
    assert [one["name"] for one in both] == ["random (a)", "random (b)"]
    assert page.data["looks"] == [[0, 0], [0, 1]]  # one colour, another style


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give one folder DIR, or two with --compare"),
        (["{folder}", "--compare", "a", "b"], "give one folder DIR, or two with --compare"),
        (["{folder}", "--format", "pgn"], "Did you mean 'png'"),
        (["{folder}", "--format", ","], "name at least one format"),
        (["nowhere"], "nowhere is not there"),
        (["{folder}", "--out", "{folder}/trials.json/page.html"], "cannot write"),
        (["{folder}", "--out", "{folder}/page"], "ends in .html"),
    ],
)
def test_bad_input(
    arguments: list[str], message: str, folder: Path, call: Callable[..., Called]
) -> None:
    found = call("report", *(text.format(folder=folder) for text in arguments))
    assert found.code == 2
    assert message in found.err


def test_a_run_that_is_not_over_is_reported(folder: Path, tmp_path: Path) -> None:
    import archgym

    environment = archgym.make("Conformance-v0", record=tmp_path / "data")
    agent = archgym.make_agent("random", environment.design_space, seed=0)
    agent.search(environment, 5, trial_id="still-going")
    environment.start_trial()
    journals = list((tmp_path / "data" / "journal").iterdir())
    assert journals  # nothing is sealed yet
    study = read_study([tmp_path / "data"])
    assert study.n_proposals == 5
    assert write_report(study, tmp_path / "page.html").stat().st_size > 1_000_000
    assert Dataset(tmp_path / "data").trials().num_rows == 1
    environment.close()
