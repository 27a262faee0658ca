"""Enumerated design spaces: a table in place of a simulator, with exact optima."""

from archgym.simulators.tabular.optimum import Optimum, find_optimum, pareto_front
from archgym.simulators.tabular.simulator import (
    PREFIX,
    TABLE_FILE,
    TabularSimulator,
    shipped_tables,
    table_named,
)
from archgym.simulators.tabular.table import Header, Table, read_header

__all__ = [
    "PREFIX",
    "TABLE_FILE",
    "Header",
    "Optimum",
    "Table",
    "TabularSimulator",
    "find_optimum",
    "pareto_front",
    "read_header",
    "shipped_tables",
    "table_named",
]
