"""What the documentation names is there, and every dependency's licence is known."""

from __future__ import annotations

import importlib
import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
import yaml

import archgym
from archgym.registry import environment_class, environment_names
from docs.licences import PAGE, constrained, direct, licence_of, normalised, rows

ROOT = Path(__file__).parent.parent.parent
_ROLE = re.compile(r":(?:class|func|meth|attr|data|mod|exc):`[~!]?(archgym[\w.]*)`")


def _referred() -> Iterator[tuple[str, Path]]:
    for top in ("archgym", "agents", "envs"):
        for path in sorted((ROOT / top).rglob("*.py")):
            for target in _ROLE.findall(path.read_text("utf-8")):
                yield target, path.relative_to(ROOT)


def _there(target: str) -> bool:
    """Whether a dotted name is a module, or something in one."""
    parts = target.split(".")
    for n in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:n]))
        except ImportError:
            continue
        for part in parts[n:]:
            fields = getattr(found, "__annotations__", {})
            fields = {**fields, **getattr(found, "__dataclass_fields__", {})}
            documented = f"        {part}:" in (getattr(found, "__doc__", "") or "").expandtabs()
            documented = documented or f"    {part}:" in (getattr(found, "__doc__", "") or "")
            if not hasattr(found, part):
                return part in fields or documented
            found = getattr(found, part)
        return True
    return False


def test_what_docstrings_refer_to_is_there() -> None:
    referred = list(_referred())
    assert len(referred) > 150
    gone = sorted({f"{path}: {target}" for target, path in referred if not _there(target)})
    assert gone == []
    assert not _there("archgym.agents.common.scores.nothing")
    assert not _there("archgym.nothing")


def test_pages_of_the_interface_show_every_public_name() -> None:
    pages = "".join(page.read_text("utf-8") for page in sorted((ROOT / "docs/api").glob("*.md")))
    modules = re.findall(r"automodule:: (archgym[\w.]*)", pages)
    assert {"archgym.proxy", "archgym.experiment", "archgym.data"} <= {*modules}
    for name in modules:
        module = importlib.import_module(name)  # Sphinx finds members by dir()
        assert {*getattr(module, "__all__", ())} <= {*dir(module)}, name


def test_pages_of_the_interface_show_every_environment() -> None:
    page = (ROOT / "docs/api/envs.md").read_text("utf-8")
    shown = re.findall(r"automodule:: (archgym[\w.]*)", page)
    modules = {environment_class(name).__module__ for name in environment_names()}
    shipped = {name for name in modules if name.startswith("archgym.envs.")}
    assert shipped - {"archgym.envs.conformance.environment"} <= {*shown}


def test_every_dependency_has_a_licence() -> None:
    known = {normalised(name): entry for name, entry in rows().items()}
    wanted = direct()
    assert {"numpy", "botorch", "sphinx"} <= set(wanted)
    for name in [*wanted, *map(normalised, constrained())]:
        assert name in known, f"{name}: run python docs/licences.py"
        licence, uses = known[name]
        assert licence
        assert uses == wanted.get(name, "")
    assert len(known) == len({*wanted, *map(normalised, constrained())})


def test_licences_are_those_that_packages_state() -> None:
    compared = 0
    pinned = dict(
        line.split("==") for line in (ROOT / "constraints.txt").read_text().split() if "==" in line
    )
    for name, (licence, _) in rows().items():
        try:
            same = version(name) == pinned.get(name)
        except PackageNotFoundError:
            continue
        if same:
            assert licence == licence_of(name), f"{PAGE.name}: {name}"
            compared += 1
    assert compared > 60


def test_what_archgym_needs_is_under_permissive_licences() -> None:
    copyleft = {
        name: licence
        for name, (licence, uses) in rows().items()
        if uses and re.search(r"GPL|General Public", licence)
    }
    assert copyleft == {"moocore": "LGPL-2.1-or-later"}


def test_versions_agree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert project["version"] == citation["version"] == archgym.__version__
    assert project["license"] == citation["license"] == "Apache-2.0"


@pytest.mark.parametrize(
    ("page", "heading"),
    [("README.md", "## Agents"), ("docs/guides/agents.md", "## The agents that ship")],
)
def test_tables_name_every_agent(page: str, heading: str) -> None:
    table = (ROOT / page).read_text("utf-8").split(heading)[1].split("\n## ")[0]
    named = {
        name for row in table.splitlines() if "|" in row for name in re.findall("`(.+?)`", row)
    }
    missing = {path.stem for path in (ROOT / "docs/agents").glob("*.md")} - {"index"} - named
    assert not missing, f"name them in the table of {page}, {heading!r}: {sorted(missing)}"


def test_the_readme_names_every_environment() -> None:
    table = (ROOT / "README.md").read_text("utf-8").split("## Environments")[1].split("\n## ")[0]
    pages = {path.stem for path in (ROOT / "docs/environments").glob("*.md")}
    missing = pages - {"index", "Conformance-v0"} - set(re.findall("`(.+?)`", table))
    assert not missing, f"name them in the table of README.md, '## Environments': {missing}"


@pytest.mark.parametrize("name", ["index.md", "guides/agents.md", "reference/security.md"])
def test_links_lead_somewhere(name: str) -> None:
    path = ROOT / "docs" / name
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", path.read_text("utf-8")):
        assert (path.parent / target).exists(), target
