"""Matrix multiplication as a loop nest over M, N, K and bit weight, with primitives in it.

:mod:`archgym.envs.tpe.notation.loop_nest` explains the notation,
:mod:`archgym.envs.tpe.notation.transformations` changes placements, and
:mod:`archgym.envs.tpe.notation.arrays` converts them to arrays and back.
"""

from archgym.envs.tpe.notation.loop_nest import (
    NEEDS,
    Dimension,
    IllegalPlacementError,
    Loop,
    Placement,
    Primitive,
)

__all__ = ["NEEDS", "Dimension", "IllegalPlacementError", "Loop", "Placement", "Primitive"]
