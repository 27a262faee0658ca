"""U-Nets for segmentation (Ronneberger et al., MICCAI 2015) with a choice of height and filters.

``height`` levels: two 3x3 convolutions at each level on the way down, a 2x2 maximum pooling
between levels; on the way up a 2x2 up-convolution, the skip connection of that level, and two 3x3
convolutions; a 1x1 convolution to the mask at the end. Convolutions are padded and followed by
batch normalisation and, but for the one before the mask, ReLU. The number of filters is chosen
level by level, as in NASAIC (DAC 2020); levels deeper than the height have no parameter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from archgym.envs.accelerator.workload.layer import Layer, Network
from archgym.envs.nas.families.family import (
    Architecture,
    chain,
    conv_parameters,
    options_of,
    same_conv,
)
from archgym.envs.nas.families.options import UNetOptions
from archgym.envs.nas.families.task import Task
from archgym.space import Ordinal, Parameter, param

if TYPE_CHECKING:
    from torch import nn

__all__ = ["UNet"]


class UNet:
    """The family ``unet``; parameters ``height``, ``level1_filters``, ``level2_filters``..."""

    name = "unet"
    version = 2

    def parameters(self, task: Task) -> tuple[Parameter, ...]:
        """Height, and the filters of each level that the height reaches."""
        options = options_of(task, UNetOptions)
        found: list[Parameter] = [Ordinal("height", options.heights, doc="levels of the U-Net")]
        for level in range(1, max(options.heights) + 1):
            scale = options.growth ** (level - 1)
            found.append(
                Ordinal(
                    f"level{level}_filters",
                    [filters * scale for filters in options.filters],
                    doc=f"filters of level {level}",
                    when=None if level <= min(options.heights) else param("height") >= level,
                )
            )
        return tuple(found)

    def layers(self, task: Task, architecture: Architecture) -> Network:
        """The convolutions, in execution order.

        A 2x2 up-convolution of stride 2 to K filters makes each of its outputs from one input
        pixel: it is the 1x1 convolution to 4 K filters whose outputs are then interleaved.
        """
        channels, rows, columns = task.input_shape
        filters = _filters(architecture)
        found: list[Layer] = []
        for level, width in enumerate(filters, start=1):
            if level > 1:
                rows, columns = rows // 2, columns // 2
            found += [
                same_conv(f"down{level}_1", channels, width, 3, rows, columns),
                same_conv(f"down{level}_2", width, width, 3, rows, columns),
            ]
            channels = width
        for level in range(len(filters) - 1, 0, -1):
            width = filters[level - 1]
            found.append(same_conv(f"up{level}", channels, 4 * width, 1, rows, columns))
            rows, columns = rows * 2, columns * 2
            found += [
                same_conv(f"up{level}_1", 2 * width, width, 3, rows, columns),
                same_conv(f"up{level}_2", width, width, 3, rows, columns),
            ]
            channels = width
        found.append(same_conv("mask", channels, task.outputs, 1, rows, columns))
        return chain(f"{task.name} {self.key(task, architecture)}", found)

    def parameter_count(self, task: Task, architecture: Architecture) -> int:
        """Trainable numbers; up-convolutions and the last layer have biases instead of a norm."""
        channels = task.input_shape[0]
        filters = _filters(architecture)
        count = 0
        for width in filters:
            count += conv_parameters(channels, width, 3) + conv_parameters(width, width, 3)
            channels = width
        for width in reversed(filters[:-1]):
            count += (channels + 1) * 4 * width
            count += conv_parameters(2 * width, width, 3) + conv_parameters(width, width, 3)
            channels = width
        return count + (channels + 1) * task.outputs

    def key(self, task: Task, architecture: Architecture) -> str:
        """As in ``8-16-64``: the filters of each level."""
        return "-".join(str(width) for width in _filters(architecture))

    def module(self, task: Task, architecture: Architecture, copies: int = 1) -> nn.Module:
        """The trainable network (see `Family.module`)."""
        from archgym.envs.nas.families.torch_modules import UNetModule

        return UNetModule(task.input_shape[0], _filters(architecture), task.outputs, copies)


def _filters(architecture: Architecture) -> list[int]:
    height = architecture["height"]
    return [architecture[f"level{level}_filters"] for level in range(1, height + 1)]
