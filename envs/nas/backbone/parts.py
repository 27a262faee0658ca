"""The macro-architecture space of vision backbones, and the parts of a network by formula.

A 3x3 stem of stride 2, four stages that halve the picture, and a head of a 1x1 convolution, mean
pooling and a classifier. A stage has a *kind*, as in LowFormer (Nottebaum and others, WACV 2025)
and AsCAN (Kag and others, NeurIPS 2024), which choose convolution or attention stage by stage:

- ``mbconv``: mobile bottlenecks (1x1, 3x3 of each channel, 1x1; Sandler and others, CVPR 2018),
- ``fused``: the first two convolutions in one 3x3 (Tan and Le, EfficientNetV2, ICML 2021),
- ``attention``: attention of every pixel to every pixel, in heads, then two linear layers. The
  first block of such a stage has a 3x3 convolution of stride 2 before it.

Activations are ReLUs. Batch normalisation follows each convolution and each linear layer, those of
attention too (LeViT, Graham and others, ICCV 2021), so that nothing of it is left when it is
folded into them. This module needs nothing but Python: it is copied to machines that measure.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

__all__ = [
    "IMAGENET",
    "STAGES",
    "BackboneOptions",
    "Part",
    "architecture_of",
    "architectures",
    "key_of",
    "macs",
    "parameter_count",
    "parts_of",
]

STAGES: Final = 4


@dataclass(frozen=True)
class BackboneOptions:
    """What may be chosen, and the fixed frame."""

    resolutions: tuple[int, ...]
    """Rows and columns of the picture that the network works on."""
    widths: tuple[int, ...]
    """Channels of the first stage; each next stage has twice as many."""
    expansions: tuple[int, ...]
    """Channels inside a block by those that it gives."""
    kinds: tuple[tuple[str, ...], ...]
    """Of each stage."""
    depths: tuple[tuple[int, ...], ...]
    """Blocks of each stage."""
    head_filters: int
    head_channels: int = 32
    """Channels of one head of attention."""

    def values(self) -> dict[str, tuple[Any, ...]]:
        """The values of each parameter of an architecture."""
        found: dict[str, tuple[Any, ...]] = {
            "resolution": self.resolutions,
            "width": self.widths,
            "expansion": self.expansions,
        }
        for number in range(STAGES):
            found[f"stage{number + 1}_kind"] = self.kinds[number]
            found[f"stage{number + 1}_depth"] = self.depths[number]
        return found


IMAGENET: Final = BackboneOptions(
    resolutions=(160, 192, 224, 256),
    widths=(16, 24, 32, 40),
    expansions=(3, 6),
    kinds=(
        ("mbconv", "fused"),
        ("mbconv", "fused"),
        ("mbconv", "fused", "attention"),
        ("mbconv", "fused", "attention"),
    ),
    depths=((1, 2), (1, 3), (1, 3, 5), (1, 2, 3)),
    head_filters=1280,
)
"""The space that was measured. Widths are LowFormer's B0 (16) to B3 (32) and beyond."""


class Part(NamedTuple):
    """The stem, a block or the head of a network, on one picture."""

    role: str
    """``stem``, ``head``, or the kind of the block."""
    size: int
    """Rows and columns of its input."""
    inputs: int
    """Channels of its input."""
    width: int
    """Channels of its output; of the head: filters of its convolution."""
    expansion: int
    """1 for the stem and the head."""
    stride: int
    outputs: int = 0
    """Classes, of the head alone."""

    @property
    def key(self) -> str:
        """Its line in a latency table, in the form of ProxylessNAS's tables."""
        before = f"input:{self.size}x{self.size}x{self.inputs}"
        if self.role == "head":
            return f"head-{before}-filters:{self.width}-output:{self.outputs}"
        after = self.size // self.stride
        shapes = f"{before}-output:{after}x{after}x{self.width}"
        if self.role == "stem":
            return f"Conv-{shapes}"
        return f"{self.role}-{shapes}-expand:{self.expansion}-stride:{self.stride}"

    @property
    def hidden(self) -> int:
        """Channels inside the block."""
        return self.expansion * (self.width if self.role == "attention" else self.inputs)

    @property
    def macs(self) -> int:
        """Multiply-accumulates of its convolutions, linear layers and products of attention."""
        pixels = (self.size // self.stride) ** 2
        if self.role == "stem":
            return 9 * self.inputs * self.width * pixels
        if self.role == "head":
            return self.inputs * self.width * pixels + self.width * self.outputs
        if self.role == "mbconv":
            expand = self.inputs * self.hidden * self.size**2
            return expand + 9 * self.hidden * pixels + self.hidden * self.width * pixels
        if self.role == "fused":
            return 9 * self.inputs * self.hidden * pixels + self.hidden * self.width * pixels
        down = 9 * self.inputs * self.width * pixels if self.stride > 1 else 0
        linear = 4 * self.width**2 * pixels + 2 * self.width * self.hidden * pixels
        return down + linear + 2 * pixels**2 * self.width

    @property
    def weights(self) -> tuple[int, int]:
        """Weights of its layers, and channels that these give: a bias each once folded."""
        if self.role == "stem":
            return 9 * self.inputs * self.width, self.width
        if self.role == "head":
            return (self.inputs + self.outputs) * self.width, self.width + self.outputs
        if self.role == "mbconv":
            inside = (self.inputs + 9 + self.width) * self.hidden
            return inside, 2 * self.hidden + self.width
        if self.role == "fused":
            return (9 * self.inputs + self.width) * self.hidden, self.hidden + self.width
        down = (9 * self.inputs * self.width, self.width) if self.stride > 1 else (0, 0)
        inside = 4 * self.width**2 + 2 * self.width * self.hidden
        return down[0] + inside, down[1] + 5 * self.width + self.hidden


def parts_of(
    options: BackboneOptions, architecture: Mapping[str, Any], classes: int = 1000
) -> list[Part]:
    """The parts of a network in execution order.

    Args:
        options: the frame.
        architecture: ``resolution``, ``width``, ``expansion``, and for each stage
            ``stage1_kind``, ``stage1_depth`` and so on.
        classes: that the head tells apart.
    """
    size, width = int(architecture["resolution"]), int(architecture["width"])
    found = [Part("stem", size, 3, width, 1, 2)]
    size, channels = size // 2, width
    for stage in range(1, STAGES + 1):
        kind, wide = str(architecture[f"stage{stage}_kind"]), width << (stage - 1)
        for position in range(int(architecture[f"stage{stage}_depth"])):
            stride = 1 if position else 2
            expansion = int(architecture["expansion"])
            found.append(Part(kind, size, channels, wide, expansion, stride))
            size, channels = size // stride, wide
    return [*found, Part("head", size, channels, options.head_filters, 1, 1, classes)]


def macs(parts: list[Part]) -> int:
    """Multiply-accumulates of a network on one picture."""
    return sum(part.macs for part in parts)


def parameter_count(parts: list[Part]) -> int:
    """Weights and biases of a network whose normalisation is folded."""
    return sum(sum(part.weights) for part in parts)


def architectures(options: BackboneOptions) -> Iterator[dict[str, Any]]:
    """Every network of a space, in a fixed order."""
    values = options.values()
    for some in itertools.product(*values.values()):
        yield dict(zip(values, some, strict=True))


def key_of(architecture: Mapping[str, Any]) -> str:
    """A network as text, as in ``r224-w32-e6-fused1.fused3.mbconv5.attention2``."""
    stages = ".".join(
        f"{architecture[f'stage{n}_kind']}{architecture[f'stage{n}_depth']}"
        for n in range(1, STAGES + 1)
    )
    head = f"r{architecture['resolution']}-w{architecture['width']}-e{architecture['expansion']}"
    return f"{head}-{stages}"


_KEY: Final = re.compile(r"r(\d+)-w(\d+)-e(\d+)-" + r"\.".join([r"([a-z]+)(\d+)"] * STAGES))


def architecture_of(key: str) -> dict[str, Any]:
    """The network that :func:`key_of` wrote.

    Raises:
        ValueError: if the text is none.
    """
    match = _KEY.fullmatch(key)
    if match is None:
        raise ValueError(f"{key!r:.80} is no network, as r224-w32-e6-fused1.fused3.mbconv5.mbconv2")
    resolution, width, expansion, *stages = match.groups()
    found: dict[str, Any] = {
        "resolution": int(resolution),
        "width": int(width),
        "expansion": int(expansion),
    }
    for number in range(STAGES):
        found[f"stage{number + 1}_kind"] = stages[2 * number]
        found[f"stage{number + 1}_depth"] = int(stages[2 * number + 1])
    return found
