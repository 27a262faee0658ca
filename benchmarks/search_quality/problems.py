"""The problems, by name, fixed before anything was measured.

==========================  ========================================================================
``nk-SEED``                 13 parameters, 2 to 6 million combinations, optimum by enumeration
``plateau-limited-SEED``    12 parameters, 4 million combinations, few values and a binding limit,
                            optimum by enumeration
``plateau-penalised-SEED``  the same with the limit in the goal
``large-SEED``              24 parameters, four of them real, optimum by elimination
``pareto-nk-SEED``          two landscapes on one space, hypervolume
``table-W-OBJECTIVE``       a tabulated DRAM controller under limits, optimum by enumeration
``pareto-table-W``          the same with three goals, hypervolume
``dram-W``                  the full space of the DRAM controller on the first requests of a program
                            and a latency limit; the optimum is the best that was ever found
==========================  ========================================================================

Any seed makes a problem; those of :data:`JUDGES` judge, and nothing may be tuned on them. Seeds
below 1,000 are for development. The programs of the full spaces are others than those of the
tables.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import archgym
from archgym.errors import UnknownNameError
from archgym.registry import environment_class
from benchmarks.search_quality import tables
from benchmarks.search_quality.facts import (
    Facts,
    Volume,
    pareto_facts,
    sampled_facts,
    weighted_facts,
)
from benchmarks.search_quality.landscapes import environment_of, large_landscape, nk_landscape
from benchmarks.search_quality.plateaus import environment_of as environment_of_plateau
from benchmarks.search_quality.plateaus import plateau

__all__ = ["JUDGES", "Problem", "missing", "problem", "read_facts", "suite"]

JUDGES = (9001, 9002, 9003, 9004, 9005)
"""Seeds of the NK-like problems."""
LARGE_JUDGES = (9001, 9002)
DRAM_REQUESTS = 2000
DRAM_LIMITS = {
    "sqlite": "read_latency_p99_ns <= 260",
    "jpeg": "read_latency_p99_ns <= 241",
    "xz": "read_latency_p99_ns <= 400",
    "zstd": "read_latency_p99_ns <= 31.2",
}
"""Between the first and the tenth percentile of uniform draws."""
DRAM_GOAL = "energy_per_bit_pj"
DRAM_BUFFER = "buffer_bits <= 131072"
_VERSION = 2  # of the generators and facts: raise it whenever they change
_SAMPLE = 1000


@dataclass(frozen=True)
class Problem:
    """A problem.

    Attributes:
        name: see the module.
        family: the part of the name before its parameters.
        fingerprint: changes with the problem.
        find_facts: what is known of it; seconds to minutes, see :func:`read_facts`.
        make_environment: an environment, from its facts.
    """

    name: str
    family: str
    fingerprint: str
    find_facts: Callable[[], Facts]
    make_environment: Callable[[Facts], archgym.Environment]

    @property
    def several_goals(self) -> bool:
        """Whether the value of a run is minus a hypervolume."""
        return self.family.startswith("pareto")

    @property
    def limited(self) -> bool:
        """Whether designs have to keep limits."""
        return self.family in ("table", "dram") or self.name.startswith("plateau-limited")

    @staticmethod
    def volume(facts: Facts) -> Volume:
        """The hypervolume of a problem with several goals."""
        return Volume(facts.notes["low"], facts.notes["high"])


def suite() -> list[str]:
    """Names of all problems, those that lack a table included."""
    names = [f"nk-{seed}" for seed in JUDGES] + [f"large-{seed}" for seed in LARGE_JUDGES]
    names += [f"table-{w}-{o}" for w in tables.WORKLOADS for o in tables.OBJECTIVES]
    names += [f"dram-{workload}" for workload in DRAM_LIMITS]
    return [*names, f"pareto-nk-{JUDGES[0]}", f"pareto-table-{tables.WORKLOADS[0]}"]


def missing(name: str) -> str:
    """What a problem lacks to be run; empty if nothing."""
    parts = name.split("-")
    workload = parts[1] if parts[0] == "table" else parts[2] if name.startswith("pareto-t") else ""
    if workload and tables.table_name(workload) is None:
        return f"the table of {workload} does not ship"
    return ""


@cache
def problem(name: str) -> Problem:
    """A problem by name.

    Raises:
        UnknownNameError: if there is none of that form.
    """
    for family, make in _FAMILIES.items():
        if name.startswith(f"{family}-"):
            try:
                return make(name, name.removeprefix(f"{family}-"))
            except (KeyError, ValueError):
                break
    raise UnknownNameError("problem", name, suite())


def read_facts(chosen: Problem, folder: Path) -> Facts:
    """Facts of a problem, kept in ``problems.json`` of a folder."""
    path = folder / "problems.json"
    kept: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    entry = kept.get(chosen.name)
    if entry is None or entry["fingerprint"] != chosen.fingerprint:
        entry = {"fingerprint": chosen.fingerprint, **chosen.find_facts().to_json()}
        kept[chosen.name] = entry
        folder.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".new")
        temporary.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
        temporary.replace(path)
    return Facts.from_json({k: v for k, v in entry.items() if k != "fingerprint"})


def _nk(name: str, rest: str) -> Problem:
    seed = int(rest)

    @cache
    def environment() -> type[archgym.Environment]:
        return environment_of(f"Nk{seed}", [nk_landscape(seed)])

    def facts() -> Facts:
        landscape = nk_landscape(seed)
        costs = (landscape.enumerate() - np.float32(landscape.lowest()) + 1).astype(np.float64)
        found = weighted_facts(costs, np.ones(len(costs)), np.ones(len(costs), dtype=bool))
        # The enumeration is in single precision; by construction the optimum is exactly 1.
        return Facts(1.0, found.median, found.random_evaluations, True, 1.0, found.optimal)

    return Problem(name, "nk", _digest(name), facts, lambda _: environment()())


def _large(name: str, rest: str) -> Problem:
    seed = int(rest)

    @cache
    def environment() -> type[archgym.Environment]:
        return environment_of(f"Large{seed}", [large_landscape(seed)])

    def facts() -> Facts:
        env = environment()()
        rng = np.random.default_rng(0)
        values = [_goals(env, 50_000, rng)[:, 0] for _ in range(4)]
        return sampled_facts(np.concatenate(values), 1.0)

    return Problem(name, "large", _digest(name), facts, lambda _: environment()())


def _plateau(name: str, rest: str) -> Problem:
    form, seed = rest.split("-")
    if form not in ("limited", "penalised"):
        raise KeyError(rest)

    def environment() -> archgym.Environment:
        made = plateau(int(seed))
        label = f"Plateau{form.capitalize()}{seed}"
        return environment_of_plateau(label, made, penalised=form == "penalised")()

    def facts() -> Facts:
        made = plateau(int(seed))
        costs, areas = made.enumerate()
        kept = areas <= made.limit
        if form == "penalised":
            costs, kept = made.penalised(costs, areas), np.ones(len(costs), dtype=bool)
        return weighted_facts(costs, np.ones(len(costs)), kept)

    return Problem(name, "plateau", _digest(name), facts, lambda _: environment())


def _pareto_nk(name: str, rest: str) -> Problem:
    seed = int(rest)

    @cache
    def environment() -> type[archgym.Environment]:
        return environment_of(f"ParetoNk{seed}", [nk_landscape(seed, goal) for goal in (0, 1)])

    def facts() -> Facts:
        landscapes = [nk_landscape(seed, goal) for goal in (0, 1)]
        columns = [
            (one.enumerate() - np.float32(one.lowest()) + 1).astype(np.float64)
            for one in landscapes
        ]
        goals = np.stack(columns, axis=1)
        return pareto_facts(goals, np.ones(len(goals)))

    return Problem(name, "pareto-nk", _digest(name), facts, lambda _: environment()())


def _table(name: str, rest: str) -> Problem:
    workload, kind = rest.rsplit("-", 1)
    if workload not in tables.WORKLOADS or kind not in tables.OBJECTIVES:
        raise KeyError(rest)
    return _tabulated(name, "table", workload, kind)


def _pareto_table(name: str, rest: str) -> Problem:
    if rest not in tables.WORKLOADS:
        raise KeyError(rest)
    return _tabulated(name, "pareto-table", rest, "pareto")


def _tabulated(name: str, family: str, workload: str, kind: str) -> Problem:
    return Problem(
        name,
        family,
        _digest(name, tables.table_fingerprint(workload)) if not missing(name) else "",
        lambda: tables.table_facts(workload, kind),
        lambda facts: tables.table_environment(workload, facts.notes["objective"]),
    )


def _dram(name: str, workload: str) -> Problem:
    objective = {"minimize": DRAM_GOAL, "limits": [DRAM_LIMITS[workload], DRAM_BUFFER]}
    settings: Mapping[str, Any] = {
        "workload": {"recorded": workload, "requests": DRAM_REQUESTS},
        "objective": objective,
    }

    def environment() -> archgym.Environment:
        return archgym.make("DRAM-v0", **settings)

    def facts() -> Facts:
        env = environment()
        found = sampled_facts(_goals(env, _SAMPLE, np.random.default_rng(0))[:, 0], None)
        return Facts(**{**vars(found), "dead": _seem_dead(env), "notes": {"objective": objective}})

    code = environment_class("DRAM-v0").version
    version = f"{json.dumps(settings, sort_keys=True)} {code}"
    return Problem(name, "dram", _digest(name, version), facts, lambda _: environment())


_FAMILIES: dict[str, Callable[[str, str], Problem]] = {
    "nk": _nk,
    "plateau": _plateau,
    "large": _large,
    "pareto-nk": _pareto_nk,
    "table": _table,
    "pareto-table": _pareto_table,
    "dram": _dram,
}


def _digest(*parts: str) -> str:
    return hashlib.sha256(" ".join([str(_VERSION), *parts]).encode()).hexdigest()[:12]


def _goals(env: archgym.Environment, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Values of the goals of uniform draws, NaN for those that break a limit."""
    outcomes = env.evaluate_batch(env.design_space.sample(n, rng))
    return np.where(outcomes.feasible[:, None], outcomes.objectives, np.nan)


def _seem_dead(env: archgym.Environment, designs: int = 40) -> tuple[str, ...]:
    """Parameters that change no metric of some random designs, whatever their level."""
    space, rng = env.design_space, np.random.default_rng(1)
    drawn = space.sample(designs, rng)
    before = env.evaluate_batch(drawn).metrics
    parents = {name for p in space.parameters if p.when is not None for name in p.when.names}
    dead = []
    for position in space.free:
        if space.names[position] in parents:
            continue
        active = drawn.codes[:, position] >= 0
        codes = drawn.codes[active].copy()
        size = space.parameters[position].size
        codes[:, position] = (
            codes[:, position] + 1 + rng.integers(size - 1, size=len(codes))
        ) % size
        moved = space.canonicalise(codes)
        legal = space.legal(moved)
        if legal.any():
            after = env.evaluate_batch(moved[legal]).metrics
            same = (after == before[active][legal]) | np.isnan(after)
            if same.all() and legal.sum() >= designs // 4:
                dead.append(space.names[position])
    return tuple(dead)
