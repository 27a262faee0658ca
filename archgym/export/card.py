"""A card of a dataset, in the format of the Hugging Face hub: a README.md with metadata."""

from __future__ import annotations

import bisect
import json
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from archgym.data.problems import problems_of
from archgym.data.schema import TRIAL_SCHEMA
from archgym.data.selection import Selection
from archgym.data.snapshot import counts_of
from archgym.errors import InvalidValueError, UnknownNameError

LICENCES = (
    *("apache-2.0", "bsd-2-clause", "bsd-3-clause", "cc-by-4.0", "cc-by-nc-4.0", "cc-by-sa-4.0"),
    *("cc0-1.0", "gpl-3.0", "lgpl-3.0", "mit", "mpl-2.0", "odbl", "odc-by", "pddl", "unlicense"),
    *("cdla-permissive-2.0", "cdla-sharing-1.0", "other", "unknown"),
)
"""Identifiers that the hub knows, or the more common of them."""
_LIMITS = (1e3, 1e4, 1e5, 1e6, 1e7, 1e8)
_SIZES = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M", "100M<n<1B")


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
    if not licence:
        raise InvalidValueError(
            "a card names the licence of the data: --license cc-by-4.0, for example; "
            f"known are {', '.join(LICENCES)}"
        )
    if licence not in LICENCES:
        raise UnknownNameError("licence", licence, LICENCES)
    environments = sorted({row["environment"] for row in selection.trials})
    title = title or f"Design-space exploration of {', '.join(environments)}"
    figures = _Figures(selection)
    head = _front_matter(selection, licence, title)
    body = [
        f"# {title}",
        _summary(selection, figures),
        "## Columns of `evaluations`",
        _parameters(selection, figures),
        _metrics(selection, figures),
        _table(("other columns", "what it is"), _OTHER_COLUMNS),
        "## Trials",
        _trials(selection),
        "## Provenance",
        _provenance(selection, source),
        "## Reading it",
        _READING,
        "## What to know before learning from it",
        _CAUTIONS,
        "## Licence",
        f"`{licence}`",
    ]
    path.write_text(f"---\n{head}---\n\n" + "\n\n".join(body) + "\n")
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


def _front_matter(selection: Selection, licence: str, title: str) -> str:
    import yaml

    data = {
        "license": licence,
        "pretty_name": title,
        "task_categories": ["tabular-regression", "reinforcement-learning"],
        "tags": ["archgym", "computer-architecture", "design-space-exploration"],
        "size_categories": [_SIZES[bisect.bisect(_LIMITS, len(selection))]],
        "configs": [
            {"config_name": "evaluations", "data_files": "evaluations/*.parquet", "default": True},
            {"config_name": "trials", "data_files": "trials/*.parquet"},
        ],
        "dataset_info": [
            {"config_name": "evaluations", "features": _features(selection.dataset.schema)},
            {"config_name": "trials", "features": _features(TRIAL_SCHEMA)},
        ],
    }
    return str(yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=100))


def _features(schema: pa.Schema) -> list[dict[str, str]]:
    found = []
    for field in schema:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        name = {"double": "float64"}.get(str(kind), str(kind))
        found.append({"name": field.name, "dtype": name})
    return found


def _summary(selection: Selection, figures: _Figures) -> str:
    statuses = ", ".join(f"{count:,} {name}" for name, count in sorted(figures.status.items()))
    simulator = selection.dataset.sidecar.simulator
    agents = sorted({row["agent"] for row in selection.trials if row["trial_id"] in figures.trials})
    return (
        f"{len(selection):,} evaluations of hardware designs in {len(figures.trials):,} trials "
        f"({statuses}; {figures.feasible:,} feasible), proposed by {', '.join(agents)}, and "
        f"evaluated by simulator `{simulator['name']}`, version {simulator['version']}. "
        "One row is one design that was evaluated; designs may repeat. Recorded with archgym."
    )


def _parameters(selection: Selection, figures: _Figures) -> str:
    space, rows = selection.dataset.sidecar.space, []
    for p in space.parameters:
        condition = f"; acts when {p.when}" if p.when is not None else ""
        name, doc = f"param.{p.name}", p.doc + condition
        rows.append((f"`{name}`", p.kind, p.unit, p.range, doc, f"{figures.values[name]:,}"))
    table = _table(("parameter", "kind", "unit", "values", "what it is", "rows with a value"), rows)
    rules = [f"- {rule.name}: {rule.doc or rule.expression}" for rule in space.rules]
    return "\n\n".join([table, *(["Rules of legal designs:", "\n".join(rules)] if rules else [])])


def _metrics(selection: Selection, figures: _Figures) -> str:
    rows = []
    for m in selection.dataset.sidecar.metrics:
        name = f"metric.{m.name}"
        low, high = figures.range.get(name, (math.nan, math.nan))
        span = "no values" if low != low else f"{low:.6g} to {high:.6g}"
        rows.append((f"`{name}`", m.unit, m.direction, span, m.doc, f"{figures.values[name]:,}"))
    head = ("metric", "unit", "better", "range", "what it is", "rows with a value")
    return _table(head, rows)


def _trials(selection: Selection) -> str:
    rows = []
    for problem in problems_of(selection):
        first = problem.first
        goals = ", ".join(problem.objective.names)
        limits = ", ".join(map(str, problem.objective.limits)) or "none"
        seeds = {row["seed"] for row in problem.trials}
        cells = (problem.name, ", ".join(problem.agents), f"{len(problem.trials)}", f"{len(seeds)}")
        rows.append((*cells, goals, limits, first["settings"]))
    head = ("problem", "agents", "trials", "seeds", "goals", "limits", "settings")
    return _table(head, rows)


def _provenance(selection: Selection, source: str) -> str:
    used = selection.trials
    hashes = sorted({(row["workload"], row["workload_sha256"]) for row in used if row["workload"]})
    versions = sorted({row["versions"] for row in used})
    commits = sorted({row["commit"] for row in used if row["commit"]})
    started = [row["started"] for row in used]
    lines = [f"- source: {source}"] if source else []
    lines += [f"- recorded from {min(started):%Y-%m-%d} to {max(started):%Y-%m-%d}"]
    lines += [f"- workload `{name}`: SHA-256 `{digest or 'none'}`" for name, digest in hashes]
    lines += [
        "- versions: " + ", ".join(f"{k} {v}" for k, v in json.loads(text).items())
        for text in versions
    ]
    lines += [f"- commit of archgym: `{commit}`" for commit in commits]
    lines += [f"- made by: `{json.dumps(step)}`" for step in selection.operations]
    return "\n".join(lines)


_OTHER_COLUMNS = (
    ("`trial_id`, `step`", "which trial, and the number of the proposal in it, from 0"),
    ("`reward`", "bounded score of the trial's objective, larger is better; -1 unless ok"),
    ("`status`, `reason`", "ok, illegal, failed or timeout, and why"),
    ("`feasible`", "ok, and within all limits of the objective"),
    ("`cached`", "known to the trial before, so not simulated again"),
    ("`fidelity`", "1 for the full simulation, less for a cheaper one (part of a trace)"),
    ("`simulation_s`, `agent_s`", "seconds in the simulator and in the agent"),
    ("`timestamp`", "when it was recorded, UTC"),
)
_READING = """```python
import archgym

data = archgym.data.load("FOLDER")              # this repository, downloaded
frame = data.where("status == ok").pandas()
examples = data.examples()                      # features, targets, names, units
train, test = data.split("design", seed=0).parts.values()
```

Any Parquet reader opens `evaluations/*.parquet` and `trials/*.parquet`; `dataset.json` describes
the design space and the metrics."""
_CAUTIONS = """\
- Trajectories repeat designs, and neighbours in a trajectory are alike: split by design,
  workload, agent or time, never by row.
- Agents look where they expect good designs: rows are not a uniform sample of the design space.
- An empty cell of a parameter means that it does not act in this design; an empty metric, that the
  simulator does not give it. Neither is zero.
- Rewards are relative to the baseline design of the trial and its objective: compare metrics, not
  rewards, across trials."""


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [" | ".join(head), " | ".join("---" for _ in head)]
    lines += [" | ".join(str(cell).replace("|", "\\|") for cell in row) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)
