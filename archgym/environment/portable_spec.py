"""Gymnasium's description of a made environment, with arguments that JSON can hold."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import numpy as np
from gymnasium.envs.registration import EnvSpec

from archgym.problem.objective import Objective


def portable_spec(spec: EnvSpec, episode_length: int) -> EnvSpec:
    """A copy of a spec that ``spec.to_json()`` can write, with the length of an episode.

    Arguments that are objects of the user, such as a workload that is no plain value, stay what
    they are; then ``to_json`` says which.

    Args:
        spec: as Gymnasium or :func:`archgym.make` gives it to an environment.
        episode_length: steps of an episode, each of which is a design.
    """
    kwargs = {name: _plain(value) for name, value in spec.kwargs.items()}
    return dataclasses.replace(spec, kwargs=kwargs, max_episode_steps=episode_length)


def _plain(value: Any) -> Any:
    """A value as JSON has it; itself where there is no such form."""
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Objective):
        return value.to_json()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value
