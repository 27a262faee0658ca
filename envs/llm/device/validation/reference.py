"""Reference figures of devices: measured boards, published ratios, trained models.

A table is a CSV file, gzipped or not, in one of three forms, told apart by a column:

| form | its column | a row |
|---|---|---|
| boards | `tokens_per_s` | a model on a device; `software`, `memory_clock_share` and the names of parameters; `tokens_per_s` of answers and `prompt_tokens_per_s`, either may be empty |
| models | `final_loss` | `training_gtokens`, `width`, `depth` of a trained model, and on what `data` its loss was measured |
| claims | `claim` | a name of :data:`archgym.envs.llm.device.validation.claims.CLAIMS` and the published `ratio` |

The tables that ship are in the folder ``tables``; its ``provenance.json`` says how they came about.
"""  # noqa: E501

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from archgym.envs.llm.device.data.records import load_software
from archgym.envs.llm.device.validation.claims import CLAIMS, latency_ms, space_of
from archgym.errors import InvalidValueError
from archgym.problem.reference import (
    ColumnUse,
    Reference,
    ReferenceRow,
    TableRow,
    read_table,
    shipped_tables,
)

__all__ = ["read_reference", "shipped_references"]

_FOLDER: Final = Path(__file__).parent / "tables"


class _Case(NamedTuple):
    label: str
    workload: Mapping[str, Any]
    design: Mapping[str, Any]
    metrics: Mapping[str, float]


class _Form(NamedTuple):
    title: str
    read: Callable[[TableRow], _Case]
    metrics: Mapping[str, str]


def shipped_references() -> list[Reference]:
    """The references that ship with the package."""
    return shipped_tables(_FOLDER, lambda path: [read_reference(path)])


def read_reference(table: Path) -> Reference:
    """A table as a reference.

    Args:
        table: the CSV file, gzipped or not.

    Raises:
        InvalidValueError: if the table is of no known form or a cell is not possible; names the
            file, the line, the column and the value.
    """
    columns, rows = read_table(table)
    form = next((_FORMS[name] for name in _FORMS if name in columns), None)
    if form is None:
        raise InvalidValueError(
            f"{table}: the header has none of the columns {', '.join(_FORMS)}, which tell the "
            f"form of a table of devices. The header has: {', '.join(columns)}"
        )
    cases = [form.read(row) for row in rows]
    settings: list[Mapping[str, Any]] = []
    numbers: dict[str, int] = {}
    found = []
    for row, case in zip(rows, cases, strict=True):
        key = json.dumps([case.label, case.workload], sort_keys=True)
        if key not in numbers:
            numbers[key] = len(settings)
            same = [c.design for c in cases if (c.label, c.workload) == (case.label, case.workload)]
            settings.append(
                {
                    "workload": case.workload,
                    "space": space_of(same),
                    "objective": "minimize token_latency_ms",
                }
            )
        found.append(ReferenceRow(case.label, case.design, case.metrics, numbers[key], row.line))
    uses = [
        ColumnUse(name, "metric", form.metrics[name])
        if name in form.metrics
        else ColumnUse(name, "setting", "workload")
        for name in columns
    ]
    return Reference(form.title, str(table), settings, found, uses)


_WHOLE: Final = ("channels", "ranks", "mac_units", "clock_mhz", "layers", "hidden", "heads",
                 "kv_heads", "head_size", "vocabulary", "weight_bits")  # fmt: skip


def _board(row: TableRow) -> _Case:
    """A measured rate of answers, and perhaps of a prompt."""
    prompt, output = row.whole("prompt"), row.whole("output")
    base = load_software(row.text("software"))
    clock = row.number("memory_clock_share") or 1.0
    workload = {
        "name": row.text("board"),
        "prompt": prompt,
        "output": output,
        "software": {
            "base": row.text("software"),
            "memory_share": min(1.0, base.memory_share * clock),
        },
    }
    design: dict[str, Any] = {name: row.whole(name) for name in _WHOLE}
    inner = row.number("feedforward")
    sram = row.number("sram_mib")
    if not inner or not design["hidden"]:
        raise row.error("feedforward", "It must be a number above 0, and so must hidden.")
    design |= {
        "feedforward_ratio": inner / design["hidden"],
        "sram_mib": sram or 1.0,
        "memory": row.text("memory"),
        "gated": row.text("gated") == "1",
        "tied_embeddings": row.text("tied") == "1",
    }
    metrics = {}
    if (rate := row.number("tokens_per_s")) is not None:
        metrics["tokens_per_s"] = rate
    if (rate := row.number("prompt_tokens_per_s")) is not None and rate > 0:
        metrics["prefill_latency_ms"] = prompt / rate * 1e3
    return _Case(row.text("board"), workload, design, metrics)


def _model(row: TableRow) -> _Case:
    """A trained Gemstone: gated blocks of four times the width, two query heads by key head."""
    gtokens, width, depth = row.number("training_gtokens"), row.whole("width"), row.whole("depth")
    loss = row.number("final_loss")
    if not gtokens or not width or not depth or loss is None:
        raise row.error("final_loss", "The row needs tokens, width, depth and loss above 0.")
    heads = max(2, width // 128)
    design = {
        "layers": depth,
        "hidden": width,
        "heads": heads,
        "kv_heads": heads // 2,
        "feedforward_ratio": 4.0,
        "vocabulary": 50304,
        "tied_embeddings": False,
        "memory": "DDR4-3200",
        "channels": 1,
        "mac_units": 4096,
        "clock_mhz": 1000,
    }
    label = f"{row.text('data')}, {gtokens:g}e9 tokens"
    workload = {"name": label, "prompt": 128, "output": 128, "training_gtokens": gtokens}
    return _Case(label, workload, design, {"loss_predicted_nats_per_token": loss})


def _claim(row: TableRow) -> _Case:
    """A published ratio, as the latency that it gives with our baseline."""
    pair = row.choice("claim", CLAIMS)()
    published = row.number("ratio")
    if not published:
        raise row.error("ratio", "It must be a number above 0.")
    latency = latency_ms(pair.base_workload, pair.base) / published
    workload = {**pair.workload, "name": f"{row.text('claim')}: {pair.label}"}
    return _Case(
        "latencies by published ratios", workload, pair.design, {"token_latency_ms": latency}
    )


_FORMS: Final[Mapping[str, _Form]] = {
    "claim": _Form("published ratios", _claim, {"ratio": "token_latency_ms"}),
    "final_loss": _Form(
        "trained models (Gemstones)", _model, {"final_loss": "loss_predicted_nats_per_token"}
    ),
    "tokens_per_s": _Form(
        "measured boards",
        _board,
        {"tokens_per_s": "tokens_per_s", "prompt_tokens_per_s": "prefill_latency_ms"},
    ),
}
"""Each form by a column that only it has."""
