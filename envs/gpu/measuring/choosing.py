"""Which designs of a shape are measured."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping

from archgym.envs.gpu.parameters import BYTES, PARAMETERS, Shape, legal


def designs_of(shape: Shape) -> list[dict[str, int]]:
    """Every design of a shape's kernel."""
    values = PARAMETERS[shape.kernel]
    every = (dict(zip(values, some, strict=True)) for some in itertools.product(*values.values()))
    return [design for design in every if legal(shape.kernel, design)]


def chosen_designs(shape: Shape, others: int, draw: random.Random) -> list[dict[str, int]]:
    """Designs of a shape that are measured.

    Args:
        shape: what is computed.
        others: of products, only the designs of the copy engine and so many others, drawn at
            random; negative for all.
        draw: draws them.
    """
    every = designs_of(shape)
    if shape.kernel != "gemm" or others < 0:
        return every
    rest = [design for design in every if not design["copy_engine"]]
    return [d for d in every if d["copy_engine"]] + draw.sample(rest, others)


def surely_too_large(shape: Shape, design: Mapping[str, int], limit: int) -> bool:
    """Whether even the buffers that the compiler cannot do without exceed the shared memory."""
    if shape.kernel != "gemm":
        return False
    step = (design["block_m"] + design["block_n"]) * design["block_k"] * BYTES[shape.dtype]
    buffers = design["stages"] if design["copy_engine"] else design["stages"] - 1
    return buffers * step > limit
