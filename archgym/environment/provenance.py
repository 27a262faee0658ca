"""Who drives an environment, where no agent of archgym says so: for the table of trials."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from archgym.errors import InvalidValueError
from archgym.evaluation.trial_info import EXTERNAL, TrialInfo, plain_hyperparameters

PROVENANCE: Final = ("agent", "seed", "hyperparameters", "label", "budget")
"""Arguments of environments that describe a trial and not the problem."""
_NAME = re.compile(r"[\w.+-]{1,64}")


def driven_by(
    agent: str,
    seed: int | None,
    hyperparameters: Mapping[str, Any] | None,
    label: str | None,
    budget: int | None,
) -> TrialInfo:
    """The trial of a library that drives an environment.

    Args:
        agent: name of the algorithm.
        seed: of the algorithm; ``None`` if not known.
        hyperparameters: of the algorithm, plain values.
        label: what the evaluations are for, such as ``train`` or ``eval``; ``None`` if not known.
        budget: maximum number of distinct legal designs to simulate; ``None`` for no limit.

    Raises:
        InvalidValueError: for a value that is not possible.
    """
    for name, value in (("agent", agent), ("label", label)):
        if value is not None and not (isinstance(value, str) and _NAME.fullmatch(value)):
            raise InvalidValueError(
                f"{name} must be a name of up to 64 letters, digits and the characters . _ + -, "
                f"not {value!r:.80}"
            )
    if agent is None:
        raise InvalidValueError(f"agent must be a name; {EXTERNAL!r} if it is not known")
    given = {} if hyperparameters is None else hyperparameters
    plain = plain_hyperparameters(given, finite=True)
    return TrialInfo(agent=agent, hyperparameters=plain, seed=seed, budget=budget, label=label)
