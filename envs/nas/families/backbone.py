"""Vision backbones of convolution or attention stage by stage; see the module of their parts.

The family's networks scale their pictures to the resolution that they work on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from archgym.envs.accelerator.workload.layer import Layer, Network
from archgym.envs.nas.backbone import parts
from archgym.envs.nas.backbone.parts import BackboneOptions, Part
from archgym.envs.nas.families.family import Architecture, chain, options_of, same_conv
from archgym.envs.nas.families.task import Task
from archgym.space import Categorical, Ordinal, Parameter

if TYPE_CHECKING:
    from torch import nn

__all__ = ["Backbone"]

_BY_SIZE: Final = ("mbconv", "attention", "fused")
"""From few parameters to many: options are listed so."""


class Backbone:
    """The family ``backbone``: ``resolution``, ``width``, ``stage1_kind`` and so on."""

    name = "backbone"
    version = 1

    def parameters(self, task: Task) -> tuple[Parameter, ...]:
        """Resolution, width and expansion, and kind and depth of each stage."""
        options = options_of(task, BackboneOptions)
        found: list[Parameter] = [
            Ordinal("resolution", options.resolutions, doc="rows of the picture", unit="pixels"),
            Ordinal("width", options.widths, doc="channels of stage 1, half of those of stage 2"),
            Ordinal("expansion", options.expansions, doc="channels inside a block by its own"),
        ]
        stages = zip(options.kinds, options.depths, strict=True)
        for number, (kinds, depths) in enumerate(stages, start=1):
            found += [
                Categorical(
                    f"stage{number}_kind",
                    tuple(sorted(kinds, key=_BY_SIZE.index)),
                    doc=f"blocks of stage {number}",
                ),
                Ordinal(f"stage{number}_depth", depths, doc=f"how many blocks stage {number} has"),
            ]
        return tuple(found)

    def parts(self, task: Task, architecture: Architecture) -> list[Part]:
        """The stem, the blocks and the head, in execution order."""
        return parts.parts_of(options_of(task, BackboneOptions), architecture, task.outputs)

    def part_layers(self, task: Task, part: Part, name: str) -> tuple[Layer, ...]:
        """What multiplies in a part: convolutions, linear layers, the two products of attention.

        Args:
            task: whose options say how many channels a head of attention has.
            part: the part.
            name: that the layers' names begin with.
        """
        size, after = part.size, part.size // part.stride
        if part.role == "stem":
            return (same_conv(name, part.inputs, part.width, 3, size, size, part.stride),)
        if part.role == "head":
            return (
                same_conv(name, part.inputs, part.width, 1, size, size),
                Layer.from_gemm("classifier", M=1, N=part.outputs, K=part.width),
            )
        if part.role == "attention":
            return self._attention(options_of(task, BackboneOptions), part, name)
        project = same_conv(f"{name}_project", part.hidden, part.width, 1, after, after)
        if part.role == "fused":
            wide = f"{name}_fused"
            return (
                same_conv(wide, part.inputs, part.hidden, 3, size, size, part.stride),
                project,
            )
        depthwise = Layer.depthwise(
            f"{name}_depthwise", part.hidden, 3, 3, after, after, stride=part.stride
        )
        expand = same_conv(f"{name}_expand", part.inputs, part.hidden, 1, size, size)
        return (expand, depthwise, project)

    def layers(self, task: Task, architecture: Architecture) -> Network:
        """The layers of all parts, in execution order."""
        found: list[Layer] = []
        for number, part in enumerate(self.parts(task, architecture)):
            own = part.role if part.role in ("stem", "head") else f"block{number}"
            found += self.part_layers(task, part, own)
        return chain(f"{task.name} {self.key(task, architecture)}", found)

    def parameter_count(self, task: Task, architecture: Architecture) -> int:
        """Trainable numbers, normalisation and the classifier's biases included."""
        found = [part.weights for part in self.parts(task, architecture)]
        # Two numbers of normalisation for each channel, one bias for each class.
        return sum(weights + 2 * channels for weights, channels in found) - task.outputs

    def key(self, task: Task, architecture: Architecture) -> str:
        """As in ``r224-w32-e6-fused1.fused3.mbconv5.attention2``."""
        return parts.key_of(architecture)

    def module(self, task: Task, architecture: Architecture, copies: int = 1) -> nn.Module:
        """The trainable network (see `Family.module`)."""
        from archgym.envs.nas.families.backbone_modules import backbone_network

        heads = options_of(task, BackboneOptions).head_channels
        return backbone_network(self.parts(task, architecture), heads, copies)

    @staticmethod
    def _attention(options: BackboneOptions, part: Part, name: str) -> tuple[Layer, ...]:
        size, width = part.size // part.stride, part.width
        heads, pixels = width // options.head_channels, size * size
        down = same_conv(f"{name}_down", part.inputs, width, 3, part.size, part.size, part.stride)
        products = (
            Layer(f"{name}_scores", "gemm", K=pixels * heads, C=width, P=pixels, groups=heads),
            Layer(f"{name}_mixed", "gemm", K=width, C=pixels * heads, P=pixels, groups=heads),
        )
        found = (
            same_conv(f"{name}_qkv", width, 3 * width, 1, size, size),
            *products,
            same_conv(f"{name}_project", width, width, 1, size, size),
            same_conv(f"{name}_expand", width, part.hidden, 1, size, size),
            same_conv(f"{name}_reduce", part.hidden, width, 1, size, size),
        )
        return (down, *found) if part.stride > 1 else found
