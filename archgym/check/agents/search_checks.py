"""Properties of the searches of every agent: budget, seeds, failures, resuming."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from archgym.check.agents.agent_under_test import (
    BUDGET,
    Subject,
    ended,
    evaluations_of,
    first_taken,
    refused,
    search,
    trajectories,
    watch,
)
from archgym.check.agents.environments import FAMILIES, SMALL, Family, with_faults
from archgym.check.result import NotApplicableError, UnpolishedError, expect
from archgym.errors import AgentUnsuitableError, InvalidValueError, NotCoveredError, SimulationError
from archgym.evaluation.outcome import Outcomes
from archgym.registry import agent_class

_PROCESS_LIMIT_S = 600.0
_SIFT = "; archgym.agents.common.unseen.Unseen sifts them out"


def check_search(subject: Subject, family: Family) -> str:
    """A search keeps exactly to its budget, with canonical designs and, if it asks, new ones."""
    env = family.make()
    seen, result = search(subject, env, BUDGET)
    ended(env, result, BUDGET)
    broken = 0
    for design, _ in seen:
        expect(env.design_space.canonical(design) == design, f"{design} is not canonical")
        broken += bool(env.design_space.broken_rule(design))
        json.dumps(design)
    expect(len(seen) == result.proposals, "proposals are counted wrongly")
    if subject.asks:  # neither costs budget, so a comparison is fair all the same
        repeats = (result.duplicates, "were known already")
        for number, what in ((broken, "break a rule"), repeats):
            if number:
                raise UnpolishedError(f"{number} of {len(seen)} proposals {what}{_SIFT}")
    return f"{result.simulations} simulated of {result.proposals} proposed"


def check_resume(subject: Subject, family: Family) -> str:
    """A search that was interrupted goes on as if nothing had happened."""
    whole = evaluations_of(subject, family, seed=3)
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder)
        env, before = family.make(record=record), 0

        def stop(outcomes: Outcomes) -> None:
            nonlocal before
            before += len(outcomes)
            if before >= BUDGET // 2:
                raise _Interruption

        env.on_evaluated = stop
        with contextlib.suppress(_Interruption):
            subject.make(env, 3).search(env, BUDGET, trial_id="t")
        env = family.make(record=record)
        seen = watch(env)
        subject.make(env, 3).search(env, BUDGET, trial_id="t", resume=True)
        env.close()
    expect(list(seen) == whole, "the resumed search is another one")
    return f"interrupted after {before} of {len(whole)} proposals"


def check_suitable(subject: Subject) -> str:
    """The agent takes at least one of the environments."""
    taken = []
    for family in FAMILIES:
        try:
            subject.make(family.make())
            taken.append(family.name)
        except AgentUnsuitableError as refusal:
            expect(len(str(refusal).strip()) > 10, f"{family.name} is refused for no reason")
            expect("\n" not in str(refusal), f"{family.name} is not refused in one sentence")
    expect(bool(taken), "every environment is refused")
    return f"takes {', '.join(taken)}"


def check_seeds(subject: Subject) -> str:
    """The seed alone decides the trajectory; impossible seeds are refused."""
    family = first_taken(subject)
    first = evaluations_of(subject, family, seed=1)
    state = np.random.get_state()  # noqa: NPY002
    try:
        np.random.seed(7)  # noqa: NPY002
        again = evaluations_of(subject, family, seed=1)
    finally:
        np.random.set_state(state)  # noqa: NPY002
    expect(
        again == first,
        "the same seed gave another search: draw everything random from self.rng, and keep "
        "nothing from one search to the next, as an attribute of the class would",
    )
    expect(evaluations_of(subject, family, seed=2) != first, "another seed gave the same search")
    env = family.make()
    for seed in (-1, True, 1.5, "0"):
        wrong: Any = seed
        refused(InvalidValueError, "seed", partial(subject.make, env, wrong))
    return "decided by the seed"


def check_small_space(subject: Subject) -> str:
    """A space smaller than the budget is searched to its end, if it asks without repeats."""
    env = SMALL.make()
    size = int(env.design_space.canonical_cardinality)
    seen, result = search(subject, env, 60)
    ended(env, result, 60)
    if not subject.asks:
        return f"{result.simulations} of {size} designs in {result.proposals} proposals"
    full = sum(fidelity == 1 for _, fidelity in seen)
    expect(full == size, f"{full} proposals for {size} designs, each of which is to come once")
    expect(result.duplicates == 0, f"{len(seen)} proposals for {size} designs")
    return f"all {size} designs"


def check_not_covered(subject: Subject) -> str:
    """Designs that the simulator does not cover are free and do not stop a search."""

    def far(design: Mapping[str, Any]) -> Exception | None:
        return NotCoveredError("too far ahead") if design.get("distance", 0) > 5 else None

    env = with_faults(SMALL, far)
    seen, result = search(subject, env, 60)
    ended(env, result, 60)
    if subject.asks:
        covered = [far(design) is None for design, fidelity in seen if fidelity == 1]
        inside, outside = covered.count(True), covered.count(False)
        expect(
            (inside, outside) == (24, 12),
            f"{inside} proposals that the simulator covers and {outside} that it does not came, "
            "not each of the 24 and 12 designs once",
        )
    return f"{result.illegal} not covered"


def check_all_fail(subject: Subject) -> str:
    """A search in which everything fails goes on to its end."""
    for error in (SimulationError("broken"), TimeoutError("too slow")):
        env = with_faults(SMALL, partial(_always, error))
        _, result = search(subject, env, 20)
        ended(env, result, 20)
        expect(result.best is None, "it found a best design where all fail")
    return f"{result.simulations} failures"


def _always(error: Exception, design: Mapping[str, Any]) -> Exception:
    return error


def check_some_fail(subject: Subject) -> str:
    """Half of all designs fail, whatever the agent learns from the others."""

    def odd(design: Mapping[str, Any]) -> Exception | None:
        return SimulationError("an odd number of ways") if design.get("ways", 0) % 2 else None

    env = with_faults(first_taken(subject), odd)
    _, result = search(subject, env, BUDGET)
    ended(env, result, BUDGET)
    return f"{result.simulations} simulated"


def check_warm_start(subject: Subject) -> str:
    """Known designs are evaluated first, count, and are not proposed again."""
    for family, n, budget in ((first_taken(subject), 12, BUDGET), (SMALL, 24, 32)):
        env = family.make()
        # Distinct ones, as far as there are any.
        drawn = env.design_space.sample(10 * n, np.random.default_rng(9))
        rows = {key: row for row, key in enumerate(drawn.keys())}
        known = list(drawn[np.array(list(rows.values())[:n])])
        seen = watch(env)
        result = subject.make(env).search(env, budget, initial=known)
        first = [design for design, _ in seen[: len(known)]]
        expect(first == known, "the known designs were not evaluated first")
        ended(env, result, budget)
        if subject.asks:
            expect(result.duplicates == 0, f"{result.duplicates} proposals were known already")
    return f"{len(known)} known designs"


def check_fixed(subject: Subject) -> str:
    """Parameters that are fixed stay as they are."""
    fixed = {"prefetch": True, "distance": 3, "ways": 2}
    env = FAMILIES[1].make(fixed=fixed)
    seen, _ = search(subject, env, 10)
    for design, _ in seen:
        expect(design.items() >= fixed.items(), f"{design} is not as fixed")
    return f"{len(seen)} proposals"


def check_processes(subject: Subject) -> str:
    """Another process, with another hash seed, gives the same trajectories."""
    code = (
        "import json, sys\n"
        "from archgym.check.agents import trajectories\n"
        "print(json.dumps(trajectories(*json.loads(sys.argv[1]))))\n"
    )
    try:
        expect(agent_class(subject.target) is subject.cls, f"{subject.target} is another agent")
    except Exception:
        reason = f"{subject.target} cannot be imported by another process"
        raise NotApplicableError(reason) from None
    paths = os.pathsep.join(path for path in sys.path if path)
    arguments = json.dumps([subject.target, dict(subject.hyperparameters)])
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, arguments],
        env={**os.environ, "PYTHONHASHSEED": "77", "PYTHONPATH": paths},
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=_PROCESS_LIMIT_S,
    )
    expect(done.returncode == 0, f"the other process failed: {done.stderr[-2000:]}")
    there = json.loads(done.stdout.splitlines()[-1])
    here = json.loads(json.dumps(trajectories(subject.target, subject.hyperparameters)))
    differing = [name for name in here if here[name] != there.get(name)]
    expect(not differing, f"another process searches {', '.join(differing)} in another way")
    return f"{len(here)} environments"


class _Interruption(Exception):
    """Ends a search from outside."""


ON_EACH = ("search", "resume")
"""Names of those that run on every environment of the table."""
POLISH = ("small space", "not covered", "warm start")
"""Names of those that a comparison of agents does not need."""
