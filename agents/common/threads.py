"""Numeric libraries held to one thread, quiet and seeded, while an agent works.

Small matrices and networks are slower with more threads, up to ten times on a busy machine, and
results would depend on how many there are.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from threadpoolctl import ThreadpoolController


@contextmanager
def one_quiet_thread(libraries: ThreadpoolController) -> Iterator[None]:
    """One thread for numeric libraries, and no warnings.

    Args:
        libraries: the libraries that were loaded when it was made.
    """
    with libraries.limit(limits=1), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """One thread for torch; afterwards as many as before."""
    import torch  # takes seconds, and only needed here

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def one_seeded_thread(seed: int) -> Iterator[None]:
    """Torch, numpy and ``random`` seeded, torch on one thread; afterwards all as before.

    Stable-Baselines3, BoTorch and Optuna draw from the global generators.
    """
    states = random.getstate(), np.random.get_state()  # noqa: NPY002
    import torch  # takes seconds, and only needed here; its import draws numbers, too

    state = torch.get_rng_state()
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    torch.manual_seed(seed)
    try:
        with one_torch_thread():
            yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
        torch.set_rng_state(state)
