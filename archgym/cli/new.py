"""``archgym new``."""

from __future__ import annotations

import keyword
import re
from importlib import resources
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from archgym.errors import ArchgymError, InvalidValueError

__all__ = ["commands"]

commands = typer.Typer(no_args_is_help=True)


@commands.callback()
def _group() -> None:
    """Write the first files of your own environment."""


@commands.command("env")
def env(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Such as MyCache or my_cache.")],
    out: Annotated[Path, typer.Option(help="Folder for the new files.")] = Path(),
    command: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder of one finished run of a program: write a YAML file around the program, "
            "with a reading for each number in that folder.",
        ),
    ] = None,
) -> None:
    """Write a working environment and its test, which you then change into your own."""
    if command is not None:
        _from_run(_names(name)[0], out, command)
        return
    templates = resources.files("archgym.cli") / "templates"
    module, class_name = _names(name)
    files = {
        out / f"{module}.py": "environment.txt",
        out / f"test_{module}.py": "test_environment.txt",
    }
    for path in files:
        if path.exists():
            raise ArchgymError(f"{path} exists already: choose another NAME or --out")
    try:
        out.mkdir(parents=True, exist_ok=True)
        for path, template in files.items():
            text = Template((templates / template).read_text(encoding="utf-8"))
            filled = text.substitute(module=module, class_name=class_name)
            path.write_text(filled, encoding="utf-8")
    except OSError as error:
        raise ArchgymError(f"cannot write to {out}: {error.strerror}") from error
    place = "" if out == Path() else f"cd {out} && "
    typer.echo(f"wrote {' and '.join(map(str, files))}; next:")
    typer.echo(f"  {place}archgym check {module}:{class_name}")
    typer.echo(f"  {place}archgym evaluate {module}:{class_name} ways=8")


def _from_run(name: str, out: Path, folder: Path) -> None:
    """Writes a YAML file with what a finished run shows."""
    from archgym.declared.kept import kept_run
    from archgym.declared.propose import proposals, proposed_declaration

    found, kept = proposals(folder), kept_run(folder)
    path = out / f"{name}.yaml"
    if path.exists():
        raise ArchgymError(f"{path} exists already: choose another NAME or --out")
    try:
        out.mkdir(parents=True, exist_ok=True)
        path.write_text(
            proposed_declaration(name, found, kept.stages if kept else ()), encoding="utf-8"
        )
    except OSError as error:
        raise ArchgymError(f"cannot write to {out}: {error.strerror}") from error
    typer.echo(f"wrote {path} with {len(found)} metrics; next, after you have put in your command:")
    typer.echo(f"  archgym check {path}")


def _names(name: str) -> tuple[str, str]:
    """Module and class names from MyCache or my_cache."""
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
