"""An environment belongs to one thread at a time: two would mix up trials, budgets and records."""

from __future__ import annotations

import os
import threading

from archgym.errors import ArchgymError

_users: dict[int, list[int]] = {}
"""The thread that uses an environment, and how deeply, by the environment's id.

Not in the environment, which may be copied to other processes while it is in use.
"""
os.register_at_fork(after_in_child=_users.clear)


class OneThread:
    """A block in which a thread uses an environment; it may be entered again by the same thread.

    Args:
        environment: that is used.

    Raises:
        ArchgymError: on entry, if another thread is in such a block.
    """

    __slots__ = ("_key",)

    def __init__(self, environment: object) -> None:
        self._key = id(environment)

    def __enter__(self) -> None:
        me = threading.get_ident()
        held = _users.setdefault(self._key, [me, 0])  # one step for the interpreter: no race
        if held[0] != me:
            raise ArchgymError(
                "another thread uses this environment: make one for each thread, or use "
                "processes; archgym run and simulation: {workers: N} evaluate side by side"
            )
        held[1] += 1

    def __exit__(self, *error: object) -> None:
        held = _users.get(self._key)
        if held is not None:  # a child process has begun with none
            held[1] -= 1
            if not held[1]:
                del _users[self._key]
