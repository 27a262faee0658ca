"""A learning task: the data set and the choice of networks that a family builds for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from archgym.envs.nas.backbone.parts import BackboneOptions
from archgym.envs.nas.families.options import MBConvOptions, ResidualOptions, UNetOptions

__all__ = ["Task"]


@dataclass(frozen=True)
class Task:
    """What a network has to learn.

    Examples:
        >>> from archgym.envs.nas.tasks import TASKS
        >>> task = TASKS["digits"]
        >>> task.input_shape, task.outputs, task.metric
        ((1, 8, 8), 10, 'accuracy')
    """

    name: str
    doc: str
    family: str
    """Name in `archgym.envs.nas.families.FAMILIES`."""
    input_shape: tuple[int, int, int]
    """Channels, rows, columns."""
    outputs: int
    """Classes, or 1 for a mask."""
    metric: Literal["accuracy", "iou"]
    """Share of test images classified right, or intersection over union of the test masks."""
    options: ResidualOptions | UNetOptions | MBConvOptions | BackboneOptions
    data: str | None
    """Name of the data set in `archgym.envs.nas.data`; ``None`` if it has none here."""
    needs_folder: bool = False
    """Whether the data come from a folder of the user's."""
