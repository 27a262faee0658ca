"""Who drives an environment, where no agent of archgym says so: for the table of trials."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from archgym.errors import InvalidValueError, check_integer
from archgym.evaluation.trial_info import EXTERNAL, TrialInfo

PROVENANCE: Final = ("agent", "seed", "hyperparameters", "label", "budget")
"""Arguments of environments that describe a trial and not the problem."""
_NAME = re.compile(r"[\w.+-]{1,64}")
_MAX_SEED = (1 << 63) - 1


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
    seed, budget = _integer("seed", seed, 0), _integer("budget", budget, 1)
    if seed is not None and seed > _MAX_SEED:
        raise InvalidValueError(f"seed must be below 2^63, not {seed}")
    given = {} if hyperparameters is None else hyperparameters
    if not isinstance(given, Mapping):
        raise InvalidValueError(
            f"hyperparameters must be a mapping of names to values, not {given!r:.80}"
        )
    plain = {str(name): _plain(str(name), value) for name, value in given.items()}
    return TrialInfo(agent=agent, hyperparameters=plain, seed=seed, budget=budget, label=label)


def _integer(name: str, value: Any, least: int) -> int | None:
    """An integer, which may be one of NumPy's; ``None`` for none."""
    plain = value.item() if isinstance(value, np.integer) else value
    if plain is not None:
        check_integer(name, plain, least)
    return plain


def _plain(name: str, value: Any) -> Any:
    """A hyperparameter as JSON has it."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        raise InvalidValueError(
            f"hyperparameters[{name!r}] is recorded as JSON: give a number, text, list or mapping, "
            f"not {value!r:.80}"
        ) from None
