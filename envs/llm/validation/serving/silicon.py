"""Rows of aiconfigurator's silicon sample: servers measured in closed loops."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from archgym.envs.llm.data.as_records import GIB
from archgym.envs.llm.data.cluster import load_cluster
from archgym.envs.llm.data.model import load_model
from archgym.envs.llm.validation.forms import Case, NotComparable
from archgym.problem.reference import TableRow

__all__ = ["read_silicon"]

_EXPERTS: Final[Mapping[str, Any]] = {
    "gated": True, "tied": False, "sequence": 4096, "head_size": 128, "active_experts": 8,
    "expert_feedforward": 1536,
}  # fmt: skip
_MODELS: Final[Mapping[str, Any]] = {
    "Qwen/Qwen3-235B-A22B-FP8": {
        **_EXPERTS, "layers": 94, "hidden": 4096, "feedforward": 12288, "heads": 64, "kv_heads": 4,
        "vocabulary": 151936, "experts": 128,
    },
    "MiniMaxAI/MiniMax-M2.5": {
        **_EXPERTS, "layers": 62, "hidden": 3072, "feedforward": 1536, "heads": 48, "kv_heads": 8,
        "vocabulary": 200064, "experts": 256,
    },
    "deepseek-ai/DeepSeek-V3": "deepseek_v3",
    "deepseek-ai/DeepSeek-R1": "deepseek_v3",
    "nvidia/DeepSeek-R1-NVFP4": "deepseek_v3",
    "moonshotai/Kimi-K2.5": {
        "base": "deepseek_v3",
        "heads": 64,
        "vocabulary": 163840,
        "experts": 384,
        "dense_layers": 1,
    },
    "meta-llama/Llama-3.1-70B": "llama3_70b",
    "meta-llama/Llama-3.1-8B-Instruct": "llama3_8b",
    "nvidia/Llama-3.1-8B-Instruct-FP8": "llama3_8b",
}  # fmt: skip
_SPARSE: Final = ("Qwen/Qwen3-235B-A22B-FP8", "MiniMaxAI/MiniMax-M2.5")
_LATENT: Final = (
    "deepseek-ai/DeepSeek-V3", "deepseek-ai/DeepSeek-R1", "nvidia/DeepSeek-R1-NVFP4",
    "moonshotai/Kimi-K2.5",
)  # fmt: skip
_CLUSTERS: Final = {
    "h100_sxm": "dgx_h100",
    "h200_sxm": "dgx_h200",
    "b200_sxm": "dgx_b200",
    "b300_sxm": "dgx_b300",
}
_ENGINES: Final = {"vllm": "vllm", "trtllm": "tensorrt_llm", "sglang": "sglang"}
_BITS: Final = {"": 16, "bf16": 16, "fp8": 8, "fp4": 4, "int4": 4}
_NODE_GPUS: Final = 8
_USABLE: Final = 0.9 * 0.95
"""Of the memory, what weights may take at most if there is to be a cache."""
_CACHE_BITS: Final[Mapping[tuple[str, str], int]] = {
    ("vllm", "b200_sxm"): 8,
    ("trtllm", "b200_sxm"): 8,
    ("trtllm", "h200_sxm"): 8,
}
"""Caches in 8 bits: on vLLM as InferenceMAX sets them; on TensorRT-LLM what its default, and the
concurrency at which queues begin, tell."""
_ROUNDS: Final = 10
_BLOCK: Final = 16
_MOST: Final = 4000
_VARIED: Final = ((1024, 1024), (8192, 1024), (1024, 8192))
"""Lengths of the runs whose requests are drawn from 80 to 100 % of them, as InferenceMAX does."""
_SPREAD: Final = 0.2 / math.sqrt(12) / 0.9


def read_silicon(row: TableRow) -> Case:
    """A row as a closed loop of ten requests a user, all users of which begin at once.

    That, lengths from 80 to 100 % of those named, 8,192 tokens an iteration, no prefix cache, and a
    cache in 8 bits on B200 with vLLM, not on H200, are InferenceMAX's settings (README of its
    repository, 2025). Two
    things about runs that are not InferenceMAX's were concluded from the given rows. Time to
    the first token on TensorRT-LLM holds the time of a request by the number of slots: there is a
    user more than slots. On vLLM 0.12 prompts cost next to nothing, at rates that no GPU could
    compute: they are alike, and its prefix cache, on unless told, holds all but their last block.

    Raises:
        NotComparable: if the model or the chip is not known.
        InvalidValueError: if a cell is not possible.
    """
    model, system = row.text("model_path"), row.text("system")
    if model not in _MODELS:
        raise NotComparable("the model is not among those that are known here")
    if system not in _CLUSTERS:
        raise NotComparable(f"no cluster of {system}")
    engine = row.choice("backend", _ENGINES)
    ttft, tpot = row.number("silicon_ttft_ms"), row.number("silicon_tpot_ms")
    if ttft is None or tpot is None:
        raise NotComparable("nothing was measured")
    users, prompt, output = (row.whole(name) for name in ("concurrency", "isl", "osl"))
    varied = (prompt, output) in _VARIED
    mean, spread = (0.9, _SPREAD) if varied else (1.0, 0.0)
    bits = row.choice("precision", _BITS)
    sparse = model in (*_SPARSE, *_LATENT)
    requests: dict[str, Any] = {
        "generator": "closed_loop",
        "users": users,
        "count": max(2 * users, min(_ROUNDS * users, _MOST)),
        "prompt_tokens": mean * prompt,
        "prompt_variation": spread,
        "output_tokens": mean * output,
        "output_variation": spread,
        "longest_tokens": max(prompt, output),
    }
    design: dict[str, Any] = {
        "tensor_parallel": row.whole("tp_size"),
        "replicas": 1,
        "max_num_seqs": 1024,
        "max_num_batched_tokens": 8192,
        "weight_bits": bits,
        "compute_bits": 16 if row.text("precision", "") == "int4" else bits,
        "block_size": _BLOCK,
    }
    if not varied and not sparse and engine == "tensorrt_llm":
        design["max_num_seqs"] = users
        requests["users"] = users + 1
    if not varied and not sparse and engine == "vllm" and prompt > _BLOCK:
        design["prefix_cache"] = True
        alike = (prompt - 1) // _BLOCK * _BLOCK
        requests |= {"prompt_tokens": prompt - alike, "prefixes": 1, "prefix_tokens": alike}
        requests["prefix_block_tokens"] = _BLOCK
    cache = 8 if sparse else _CACHE_BITS.get((row.text("backend"), system), 16)
    if sparse:
        design |= _layout(row)
    gpus = design["tensor_parallel"] * design.get("attention_data_parallel", 1)
    if model in _LATENT and gpus > _NODE_GPUS:
        raise NotComparable(f"the columns give {gpus} GPUs, more than the node has")
    if model in _LATENT:
        weights = load_model(_MODELS[model]).parameters * bits / 8
        memory = gpus * load_cluster(_CLUSTERS[system]).device.memory_gib * GIB
        if weights > _USABLE * memory:
            raise NotComparable(f"weights leave no room on the {gpus} GPUs that the columns give")
    return Case(
        f"{engine}, {_kind(model)}",
        {
            "model": _MODELS[model],
            "fleet": {_CLUSTERS[system]: max(8, gpus)},
            "requests": requests,
            "engine": engine,
            "attainment_goal": 0,
        },
        {**design, "cache_bits": cache},
        {"ttft_mean_ms": ttft, "tpot_mean_ms": tpot},
    )


def _layout(row: TableRow) -> dict[str, int]:
    """How a model with experts is spread.

    Where attention is data-parallel by its column, the tensor-parallel size is that of all GPUs;
    where the column is empty, the experts' sizes tell how many groups there are.
    """
    tensor, groups = row.whole("tp_size"), row.whole("attention_dp_size", "1")
    spread = row.whole("moe_ep_size", "1")
    if groups > 1:
        return {
            "tensor_parallel": max(1, tensor // groups),
            "attention_data_parallel": groups,
            "expert_parallel": max(tensor, groups),
        }
    experts = row.whole("moe_tp_size", "1") * spread
    return {
        "tensor_parallel": tensor,
        "attention_data_parallel": max(1, experts // tensor),
        "expert_parallel": spread,
    }


def _kind(model: str) -> str:
    if model in _LATENT:
        return "latent attention"
    return "experts" if model in _SPARSE else "dense"
