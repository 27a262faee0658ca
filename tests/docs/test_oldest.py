"""The lower bounds of pyproject.toml are the versions that .ci/oldest installs."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
NEWER_ONLY = {"torch"}
"""Packages whose lower bound is not tested: constraints-oldest.txt says why."""


def _release(version: str) -> tuple[int, ...]:
    """The numbers of a version without trailing zeros, so that 6.0 equals 6."""
    numbers = [int(part) for part in version.split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def _lower_bounds(requirements: list[str]) -> dict[str, str]:
    """Package and lower bound of each requirement that has one."""
    found = (re.match(r"([\w.-]+)(?:\[\w+\])?>=([\d.]+)", text) for text in requirements)
    return {match[1]: match[2] for match in found if match}


def test_oldest_versions_are_the_lower_bounds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    tested = ("botorch", "cmaes", "minari", "onnx", "optuna", "sb3-contrib")
    bounds = _lower_bounds([*project["dependencies"], *(r for e in extras.values() for r in e)])
    expected = {*_lower_bounds(project["dependencies"]), *tested}
    text = (ROOT / "constraints-oldest.txt").read_text("utf-8")
    oldest = dict(re.findall(r"^([\w.-]+)==([\d.]+)$", text, re.M))
    assert set(oldest) == expected
    for name, version in oldest.items():
        if name in NEWER_ONLY:
            assert _release(version) >= _release(bounds[name])
        else:
            assert _release(version) == _release(bounds[name]), name
