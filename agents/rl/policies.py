"""Policies as files of plain arrays."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from archgym.errors import InvalidValueError
from archgym.reading.files import read_arrays

_LIMIT_BYTES: Final = 1 << 30
"""1 GiB of weights."""
_ABOUT = "about"
"""Name of the array that holds the JSON text; no weight of a network is called so."""


def write_policy(path: Path, policy: Any, about: Mapping[str, Any]) -> None:
    """Writes what has a ``state_dict``, and JSON data about it, as one ``.npz`` file.

    Plain arrays: unlike Stable-Baselines3's own files, nothing in it is ever executed.
    """
    arrays = {name: tensor.cpu().numpy() for name, tensor in policy.state_dict().items()}
    with path.open("wb") as file:
        np.savez(file, allow_pickle=False, **{_ABOUT: np.array(json.dumps(about))}, **arrays)


def read_policy(path: Path, about: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """The inverse of :func:`write_policy`: the weights by name.

    Raises:
        InvalidValueError: if there is no such file, it is not one that was written so, or it was
            written with other data about it.
    """
    try:
        arrays = read_arrays(path, _LIMIT_BYTES)
        found = json.loads(str(arrays.pop(_ABOUT)))
    except FileNotFoundError:
        raise InvalidValueError(f"there is no policy at {str(path)!r}") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidValueError(f"{str(path)!r} is not a saved policy: {error}") from None
    if not isinstance(found, dict):
        raise InvalidValueError(f"{str(path)!r} is not a saved policy")
    for key, value in about.items():
        if found.get(key) != value:
            raise InvalidValueError(f"{str(path)!r} is a policy of another {key}")
    return arrays


def apply_policy(policy: Any, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Gives what has a ``state_dict`` the weights.

    Raises:
        InvalidValueError: if they are those of another network.
    """
    import torch

    ours = {name: tuple(tensor.shape) for name, tensor in policy.state_dict().items()}
    theirs = {name: array.shape for name, array in arrays.items()}
    if ours != theirs:
        wrong = sorted(n for n in {*ours, *theirs} if ours.get(n) != theirs.get(n))
        raise InvalidValueError(
            f"the saved policy is of another network: {', '.join(wrong[:4])} "
            "differ; metrics, design space and hyperparameters have to be the same"
        )
    policy.load_state_dict({name: torch.from_numpy(array) for name, array in arrays.items()})
