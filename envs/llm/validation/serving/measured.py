"""Logs of requests that were served by vLLM 0.19 (LLMServingSim's)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from archgym.envs.llm.validation.forms import Case, NotComparable
from archgym.problem.reference import TableRow

__all__ = ["read_run"]

_DENSE: Final[dict[str, Any]] = {
    "gated": True, "tied": False, "sequence": 4096, "vocabulary": 151936, "head_size": 128,
}  # fmt: skip
_MODELS: Final[dict[str, Any]] = {
    "Llama-3.1-8B": "llama3_8b",
    "Qwen3-32B": {
        **_DENSE, "layers": 64, "hidden": 5120, "feedforward": 25600, "heads": 64, "kv_heads": 8,
    },
    "Qwen3-30B-A3B": {
        **_DENSE, "layers": 48, "hidden": 2048, "feedforward": 6144, "heads": 32, "kv_heads": 4,
        "experts": 128, "active_experts": 8, "expert_feedforward": 768,
    },
}  # fmt: skip
_LEAST: Final = 10
"""Requests that a workload has at least."""
_CLUSTERS: Final = {"RTXPRO6000": "rtx_pro_6000_node", "RTX4090": "rtx_4090_node"}


def read_run(rows: Sequence[TableRow]) -> Case:
    """The requests of one run as a case: means over them.

    Args:
        rows: of the run, one a request.

    Raises:
        NotComparable: if the model or the chip is not known.
        InvalidValueError: if a cell is not possible.
    """
    first = rows[0]
    run = first.text("run")
    chip, _, model = run.partition("/")
    chip = chip.replace("_", "").replace(" ", "").upper()
    known = next((name for name in sorted(_MODELS, key=len) if model.startswith(name)), None)
    if known is None or chip not in _CLUSTERS:
        raise NotComparable(f"no model or chip of run {run}")
    times = {
        name: np.array([_number(row, name) for row in rows])
        for name in ("ttft_ms", "latency_ms", "output_tokens")
    }
    several = times["output_tokens"] > 1
    after = (times["latency_ms"] - times["ttft_ms"])[several] / (
        times["output_tokens"][several] - 1
    )
    tensor, groups = max(1, first.whole("tp")), max(1, first.whole("dp"))
    design: dict[str, Any] = {
        "tensor_parallel": tensor,
        "replicas": 1,
        "max_num_seqs": first.whole("max_num_seqs"),
        "max_num_batched_tokens": first.whole("max_num_batched_tokens"),
    }
    if known == "Qwen3-30B-A3B":
        design["attention_data_parallel"] = groups
        design["expert_parallel"] = tensor * groups if first.whole("ep") else 1
    else:
        design["replicas"] = groups
    return Case(
        run,
        {
            "model": _MODELS[known],
            "fleet": {_CLUSTERS[chip]: 8},
            "requests": {
                "file": str(first.path),
                "only": {"run": run},
                "count": max(_LEAST, len(rows)),
            },
            "engine": "vllm",
            "attainment_goal": 0,
        },
        design,
        {
            "ttft_mean_ms": float(times["ttft_ms"].mean()),
            "tpot_mean_ms": float(after.mean()),
            "e2e_mean_ms": float(times["latency_ms"].mean()),
        },
    )


def _number(row: TableRow, column: str) -> float:
    found = row.number(column)
    if found is None:
        raise row.error(column, "It must be a number.")
    return found
