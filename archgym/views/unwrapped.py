"""The environment inside Gymnasium's wrappers, which every view takes."""

from __future__ import annotations

from typing import Any

import gymnasium

from archgym.environment.environment import Environment
from archgym.errors import InvalidValueError


def unwrapped(env: gymnasium.Env[Any, Any]) -> Environment:
    """The archgym environment inside Gymnasium's wrappers.

    Raises:
        InvalidValueError: if there is none.
    """
    inner = env.unwrapped
    if not isinstance(inner, Environment):
        raise InvalidValueError(f"{env!r} is not an archgym environment")
    return inner
