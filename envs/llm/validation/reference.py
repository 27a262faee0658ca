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

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from archgym.envs.llm.validation.calculon import read_calculon
from archgym.envs.llm.validation.cases import Form, read_cases
from archgym.envs.llm.validation.foundry import read_foundry
from archgym.envs.llm.validation.published import read_published
from archgym.envs.llm.validation.vtrain import read_vtrain
from archgym.problem.reference import Reference, shipped_tables

__all__ = ["read_reference", "shipped_references"]

_FOLDER: Final = Path(__file__).parent / "tables"


_FORMS: Final[Mapping[str, Form]] = {
    "tensor_par": Form(
        "calculon caa4b11",
        lambda rows: read_calculon(rows[0]),
        {"total_time": "iteration_s", "proc_mem_tier1_cap_req": "peak_memory_gib"},
    ),
    "iteration_ms": Form(
        "vTrain, measured on A100",
        lambda rows: read_vtrain(rows[0]),
        {"iteration_ms": "iteration_s"},
    ),
    "mp_mode": Form(
        "LLM Foundry, measured",
        lambda rows: read_foundry(rows[0]),
        {"tokens_per_s_per_gpu": "tokens_per_s_per_gpu"},
    ),
    "metric": Form(
        "published runs", lambda rows: read_published(rows[0]), {"value": "tokens_per_s_per_gpu"}
    ),
}
"""Each form by a column that only it has."""


def shipped_references() -> list[Reference]:
    """The references that ship with the package."""
    return shipped_tables(_FOLDER, read_reference)


def read_reference(table: Path, hardware: str | None = None) -> list[Reference]:
    """A table as one reference, its cases told apart by the model or the kind of row.

    Args:
        table: the CSV file, gzipped or not.
        hardware: must be ``None``; every row says what it ran on.

    Raises:
        InvalidValueError: as :func:`archgym.envs.llm.validation.cases.read_cases`.
    """
    return read_cases(table, hardware, _FORMS, "training plans", "minimize iteration_s")
