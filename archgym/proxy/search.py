"""Search on a proxy, and verification of the best designs on the real simulator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from archgym.environment.environment import Environment
from archgym.errors import InvalidValueError
from archgym.evaluation.best import Best
from archgym.evaluation.outcome import Outcome, Outcomes
from archgym.evaluation.trial_info import TrialInfo
from archgym.problem.status import Status
from archgym.registry import make_agent
from archgym.space import Designs


@dataclass(frozen=True)
class Verified:
    """The result of a search on a proxy.

    Attributes:
        best: the best outcome of the real simulator; ``None`` if it could simulate none.
        outcomes: of the designs that were verified, the most promising first.
        predicted: their predictions by the proxy, in the same order.
        proposals: designs that were evaluated on the proxy.
    """

    best: Outcome | None
    outcomes: list[Outcome]
    predicted: list[Outcome]
    proposals: int


def search_and_verify(
    proxy: Environment,
    real: Environment,
    *,
    agent: str = "ga",
    hyperparameters: Mapping[str, Any] | None = None,
    budget: int = 20_000,
    verify: int = 50,
    seed: int = 0,
) -> Verified:
    """Searches on a proxy and simulates the best designs that it found.

    Those are the ``verify`` best feasible designs by the proxy among all that the agent proposed
    (by reward, where there are several goals); if there are fewer feasible ones, then also those
    that break the limits least.

    Args:
        proxy: the environment with ``simulator="proxy:PATH"``.
        real: the same with its real simulator; with ``record`` set, the verifications are
            recorded.
        agent: name of the agent.
        hyperparameters: of the agent.
        budget: designs to evaluate on the proxy.
        verify: designs to simulate.
        seed: of the agent.

    Raises:
        InvalidValueError: if the two have different spaces or objectives.
    """
    if proxy.design_space != real.design_space or proxy.objective != real.objective:
        raise InvalidValueError("the proxy's environment has another design space or objective")
    codes, rewards = [], []
    listener = proxy.on_evaluated

    def keep(outcomes: Outcomes) -> None:
        ok = (outcomes.status == Status.OK) & ~outcomes.cached
        codes.append(outcomes.designs.codes[ok])
        rewards.append(outcomes.reward[ok])

    proxy.on_evaluated = keep
    try:
        directions = ["minimize"] * len(proxy.objective.goals)
        options = {"seed": seed, **(hyperparameters or {})}
        searcher = make_agent(agent, proxy.design_space, directions, **options)
        found = searcher.search(proxy, budget)
    finally:
        proxy.on_evaluated = listener
    order = np.argsort(-np.concatenate(rewards), kind="stable")[:verify]
    chosen = Designs(real.design_space, np.concatenate(codes)[order])
    used = searcher.hyperparameters.model_dump(mode="json")
    real.start_trial(
        TrialInfo(agent=f"proxy-{agent}", hyperparameters=used, seed=seed, budget=verify)
    )
    try:
        outcomes = real.evaluate_batch(chosen)
    finally:
        real.end_trial("finished")
    best = Best()
    best.update(outcomes)
    expected = proxy.evaluate_batch(chosen)
    return Verified(best.outcome, list(outcomes), list(expected), found.proposals)
