"""Properties of every environment: design space, metrics, rewards, steps and recording."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from archgym.check.result import CheckFailed, expect
from archgym.environment.environment import Environment
from archgym.errors import place_of
from archgym.evaluation.outcome import Outcome
from archgym.problem.simulator import MultiFidelitySimulator
from archgym.problem.status import STATUS_OF, Status
from archgym.simulators.result import read_result
from archgym.space import (
    BoxEncoding,
    Designs,
    DesignSpace,
    Encoding,
    FeatureEncoding,
    FlatEncoding,
    MultiDiscreteEncoding,
    SkoptEncoding,
    UnitCubeEncoding,
)

_SAMPLES = 12
"""Designs that a check simulates."""
_RECORDED = ("reward", "status", "reason", "feasible", "cached", "fidelity")
"""Fields of an outcome that a row holds under the same name."""
_INFO_KEYS = ("design", "metrics", "status", "feasible", "reason", "cached", "simulation_s")

Maker = Callable[[], Environment]
"""Makes the environment that is checked, a fresh one where there can be several."""


def check_design_space(make_env: Maker) -> str:
    """The design space survives JSON, and sampled designs are canonical and legal."""
    space = make_env().design_space
    again = DesignSpace.from_json(json.loads(json.dumps(space.to_json())))
    expect(again == space, "the design space is another one after a round trip through JSON")
    samples = _sample(space, 256)
    expect(bool(space.legal(samples).all()), "a sampled design is not legal")
    for design, codes in zip(samples, samples.codes.tolist(), strict=True):
        expect(list(space.codes(design)) == codes, f"{design} is another design after a round trip")
    return f"{space!r}, {len(samples)} samples"


def check_encodings(make_env: Maker) -> str:
    """Every encoding gives a design back as it was."""
    env = make_env()
    space = env.design_space
    kinds: list[Callable[[DesignSpace], Encoding]]
    kinds = [BoxEncoding, UnitCubeEncoding, FeatureEncoding, SkoptEncoding]
    if space.raw_cardinality < np.inf:
        kinds.append(MultiDiscreteEncoding)
    if space.raw_cardinality <= FlatEncoding.MAX:
        kinds.append(FlatEncoding)
    samples = _sample(space, 256)
    for encoding in (kind(space) for kind in kinds):
        back = encoding.decode(encoding.encode(samples))
        wrong = np.flatnonzero((back.codes != samples.codes).any(axis=1))
        if wrong.size:
            i = int(wrong[0])
            raise CheckFailed(f"{type(encoding).__name__}: {samples[i]} came back as {back[i]}")
    return f"{len(kinds)} encodings, {len(samples)} designs"


def check_baseline(make_env: Maker) -> str:
    """The baseline design is legal, simulates, and keeps the limits or says which it breaks."""
    env = make_env()
    outcome = env.evaluate(env.baseline_design)
    expect(outcome.status == "ok", f"the baseline is {outcome.status}: {outcome.reason}")
    expect(outcome.feasible or bool(outcome.reason), "the baseline is infeasible for no reason")
    for (name, value), known in zip(outcome.metrics.items(), env.baseline_metrics, strict=True):
        base = float(known)
        expect(value is None or value == base, f"{name} of the baseline is {value}, was {base}")
    return "feasible" if outcome.feasible else outcome.reason


def check_metrics(make_env: Maker) -> str:
    """The simulator gives the metrics that are declared, and fails only on purpose."""
    env = make_env()
    names = [metric.name for metric in env.metrics]
    expect(bool(names), "no metrics are declared")
    expect(len(set(names)) == len(names), f"a metric is declared twice: {', '.join(names)}")
    stray = [name for name in env.simulator.metric_names if name not in names]
    expect(not stray, f"the simulator gives {stray}, which are not declared")
    samples = _sample(env.design_space, _SAMPLES)
    _results(env, samples, env.simulator.simulate(samples))
    return ", ".join(f"{m.name} [{m.unit}]" if m.unit else m.name for m in env.metrics)


def check_determinism(make_env: Maker) -> str:
    """The same designs give the same results in two fresh environments, in any order."""
    first, second = make_env(), make_env()
    samples = _sample(first.design_space, _SAMPLES)
    there = [_fresh(first).evaluate(design) for design in samples]
    back = [_fresh(second).evaluate(design) for design in reversed(list(samples))]
    for one, other in zip(there, reversed(back), strict=True):
        _same(one, other, "two simulations of a design differ")
    return f"{len(samples)} designs, forwards and backwards"


def check_batches(make_env: Maker) -> str:
    """A batch gives what its designs give one by one."""
    env = make_env()
    samples = _sample(env.design_space, _SAMPLES)
    together = _fresh(env).evaluate_batch(samples)
    expect(len(together) == len(samples), "without a budget, a batch was cut")
    env = _fresh(env)
    for one, design in zip(together, samples, strict=True):
        _same(one, env.evaluate(design), "a batch and a single design differ")
    return f"{len(samples)} designs"


def check_illegal_designs(make_env: Maker) -> str:
    """A design that breaks a rule gets the lowest reward and a reason, free and unsimulated."""
    env = make_env()
    illegal = _illegal(env.design_space)
    if illegal is None:
        return "no illegal design among the samples"
    lowest = min(o.reward for o in env.evaluate_batch(_sample(env.design_space, _SAMPLES)))
    before = env.evaluator.simulations
    outcome = env.evaluate(illegal)
    expect(outcome.status == "illegal", f"{illegal} breaks a rule, but is {outcome.status!r}")
    expect(bool(outcome.reason), f"{illegal} is illegal for no reason")
    expect(outcome.reward <= lowest, "an illegal design has a higher reward than a legal one")
    expect(env.evaluator.simulations == before, "an illegal design was counted")
    return outcome.reason


def check_steps(make_env: Maker) -> str:
    """Steps of random actions give observations within their space and complete infos."""
    env = make_env()
    env.action_space.seed(0)
    observation, _ = env.reset(seed=0)
    _observed(env, observation, "reset")
    for number in range(_SAMPLES):
        observation, reward, _, truncated, info = env.step(env.action_space.sample())
        _observed(env, observation, f"step {number}")
        missing = [key for key in _INFO_KEYS if key not in info]
        expect(not missing, f"info lacks {', '.join(missing)}")
        expect(info["status"] in STATUS_OF, f"status is {info['status']!r}")
        expect(info["status"] == "ok" or bool(info["reason"]), "a failure without a reason")
        expect(type(reward) is float, f"the reward is a {type(reward).__name__}, not a float")
        expect(-1.0 <= reward <= 1.0, f"a reward of {reward} is out of bounds")
        expect(not truncated, "an episode was truncated")
        env.reset()
    return f"{_SAMPLES} random actions"


def check_rewards(make_env: Maker) -> str:
    """Rewards order designs as the objective does: failed, limits broken, feasible."""
    env = make_env()
    outcomes = env.evaluate_batch(_sample(env.design_space, _SAMPLES))
    expect(bool(np.isfinite(outcomes.reward).all()), "a reward is not finite")
    ok = outcomes.status == Status.OK
    feasible, broken = outcomes.feasible, ok & ~outcomes.feasible
    expect(bool((outcomes.reward[~ok] == -1.0).all()), "a failure has another reward than -1")
    expect(bool((outcomes.reward[broken] > -1.0).all()), "a broken limit is as bad as a failure")
    expect(bool((outcomes.reward[broken] < 0.0).all()), "a broken limit has a positive reward")
    expect(bool((outcomes.reward[feasible] > 0.0).all()), "a feasible reward is not positive")
    if outcomes.objectives.shape[1] == 1 and feasible.any():
        value, reward = outcomes.objectives[feasible, 0], outcomes.reward[feasible]
        order = np.argsort(value, kind="stable")
        worse = np.diff(reward[order]) > 0
        expect(not worse.any(), "a worse objective has a better reward")
    return f"{feasible.sum()} feasible, {broken.sum()} over limits, {(~ok).sum()} failed"


def check_duplicates(make_env: Maker) -> str:
    """A design is simulated and counted once; the next time its result comes from the cache."""
    env = _fresh(make_env())
    design = _sample(env.design_space, 1)[0]
    first, second = env.evaluate(design), env.evaluate(design)
    expect(not first.cached and second.cached, "the second evaluation was not taken from memory")
    _same(first, second, "a design from memory differs")
    expect(env.evaluator.duplicates == 1, "a duplicate was not counted as one")
    return "simulated once"


def check_fidelities(make_env: Maker) -> str:
    """Each fidelity gives the metrics, the same in a batch and alone, and counts its cost."""
    env = make_env()
    samples = _sample(env.design_space, _SAMPLES)
    simulator, parts = env.simulator, env.fidelities[:-1]
    for fidelity in parts:
        if isinstance(simulator, MultiFidelitySimulator):
            _results(env, samples, simulator.simulate_at(samples, fidelity.value))
        where = f"at fidelity {fidelity.value:g}"
        together = _fresh(env).evaluate_batch(samples, fidelity.value)
        spent, due = env.evaluator.spent, env.evaluator.simulations * fidelity.cost
        expect(abs(spent - due) < 1e-6, f"{spent} was spent where {due} was due")
        env = _fresh(env)
        for one, design in zip(together, samples, strict=True):
            alone = env.evaluate(design, fidelity.value)
            _same(one, alone, f"a batch and a single design differ {where}")
            expect(one.fidelity == fidelity.value, f"an outcome is not {where}")
    return f"{len(parts)} below the full one"


def check_recording(make_env: Maker) -> str:
    """The rows of the dataset are what was returned."""
    from archgym.data import Dataset

    env, kept = make_env(), None
    samples = _sample(env.design_space, _SAMPLES)
    with tempfile.TemporaryDirectory() as folder:
        kept, env.record = env.record, Path(folder)
        try:
            outcomes = _fresh(env).evaluate_batch(samples)
        finally:
            env.end_trial()
            env.record = kept
        dataset = Dataset(folder)
        dataset.seal()
        rows = dataset.evaluations().to_pylist()
    expect(len(rows) == len(outcomes), f"{len(rows)} rows of {len(outcomes)} evaluations")
    for step, (row, outcome) in enumerate(zip(rows, outcomes, strict=True)):
        expect(_recorded(env, row) == _returned(step, outcome), f"row {row} is not {outcome}")
    return f"{len(rows)} rows"


def _fresh(env: Environment) -> Environment:
    """The environment with an empty cache."""
    env.start_trial()
    return env


def _sample(space: DesignSpace, n: int) -> Designs:
    return space.sample(n, np.random.default_rng(0))


def _illegal(space: DesignSpace) -> dict[str, Any] | None:
    """A design that breaks a rule, if a few thousand draws hold one."""
    if not space.rules:
        return None
    rng = np.random.default_rng(0)
    allowed = [space.allowed_codes(i) for i in range(len(space.names))]
    columns = [levels[0] + rng.integers(len(levels), size=4096) for levels in allowed]
    designs = space.canonicalise(np.stack(columns, axis=1))
    broken = np.flatnonzero(~space.legal(designs))
    return designs[int(broken[0])] if broken.size else None


def _results(env: Environment, designs: Designs, results: Sequence[tuple[object, float]]) -> None:
    """What a simulator gives is what is declared, and it fails only on purpose."""
    names = [metric.name for metric in env.metrics]
    for design, (result, _) in zip(designs, results, strict=True):
        of = "of " + " ".join(f"{name}={value}" for name, value in design.items())
        if isinstance(result, Mapping):
            stray = [name for name in result if name not in names]
            expect(not stray, f"simulate returns {stray}, which are not declared in metrics")
            _, _, wrong = read_result(result, env.metrics, env.simulator.metric_names)
            expect(not wrong, f"{wrong}, {of}: raise SimulationError where a design can fail")
        elif not isinstance(result, Exception):
            raise CheckFailed(f"simulate returns {result!r}, not a mapping of metrics")
        elif result.__cause__ is not None:
            raise CheckFailed(
                f"simulate raises {result}{place_of(result.__cause__)}, {of}: raise "
                "SimulationError where a design can fail"
            )


def _observed(env: Environment, observation: Any, where: str) -> None:
    expect(
        env.observation_space.contains(observation),
        f"the observation of {where} is not in the observation space: {observation}",
    )


def _same(one: Outcome, other: Outcome, problem: str) -> None:
    for field in ("design", "metrics", "objectives", "reward", "status", "reason", "feasible"):
        left, right = getattr(one, field), getattr(other, field)
        expect(left == right, f"{problem}: {field} of {one.design} is {left} and {right}")


def _recorded(env: Environment, row: Mapping[str, Any]) -> tuple[Any, ...]:
    design = {n: row[f"param.{n}"] for n in env.design_space.names}
    metrics = {m.name: row[f"metric.{m.name}"] for m in env.metrics}
    return (
        row["step"],
        {name: value for name, value in design.items() if value is not None},
        metrics if row["status"] == "ok" else {},
        *(row[name] for name in _RECORDED),
    )


def _returned(step: int, outcome: Outcome) -> tuple[Any, ...]:
    fields = (getattr(outcome, name) for name in _RECORDED)
    return (step, outcome.design, outcome.metrics, *fields)
