"""Other libraries' optimisers, used directly and with their defaults.

They see the flat space, with every parameter always there; only Optuna's TPE, which can, is told
of the conditions. A broken limit is a penalty on the goal, except where a name says ``-limits``:
there the optimiser is told of the limits in its own way. Design-space rules that a peer cannot be
told of cost it proposals.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from archgym.space import DesignSpace, Parameter, SkoptEncoding
from benchmarks.search_quality.tracker import Done, Tracker

__all__ = ["PEERS", "Peer"]

Run = Callable[[Tracker, int], None]


@dataclass(frozen=True)
class Peer:
    """An optimiser of another library.

    Attributes:
        needs: the module without which it is skipped.
        package: what to install for it.
        run: searches with a tracker and a seed until the budget is spent.
        slow: whether it fits a model whose cost grows steeply, such as a Gaussian process.
        several_goals: whether it can search for several goals.
        with_limits: whether it is only for problems with limits.
    """

    needs: str
    package: str
    run: Run
    slow: bool = False
    several_goals: bool = False
    with_limits: bool = False

    @property
    def missing(self) -> str:
        """What has to be installed; empty if nothing."""
        return "" if find_spec(self.needs) else f"needs the package {self.package}"


def _skopt(function: str) -> Run:
    def run(tracker: Tracker, seed: int) -> None:
        space = tracker.env.design_space
        encoding = SkoptEncoding(space)

        def cost(point: Sequence[Any]) -> float:
            return tracker.penalised(tracker.evaluate(_codes(space, point)))

        minimise = getattr(importlib.import_module("skopt"), function)
        with warnings.catch_warnings():  # it warns of each point that it has proposed before
            warnings.simplefilter("ignore")
            minimise(cost, encoding.dimensions, n_calls=tracker.budget, random_state=seed, n_jobs=1)

    return run


def _codes(space: DesignSpace, point: Sequence[Any]) -> list[int]:
    """Levels of a point that has a category's text, a level, or a real value for each parameter."""
    codes = [int(space.allowed_codes(i)[0]) for i in range(len(space.names))]
    for position, value in zip(space.free, point, strict=True):
        parameter = space.parameters[position]
        codes[position] = _code(parameter, value)
    return codes


def _code(parameter: Parameter, value: Any) -> int:
    if parameter.continuous:
        low, high = (float(parameter.value(code)) for code in (0, parameter.size - 1))
        return parameter.code(min(max(float(value), low), high))
    if parameter.ordered:
        return int(value)
    return next(c for c in range(parameter.size) if str(parameter.value(c)) == str(value))


# -- Optuna ----------------------------------------------------------------------------------------


def _optuna(sampler: str, *, conditions: bool = False, limits: bool = False) -> Run:
    def run(tracker: Tracker, seed: int) -> None:
        optuna = importlib.import_module("optuna")
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        space = tracker.env.design_space
        several = tracker.volume is not None

        def cost(trial: Any) -> Any:
            outcome = tracker.evaluate(_suggested(trial, space, conditions))
            trial.set_user_attr("excess", list(outcome.violations) or [0.0])
            if several:
                return outcome.objectives
            if limits and outcome.status == "ok":
                return outcome.objectives[0]
            return tracker.penalised(outcome)

        options: dict[str, Any] = {"seed": seed}
        if limits:
            options["constraints_func"] = lambda trial: [
                x if x == x else 1.0 for x in trial.user_attrs["excess"]
            ]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what is experimental
            study = optuna.create_study(
                directions=["minimize"] * len(tracker.env.objective.goals),
                sampler=getattr(optuna.samplers, sampler)(**options),
            )
            study.optimize(cost, n_trials=tracker.budget)

    return run


def _suggested(trial: Any, space: DesignSpace, conditions: bool) -> list[int]:
    """Levels that a trial suggests, those of inactive parameters at the first one if it knows."""
    codes = [int(space.allowed_codes(i)[0]) for i in range(len(space.names))]
    for position in space.free:
        parameter = space.parameters[position]
        if conditions and parameter.when is not None:
            row = np.array([codes], dtype=np.int64)
            canonical = space.canonicalise(row.copy()).codes  # inactive parents count as inactive
            if not space.activity(position, canonical)[0]:
                continue
        name = parameter.name
        if parameter.continuous:
            low, high = (float(parameter.value(code)) for code in (0, parameter.size - 1))
            log = bool(getattr(parameter, "log", False))
            codes[position] = _code(parameter, trial.suggest_float(name, low, high, log=log))
        elif parameter.ordered:
            codes[position] = trial.suggest_int(name, 0, parameter.size - 1)
        else:
            codes[position] = trial.suggest_categorical(name, list(range(parameter.size)))
    return codes


# -- nevergrad, pymoo, Stable-Baselines3 -----------------------------------------------------------


def _nevergrad(optimiser: str) -> Run:
    def run(tracker: Tracker, seed: int) -> None:
        ng = importlib.import_module("nevergrad")
        space = tracker.env.design_space
        names = [space.names[position] for position in space.free]
        instrumentation = ng.p.Instrumentation(
            **{name: _nevergrad_parameter(ng, space[name]) for name in names}
        )
        instrumentation.random_state.seed(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            search = ng.optimizers.registry[optimiser](instrumentation, budget=tracker.budget)
            while True:
                candidate = search.ask()
                outcome = tracker.evaluate(
                    _codes(space, [candidate.kwargs[name] for name in names])
                )
                search.tell(candidate, tracker.penalised(outcome))

    return run


def _nevergrad_parameter(ng: Any, parameter: Parameter) -> Any:
    if parameter.continuous:
        low, high = (float(parameter.value(code)) for code in (0, parameter.size - 1))
        if getattr(parameter, "log", False):
            return ng.p.Log(lower=low, upper=high)
        return ng.p.Scalar(lower=low, upper=high)
    if parameter.ordered:
        return ng.p.TransitionChoice(list(range(parameter.size)))
    return ng.p.Choice([str(parameter.value(code)) for code in range(parameter.size)])


def _pymoo(tracker: Tracker, seed: int) -> None:
    """Its GA for mixed variables; with several goals the same with NSGA-II's survival."""
    mixed = importlib.import_module("pymoo.core.mixed")
    core = importlib.import_module("pymoo.core.problem")
    space = tracker.env.design_space
    names = [space.names[position] for position in space.free]
    goals = len(tracker.env.objective.goals)

    def evaluate(self: Any, point: Mapping[str, Any], out: dict[str, Any], **_: Any) -> None:
        outcome = tracker.evaluate(_codes(space, [point[name] for name in names]))
        out["F"] = list(outcome.objectives) if goals > 1 else tracker.penalised(outcome)

    problem = type("Problem", (core.ElementwiseProblem,), {"_evaluate": evaluate})
    variables = {name: _pymoo_variable(space[name]) for name in names}
    options: dict[str, Any] = {}
    if goals > 1:
        crowding = importlib.import_module("pymoo.algorithms.moo.nsga2")
        options["survival"] = crowding.RankAndCrowdingSurvival()
    importlib.import_module("pymoo.optimize").minimize(
        problem(vars=variables, n_obj=goals),
        mixed.MixedVariableGA(**options),
        ("n_evals", 2 * tracker.budget),  # the tracker ends it, in mid-generation
        seed=seed,
        verbose=False,
    )


def _pymoo_variable(parameter: Parameter) -> Any:
    variables = importlib.import_module("pymoo.core.variable")
    if parameter.continuous:
        bounds = tuple(float(parameter.value(code)) for code in (0, parameter.size - 1))
        return variables.Real(bounds=bounds)
    if parameter.ordered:
        return variables.Integer(bounds=(0, parameter.size - 1))
    return variables.Choice(options=[str(parameter.value(c)) for c in range(parameter.size)])


def _sb3_ppo(tracker: Tracker, seed: int) -> None:
    """PPO as its documentation uses it; the environment's own action space and reward."""
    sb3 = importlib.import_module("stable_baselines3")
    callbacks = importlib.import_module("stable_baselines3.common.callbacks")
    logger = importlib.import_module("stable_baselines3.common.logger")

    def go_on(self: Any) -> bool:
        return tracker.proposals < tracker.budget

    until_spent = type("UntilSpent", (callbacks.BaseCallback,), {"_on_step": go_on})
    model = sb3.PPO("MlpPolicy", tracker.env, seed=seed, device="cpu")
    model.set_logger(logger.Logger(folder=None, output_formats=[]))  # else a folder is left
    model.learn(tracker.budget, callback=until_spent())
    raise Done


PEERS: dict[str, Peer] = {
    "skopt gp_minimize": Peer("skopt", "scikit-optimize", _skopt("gp_minimize"), slow=True),
    "skopt forest_minimize": Peer("skopt", "scikit-optimize", _skopt("forest_minimize"), slow=True),
    "optuna TPE": Peer(
        "optuna", "optuna", _optuna("TPESampler", conditions=True), several_goals=True
    ),
    "optuna TPE-limits": Peer(
        "optuna",
        "optuna",
        _optuna("TPESampler", conditions=True, limits=True),
        with_limits=True,
    ),
    "optuna GP": Peer("optuna", "optuna", _optuna("GPSampler"), slow=True, several_goals=True),
    "optuna NSGA-II": Peer("optuna", "optuna", _optuna("NSGAIISampler"), several_goals=True),
    "nevergrad portfolio": Peer(
        "nevergrad", "nevergrad", _nevergrad("PortfolioDiscreteOnePlusOne")
    ),
    "pymoo GA": Peer("pymoo", "pymoo", _pymoo, several_goals=True),
    "sb3 PPO": Peer("stable_baselines3", "stable-baselines3", _sb3_ppo),
}
"""Their names begin with the library, so that no agent of ours is called the same."""
