"""Reference figures for training plans: calculon, vTrain's measured clusters, published runs.

A table is a CSV file, gzipped or not, in one of four forms, told apart by its columns:

| form | a column of it | a row |
|---|---|---|
| calculon | `tensor_par` | calculon's fields of model, system and execution, `total_time` (s) and `proc_mem_tier1_cap_req` (bytes) |
| vTrain | `iteration_ms` | `set` (`single` or `multi`), `gpus`, `global_batch`, `micro_batch`, `hidden`, `heads`, `layers`, `seq_len`, `tp`, `dp`, `pp` of GPT in fp16 with full recomputation on A100 |
| LLM Foundry | `mp_mode` | `model` (an MPT), `gpu`, `gpus`, `seq_len`, `micro_batch`, `grad_accum`, `precision`, `sharding`, `checkpointing`, `tokens_per_s_per_gpu` |
| published | `metric` | `model`, `system`, `gpus`, `precision`, `gbs`, `mbs`, `seq_len`, `tp`, `pp`, `cp`, `vp`, `fsdp`; dense Llama on DGX-H100 is compared, the rest is skipped |

The tables that ship are in the folder ``tables``; its ``provenance.json`` says how they came about.
"""  # noqa: E501

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from archgym.envs.llm.validation.calculon import read_calculon
from archgym.envs.llm.validation.forms import Case, NotComparable
from archgym.envs.llm.validation.foundry import read_foundry
from archgym.envs.llm.validation.published import read_published
from archgym.envs.llm.validation.vtrain import read_vtrain
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


class _Form(NamedTuple):
    title: str
    read: Callable[[TableRow], Case]
    metrics: Mapping[str, str]


_FORMS: Final[Mapping[str, _Form]] = {
    "tensor_par": _Form(
        "calculon caa4b11",
        read_calculon,
        {"total_time": "iteration_s", "proc_mem_tier1_cap_req": "peak_memory_gib"},
    ),
    "iteration_ms": _Form("vTrain, measured on A100", read_vtrain, {"iteration_ms": "iteration_s"}),
    "mp_mode": _Form(
        "LLM Foundry, measured",
        read_foundry,
        {"tokens_per_s_per_gpu": "tokens_per_s_per_gpu"},
    ),
    "metric": _Form("published runs", read_published, {"value": "tokens_per_s_per_gpu"}),
}
"""Each form by a column that only it has."""


def shipped_references() -> list[Reference]:
    """The references that ship with the package."""
    provenance = json.loads((_FOLDER / "provenance.json").read_text(encoding="utf-8"))
    return [
        dataclasses.replace(reference, source=f"shipped {file}", provenance=facts)
        for file, facts in provenance.items()
        for reference in read_reference(_FOLDER / file)
    ]


def read_reference(table: Path, hardware: str | None = None) -> list[Reference]:
    """A table as one reference, its cases told apart by the model or the kind of row.

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
            f"form of a table of training plans. The header has: {', '.join(columns)}"
        )
    cases: list[tuple[TableRow, Case]] = []
    skipped: list[Skipped] = []
    for row in rows:
        try:
            cases.append((row, form.read(row)))
        except NotComparable as reason:
            skipped.append(Skipped(row.line, str(reason)))
    of_workload: dict[str, list[Mapping[str, Any]]] = {}
    for _, case in cases:
        of_workload.setdefault(json.dumps(case.workload, sort_keys=True), []).append(case.design)
    settings: list[Mapping[str, Any]] = []
    numbers: dict[str, int] = {}
    found = []
    for row, case in cases:
        key = json.dumps(case.workload, sort_keys=True)
        if key not in numbers:
            numbers[key] = len(settings)
            settings.append(
                {
                    "workload": case.workload,
                    "space": _space(of_workload[key]),
                    "objective": "minimize iteration_s",
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


def _space(designs: Sequence[Mapping[str, Any]]) -> DesignSpace:
    """The values that occur, without conditions and rules: what was measured was possible."""
    parameters: list[Parameter] = []
    for name in designs[0]:
        values = {design[name] for design in designs}
        if values <= {True, False} and all(isinstance(value, bool) for value in values):
            parameters.append(Boolean(name))
        elif all(isinstance(value, str) for value in values):
            parameters.append(Categorical(name, sorted(values)))
        else:
            parameters.append(Ordinal(name, sorted(values)))
    return DesignSpace(parameters)
