"""Tuning parameters of the kernels, and the shapes that were measured.

Nothing is imported here: the measuring program reads this module on machines without archgym.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

KERNELS: Final = ("gemm", "attention", "norm")

PARAMETERS: Final[Mapping[str, Mapping[str, tuple[int, ...]]]] = MappingProxyType(
    {
        "gemm": {
            "block_m": (16, 32, 64, 128, 256),
            "block_n": (32, 64, 128, 192, 256, 320),
            "block_k": (32, 64, 128),
            "warps": (4, 8),
            "stages": (2, 3, 4, 5, 6),
            "group_m": (1, 8),
            "split_k": (1, 4),
            "copy_engine": (0, 1),
        },
        "attention": {
            "block_m": (16, 32, 64, 128, 256),
            "block_n": (16, 32, 64, 128),
            "warps": (2, 4, 8),
            "stages": (1, 2, 3, 4),
        },
        "norm": {
            "block_rows": (1, 2, 4, 8),
            "block_columns": (512, 1024, 2048, 4096, 8192),
            "warps": (1, 2, 4, 8, 16),
            "stages": (1, 2, 3),
        },
    }
)
"""Values of each parameter, by kernel."""

RESTS: Final = MappingProxyType({192: 64, 320: 64})
"""Values of ``block_n`` that are no power of two, and how many of their columns are multiplied
apart from the others."""
_ENGINE_COLUMNS: Final = 256
_ENGINE_STAGES: Final = 5
"""The copy engine alone loads wider tiles, and more stages."""
_WARPGROUP_ROWS: Final = 64


def legal(kernel: str, design: Mapping[str, int]) -> bool:
    """Whether each thread has few enough elements for its registers, with some to spill.

    Tiles whose columns are no power of two, and the copy engine, are for warpgroups, which have 64
    rows. The copy engine loads no narrow tiles and does not split K; it alone loads tiles of 320
    columns and six stages.
    """
    threads = 32 * design["warps"]
    if kernel == "gemm":
        fits = design["block_m"] * design["block_n"] <= 256 * threads
        high = design["block_m"] >= _WARPGROUP_ROWS
        if design["copy_engine"]:
            return fits and high and design["block_n"] >= 64 and design["split_k"] == 1
        if design["block_n"] > _ENGINE_COLUMNS or design["stages"] > _ENGINE_STAGES:
            return False
        return fits and (high or design["block_n"] not in RESTS)
    if kernel == "attention":
        return design["block_m"] <= 2 * threads
    return design["block_rows"] * design["block_columns"] <= 128 * threads


DTYPES: Final = ("fp16", "bf16", "fp8")
BYTES: Final = MappingProxyType({"fp16": 2, "bf16": 2, "fp8": 1})
TOLERANCES: Final = MappingProxyType({"fp16": 2e-3, "bf16": 8e-3, "fp8": 2e-3})
"""Largest relative error of a result, by its norm: outputs of fp8 products are in fp16."""


@dataclass(frozen=True)
class Shape:
    """What a kernel computes.

    Attributes:
        name: as a workload.
        kernel: one of :data:`KERNELS`.
        dtype: element type of the inputs, one of :data:`DTYPES`; outputs have 16 bits.
        sizes: by name. ``gemm``: ``m``, ``n``, ``k``. ``attention``: ``batch``, ``heads``,
            ``length``, ``head``, ``causal`` (0 or 1). ``norm``: ``rows``, ``columns``.
        doc: a line on it.
    """

    name: str
    kernel: str
    dtype: str
    sizes: Mapping[str, int]
    doc: str


_ENGINE_BYTES: Final = 16


def engine_can(shape: Shape) -> bool:
    """Whether the copy engine can load a product: each row begins at a multiple of 16 bytes."""
    element = BYTES[shape.dtype]
    rows = (shape.sizes["k"] * element, shape.sizes["n"] * 2)
    return all(size % _ENGINE_BYTES == 0 for size in rows)


def _gemm(name: str, dtype: str, m: int, n: int, k: int, doc: str) -> Shape:
    return Shape(name, "gemm", dtype, {"m": m, "n": n, "k": k}, doc)


def _attention(name: str, batch: int, heads: int, length: int, head: int, causal: int) -> Shape:
    sizes = {"batch": batch, "heads": heads, "length": length, "head": head, "causal": causal}
    kind = "causal" if causal else "full"
    doc = f"{kind} attention, {batch} x {heads} heads of {head}, {length} positions"
    return Shape(name, "attention", "fp16", sizes, doc)


def _norm(name: str, rows: int, columns: int) -> Shape:
    doc = f"residual addition and RMS normalisation of {rows} rows of {columns}"
    return Shape(name, "norm", "fp16", {"rows": rows, "columns": columns}, doc)


HELD_OUT: Final = (
    _attention("attention_llama_13b", 2, 40, 2048, 128, 1),
    _attention("attention_gpt_small", 8, 12, 1024, 64, 1),
    _attention("attention_squad", 32, 16, 384, 64, 0),
    _attention("attention_encoder", 1, 16, 1024, 64, 0),
    _attention("attention_chunks", 64, 8, 512, 128, 0),
    _attention("attention_short_causal", 4, 16, 512, 128, 1),
    _gemm("square_3072", "fp16", 3072, 3072, 3072, "a square product"),
    _gemm("square_768", "fp16", 768, 768, 768, "a small square product"),
    _gemm("prefill_1024", "fp16", 1024, 11008, 4096, "up projection of 1024 tokens"),
    _gemm("decode_32", "fp16", 32, 4096, 11008, "down projection of 32 tokens"),
    _gemm("gate", "fp16", 256, 28672, 4096, "gate and up projection of 256 tokens"),
    _gemm("wide", "fp16", 2048, 8192, 1024, "a wide, shallow product"),
    _gemm("narrow", "fp16", 16384, 128, 2048, "a tall, very narrow product"),
    _gemm("convolution_14", "fp16", 6272, 512, 4608, "a late 3 x 3 convolution as a product"),
    _gemm("uneven_large", "fp16", 2992, 3344, 1616, "larger sizes that no tile divides"),
    _gemm("medium_deep", "fp16", 512, 512, 16384, "a deep product"),
    _gemm("square_2048_fp8", "fp8", 2048, 2048, 2048, "a square product"),
    _gemm("wide_fp8", "fp8", 2048, 8192, 7168, "a wide product"),
    _attention("attention_llama", 1, 32, 4096, 128, 1),
    _attention("attention_bert", 32, 12, 512, 64, 0),
    _attention("attention_batch", 16, 32, 1024, 128, 0),
    _attention("attention_small", 4, 8, 512, 64, 1),
    _attention("attention_long_causal", 1, 8, 8192, 64, 1),
    _attention("attention_swin", 256, 6, 256, 64, 0),
    _norm("norm_768", 32768, 768),
    _norm("norm_2048", 16384, 2048),
    _norm("norm_8192", 4096, 8192),
    _norm("norm_5120", 1024, 5120),
)
"""Shapes that no model was fitted to: they judge it."""

SHAPES: Final = (
    _gemm("square_4096", "fp16", 4096, 4096, 4096, "a square product"),
    _gemm("square_1024", "fp16", 1024, 1024, 1024, "a small square product"),
    _gemm("square_2048", "fp16", 2048, 2048, 2048, "a square product"),
    _gemm("decode_16", "fp16", 16, 6144, 4096, "QKV projection of 16 tokens"),
    _gemm("decode_64", "fp16", 64, 4096, 14336, "down projection of 64 tokens"),
    _gemm("prefill_512", "fp16", 512, 14336, 4096, "up projection of 512 tokens"),
    _gemm("convolution", "fp16", 12544, 256, 1152, "a 3 x 3 convolution as a product"),
    _gemm("uneven", "fp16", 1520, 2896, 768, "sizes that no tile divides"),
    _gemm("deep", "fp16", 256, 256, 32768, "a deep, small product"),
    _gemm("vocabulary", "fp16", 64, 32000, 2048, "logits of 64 tokens"),
    _gemm("mlp_up", "fp16", 8192, 3072, 768, "first product of a small transformer's MLP"),
    _gemm("mlp_down", "fp16", 8192, 768, 3072, "second product of a small transformer's MLP"),
    _gemm("pointwise", "fp16", 50176, 64, 256, "a 1 x 1 convolution as a product"),
    _gemm("low_rank", "fp16", 4096, 4096, 128, "a product of low rank"),
    _gemm("square_1536", "fp16", 1536, 1536, 1536, "a square product"),
    _gemm("tall", "fp16", 32768, 512, 512, "a tall, narrow product"),
    _gemm("small_deep", "fp16", 128, 2048, 8192, "a small, deep product"),
    _gemm("square_512", "fp16", 512, 512, 512, "a very small square product"),
    _gemm("square_4096_bf16", "bf16", 4096, 4096, 4096, "a square product"),
    _gemm("decode_128_bf16", "bf16", 128, 8192, 8192, "a projection of 128 tokens"),
    _gemm("prefill_2048_bf16", "bf16", 2048, 6144, 4096, "QKV projection of 2048 tokens"),
    _gemm("square_4096_fp8", "fp8", 4096, 4096, 4096, "a square product"),
    _gemm("decode_64_fp8", "fp8", 64, 4096, 14336, "down projection of 64 tokens"),
    _gemm("prefill_1024_fp8", "fp8", 1024, 6144, 4096, "QKV projection of 1024 tokens"),
    _attention("attention_prefill", 2, 32, 2048, 128, 1),
    _attention("attention_vit", 64, 12, 256, 64, 0),
    _attention("attention_long", 1, 8, 8192, 128, 0),
    _attention("attention_gpt", 8, 16, 1024, 64, 1),
    _norm("norm_4096", 8192, 4096),
    _norm("norm_1024", 65536, 1024),
    _norm("norm_16384", 2048, 16384),
    _attention("attention_4096", 1, 8, 4096, 128, 0),
    _attention("attention_batch_64", 16, 16, 1024, 64, 0),
    _attention("attention_code", 2, 8, 4096, 64, 1),
    _attention("attention_single", 1, 16, 2048, 64, 0),
    _attention("attention_short", 8, 32, 512, 128, 0),
    _attention("attention_chat", 4, 16, 1024, 128, 1),
    _attention("attention_window", 128, 8, 128, 64, 0),
    _norm("norm_4096_small", 1024, 4096),
    _norm("norm_2560", 8192, 2560),
    _norm("norm_8192_small", 512, 8192),
    _norm("norm_512", 131072, 512),
    _norm("norm_3072", 16384, 3072),
    _norm("norm_1536", 4096, 1536),
    _norm("norm_12288", 1536, 12288),
    _attention("attention_many", 16, 16, 2048, 128, 0),
    _attention("attention_many_short", 64, 16, 512, 128, 0),
    _attention("attention_many_64", 8, 32, 2048, 64, 0),
    _attention("attention_many_causal", 8, 32, 2048, 128, 1),
    _attention("attention_many_causal_64", 16, 32, 1024, 64, 1),
    _attention("attention_small_64", 2, 8, 512, 64, 0),
    _attention("attention_small_causal_64", 1, 12, 1024, 64, 1),
    _attention("attention_small_causal", 2, 4, 1024, 128, 1),
    _attention("attention_small_full", 4, 8, 512, 128, 0),
    _attention("attention_one", 1, 32, 1024, 64, 1),
    _attention("attention_tiny", 8, 8, 256, 64, 1),
    _attention("attention_tiles", 3, 16, 512, 64, 1),
    _gemm("square_1152", "fp16", 1152, 1152, 1152, "a square product"),
    _gemm("square_1408", "fp16", 1408, 1408, 1408, "a square product"),
    _gemm("square_1920", "fp16", 1920, 1920, 1920, "a square product"),
    _gemm("square_2176", "fp16", 2176, 2176, 2176, "a square product"),
    _gemm("square_2816", "fp16", 2816, 2816, 2816, "a square product"),
    _gemm("square_3328", "fp16", 3328, 3328, 3328, "a square product"),
    _gemm("square_4608", "fp16", 4608, 4608, 4608, "a square product"),
    _gemm("square_5632", "fp16", 5632, 5632, 5632, "a square product"),
    *HELD_OUT,
)
