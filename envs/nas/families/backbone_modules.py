"""The trainable modules of vision backbones, copies side by side; imports torch."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn import functional

from archgym.envs.nas.backbone.parts import Part
from archgym.envs.nas.families.torch_modules import Added, Classifier, ConvNorm, GlobalPool

__all__ = ["Mixing", "backbone_network"]


def backbone_network(parts: Sequence[Part], head_channels: int, copies: int) -> nn.Module:
    """A network of some parts, which scales its pictures to the size of the first part's input.

    Args:
        parts: in execution order.
        head_channels: of one head of attention.
        copies: independent networks side by side.
    """
    modules: list[nn.Module] = [_Resized(parts[0].size)]
    for part in parts:
        modules += _modules(part, head_channels, copies)
    return nn.Sequential(*modules)


def _modules(part: Part, head_channels: int, copies: int) -> list[nn.Module]:
    if part.role == "stem":
        return [ConvNorm(part.inputs, part.width, 3, copies, stride=part.stride)]
    if part.role == "head":
        conv = ConvNorm(part.inputs, part.width, 1, copies)
        return [conv, GlobalPool(maximum=False), Classifier(part.width, part.outputs, copies)]
    if part.role == "attention":
        down = ConvNorm(part.inputs, part.width, 3, copies, stride=part.stride)
        mix = Added(_Attention(part, head_channels, copies))
        linear: list[nn.Module] = [
            ConvNorm(part.width, part.hidden, 1, copies),
            ConvNorm(part.hidden, part.width, 1, copies, linear=True),
        ]
        rest: list[nn.Module] = [mix, Added(nn.Sequential(*linear))]
        return [down, *rest] if part.stride > 1 else rest
    if part.role == "fused":
        inner: list[nn.Module] = [ConvNorm(part.inputs, part.hidden, 3, copies, stride=part.stride)]
    else:
        hidden, stride = part.hidden, part.stride
        inner = [
            ConvNorm(part.inputs, hidden, 1, copies),
            ConvNorm(hidden, hidden, 3, copies, stride=stride, groups=hidden),
        ]
    project = ConvNorm(part.hidden, part.width, 1, copies, linear=True)
    chain: nn.Module = nn.Sequential(*inner, project)
    return [Added(chain) if part.stride == 1 else chain]


class Mixing(nn.Module):
    """Gives each pixel a mean of all pixels' values, weighted by attention.

    Attributes:
        uniform: whether all pixels have the same weight in place of attention's.
    """

    def __init__(self) -> None:
        super().__init__()
        self.uniform = False

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Queries, keys and values of shape (..., pixels, channels)."""
        if self.uniform:
            return v.mean(-2, keepdim=True).expand_as(v)
        return functional.scaled_dot_product_attention(q, k, v)


class _Resized(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[2:] == (self.size, self.size):
            return x
        size = (self.size, self.size)
        return functional.interpolate(x, size=size, mode="bilinear", align_corners=False)


class _Attention(nn.Module):
    def __init__(self, part: Part, head_channels: int, copies: int) -> None:
        super().__init__()
        self.heads = part.width // head_channels
        self.copies = copies
        self.mixing = Mixing()
        self.qkv = ConvNorm(part.width, 3 * part.width, 1, copies, linear=True)
        self.project = ConvNorm(part.width, part.width, 1, copies, linear=True)

    def forward(self, x: Tensor) -> Tensor:
        n, _, rows, columns = x.shape
        parts = self.qkv(x).view(n, self.copies, 3, self.heads, -1, rows * columns)
        q, k, v = parts.transpose(-1, -2).unbind(2)
        mixed = self.mixing(q, k, v).transpose(-1, -2)
        out: Tensor = self.project(mixed.reshape(n, -1, rows, columns))
        return out
