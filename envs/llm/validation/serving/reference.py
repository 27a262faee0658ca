"""Reference figures for deployments: BLIS, measured servers, measured requests.

A table is a CSV file, gzipped or not, in one of three forms, told apart by its columns:

| form | a column of it | a row |
|---|---|---|
| BLIS | `latency_model` | a run of inference-sim f90a1e3 on the first 200 requests of a trace that ships: `model`, `hardware`, `tp`, `num_instances`, `prefill_instances`, `trace`, `rate_per_s`, the scheduler's settings, and its figures |
| silicon | `silicon_tpot_ms` | a closed loop measured on a server: `backend`, `model_path`, `system`, `precision`, `isl`, `osl`, `concurrency`, `tp_size`, `silicon_ttft_ms`, `silicon_tpot_ms` |
| requests | `latency_ms` | a request of a run on vLLM: `run` (chip/model), `tp`, `dp`, `ep`, `max_num_seqs`, `max_num_batched_tokens`, `arrival_s`, `prompt_tokens`, `output_tokens`, `ttft_ms`, `latency_ms`; each run is one row of the reference |

The tables that ship are in the folder ``tables``; its ``provenance.json`` says how they came about.
"""  # noqa: E501

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from archgym.envs.llm.validation.forms import Case, NotComparable
from archgym.envs.llm.validation.serving.blis import read_blis
from archgym.envs.llm.validation.serving.measured import read_run
from archgym.envs.llm.validation.serving.silicon import read_silicon
from archgym.errors import InvalidValueError
from archgym.problem.reference import (
    ColumnUse,
    Reference,
    ReferenceRow,
    Skipped,
    TableRow,
    read_table,
)
from archgym.space import Boolean, Categorical, DesignSpace, Ordinal, Parameter

__all__ = ["read_reference", "shipped_references"]

_FOLDER: Final = Path(__file__).parent / "tables"
_PROVENANCE: Final = "provenance.json"


class _Form(NamedTuple):
    title: str
    read: Callable[[Sequence[TableRow]], Case]
    metrics: Mapping[str, str]
    by: str


_FORMS: Final[Mapping[str, _Form]] = {
    "latency_model": _Form(
        "BLIS (inference-sim f90a1e3)",
        lambda rows: read_blis(rows[0]),
        {
            "ttft_p50_ms": "ttft_p50_ms",
            "tpot_mean_ms": "tpot_mean_ms",
            "vllm_estimated_duration_s": "requests_per_s",
        },
        "",
    ),
    "silicon_tpot_ms": _Form(
        "servers, measured in closed loops",
        lambda rows: read_silicon(rows[0]),
        {"silicon_ttft_ms": "ttft_mean_ms", "silicon_tpot_ms": "tpot_mean_ms"},
        "",
    ),
    "latency_ms": _Form(
        "requests, measured on vLLM 0.19",
        read_run,
        {"ttft_ms": "ttft_mean_ms", "latency_ms": "e2e_mean_ms"},
        "run",
    ),
}
"""Each form by a column that only it has; ``by``: rows with equal values in it are one case."""


def shipped_references() -> list[Reference]:
    """The references that ship with the package."""
    provenance = json.loads((_FOLDER / _PROVENANCE).read_text(encoding="utf-8"))
    return [
        dataclasses.replace(reference, source=f"shipped {file}", provenance=facts)
        for file, facts in provenance.items()
        if "rows" in facts
        for reference in read_reference(_FOLDER / file)
    ]


def read_reference(table: Path, hardware: str | None = None) -> list[Reference]:
    """A table as one reference.

    Args:
        table: the CSV file, gzipped or not.
        hardware: must be ``None``; every row says what it ran on.

    Raises:
        InvalidValueError: if the table is of no known form or a cell is not possible; names the
            file, the line, the column and the value.
    """
    if hardware is not None:
        raise InvalidValueError(f"hardware is {hardware!r}; rows of these tables name their own")
    columns, rows = read_table(table)
    form = next((_FORMS[name] for name in _FORMS if name in columns), None)
    if form is None:
        raise InvalidValueError(
            f"{table}: the header has none of the columns {', '.join(_FORMS)}, which tell the "
            f"form of a table of deployments. The header has: {', '.join(columns)}"
        )
    cases: list[tuple[TableRow, Case]] = []
    skipped: list[Skipped] = []
    for group in _groups(rows, form.by):
        try:
            cases.append((group[0], form.read(group)))
        except NotComparable as reason:
            skipped.append(Skipped(group[0].line, str(reason)))
    designs: dict[str, list[Mapping[str, Any]]] = {}
    for _, case in cases:
        designs.setdefault(_key(case), []).append(case.design)
    settings: list[Mapping[str, Any]] = []
    numbers: dict[str, int] = {}
    found = []
    for row, case in cases:
        key = _key(case)
        if key not in numbers:
            numbers[key] = len(settings)
            settings.append(
                {
                    "workload": case.workload,
                    "space": _space(designs[key]),
                    "objective": "minimize tpot_mean_ms",
                }
            )
        found.append(ReferenceRow(case.label, case.design, case.metrics, numbers[key], row.line))
    uses = [
        ColumnUse(name, "metric", form.metrics[name])
        if name in form.metrics
        else ColumnUse(name, "setting", "workload")
        for name in columns
    ]
    return [Reference(form.title, str(table), settings, found, uses, skipped)]


def _groups(rows: Sequence[TableRow], by: str) -> Iterator[list[TableRow]]:
    if not by:
        yield from ([row] for row in rows)
        return
    found: dict[str, list[TableRow]] = {}
    for row in rows:
        found.setdefault(row.text(by), []).append(row)
    yield from found.values()


def _key(case: Case) -> str:
    """Equal for rows that one environment can compare."""
    return json.dumps([case.workload, sorted(case.design)], sort_keys=True)


def _space(designs: Sequence[Mapping[str, Any]]) -> DesignSpace:
    """The values that occur, without conditions and rules: what was measured was possible.

    A space has to leave a choice, so the number of sequences has twice its largest value too.
    """
    parameters: list[Parameter] = []
    for name in designs[0]:
        values = {design[name] for design in designs}
        if name == "max_num_seqs":
            values |= {2 * max(values)}
        if all(isinstance(value, bool) for value in values):
            parameters.append(Boolean(name))
        elif all(isinstance(value, str) for value in values):
            parameters.append(Categorical(name, sorted(values)))
        else:
            parameters.append(Ordinal(name, sorted(values)))
    return DesignSpace(parameters)
