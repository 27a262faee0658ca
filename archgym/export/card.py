"""A card of a dataset, in the format of the Hugging Face hub: a README.md with metadata."""

from __future__ import annotations

import bisect
import importlib.resources
import json
import math
from collections import Counter
from pathlib import Path
from typing import Any, Final

import jinja2
import pyarrow as pa
import pyarrow.compute as pc
import yaml

from archgym.data.problems import problems_of
from archgym.data.schema import TRIAL_SCHEMA
from archgym.data.selection import Selection
from archgym.data.snapshot import counts_of
from archgym.errors import InvalidValueError, check_choice

LICENCES = (
    *("apache-2.0", "bsd-2-clause", "bsd-3-clause", "cc-by-4.0", "cc-by-nc-4.0", "cc-by-sa-4.0"),
    *("cc0-1.0", "gpl-3.0", "lgpl-3.0", "mit", "mpl-2.0", "odbl", "odc-by", "pddl", "unlicense"),
    *("cdla-permissive-2.0", "cdla-sharing-1.0", "other", "unknown"),
)
"""Identifiers that the hub knows, or the more common of them."""
LIMITS: Final = (1e3, 1e4, 1e5, 1e6, 1e7, 1e8)
SIZES: Final = (
    "n<1K",
    "1K<n<10K",
    "10K<n<100K",
    "100K<n<1M",
    "1M<n<10M",
    "10M<n<100M",
    "100M<n<1B",
)
"""Categories of the hub, and the numbers of rows between them."""


def write_card(
    selection: Selection, path: Path, *, licence: str = "", title: str = "", source: str = ""
) -> int:
    """Writes the card: metadata, columns with units and ranges, provenance.

    Beside the folders ``evaluations`` and ``trials`` of the dataset it makes these a repository
    that ``datasets.load_dataset`` reads.

    Args:
        selection: the rows it describes.
        path: the file.
        licence: under which the data may be used, one of :data:`LICENCES`.
        title: heading; by default made of the environments' names.
        source: where the data come from, a line of text or an address.

    Returns:
        Number of rows described.

    Raises:
        InvalidValueError: without a licence.
        UnknownNameError: if the hub does not know the licence.
    """
    check_licence(licence)
    environments = sorted({row["environment"] for row in selection.trials})
    title = title or f"Design-space exploration of {', '.join(environments)}"
    figures, trials = _Figures(selection), selection.trials
    agents = {row["agent"] for row in trials if row["trial_id"] in figures.trials}
    versions = [json.loads(text).items() for text in sorted({row["versions"] for row in trials})]
    hashes = {(row["workload"], row["workload_sha256"]) for row in trials if row["workload"]}
    environment = jinja2.Environment(  # noqa: S701 - Markdown, in which nothing is escaped
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    template = (importlib.resources.files("archgym.export") / "card.md.j2").read_text("utf-8")
    text = environment.from_string(template).render(
        front_matter=yaml.safe_dump(
            front_matter(selection, licence, title), sort_keys=False, allow_unicode=True, width=100
        ),
        title=title,
        licence=licence,
        source=source,
        sidecar=selection.dataset.sidecar,
        rows=len(selection),
        figures=figures,
        agents=sorted(agents),
        problems=problems_of(selection),
        started=[row["started"].date() for row in trials],
        hashes=sorted(hashes),
        versions=[", ".join(f"{name} {version}" for name, version in some) for some in versions],
        commits=sorted({row["commit"] for row in trials if row["commit"]}),
        operations=[json.dumps(step) for step in selection.operations],
    )
    path.write_text(text, encoding="utf-8")
    return len(selection)


class _Figures:
    """Counts and ranges, from one pass."""

    def __init__(self, selection: Selection) -> None:
        sidecar = selection.dataset.sidecar
        self.status: Counter[str] = Counter()
        self.trials: Counter[str] = Counter()
        self.feasible = 0
        self.range: dict[str, tuple[float, float]] = {}
        self.values: Counter[str] = Counter()
        numeric = [f"metric.{metric.name}" for metric in sidecar.metrics]
        params = [f"param.{name}" for name in sidecar.space.names]
        columns = ["trial_id", "status", "feasible", *params, *numeric]
        for table in selection.blocks(columns):
            self.status += counts_of(table["status"])
            self.trials += counts_of(table["trial_id"])
            self.feasible += pc.sum(table["feasible"]).as_py() or 0
            for name in [*params, *numeric]:
                self.values[name] += table.num_rows - table[name].null_count
                if name in numeric and table[name].null_count < table.num_rows:
                    found = pc.min_max(table[name]).as_py()
                    low, high = self.range.get(name, (math.inf, -math.inf))
                    self.range[name] = min(low, found["min"]), max(high, found["max"])


def check_licence(licence: str) -> None:
    """Refuses a card without a licence that the hub knows.

    Raises:
        InvalidValueError: without one.
        UnknownNameError: if the hub does not know it.
    """
    if not licence:
        raise InvalidValueError(
            "a card names the licence of the data: --license cc-by-4.0, for example; "
            f"known are {', '.join(LICENCES)}"
        )
    check_choice("licence", licence, LICENCES)


def front_matter(
    selection: Selection, licence: str, title: str, folder: str = ""
) -> dict[str, Any]:
    """The metadata of a card, plain values.

    Args:
        selection: the rows that it describes.
        licence: of the data.
        title: heading.
        folder: of the dataset, below the card; the names of its configurations begin with it.
    """
    prefix, below = (f"{folder}-", f"{folder}/") if folder else ("", "")
    tables = {"evaluations": selection.dataset.schema, "trials": TRIAL_SCHEMA}
    configs: list[dict[str, Any]] = [
        {"config_name": f"{prefix}{name}", "data_files": f"{below}{name}/*.parquet"}
        for name in tables
    ]
    configs[0]["default"] = True
    return {
        "license": licence,
        "pretty_name": title,
        "task_categories": ["tabular-regression", "reinforcement-learning"],
        "tags": ["archgym", "computer-architecture", "design-space-exploration"],
        "size_categories": [SIZES[bisect.bisect(LIMITS, len(selection))]],
        "configs": configs,
        "dataset_info": [
            {"config_name": f"{prefix}{name}", "features": _features(schema)}
            for name, schema in tables.items()
        ],
    }


def _features(schema: pa.Schema) -> list[dict[str, str]]:
    found = []
    for field in schema:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        name = "float64" if pa.types.is_float64(kind) else str(kind)
        found.append({"name": field.name, "dtype": name})
    return found
