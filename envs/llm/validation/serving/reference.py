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

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from archgym.envs.llm.validation.cases import Form, read_cases
from archgym.envs.llm.validation.serving.blis import read_blis
from archgym.envs.llm.validation.serving.measured import read_run
from archgym.envs.llm.validation.serving.silicon import read_silicon
from archgym.problem.reference import Reference, shipped_tables

__all__ = ["read_reference", "shipped_references"]

_FOLDER: Final = Path(__file__).parent / "tables"


_FORMS: Final[Mapping[str, Form]] = {
    "latency_model": Form(
        "BLIS (inference-sim f90a1e3)",
        lambda rows: read_blis(rows[0]),
        {
            "ttft_p50_ms": "ttft_p50_ms",
            "tpot_mean_ms": "tpot_mean_ms",
            "vllm_estimated_duration_s": "requests_per_s",
        },
    ),
    "silicon_tpot_ms": Form(
        "servers, measured in closed loops",
        lambda rows: read_silicon(rows[0]),
        {"silicon_ttft_ms": "ttft_mean_ms", "silicon_tpot_ms": "tpot_mean_ms"},
    ),
    "latency_ms": Form(
        "requests, measured on vLLM 0.19",
        read_run,
        {"ttft_ms": "ttft_mean_ms", "latency_ms": "e2e_mean_ms"},
        "run",
    ),
}
"""Each form by a column that only it has; ``by``: rows with equal values in it are one case."""


def shipped_references() -> list[Reference]:
    """The references that ship with the package."""
    return shipped_tables(_FOLDER, read_reference, needs="rows")


def read_reference(table: Path, hardware: str | None = None) -> list[Reference]:
    """A table as one reference.

    Args:
        table: the CSV file, gzipped or not.
        hardware: must be ``None``; every row says what it ran on.

    Raises:
        InvalidValueError: as :func:`archgym.envs.llm.validation.cases.read_cases`.
    """
    return read_cases(
        table, hardware, _FORMS, "deployments", "minimize tpot_mean_ms", ("max_num_seqs",)
    )
