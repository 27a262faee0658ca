"""What messages about a run add for people: the line that matters, and what to try."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from archgym.declared.schema import StageEntry
from archgym.simulators.external import ProgramOutput

__all__ = ["beside", "memory_advice", "nearest_lines"]

_OUT_OF_MEMORY: Final = re.compile(
    r"\bkilled\s*$|bad_alloc|memory ?error|memory exhausted|memory allocation|"
    r"(out of|not enough|insufficient|exhausted|cannot allocate) .{0,20}memory|"
    r"alloc\w* .{0,20}(failed|failure)",
    re.IGNORECASE,
)
_ENDED_FOR_MEMORY: Final = (-signal.SIGKILL, -signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS)
_FROM_SHELL: Final = 128
_WORD: Final = re.compile(r"[A-Za-z]{2,}")
_NEAREST: Final = 4
_SHOWN: Final = 160
_LINES_READ: Final = 20_000


def beside(command: Sequence[str], folder: Path, here: Path) -> str:
    """Advice if an argument is a file beside the declaration, which a run does not see.

    Args:
        command: the program and its arguments.
        folder: in which it runs.
        here: folder of the declaration.
    """
    for text in command:
        path = Path(text)
        missing = bool(text) and not path.is_absolute() and not (folder / path).exists()
        if missing and (here / path).is_file():
            path = Path(os.path.normpath(path))
            return f". {path} stands beside the declaration: write {{{{ here }}}}/{path}"
    return ""


def memory_advice(entry: StageEntry, output: ProgramOutput) -> str:
    """Names the limit of memory where a program that failed may have died of it; else empty."""
    if entry.memory_limit_mb is None:
        return ""
    code = output.exit_code
    signalled = code in _ENDED_FOR_MEMORY or _FROM_SHELL - code in _ENDED_FOR_MEMORY
    said = _OUT_OF_MEMORY.search(output.stderr[-20_000:]) or _OUT_OF_MEMORY.search(
        output.stdout[-20_000:]
    )
    if not signalled and not said:
        return ""
    return f". It may need more than its memory_limit_mb of {entry.memory_limit_mb:g}"


def nearest_lines(wanted: str, text: str) -> str:
    r"""The lines of a text that share most words with a pattern; else its last ones.

    >>> nearest_lines(r"total cycles: (\d+)", "sim 1.2\nTotal  cycles = 17\nbye")
    'Total  cycles = 17'

    Args:
        wanted: the pattern, key, path or column.
        text: in which nothing matched.
    """
    lines = [line.strip() for line in text.splitlines()[-_LINES_READ:] if line.strip()]
    words = {word.lower() for word in _WORD.findall(re.sub(r"\\[A-Za-z]", " ", wanted))}
    scores = [len(words & {word.lower() for word in _WORD.findall(line)}) for line in lines]
    best = max(scores, default=0)
    if best == 0:
        chosen = lines[-_NEAREST:]
    else:
        chosen = [line for line, score in zip(lines, scores, strict=True) if score == best]
        chosen = list(dict.fromkeys(chosen))[:_NEAREST]
    return " | ".join(line if len(line) <= _SHOWN else f"{line[:_SHOWN]}..." for line in chosen)
