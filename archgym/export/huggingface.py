"""A folder that can be uploaded to the Hugging Face hub as it is: datasets with their card."""

from __future__ import annotations

import bisect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from archgym.data.problems import identifier
from archgym.data.selection import Selection
from archgym.errors import DatasetError
from archgym.export.card import LIMITS, SIZES, check_licence, front_matter, write_card

README = "README.md"


def export_huggingface(
    selection: Selection, path: Path, *, licence: str = "", title: str = "", source: str = ""
) -> int:
    """Writes a dataset with its card: ``datasets.load_dataset(FOLDER)`` reads it.

    Args:
        selection: the rows.
        path: the folder; it must not be there, or be empty.
        licence: under which the data may be used, one of :data:`archgym.export.card.LICENCES`.
        title: heading; by default made of the environments' names.
        source: where the data come from, a line of text or an address.

    Returns:
        Number of rows.

    Raises:
        InvalidValueError, UnknownNameError: as :func:`archgym.export.card.write_card`.
        DatasetError: if it cannot be written.
    """
    check_licence(licence)
    rows = selection.write(path)
    write_card(selection, path / README, licence=licence, title=title, source=source)
    return rows


def export_all(
    selections: Mapping[str, Selection],
    path: Path,
    *,
    licence: str = "",
    title: str = "",
    source: str = "",
) -> int:
    """Writes several datasets, each a configuration of one repository.

    ``datasets.load_dataset(FOLDER, "NAME-evaluations")`` reads one of them.

    Args:
        selections: rows of each dataset by its name.
        path: the folder; it must not be there.
        licence: as :func:`export_huggingface`, and so are title and source.
        title: of the repository.
        source: of the data.

    Returns:
        Number of rows.

    Raises:
        InvalidValueError, UnknownNameError, DatasetError: as :func:`export_huggingface`.
    """
    check_licence(licence)
    if path.exists():
        raise DatasetError(f"{path} exists already")
    rows: dict[str, int] = {}
    about: dict[str, Any] = {}
    for name, selection in selections.items():
        own = identifier(name)
        rows[own] = export_huggingface(selection, path / own, licence=licence, source=source)
        head = front_matter(selection, licence, title, own)
        for key, value in head.items():
            joins = key in ("configs", "dataset_info") and key in about
            about[key] = [*about[key], *value] if joins else about.get(key, value)
    for one in about["configs"][1:]:
        one.pop("default", None)
    title = title or "Design-space exploration of hardware"
    about |= {
        "pretty_name": title,
        "size_categories": [SIZES[bisect.bisect(LIMITS, sum(rows.values()))]],
    }
    text = yaml.safe_dump(about, sort_keys=False, allow_unicode=True, width=100)
    lines = [
        f"- [{name}]({name}/{README}): {number:,} evaluations" for name, number in rows.items()
    ]
    body = [f"# {title}", "", *lines, "", "Each folder has a card of its own.", ""]
    body += ["## Licence", "", f"`{licence}`", ""]
    try:
        (path / README).write_text(f"---\n{text}---\n\n" + "\n".join(body), encoding="utf-8")
    except OSError as error:
        raise DatasetError(f"cannot write {path / README}: {error.strerror}") from error
    return sum(rows.values())
