"""Numeric libraries held to one thread, so that results do not depend on the number of cores."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@contextlib.contextmanager
def one_numeric_thread() -> Iterator[None]:
    """Holds the numeric libraries of this process to one thread.

    Libraries that are loaded already are limited directly, later ones by their variables.
    """
    from threadpoolctl import threadpool_limits  # only where something is limited

    with one_numeric_thread_in_children(), threadpool_limits(1):
        yield


@contextlib.contextmanager
def one_numeric_thread_in_children() -> Iterator[None]:
    """Holds the numeric libraries of processes that are started meanwhile to one thread."""
    before = {name: os.environ[name] for name in _VARIABLES if name in os.environ}
    os.environ.update(dict.fromkeys(_VARIABLES, "1"))
    try:
        yield
    finally:
        for name in _VARIABLES:
            os.environ.pop(name, None)
        os.environ.update(before)
