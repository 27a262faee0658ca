"""Short, distinct names for what was searched."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["problem_names"]

_LONGEST = 90


def problem_names(problems: Sequence[Mapping[str, Any]]) -> list[str]:
    """A name for each problem: environment, workload and goals, and more where that is not enough.

    Args:
        problems: each with ``environment``, ``workload``, ``objective``, ``simulator``, and
            ``details``: whatever else tells it from others. One that has a ``name`` is called that.
    """
    given = [str(problem.get("name", "")) for problem in problems]
    others = [problem for problem, name in zip(problems, given, strict=True) if not name]
    made = iter(_made_names(others))
    seen: Counter[str] = Counter()
    return [_numbered(name or next(made), seen) for name in given]


def _numbered(name: str, seen: Counter[str]) -> str:
    """The name, with a number if it was there before."""
    seen[name] += 1
    return name if seen[name] == 1 else f"{name} #{seen[name]}"


def _made_names(problems: Sequence[Mapping[str, Any]]) -> list[str]:
    one_environment = len({problem["environment"] for problem in problems}) == 1
    names = [
        ", ".join(
            part
            for part in (
                str(problem["environment"]).rpartition(":")[2],
                textwrap.shorten(str(problem["workload"] or ""), 40, placeholder="..."),
                " + ".join(goal.name for goal in problem["objective"].goals),
            )
            if part
        )
        for problem in problems
    ]
    for more in (_limits, _simulator, _differing):
        extra = more(problems)
        alike: dict[str, set[str]] = {}
        for name, text in zip(names, extra, strict=True):
            alike.setdefault(name, set()).add(text)
        names = [
            f"{name}, {text}" if len(alike[name]) > 1 and text else name
            for name, text in zip(names, extra, strict=True)
        ]
    seen: Counter[str] = Counter()
    found = [_numbered(textwrap.shorten(n, _LONGEST, placeholder="..."), seen) for n in names]
    prefix = f"{str(problems[0]['environment']).rpartition(':')[2]}, " if problems else ""
    if one_environment and all(len(name) > len(prefix) for name in found):
        found = [name.removeprefix(prefix) for name in found]
    return found


def _limits(problems: Sequence[Mapping[str, Any]]) -> list[str]:
    return [" and ".join(map(str, problem["objective"].limits)) for problem in problems]


def _simulator(problems: Sequence[Mapping[str, Any]]) -> list[str]:
    return [f"simulator {problem['simulator']}" for problem in problems]


def _differing(problems: Sequence[Mapping[str, Any]]) -> list[str]:
    """What of the details is not the same everywhere."""
    texts = [
        {name: json.dumps(value, sort_keys=True) for name, value in problem["details"].items()}
        for problem in problems
    ]
    names = dict.fromkeys(name for details in texts for name in details)
    differing = [name for name in names if len({details.get(name) for details in texts}) > 1]
    return [
        " ".join(f"{name}={details[name].strip(chr(34))}" for name in differing if name in details)
        for details in texts
    ]
