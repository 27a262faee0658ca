"""``archgym new``."""

from __future__ import annotations

import keyword
import re
from importlib import resources
from pathlib import Path
from string import Template
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from archgym.errors import ArchgymError, InvalidValueError

__all__ = ["commands"]

commands = typer.Typer(no_args_is_help=True)


class _OptionalFolder(TyperCommand):
    """A command whose option ``--command`` may stand alone."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Puts an empty value after an option that has none."""
        given = []
        for number, word in enumerate(args):
            given.append(word)
            after = args[number + 1 : number + 2]
            if word == "--command" and (not after or after[0].startswith("-")):
                given.append("")
        return super().parse_args(ctx, given)


@commands.callback()
def _group() -> None:
    """Write the first files of your own environment."""


@commands.command("env", cls=_OptionalFolder)
def env(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Such as MyCache or my_cache.")],
    out: Annotated[Path, typer.Option(help="Folder for the new files.")] = Path(),
    command: Annotated[
        str | None,
        typer.Option(
            metavar="[FOLDER]",
            help="Write a YAML file around a program. FOLDER is that of one finished run: each "
            "number in it gets a reading. Without FOLDER, questions are asked.",
        ),
    ] = None,
) -> None:
    """Write a working environment and its test, which you then change into your own."""
    if command is not None:
        _write_declaration(_names(name)[0], out, command)
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


def _write_declaration(name: str, out: Path, folder: str) -> None:
    """Writes a YAML file with what a finished run shows, or with what somebody answers."""
    path = out / f"{name}.yaml"
    if path.exists():
        raise ArchgymError(f"{path} exists already: choose another NAME or --out")
    if folder:
        from archgym.declared.kept import kept_run
        from archgym.declared.proposals.propose import proposals, proposed_declaration

        found, kept = proposals(Path(folder)), kept_run(Path(folder))
        text = proposed_declaration(name, found, kept.stages if kept else ())
        said = f"with {len(found)} metrics; next, after you have put in your command:"
    else:
        from archgym.cli.interview import interviewed

        text, said = interviewed(name, out), "; next:"
    try:
        out.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ArchgymError(f"cannot write to {out}: {error.strerror}") from error
    typer.echo(f"wrote {path}{'' if said.startswith(';') else ' '}{said}")
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
