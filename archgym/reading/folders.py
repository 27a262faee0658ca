"""Folders that may have been received from somebody: nothing in them leads out of them.

A symbolic link in a received folder would make archgym read, overwrite or delete a file of the
user that has nothing to do with it, and a pipe would make it wait for ever.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path


def strange_entry(folder: Path) -> str:
    """The first entry of a folder that is neither a file nor a folder, at any depth.

    Args:
        folder: it may itself be a link, because the user named it.

    Returns:
        What it is and where, for a message; empty if there is none, or no such folder.
    """
    waiting = [os.fspath(folder)]
    while waiting:
        place = waiting.pop()
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    elif not entry.is_file(follow_symlinks=False):
                        return f"{entry.path} is {_kind(entry.path)}"
        except OSError:  # it is gone by now, or cannot be read: whoever reads it will say so
            continue
    return ""


def _kind(path: str) -> str:
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return "no file"
    if stat.S_ISLNK(mode):
        return "a symbolic link"
    return "a pipe" if stat.S_ISFIFO(mode) else "a device or a socket"
