"""What earlier searches found, as it concerns the problem that is searched now."""

from archgym.history.history import History, HistorySource

__all__ = ["History", "HistorySource"]
