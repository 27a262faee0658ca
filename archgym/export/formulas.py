"""Texts that a spreadsheet takes for formulas, in files that it opens.

A cell that begins with ``=``, ``+``, ``-`` or ``@`` is calculated when a CSV file is opened, and a
formula can send what is in the other cells to somebody. A ``'`` before it makes it a text.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["without_formula", "without_formulas"]

_BEGINS = r"^\s*[=+\-@\t\r]"
_NUMBER = r"^\s*[+\-]?[0-9][0-9,. ]*([eE][+\-]?[0-9]+)?( ?%)?\s*$"


def without_formula(text: str) -> str:
    """A text with ``'`` before it if a spreadsheet would calculate it; a number stays as it is.

    >>> without_formula("=1+1"), without_formula("-1.5e3"), without_formula("lru")
    ("'=1+1", '-1.5e3', 'lru')
    """
    calculated = re.search(_BEGINS, text) and not re.search(_NUMBER, text)
    return f"'{text}" if calculated else text


def without_formulas(table: pa.Table) -> pa.Table:
    """A table with :func:`without_formula` applied to each column of texts."""
    for place, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            column = table[field.name]
            begins = pc.match_substring_regex(column, _BEGINS)
            number = pc.match_substring_regex(column, _NUMBER)
            quoted = pc.binary_join_element_wise("'", column, "")
            column = pc.if_else(pc.and_not(begins, number), quoted, column)
            table = table.set_column(place, field, column)
    return table
