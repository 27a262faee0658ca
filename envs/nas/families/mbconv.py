"""Chains of mobile inverted bottlenecks, the search space of ProxylessNAS (arXiv 1812.00332).

A 3x3 stem, optionally one fixed block of expansion 1 (as in MobileNetV2), stages of searchable
blocks, a 1x1 convolution (the head), global average pooling and a classifier. A block expands its
input by 3 or 6 with a 1x1 convolution, filters each channel (kernel 3, 5 or 7), and projects to
the stage's width; where shapes agree the input is added. Every block but a stage's first may be
skipped. The first block of a stage has the stage's stride.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from archgym.envs.accelerator.workload.layer import Layer, Network
from archgym.envs.nas.families.family import (
    Architecture,
    chain,
    conv_parameters,
    options_of,
    same_conv,
)
from archgym.envs.nas.families.options import MBConvBlock, MBConvOptions
from archgym.envs.nas.families.task import Task
from archgym.space import Boolean, Ordinal, Parameter, param

if TYPE_CHECKING:
    from torch import nn

__all__ = ["MBConv"]


class MBConv:
    """The family ``mbconv``: ``block1_kernel``, ``block1_expansion``, ``block2_skip`` and so on."""

    name = "mbconv"
    version = 1

    def parameters(self, task: Task) -> tuple[Parameter, ...]:
        """Kernel and expansion of each block, and whether it is skipped."""
        options = options_of(task, MBConvOptions)
        found: list[Parameter] = []
        for block, first in _places(options):
            active = None
            if not first:
                found.append(Boolean(f"block{block}_skip", doc=f"leave block {block} out"))
                active = param(f"block{block}_skip") == False  # noqa: E712 (an expression)
            found += [
                Ordinal(
                    f"block{block}_kernel",
                    options.kernels,
                    doc=f"filter rows and columns of block {block}",
                    when=active,
                ),
                Ordinal(
                    f"block{block}_expansion",
                    options.expansions,
                    doc=f"channels inside block {block} by its input channels",
                    when=active,
                ),
            ]
        return tuple(found)

    def blocks(self, task: Task, architecture: Architecture) -> list[MBConvBlock]:
        """The blocks that are there, in execution order."""
        options = options_of(task, MBConvOptions)
        channels = options.stem_filters
        found: list[MBConvBlock] = []
        if options.first_width is not None:
            found.append(MBConvBlock("first", -1, channels, options.first_width, 3, 1, 1))
            channels = options.first_width
        number = 0
        for index, stage in enumerate(options.stages):
            for position in range(stage.blocks):
                number += 1
                if position and architecture[f"block{number}_skip"]:
                    continue
                kernel = architecture[f"block{number}_kernel"]
                expansion = architecture[f"block{number}_expansion"]
                stride = 1 if position else stage.stride
                found.append(
                    MBConvBlock(
                        f"block{number}", index, channels, stage.width, kernel, expansion, stride
                    )
                )
                channels = stage.width
        return found

    def layers(self, task: Task, architecture: Architecture) -> Network:
        """The convolutions and the classifier, in execution order."""
        options = options_of(task, MBConvOptions)
        channels, rows, columns = task.input_shape
        stride = options.stem_stride
        found = [same_conv("stem", channels, options.stem_filters, 3, rows, columns, stride)]
        rows, columns = -(-rows // stride), -(-columns // stride)
        channels = options.stem_filters
        for block in self.blocks(task, architecture):
            if block.expansion > 1:
                found.append(
                    same_conv(f"{block.name}_expand", block.inputs, block.hidden, 1, rows, columns)
                )
            rows, columns = -(-rows // block.stride), -(-columns // block.stride)
            kernel = block.kernel
            found += [
                Layer.depthwise(
                    f"{block.name}_depthwise",
                    block.hidden,
                    kernel,
                    kernel,
                    rows,
                    columns,
                    stride=block.stride,
                ),
                same_conv(f"{block.name}_project", block.hidden, block.width, 1, rows, columns),
            ]
            channels = block.width
        found += [
            same_conv("head", channels, options.head_filters, 1, rows, columns),
            Layer.from_gemm("classifier", M=1, N=task.outputs, K=options.head_filters),
        ]
        return chain(f"{task.name} {self.key(task, architecture)}", found)

    def parameter_count(self, task: Task, architecture: Architecture) -> int:
        """Trainable numbers, normalisation and the classifier's biases included."""
        options = options_of(task, MBConvOptions)
        channels = options.stem_filters
        count = conv_parameters(task.input_shape[0], channels, 3)
        for block in self.blocks(task, architecture):
            if block.expansion > 1:
                count += conv_parameters(block.inputs, block.hidden, 1)
            count += conv_parameters(1, block.hidden, block.kernel)
            count += conv_parameters(block.hidden, block.width, 1)
            channels = block.width
        count += conv_parameters(channels, options.head_filters, 1)
        return count + (options.head_filters + 1) * task.outputs

    def key(self, task: Task, architecture: Architecture) -> str:
        """As in ``k3e6.k5e3-k3e3``: stages by ``-``, the blocks that are there by ``.``.

        Which of a stage's blocks is skipped does not matter, since all but the first are alike.
        """
        stages: dict[int, list[str]] = {}
        for block in self.blocks(task, architecture):
            if block.stage >= 0:
                stages.setdefault(block.stage, []).append(f"k{block.kernel}e{block.expansion}")
        return "-".join(".".join(blocks) for blocks in stages.values())

    def module(self, task: Task, architecture: Architecture, copies: int = 1) -> nn.Module:
        """The trainable network (see `Family.module`)."""
        from archgym.envs.nas.families.torch_modules import mbconv_network

        options = options_of(task, MBConvOptions)
        return mbconv_network(
            task.input_shape[0],
            options,
            self.blocks(task, architecture),
            task.outputs,
            copies,
        )


def _places(options: MBConvOptions) -> Iterator[tuple[int, bool]]:
    """Each block's number from 1, and whether it is its stage's first."""
    number = 0
    for stage in options.stages:
        for position in range(stage.blocks):
            number += 1
            yield number, position == 0
