"""The pages of documentation are made from the environments, and are those that ship."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

import archgym
from archgym.cli.docs import environment_page
from archgym.registry import environment_class, environment_names
from archgym.space import DesignSpace, Integer
from tests.cli.conftest import Called

PAGES = Path(__file__).parent.parent.parent / "docs" / "environments"


@pytest.mark.parametrize("name", environment_names())
def test_the_page_that_ships_is_of_the_environment_as_it_is(name: str) -> None:
    page = (PAGES / f"{name}.md").read_text()
    assert page == environment_page(name, environment_class(name)), (
        f"make it again: archgym docs {name}"
    )


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


def test_command_writes_a_strangers_page(tmp_path: Path, call: Callable[..., Called]) -> None:
    found = call("docs", "tests.helpers:Adder", "--out", tmp_path / "pages")
    assert found.code == 0, found.err
    assert "72 distinct legal ones" in (tmp_path / "pages" / "Adder.md").read_text()
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert "cannot write" in call("docs", "tests.helpers:Adder", "--out", blocked).err
