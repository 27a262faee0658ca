"""The compiled kernel model as Python calls it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from archgym.envs.llm.serving.compiled import entry
from archgym.envs.llm.serving.tables import fill_tables

__all__ = ["tabulate"]


@entry
def tabulate(sources: int) -> Callable[[Any, Any, Any, Any, Any], None]:
    """Fills the tables of a pool, see :func:`archgym.envs.llm.serving.tables.fill_tables`."""

    def run(model: Any, system: Any, share: Any, nodes: Any, tables: Any) -> None:
        _ = sources
        fill_tables(model[0], system[0], share[0], nodes, tables)

    return run
