"""Residual classifiers after the backbone of NASAIC (Yang et al., DAC 2020): ResNet-9 made elastic.

A 3x3 stem of ``stem_filters``, then stages. A stage is a 3x3 convolution to its own number of
filters, a 2x2 maximum pooling, and a residual block of 0 to 2 3x3 convolutions whose output is
added to their input; batch normalisation and ReLU follow every convolution. A global maximum and
one fully connected layer end the network (the layout of ResNet-9 as known from DAWNBench).
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
from archgym.envs.nas.families.options import ResidualOptions
from archgym.envs.nas.families.task import Task
from archgym.space import Ordinal, Parameter

if TYPE_CHECKING:
    from torch import nn

__all__ = ["Residual"]


class Residual:
    """The family ``residual``: ``stem_filters``, ``stage1_filters``, ``stage1_skips`` and so on."""

    name = "residual"
    version = 1

    def parameters(self, task: Task) -> tuple[Parameter, ...]:
        """Filters of the stem and, for each stage, its filters and the depth of its block."""
        options = options_of(task, ResidualOptions)
        found: list[Parameter] = [
            Ordinal("stem_filters", options.stem_filters, doc="filters of the first convolution")
        ]
        for stage in range(1, options.stages + 1):
            found += [
                Ordinal(
                    f"stage{stage}_filters", options.stage_filters, doc=f"filters of stage {stage}"
                ),
                Ordinal(
                    f"stage{stage}_skips",
                    options.skips,
                    doc=f"convolutions in the residual block of stage {stage}",
                ),
            ]
        return tuple(found)

    def layers(self, task: Task, architecture: Architecture) -> Network:
        """The convolutions and the classifier, in execution order."""
        channels, rows, columns = task.input_shape
        filters = architecture["stem_filters"]
        found: list[Layer] = [same_conv("stem", channels, filters, 3, rows, columns)]
        for stage, (inputs, filters, skips) in enumerate(_stages(task, architecture), start=1):
            found.append(same_conv(f"stage{stage}", inputs, filters, 3, rows, columns))
            rows, columns = rows // 2, columns // 2
            found += [
                same_conv(f"stage{stage}_skip{i}", filters, filters, 3, rows, columns)
                for i in range(1, skips + 1)
            ]
        found.append(Layer.from_gemm("classifier", M=1, N=task.outputs, K=filters))
        return chain(f"{task.name} {self.key(task, architecture)}", found)

    def parameter_count(self, task: Task, architecture: Architecture) -> int:
        """Trainable numbers, normalisation and the classifier's biases included."""
        filters: int = architecture["stem_filters"]
        count = conv_parameters(task.input_shape[0], filters, 3)
        for inputs, filters, skips in _stages(task, architecture):
            count += conv_parameters(inputs, filters, 3)
            count += skips * conv_parameters(filters, filters, 3)
        return count + (filters + 1) * task.outputs

    def key(self, task: Task, architecture: Architecture) -> str:
        """As in ``32-128s2-256s2-256s2``: filters, and after ``s`` the depth of the block."""
        stages = [f"{filters}s{skips}" for _, filters, skips in _stages(task, architecture)]
        return "-".join([str(architecture["stem_filters"]), *stages])

    def module(self, task: Task, architecture: Architecture, copies: int = 1) -> nn.Module:
        """The trainable network (see `Family.module`)."""
        from archgym.envs.nas.families.torch_modules import residual_network

        return residual_network(
            task.input_shape[0],
            architecture["stem_filters"],
            [(filters, skips) for _, filters, skips in _stages(task, architecture)],
            task.outputs,
            copies,
        )


def _stages(task: Task, architecture: Architecture) -> Iterator[tuple[int, int, int]]:
    """Input channels, filters and convolutions of the residual block, stage by stage."""
    channels = architecture["stem_filters"]
    for stage in range(1, options_of(task, ResidualOptions).stages + 1):
        filters = architecture[f"stage{stage}_filters"]
        yield channels, filters, architecture[f"stage{stage}_skips"]
        channels = filters
