"""``archgym new``."""

from __future__ import annotations

import keyword
import re
from pathlib import Path
from string import Template
from typing import Annotated

import typer

__all__ = ["add_to"]

commands = typer.Typer(no_args_is_help=True, help="Begin something of your own.")

_ENVIRONMENT = Template('''\
"""A design space of our own: $title."""

from typing import Any, ClassVar

import archgym
from archgym.errors import SimulationError
from archgym.space import Boolean, DesignSpace, Integer, Ordinal, Rule, param


class $class_name(archgym.Environment):
    """A made-up cache, to be replaced: parameters, metrics and simulate are what matters."""

    design_space = DesignSpace(
        [
            Ordinal("size_kb", [4, 8, 16, 32, 64], unit="kB", doc="capacity"),
            Integer("ways", 1, 16, doc="associativity"),
            Boolean("prefetch", doc="whether the next lines are fetched ahead"),
            Integer("distance", 1, 8, doc="lines ahead", when=param("prefetch").isin([True])),
        ],
        [Rule("way_holds_a_kb", param("size_kb") >= param("ways"), "a way has at least 1 kB")],
    )
    metrics: ClassVar = (
        archgym.Metric("access_ns", "ns", "minimize", "mean access time"),
        archgym.Metric("area_um2", "um2", "minimize", "silicon area"),
    )
    default_objective: ClassVar = {"minimize": "access_ns", "limits": ["area_um2 <= 40000"]}
    baseline: ClassVar = {"size_kb": 8, "ways": 4, "prefetch": False}
    version: ClassVar = "1"  # raise it whenever simulate gives other metrics

    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        """Metrics of one legal design; raise SimulationError if it cannot be simulated."""
        size, ways, ahead = design["size_kb"], design["ways"], design.get("distance", 0)
        if ahead > size:
            raise SimulationError("more lines are fetched ahead than there is room for")
        misses = 0.2 / (size**0.5 * (1 + 0.1 * ways) * (1 + 0.05 * ahead))
        area = 900.0 * size + 50.0 * ways
        return {"access_ns": 0.5 + 0.02 * ways + 60.0 * misses, "area_um2": area}
''')
_TEST = Template('''\
"""Holds $class_name to archgym's standard."""

from archgym.check import check_environment

from $module import $class_name


def test_passes_every_check():
    failed = [result for result in check_environment($class_name) if not result.passed]
    assert not failed, failed


def test_baseline():
    environment = $class_name()
    assert environment.evaluate(environment.baseline).feasible
''')


def add_to(app: typer.Typer) -> None:
    """Adds the commands."""
    app.add_typer(commands, name="new")


@commands.callback()
def _group() -> None:
    """Begin something of your own."""


@commands.command("env")
def env(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Such as MyCache or my_cache.")],
    out: Annotated[Path, typer.Option(help="Folder for the two files.")] = Path(),
) -> None:
    """Write a working environment of one's own, and its test, to begin from."""
    from archgym.errors import ArchgymError

    module, class_name = _names(name)
    files = {
        out / f"{module}.py": _ENVIRONMENT,
        out / f"test_{module}.py": _TEST,
    }
    for path in files:
        if path.exists():
            raise ArchgymError(f"{path} exists already: choose another NAME or --out")
    try:
        out.mkdir(parents=True, exist_ok=True)
        for path, template in files.items():
            text = template.substitute(module=module, class_name=class_name, title=class_name)
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ArchgymError(f"cannot write to {out}: {error.strerror}") from error
    place = "" if out == Path() else f"cd {out} && "
    typer.echo(f"wrote {' and '.join(map(str, files))}; next:")
    typer.echo(f"  {place}archgym check {module}:{class_name}")
    typer.echo(f"  {place}archgym evaluate {module}:{class_name} ways=8")


def _names(name: str) -> tuple[str, str]:
    """Module and class names from MyCache or my_cache."""
    from archgym.errors import InvalidValueError

    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name.replace("-", "_"))
    module = "_".join(words).lower()
    class_name = "".join(word[0].upper() + word[1:] for word in words)
    plain = re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name)
    if not plain or not class_name.isidentifier() or keyword.iskeyword(module):
        raise InvalidValueError(
            f"NAME cannot be {name!r}: it is a word of letters, digits and underscores that "
            "begins with a letter, such as MyCache"
        )
    return module, class_name
