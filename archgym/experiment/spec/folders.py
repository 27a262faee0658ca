"""Folders of earlier results, as an experiment lists them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator

__all__ = ["Folders"]


def _listed(value: Any) -> list[str]:
    """One folder or a list of them as a list.

    Checked here: a union of types would give a message for each of them.
    """
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not all(isinstance(one, str) and one for one in listed):
        raise ValueError("allowed is the folder of a run or a dataset, or a list of them")
    if len(set(listed)) < len(listed):
        raise ValueError("a folder is listed twice")
    return listed


Folders = Annotated[list[str], BeforeValidator(_listed, json_schema_input_type=str | list[str])]
"""Paths of folders, of which a file may give one alone."""
