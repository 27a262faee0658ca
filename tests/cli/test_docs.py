"""The pages of documentation are made from what they document, and are those that ship."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import Field
from typer.main import get_command

import archgym
from archgym.cli import app
from archgym.cli.docs.agent_page import agent_page
from archgym.cli.docs.command import page
from archgym.cli.docs.commands_page import commands_page
from archgym.cli.docs.environment_page import agreement_of, environment_page
from archgym.cli.docs.experiment_page import experiment_page
from archgym.errors import AgentUnsuitableError
from archgym.registry import agent_class, agent_names, environment_class, environment_names
from archgym.space import Designs, DesignSpace, Integer
from tests.cli.conftest import Called

DOCS = Path(__file__).parent.parent.parent / "docs"
# Taken before any test runs: tests of other modules register environments of their own.
ENVIRONMENTS, AGENTS = environment_names(), agent_names()


@pytest.mark.parametrize("name", [*ENVIRONMENTS, *AGENTS, "commands", "experiment"])
def test_the_page_that_ships_is_of_what_is_there(name: str) -> None:
    path, make = page(name, DOCS, get_command(app))
    shown = path.read_text() if path.is_file() else ""
    assert shown == make(), f"make it (again): archgym docs {name}"


def test_no_page_is_of_what_is_gone() -> None:
    for folder, names in (("environments", ENVIRONMENTS), ("agents", AGENTS)):
        found = {path.stem for path in (DOCS / folder).glob("*.md")} - {"index"}
        assert not found - set(names), f"delete the pages of what is gone from docs/{folder}"


@pytest.mark.parametrize("path", sorted((DOCS / "agreement").glob("*.json")), ids=lambda p: p.stem)
def test_agreement_is_that_of_the_simulator_as_it_is(path: Path) -> None:
    kept = json.loads(path.read_text(encoding="utf-8"))
    cls = environment_class(path.stem)
    assert kept["version"] == cls.version, f"measure it again: archgym docs {path.stem} --validate"
    rows = {one.title: len(one.rows) for one in cls.references() if one.rows}
    assert {one["title"]: one["rows"] for one in kept["references"]} == rows


@pytest.mark.nightly
@pytest.mark.parametrize("path", sorted((DOCS / "agreement").glob("*.json")), ids=lambda p: p.stem)
def test_agreement_is_what_validation_measures(
    path: Path, tmp_path: Path, call: Callable[..., Called]
) -> None:
    found = call("validate", path.stem, "--json").json
    now = agreement_of(path.stem, environment_class(path.stem).version, found)
    before = json.loads(path.read_text(encoding="utf-8"))
    for one, other in zip(now["references"], before["references"], strict=True):
        assert one["title"] == other["title"]
        for metric, kept in zip(one["metrics"], other["metrics"], strict=True):
            assert metric == pytest.approx(kept, abs=2e-3), f"archgym docs {path.stem} --validate"


def test_everything_in_the_space_is_on_the_page() -> None:
    cls = environment_class("TPE-v0")
    page = environment_page("TPE-v0", cls)
    for space in cls.spaces().values():
        assert all(f"| `{parameter.name}` |" in page for parameter in space.parameters)
        assert all(f"**{rule.name}**" in page for rule in space.rules)
    assert all(f"| `{metric.name}` |" in page for metric in cls.metrics)


class Awkward(archgym.Environment):
    """A | in a *text*, and <b>tags</b>."""

    design_space = DesignSpace([Integer("x", 0, 3, doc="a|b <script>")])
    metrics: ClassVar = (archgym.Metric("time_ns", "ns", doc="one | two"),)
    default_objective = "minimize time_ns"
    baseline: ClassVar = {"x": 0}

    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        return {"time_ns": 1.0 + design["x"]}


def test_markup_in_names_stays_text() -> None:
    page = environment_page("Awkward", Awkward)
    assert "<script>" not in page.replace("\\<script>", "")
    assert "<b>" not in page.replace("\\<b>", "")
    (row,) = [line for line in page.splitlines() if line.startswith("| `time_ns`")]
    assert row == "| `time_ns` | ns | smaller | one \\| two |"


class Odd(archgym.agent.Sampler):
    """Looks at `nothing`.

    References:
        Somebody, a title that is long enough
            for two lines, 1999.
        Somebody else, 2000.
    """

    name = "odd"

    class Hyperparameters(archgym.agent.Hyperparameters):
        """Its hyperparameters."""

        depth: int = Field(3, ge=1, lt=9, description="how <deep> | wide")

    def setup(self) -> None:
        if len(self.directions) > 1:
            raise AgentUnsuitableError("odd searches one goal")

    def ask(self, n: int) -> Designs:
        return self.space.sample(n, self.rng)

    def tell(self, designs: Designs, outcomes: archgym.Outcomes) -> None:
        pass


def test_page_of_an_agent_has_what_it_takes_and_where_it_is_from() -> None:
    page = agent_page("odd", Odd)
    assert "| `depth` | integer | `3` | >= 1, \\< 9 | how \\<deep> \\| wide |" in page
    assert "- several goals at once: no (odd searches one goal)" in page
    assert page.count(": yes") == 2
    assert "- Somebody, a title that is long enough for two lines, 1999.\n- Somebody else" in page
    assert "References" not in page
    assert "It needs an extra: `pip install 'archgym[botorch]'`" in agent_page(
        "botorch", agent_class("botorch")
    )


def test_reference_of_the_file_has_every_key() -> None:
    page = experiment_page()
    for key in ("budget", "least_random_draws", "hyperparameters", "cpus_per_trial", "retries"):
        assert f"| `{key}` |" in page
    assert "| `budget` | integer, at least 1 or mapping, see BudgetEntry | **required** |" in page
    assert "| `seeds` | integer, at least 1 or list of integers, at least 0 | `1` |" in page


def test_reference_of_the_commands_has_arguments_options_and_defaults() -> None:
    page = commands_page(get_command(app))
    assert "## archgym dataset export" in page
    assert "archgym evaluate ENV [KEY=VALUE]... [OPTIONS]" in page
    assert "| `--by auto\\|agent\\|hyperparameters` | `auto` |" in page
    assert "| `--seed N` | `0` |" in page
    assert "| `--where CONDITION` |" in page
    assert "| `--json` |" in page


def test_command_writes_a_strangers_page(tmp_path: Path, call: Callable[..., Called]) -> None:
    found = call("docs", "tests.helpers:Adder", "--out", tmp_path / "pages")
    assert found.code == 0, found.err
    page = tmp_path / "pages" / "environments" / "Adder.md"
    assert "72 distinct legal ones" in page.read_text()
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert "cannot write" in call("docs", "tests.helpers:Adder", "--out", blocked).err
