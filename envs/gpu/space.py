"""The design space of each kernel, and the design that others are compared with."""

from __future__ import annotations

from functools import cache

from archgym.envs.gpu.parameters import PARAMETERS, RESTS, Shape
from archgym.space import DesignSpace, Ordinal, Rule, param

_DOCS = {
    "block_m": "rows of the result that a block computes",
    "block_n": "columns of the result, or keys, that a block works on at a time",
    "block_k": "depth of a step along K",
    "block_rows": "rows that a block normalises",
    "block_columns": "columns that it reads at a time; a row that fits is read once",
    "warps": "warps of 32 threads of a block",
    "stages": "of the software pipeline that loads later steps",
    "group_m": "rows of tiles that are visited together, for reuse in the L2 cache",
    "split_k": "parts of K that different blocks add up",
    "copy_engine": "1 if the copy engine loads and stores the tiles, 0 if the threads do",
}
_FEW = "each thread has few enough elements for its registers, with some to spill"
_ELEMENTS = {
    "gemm": param("block_m") * param("block_n") <= 8192 * param("warps"),
    "attention": param("block_m") <= 64 * param("warps"),
    "norm": param("block_rows") * param("block_columns") <= 4096 * param("warps"),
}
_ENGINE = param("copy_engine") == 1
_PRODUCT_RULES = (
    Rule(
        "rows_of_thirds",
        param("block_n").isin(tuple(RESTS)).implies(param("block_m") >= 64),
        "tiles whose columns are no power of two are for warpgroups, which have 64 rows",
    ),
    Rule(
        "tiles_of_the_engine",
        _ENGINE.implies((param("block_m") >= 64) & (param("block_n") >= 64)),
        "the copy engine brings tiles for warpgroups, which have 64 rows and columns or more",
    ),
    Rule(
        "engine_does_not_split",
        _ENGINE.implies(param("split_k") == 1),
        "products with split K are loaded by threads",
    ),
    Rule(
        "only_by_the_engine",
        ((param("block_n") > 256) | (param("stages") > 5)).implies(_ENGINE),
        "tiles of 320 columns and six stages are loaded by the copy engine only",
    ),
)
BASELINES: dict[str, dict[str, int]] = {
    "gemm": {
        "block_m": 128,
        "block_n": 128,
        "block_k": 64,
        "warps": 8,
        "stages": 3,
        "group_m": 8,
        "split_k": 1,
        "copy_engine": 0,
    },
    "attention": {"block_m": 64, "block_n": 64, "warps": 4, "stages": 2},
    "norm": {"block_rows": 1, "block_columns": 4096, "warps": 8, "stages": 1},
}
"""By kernel: what many published kernels start from."""
_DEEP = 7168
"""Depth from which warpgroups add up products of eight-bit elements with too large an error."""


def baseline_of(shape: Shape) -> dict[str, int]:
    """The design that others of a shape are compared with."""
    baseline = BASELINES[shape.kernel]
    if shape.dtype == "fp8" and shape.sizes["k"] > _DEEP:
        return {**baseline, "block_m": 32}  # multiplied by single warps
    return baseline


@cache
def design_space(kernel: str) -> DesignSpace:
    """The design space of a kernel, with the rules of :func:`archgym.envs.gpu.parameters.legal`."""
    parameters = [
        Ordinal(name, values, doc=_DOCS[name]) for name, values in PARAMETERS[kernel].items()
    ]
    rules = [Rule("elements_of_a_thread", _ELEMENTS[kernel], _FEW)]
    return DesignSpace(parameters, rules=[*rules, *(_PRODUCT_RULES if kernel == "gemm" else [])])
