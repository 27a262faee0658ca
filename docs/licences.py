"""Writes ``docs/reference/licences.md``: the licence of every package that archgym is tested with.

    python docs/licences.py

Licences come from the metadata of what is installed; of what is not, the line that is there stays.
"""

from __future__ import annotations

import re
import sys
import tomllib
from email.message import Message
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import cast

__all__ = ["PAGE", "constrained", "direct", "licence_of", "page", "rows"]

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reference" / "licences.md"
_ROW = re.compile(r"^\| (\w[\w.-]*) \| (.*?) \| (.*?) \|$", re.MULTILINE)
_LONGEST = 60
_NAMES = {
    "MIT License": "MIT",
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD",
    "ISC License (ISCL)": "ISC",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
_PHRASES = {
    "Permission is hereby granted, free of charge": "MIT",
    "Redistribution and use in source and binary forms": "BSD",
}
"""What the text of a licence says where no name is given."""


def normalised(name: str) -> str:
    """A package's name as registries compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def constrained() -> list[str]:
    """Names of the packages in ``constraints.txt``."""
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    return sorted((line.partition("==")[0] for line in lines if "==" in line), key=str.lower)


def direct() -> dict[str, str]:
    """What ``pyproject.toml`` asks for, and for what: ``archgym``, or the names of extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = {"archgym": project["dependencies"], **project["optional-dependencies"]}
    found: dict[str, list[str]] = {}
    for use, requirements in wanted.items():
        for requirement in requirements:
            name = normalised(re.match(r"[\w.-]+", requirement)[0])  # type: ignore[index]
            if name != "archgym":
                found.setdefault(name, []).append(use)
    return {name: ", ".join(uses) for name, uses in found.items()}


def licence_of(name: str) -> str:
    """The licence by an installed package's metadata; empty if it is not installed."""
    try:
        about = cast(Message, metadata(name))  # which it is, with all that a message has
    except PackageNotFoundError:
        return ""
    return _expression(about)


def rows() -> dict[str, tuple[str, str]]:
    """Licence and use by name, as they stand on the page."""
    text = PAGE.read_text("utf-8") if PAGE.is_file() else ""
    return {name: (licence, use) for name, licence, use in _ROW.findall(text) if name != "package"}


def page() -> str:
    """The page as it should be.

    Raises:
        SystemExit: if a package is neither installed nor on the page.
    """
    before, uses = rows(), direct()
    names = {normalised(name): name for name in [*uses, *constrained()]}
    lines = []
    for key, name in sorted(names.items()):
        licence = licence_of(name) or before.get(name, ("", ""))[0]
        if not licence:
            sys.exit(f"{name} is not installed and not on the page: install it and try again")
        lines.append(f"| {name} | {licence} | {uses.get(key, '')} |")
    return "\n".join(
        [
            "# Licences",
            "",
            "<!-- Made by `python docs/licences.py`: do not edit. -->",
            "",
            "archgym is under the Apache License 2.0. It contains no code of other packages; the "
            "page that `archgym report` writes carries Plotly.js (MIT). What it is installed and "
            "tested with, with the licence that each package states:",
            "",
            "| package | licence | asked for by |",
            "| --- | --- | --- |",
            *lines,
            "",
            "Programs of your own that it runs if you name them (DRAMSys, DRAMsim3, MAESTRO, "
            "Timeloop, valgrind) are under licences of their own.",
            "",
        ]
    )


def _expression(about: Message) -> str:
    for stated in (about.get("License-Expression"), about.get("License")):
        text = " ".join(str(stated or "").split())
        if text and len(text) <= _LONGEST and not text.startswith("Copyright"):
            return _NAMES.get(text, text)
    expression = str(about.get("License-Expression") or "")
    if expression:
        return expression
    classifiers = [
        line.rpartition(" :: ")[2]
        for line in about.get_all("Classifier") or []
        if line.startswith("License :: ")
    ]
    named = [_NAMES.get(line, line) for line in classifiers if line != "OSI Approved"]
    if named:
        return " or ".join(dict.fromkeys(named))
    text = " ".join(str(about.get("License") or about.get_payload() or "").split())
    return next((name for phrase, name in _PHRASES.items() if phrase in text), "")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
