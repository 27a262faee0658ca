"""Short, distinct names of problems."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from archgym.analysis.study import Problem

_MAX_LENGTH = 90


def problem_names(problems: Sequence[Problem]) -> list[str]:
    """A name for each problem.

    It is the one that it has, or environment, workload and goals, and more where these are not
    enough.
    """
    made = iter(_made_names([problem for problem in problems if not problem.name]))
    seen: Counter[str] = Counter()
    return [_numbered(problem.name or next(made), seen) for problem in problems]


def _numbered(name: str, seen: Counter[str]) -> str:
    """The name, with a number if it was there before."""
    seen[name] += 1
    return name if seen[name] == 1 else f"{name} #{seen[name]}"


def _made_names(problems: Sequence[Problem]) -> list[str]:
    names = []
    for problem in problems:
        workload = textwrap.shorten(problem.workload or "", 40, placeholder="...")
        goals = " + ".join(problem.objective.names)
        names.append(", ".join(filter(None, (_environment(problem), workload, goals))))
    for extra in (
        [" and ".join(map(str, problem.objective.limits)) for problem in problems],
        [f"simulator {problem.simulator['name']}" for problem in problems],
        _differing([_details(problem) for problem in problems]),
    ):
        alike: dict[str, set[str]] = {}
        for name, text in zip(names, extra, strict=True):
            alike.setdefault(name, set()).add(text)
        names = [
            f"{name}, {text}" if len(alike[name]) > 1 and text else name
            for name, text in zip(names, extra, strict=True)
        ]
    seen: Counter[str] = Counter()
    found = [_numbered(textwrap.shorten(n, _MAX_LENGTH, placeholder="..."), seen) for n in names]
    prefix = f"{_environment(problems[0])}, " if problems else ""
    one_environment = len({problem.environment for problem in problems}) == 1
    if one_environment and all(len(name) > len(prefix) for name in found):
        found = [name.removeprefix(prefix) for name in found]
    return found


def _environment(problem: Problem) -> str:
    return problem.environment.rpartition(":")[2]


def _details(problem: Problem) -> dict[str, Any]:
    """Settings and values held; the name of the design space, and history, where there is one."""
    details = {k: v for k, v in problem.settings.items() if "sha256" not in k} | problem.fixed
    space = problem.trials[0].arguments.get("space")
    history = problem.trials[0].history
    known = {} if history is None else {"history": f"{history.designs:,} designs"}
    return details | known | ({"space": space} if isinstance(space, str) else {})


def _differing(problems: Sequence[Mapping[str, Any]]) -> list[str]:
    """Those details of each problem that are not the same everywhere."""
    texts = [
        {name: json.dumps(value, sort_keys=True) for name, value in details.items()}
        for details in problems
    ]
    names = dict.fromkeys(name for details in texts for name in details)
    differing = [name for name in names if len({details.get(name) for details in texts}) > 1]
    return [
        " ".join(f"{name}={details[name].strip(chr(34))}" for name in differing if name in details)
        for details in texts
    ]
