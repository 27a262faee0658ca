"""What earlier searches found, as it concerns the problem that is searched now."""

from typing import TYPE_CHECKING, Any

from archgym.history.account import SourceAccount
from archgym.history.history import History, HistorySource

if TYPE_CHECKING:
    from archgym.history.reading import read_history

__all__ = ["History", "HistorySource", "SourceAccount", "read_history"]


def __getattr__(name: str) -> Any:
    """Loads what reads datasets when it is first used: it is heavy."""
    if name == "read_history":
        from archgym.history.reading import read_history

        return read_history
    raise AttributeError(f"module 'archgym.history' has no attribute {name!r}")


def __dir__() -> list[str]:
    """What is here, loaded or not: completion and the documentation ask for it."""
    return sorted({*globals(), *__all__})
