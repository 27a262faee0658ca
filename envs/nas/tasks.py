"""Tasks: a data set, the family of networks that learns it, and the options of that family.

``digits``, ``cells`` and ``digits_mbconv`` have tables of accuracies from real training. The tasks
of NASAIC (DAC 2020) have its backbones; which options it offered is not published, so the lists
are this project's choice, made so that the published best network and backbones are in the space.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Final

from archgym.envs.nas.backbone.parts import IMAGENET
from archgym.envs.nas.families import (
    FAMILIES,
    Architecture,
    Family,
    MBConvOptions,
    ResidualOptions,
    Stage,
    Task,
    UNetOptions,
)
from archgym.errors import SpaceTooLargeError, UnknownNameError
from archgym.space import DesignSpace

__all__ = ["TASKS", "architecture_space", "distinct_architectures", "family_of", "task_of"]


_TASKS: Final = (
    Task(
        "digits",
        "noisy 8x8 images of handwritten digits, 10 classes",
        "residual",
        (1, 8, 8),
        10,
        "accuracy",
        ResidualOptions(2, (4, 8, 16, 32), (8, 16, 32, 64)),
        "digits",
    ),
    Task(
        "cells",
        "generated 32x32 images of cell nuclei, to be separated from the background",
        "unet",
        (1, 32, 32),
        1,
        "iou",
        UNetOptions((1, 2, 3, 4, 5), (4, 8, 16)),
        "cells",
    ),
    Task(
        "digits_mbconv",
        "the digits, learned by a chain of five mobile bottlenecks",
        "mbconv",
        (1, 8, 8),
        10,
        "accuracy",
        MBConvOptions(
            stem_filters=8,
            stem_stride=1,
            stages=(Stage(8, 2, 1), Stage(16, 3, 2)),
            head_filters=64,
            kernels=(3, 5),
        ),
        "digits",
    ),
    Task(
        "cifar10",
        "CIFAR-10: 32x32 colour photographs, 10 classes (Krizhevsky 2009)",
        "residual",
        (3, 32, 32),
        10,
        "accuracy",
        ResidualOptions(3, (8, 16, 32, 64), (32, 64, 128, 256)),
        "cifar10",
        needs_folder=True,
    ),
    Task(
        "stl10",
        "STL-10: 96x96 colour photographs, 10 classes (Coates et al., AISTATS 2011)",
        "residual",
        (3, 96, 96),
        10,
        "accuracy",
        ResidualOptions(5, (8, 16, 32, 64), (32, 64, 128, 256)),
        "stl10",
        needs_folder=True,
    ),
    Task(
        "nuclei",
        "microscope images of cell nuclei (2018 Data Science Bowl), scaled to 128x128",
        "unet",
        (3, 128, 128),
        1,
        "iou",
        UNetOptions((1, 2, 3, 4, 5), (4, 8, 16, 32, 64)),
        "nuclei",
        needs_folder=True,
    ),
    Task(
        "imagenet_mbconv",
        "the whole space of ProxylessNAS at ImageNet's shapes: 21 blocks, no data",
        "mbconv",
        (3, 224, 224),
        1000,
        "accuracy",
        MBConvOptions(
            stem_filters=32,
            stem_stride=2,
            stages=(
                Stage(24, 4, 2),
                Stage(40, 4, 2),
                Stage(80, 4, 2),
                Stage(96, 4, 1),
                Stage(192, 4, 2),
                Stage(320, 1, 1),
            ),
            head_filters=1280,
            first_width=16,
        ),
        None,
    ),
    Task(
        "imagenet_backbone",
        "backbones of convolution or attention by stage at ImageNet's shapes, no data",
        "backbone",
        (3, 224, 224),
        1000,
        "accuracy",
        IMAGENET,
        None,
    ),
)

TASKS: Final[Mapping[str, Task]] = MappingProxyType({task.name: task for task in _TASKS})
"""Every task by its name."""


def task_of(name: str) -> Task:
    """The task of that name.

    Raises:
        UnknownNameError: if there is none.
    """
    try:
        return TASKS[name]
    except KeyError:
        raise UnknownNameError("task", name, TASKS) from None


def family_of(task: Task) -> Family:
    """The family of networks that learns the task."""
    return FAMILIES[task.family]


_MAX_TABULATED: Final = 100_000


@cache
def architecture_space(task: Task) -> DesignSpace:
    """The design space of the task's architectures alone, parameter names without prefix."""
    return DesignSpace(list(family_of(task).parameters(task)))


def distinct_architectures(task: Task) -> dict[str, Architecture]:
    """Every functionally different architecture by its key, in the order of the design space.

    Raises:
        SpaceTooLargeError: if there are more than a hundred thousand.
    """
    family, space = family_of(task), architecture_space(task)
    if space.canonical_cardinality > _MAX_TABULATED:
        raise SpaceTooLargeError(
            f"task {task.name!r} has {space.canonical_cardinality:.3g} architectures; at most "
            f"{_MAX_TABULATED} are listed"
        )
    found: dict[str, Architecture] = {}
    for designs in space.enumerate():
        for architecture in designs:
            found.setdefault(family.key(task, architecture), architecture)
    return found
