"""The families as PyTorch modules; imports torch, so it is imported when a network is trained.

Several independent *copies* of a network are one module: every convolution has as many groups as
copies, so that all seeds of an architecture are trained in one pass over small tensors. Batch
normalisation works channel by channel and so keeps the copies apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

if TYPE_CHECKING:
    from archgym.envs.nas.families.options import MBConvBlock, MBConvOptions

__all__ = ["UNetModule", "initialise", "mbconv_network", "residual_network"]

BATCH_MOMENTUM = 0.3
"""Share of the newest batch in the running statistics: an epoch of a small task has few batches."""


class ConvNorm(nn.Sequential):
    """A padded convolution, batch normalisation and, unless ``linear``, ReLU."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        size: int,
        copies: int,
        *,
        stride: int = 1,
        groups: int = 1,
        linear: bool = False,
    ) -> None:
        layers: list[nn.Module] = [
            nn.Conv2d(
                copies * inputs,
                copies * outputs,
                size,
                stride,
                size // 2,
                groups=copies * groups,
                bias=False,
            ),
            nn.BatchNorm2d(copies * outputs, momentum=BATCH_MOMENTUM),
        ]
        if not linear:
            layers.append(nn.ReLU(inplace=True))
        super().__init__(*layers)


class Added(nn.Module):
    """The input added to the output of the inner module."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        """Same shape out as in."""
        out: Tensor = x + self.inner(x)
        return out


class GlobalPool(nn.Module):
    """The largest or the mean value of each channel, as an image of one pixel."""

    def __init__(self, maximum: bool) -> None:
        super().__init__()
        self.maximum = maximum

    def forward(self, x: Tensor) -> Tensor:
        """Shape (n, channels, 1, 1)."""
        return x.amax((2, 3), keepdim=True) if self.maximum else x.mean((2, 3), keepdim=True)


class Classifier(nn.Module):
    """One fully connected layer on images of one pixel: a 1x1 convolution with biases."""

    def __init__(self, inputs: int, outputs: int, copies: int) -> None:
        super().__init__()
        self.linear = nn.Conv2d(copies * inputs, copies * outputs, 1, groups=copies)

    def forward(self, x: Tensor) -> Tensor:
        """Logits, shape (n, copies * outputs)."""
        out: Tensor = self.linear(x)
        return out.flatten(1)


def residual_network(
    channels: int, stem: int, stages: Sequence[tuple[int, int]], classes: int, copies: int
) -> nn.Module:
    """A residual classifier; ``stages`` are (filters, convolutions of the residual block)."""
    layers: list[nn.Module] = [ConvNorm(channels, stem, 3, copies)]
    inputs = stem
    for filters, skips in stages:
        layers += [ConvNorm(inputs, filters, 3, copies), nn.MaxPool2d(2)]
        if skips:
            block = [ConvNorm(filters, filters, 3, copies) for _ in range(skips)]
            layers.append(Added(nn.Sequential(*block)))
        inputs = filters
    layers += [GlobalPool(maximum=True), Classifier(inputs, classes, copies)]
    return nn.Sequential(*layers)


def mbconv_network(
    channels: int,
    options: MBConvOptions,
    blocks: Sequence[MBConvBlock],
    classes: int,
    copies: int,
) -> nn.Module:
    """A chain of mobile inverted bottlenecks."""
    layers: list[nn.Module] = [
        ConvNorm(channels, options.stem_filters, 3, copies, stride=options.stem_stride)
    ]
    inputs = options.stem_filters
    for block in blocks:
        inner: list[nn.Module] = []
        if block.expansion > 1:
            inner.append(ConvNorm(block.inputs, block.hidden, 1, copies))
        inner += [
            ConvNorm(
                block.hidden,
                block.hidden,
                block.kernel,
                copies,
                stride=block.stride,
                groups=block.hidden,
            ),
            ConvNorm(block.hidden, block.width, 1, copies, linear=True),
        ]
        chain = nn.Sequential(*inner)
        layers.append(Added(chain) if block.has_identity else chain)
        inputs = block.width
    layers += [
        ConvNorm(inputs, options.head_filters, 1, copies),
        GlobalPool(maximum=False),
        Classifier(options.head_filters, classes, copies),
    ]
    return nn.Sequential(*layers)


class UNetModule(nn.Module):
    """A U-Net; ``filters`` are those of each level from the top.

    The 3x3 convolution before the mask is linear, as the narrow ends of mobile bottlenecks are
    (Sandler et al., CVPR 2018): after a ReLU, features are positive, and where the few weights
    of the mask all start below 0, no pixel gets above its threshold: 8 % of the trainings of
    U-Nets with 4 filters at the top ended so, at a mask of nothing.
    """

    def __init__(self, channels: int, filters: Sequence[int], outputs: int, copies: int) -> None:
        super().__init__()
        self.copies = copies
        self.down = nn.ModuleList()
        for width in filters:
            only = len(filters) == 1
            self.down.append(_two_convolutions(channels, width, copies, linear=only))
            channels = width
        self.lift = nn.ModuleList()
        self.up = nn.ModuleList()
        for level in reversed(range(len(filters) - 1)):
            width = filters[level]
            self.lift.append(nn.Conv2d(copies * channels, copies * 4 * width, 1, groups=copies))
            self.up.append(_two_convolutions(2 * width, width, copies, linear=level == 0))
            channels = width
        self.mask = nn.Conv2d(copies * channels, copies * outputs, 1, groups=copies)

    def forward(self, x: Tensor) -> Tensor:
        """Logits of the masks, shape (n, copies * outputs, height, width)."""
        passed: list[Tensor] = []
        for level, block in enumerate(self.down):
            if level:
                x = functional.max_pool2d(x, 2)
            x = block(x)
            passed.append(x)
        for lift, block, skip in zip(self.lift, self.up, reversed(passed[:-1]), strict=True):
            x = block(self._joined(skip, functional.pixel_shuffle(lift(x), 2)))
        out: Tensor = self.mask(x)
        return out

    def _joined(self, left: Tensor, right: Tensor) -> Tensor:
        """Channels of both, copy by copy."""
        n, _, rows, columns = left.shape
        parts = [part.view(n, self.copies, -1, rows, columns) for part in (left, right)]
        return torch.cat(parts, 2).flatten(1, 2)


def _two_convolutions(inputs: int, width: int, copies: int, *, linear: bool) -> nn.Module:
    return nn.Sequential(
        ConvNorm(inputs, width, 3, copies), ConvNorm(width, width, 3, copies, linear=linear)
    )


def initialise(module: nn.Module, generators: Sequence[np.random.Generator]) -> None:
    """Draw the weights of each copy from its own generator; biases become 0.

    He et al.'s normal distribution (ICCV 2015) of variance 2 / fan-in. A copy's weights are the
    same whatever other copies the module has, and on every device.
    """
    for layer in module.modules():
        if not isinstance(layer, nn.Conv2d):
            continue
        shape = (layer.weight.shape[0] // len(generators), *layer.weight.shape[1:])
        deviation = (2.0 / float(np.prod(shape[1:]))) ** 0.5
        drawn = [deviation * g.standard_normal(shape, dtype=np.float32) for g in generators]
        with torch.no_grad():
            layer.weight.copy_(torch.from_numpy(np.concatenate(drawn)))
            if layer.bias is not None:
                layer.bias.zero_()
