"""The networks as they are deployed: PyTorch modules without normalisation, which is folded.

Weights are random: no figure of time depends on what a network has learned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from archgym.envs.nas.backbone.parts import Part

__all__ = ["deployed", "deployed_part"]

_Layer = TypeVar("_Layer", nn.Conv2d, nn.Linear)


def deployed(parts: Sequence[Part], head_channels: int = 32) -> nn.Sequential:
    """A network: pictures of shape (n, 3, rows, columns) in, logits of shape (n, classes) out.

    Args:
        parts: of the network.
        head_channels: of one head of attention.
    """
    return nn.Sequential(*(deployed_part(part, head_channels) for part in parts))


def deployed_part(part: Part, head_channels: int = 32) -> nn.Module:
    """One part; its input has shape (n, part.inputs, part.size, part.size)."""
    if part.role == "stem":
        return _conv(part.inputs, part.width, 3, 2)
    if part.role == "head":
        return _Head(part)
    if part.role == "attention":
        block = _Attention(part, head_channels)
        if part.stride == 1:
            return block
        return nn.Sequential(_conv(part.inputs, part.width, 3, part.stride), block)
    if part.role == "fused":
        inner = _conv(part.inputs, part.hidden, 3, part.stride)
    else:
        inner = nn.Sequential(
            _conv(part.inputs, part.hidden, 1),
            _conv(part.hidden, part.hidden, 3, part.stride, groups=part.hidden),
        )
    chain = nn.Sequential(inner, _plain_conv(part.hidden, part.width, 1))
    return _Added(chain) if part.stride == 1 else chain


class _Added(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = x + self.inner(x)
        return out


class _Head(nn.Module):
    def __init__(self, part: Part) -> None:
        super().__init__()
        self.conv = _conv(part.inputs, part.width, 1)
        self.linear = _linear(part.width, part.outputs)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.linear(self.conv(x).mean((2, 3)))
        return out


class _Attention(nn.Module):
    def __init__(self, part: Part, head_channels: int) -> None:
        super().__init__()
        self.heads = part.width // head_channels
        self.qkv = _linear(part.width, 3 * part.width)
        self.project = _linear(part.width, part.width)
        self.expand = _linear(part.width, part.hidden)
        self.reduce = _linear(part.hidden, part.width)

    def forward(self, x: Tensor) -> Tensor:
        n, channels, rows, columns = x.shape
        tokens = x.flatten(2).transpose(1, 2)  # without a copy where channels come last
        qkv = self.qkv(tokens).view(n, rows * columns, 3, self.heads, channels // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(q, k, v)
        tokens = tokens + self.project(mixed.transpose(1, 2).reshape(n, rows * columns, channels))
        tokens = tokens + self.reduce(functional.relu(self.expand(tokens), inplace=True))
        out: Tensor = tokens.transpose(1, 2).view(n, channels, rows, columns)
        return out


def _conv(inputs: int, outputs: int, size: int, stride: int = 1, groups: int = 1) -> nn.Module:
    conv = _plain_conv(inputs, outputs, size, stride, groups, gain=2.0)
    return nn.Sequential(conv, nn.ReLU(inplace=True))


def _plain_conv(
    inputs: int, outputs: int, size: int, stride: int = 1, groups: int = 1, gain: float = 1.0
) -> nn.Conv2d:
    with torch.device("meta"):
        conv = nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups)
    return _drawn(conv, inputs // groups * size * size, gain)


def _linear(inputs: int, outputs: int) -> nn.Linear:
    with torch.device("meta"):
        linear = nn.Linear(inputs, outputs)
    return _drawn(linear, inputs, 1.0)


def _drawn(layer: _Layer, fan_in: int, gain: float) -> _Layer:
    """Random weights that neither vanish nor overflow in half precision."""
    layer = layer.to_empty(device=torch.empty(0).device)  # the default one: nothing drawn twice
    with torch.no_grad():
        layer.weight.normal_(0.0, (gain / fan_in) ** 0.5)
        if layer.bias is not None:
            layer.bias.normal_(0.0, 0.01)
    return layer
