"""An environment as a problem of pymoo, with several goals and with constraints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from archgym.environment.environment import Environment
from archgym.environment.unwrapped import unwrapped
from archgym.errors import BudgetExhausted, MissingDependencyError
from archgym.evaluation.outcome import Outcomes
from archgym.problem.status import Status
from archgym.space.libraries.pymoo import PymooEncoding

if TYPE_CHECKING:
    import gymnasium
    import pymoo.core.problem

WORST = 1e30
"""Value of every goal of a design without a result: its constraint says that it is not feasible."""


def pymoo_problem(env: Environment | gymnasium.Env[Any, Any]) -> pymoo.core.problem.Problem:
    """A problem of mixed variables whose designs the environment evaluates, counts and records.

    Points are those of :class:`archgym.space.PymooEncoding`, which is the problem's ``encoding``.
    The values of a point are the goals of the objective, minimised, and these constraints, met at
    or below 0: first whether the design has a result (0, else 1: illegal, failed or timed out),
    then the relative excess over each limit of the objective. After the end of an environment's
    budget, points have the worst values, the environment is not asked, and ``problem.exhausted`` is
    ``True``: an algorithm may end there.

    Args:
        env: the environment, wrapped or not.

    Raises:
        MissingDependencyError: if pymoo is not installed.
    """
    try:
        from pymoo.core.problem import Problem
    except ImportError:
        raise MissingDependencyError(
            f"this view needs pymoo: pip install {PymooEncoding.package}"
        ) from None
    environment = unwrapped(env)
    encoding = PymooEncoding(environment.design_space)
    objective = environment.objective

    class EnvironmentProblem(Problem):  # type: ignore[misc, unused-ignore]
        """The environment, a batch of points at a time."""

        def __init__(self) -> None:
            self.encoding, self.exhausted = encoding, False
            super().__init__(
                vars=encoding.variables,
                n_obj=len(objective.goals),
                n_ieq_constr=1 + len(objective.limits),
            )

        def _evaluate(self, points: Any, out: dict[str, Any], *_: Any, **__: Any) -> None:
            designs = encoding.from_points(points)
            goals = np.full((len(designs), self.n_obj), WORST)
            excess = np.ones((len(designs), self.n_ieq_constr))
            done = 0
            while done < len(designs) and not self.exhausted:
                try:
                    outcomes = environment.evaluate_batch(designs[slice(done, None)])
                except BudgetExhausted:
                    self.exhausted = True
                    break
                self.exhausted = not len(outcomes)
                part = slice(done, done + len(outcomes))
                goals[part], excess[part] = _values(outcomes)
                done += len(outcomes)
            out["F"], out["G"] = goals, excess

    return EnvironmentProblem()


def _values(outcomes: Outcomes) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Goals and constraints of evaluated designs."""
    ok = outcomes.status == Status.OK
    goals = np.where(ok[:, None], outcomes.objectives, WORST)
    limits = np.where(ok[:, None], outcomes.violations, 1.0)
    return np.minimum(goals, WORST), np.column_stack([~ok, limits])
