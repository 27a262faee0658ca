"""Options of each family of networks: the values that a task offers, and the fixed frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["MBConvBlock", "MBConvOptions", "ResidualOptions", "Stage", "UNetOptions"]


@dataclass(frozen=True)
class ResidualOptions:
    """What may be chosen. The option lists of the paper's tasks are this project's own choice."""

    stages: int
    """Stages; each halves height and width."""
    stem_filters: tuple[int, ...]
    stage_filters: tuple[int, ...]
    skips: tuple[int, ...] = (0, 1, 2)
    """Convolutions in a stage's residual block; 0 leaves the block out."""


@dataclass(frozen=True)
class UNetOptions:
    """What may be chosen. The option lists of the paper's tasks are this project's own choice."""

    heights: tuple[int, ...]
    """Levels; a network of height h pools h - 1 times."""
    filters: tuple[int, ...]
    """Filters of level 1; level i offers these times ``growth ** (i - 1)``."""
    growth: int = 2


class Stage(NamedTuple):
    """Consecutive blocks of one width."""

    width: int
    """Output channels of each block."""
    blocks: int
    stride: int
    """Of the first block; the others have 1."""


@dataclass(frozen=True)
class MBConvOptions:
    """The fixed frame and what may be chosen in it."""

    stem_filters: int
    stem_stride: int
    stages: tuple[Stage, ...]
    head_filters: int
    first_width: int | None = None
    """Output channels of a fixed block of kernel 3 and expansion 1 after the stem, if any."""
    kernels: tuple[int, ...] = (3, 5, 7)
    expansions: tuple[int, ...] = (3, 6)


class MBConvBlock(NamedTuple):
    """One block that is not skipped."""

    name: str
    """``first`` or ``block1``, ``block2``... by its place in the chain."""
    stage: int
    """Index of its stage, -1 for the fixed first block."""
    inputs: int
    """Input channels."""
    width: int
    """Output channels."""
    kernel: int
    expansion: int
    stride: int

    @property
    def hidden(self) -> int:
        """Channels between the two 1x1 convolutions."""
        return self.inputs * self.expansion

    @property
    def has_identity(self) -> bool:
        """Whether the input is added to the output."""
        return self.stride == 1 and self.inputs == self.width
