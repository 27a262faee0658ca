"""Matrix multiplication as a loop nest over M, N, K and bit weight, with primitives in it."""

from archgym.envs.tpe.notation.loop_nest import (
    NEEDS,
    Dimension,
    IllegalPlacementError,
    Loop,
    Placement,
    Primitive,
)

__all__ = ["NEEDS", "Dimension", "IllegalPlacementError", "Loop", "Placement", "Primitive"]
