"""The working folder as a place of modules: only where somebody names one, and after all others.

A folder that was received may hold a file ``pyarrow.py``. The command ``archgym`` does not look
for modules in the working folder, so that nothing in it runs; a name such as ``my_cache:MyCache``
is a request to do so, and then the folder is searched last, so that no file in it takes the place
of an installed module.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

_VARIABLE = "PYTHONSAFEPATH"


def search_working_folder() -> None:
    """From now on finds modules in the working folder too, where no other place has them."""
    with contextlib.suppress(FileNotFoundError):  # the folder was deleted meanwhile
        here = os.getcwd()
        if here not in sys.path and "" not in sys.path:
            sys.path.append(here)


def leave_out_working_folder() -> None:
    """Takes back the entry of ``sys.path`` that ``python -m`` puts before all others."""
    if not sys.flags.safe_path and sys.path:
        del sys.path[0]


@contextlib.contextmanager
def children_leave_out_working_folder() -> Iterator[None]:
    """Python processes that are started meanwhile do not look for modules in the working folder.

    Each of them calls :func:`forget_in_child`, so that programs which it starts itself do.
    """
    before = os.environ.get(_VARIABLE)
    os.environ[_VARIABLE] = "1"
    try:
        yield
    finally:
        forget_in_child()
        if before is not None:
            os.environ[_VARIABLE] = before


def forget_in_child() -> None:
    """Undoes :func:`children_leave_out_working_folder` for programs that a child starts."""
    os.environ.pop(_VARIABLE, None)
