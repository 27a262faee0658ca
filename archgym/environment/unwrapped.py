"""The environment inside Gymnasium's wrappers, which every view and every search takes."""

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
    inner = getattr(env, "unwrapped", env)
    if not isinstance(inner, Environment):
        raise InvalidValueError(
            f"{env!r:.200} is not an archgym environment, such as archgym.make gives"
        )
    return inner
