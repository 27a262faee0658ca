"""What Gymnasium and Stable-Baselines3 ask of every environment."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import gymnasium
from gymnasium.utils.env_checker import check_env

from archgym.check.environment_checks import Maker
from archgym.check.result import CheckFailed


def check_gymnasium(make_env: Maker) -> str:
    """Gymnasium's own checker raises nothing and warns of nothing."""
    env = make_env()
    with _no_warnings():
        check_env(env, skip_render_check=env.spec is None)
    return "gymnasium.utils.env_checker.check_env is content"


def check_gymnasium_make(make_env: Maker) -> str:
    """The same environment through ``gymnasium.make``, if it is registered."""
    env = make_env()
    if env.spec is None:
        return "not registered: nothing to make"
    with _no_warnings():
        wrapped = gymnasium.make(env.spec.id, **env.spec.kwargs)
        check_env(wrapped.unwrapped)
        wrapped.reset(seed=0)
        wrapped.step(wrapped.action_space.sample())
        wrapped.close()
    return f"gymnasium.make({env.spec.id!r})"


def check_stable_baselines3(make_env: Maker) -> str:
    """Stable-Baselines3's checker raises nothing and warns of nothing."""
    from stable_baselines3.common import env_checker

    with _no_warnings():
        env_checker.check_env(make_env(), warn=True)
    return "stable_baselines3.common.env_checker.check_env is content"


@contextmanager
def _no_warnings() -> Iterator[None]:
    """Turns the first warning that was issued inside into a failure."""
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        yield
    if issued:
        raise CheckFailed(f"warning: {issued[0].message}")
