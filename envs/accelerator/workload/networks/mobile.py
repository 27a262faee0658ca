"""Networks of inverted residual blocks: expand, filter each channel, project."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from archgym.envs.accelerator.workload.networks.builder import Builder, Built, Shape

__all__ = ["efficientnet_b0", "mnasnet_a1", "mnasnet_b1", "mobilenet_v2"]

_CLASSES = 1000
_STEM = 32
_HEAD = 1280


class _Stage(NamedTuple):
    """Blocks in a row; only the first of them has the stride.

    ``squeeze`` is the width of the squeeze-and-excitation by the width of the block's input; 0
    for none.
    """

    expansion: int
    filters: int
    blocks: int
    stride: int
    size: int
    squeeze: float = 0.0


_MOBILENET_V2 = (
    _Stage(1, 16, 1, 1, 3),
    _Stage(6, 24, 2, 2, 3),
    _Stage(6, 32, 3, 2, 3),
    _Stage(6, 64, 4, 2, 3),
    _Stage(6, 96, 3, 1, 3),
    _Stage(6, 160, 3, 2, 3),
    _Stage(6, 320, 1, 1, 3),
)
_EFFICIENTNET_B0 = (
    _Stage(1, 16, 1, 1, 3, 0.25),
    _Stage(6, 24, 2, 2, 3, 0.25),
    _Stage(6, 40, 2, 2, 5, 0.25),
    _Stage(6, 80, 3, 2, 3, 0.25),
    _Stage(6, 112, 3, 1, 5, 0.25),
    _Stage(6, 192, 4, 2, 5, 0.25),
    _Stage(6, 320, 1, 1, 3, 0.25),
)
_MNASNET_A1 = (
    _Stage(1, 16, 1, 1, 3),
    _Stage(6, 24, 2, 2, 3),
    _Stage(3, 40, 3, 2, 5, 0.25),
    _Stage(6, 80, 4, 2, 3),
    _Stage(6, 112, 2, 1, 3, 0.25),
    _Stage(6, 160, 3, 2, 5, 0.25),
    _Stage(6, 320, 1, 1, 3),
)
_MNASNET_B1 = (
    _Stage(1, 16, 1, 1, 3),
    _Stage(3, 24, 3, 2, 3),
    _Stage(3, 40, 3, 2, 5),
    _Stage(6, 80, 3, 2, 5),
    _Stage(6, 96, 2, 1, 3),
    _Stage(6, 192, 4, 2, 5),
    _Stage(6, 320, 1, 1, 3),
)


def mobilenet_v2(*, batch: int, image_size: int) -> Built:
    """Sandler et al.: inverted residuals and linear bottlenecks, CVPR 2018, table 2."""
    return _network("mobilenet_v2", _MOBILENET_V2, batch, image_size)


def efficientnet_b0(*, batch: int, image_size: int) -> Built:
    """Tan, Le: EfficientNet, ICML 2019, table 1."""
    return _network("efficientnet_b0", _EFFICIENTNET_B0, batch, image_size)


def mnasnet_a1(*, batch: int, image_size: int) -> Built:
    """Tan et al.: MnasNet, CVPR 2019, figure 7: the network with squeeze-and-excitation."""
    return _network("mnasnet_a1", _MNASNET_A1, batch, image_size)


def mnasnet_b1(*, batch: int, image_size: int) -> Built:
    """Tan et al., CVPR 2019: without squeeze-and-excitation (torchvision's ``mnasnet1_0``)."""
    return _network("mnasnet_b1", _MNASNET_B1, batch, image_size)


def _network(name: str, stages: Sequence[_Stage], batch: int, image_size: int) -> Built:
    net = Builder(name, Shape(3, image_size, image_size), batch=batch)
    net.conv("stem", _STEM, 3, stride=2)
    for number, stage in enumerate(stages, 1):
        for block in range(stage.blocks):
            _inverted_residual(
                net, f"stage{number}.{block}", stage, stage.stride if not block else 1
            )
    net.conv("head", _HEAD, 1)
    net.global_pool()
    net.linear("fc", _CLASSES)
    return net.built()


def _inverted_residual(net: Builder, name: str, stage: _Stage, stride: int) -> None:
    entry = net.shape
    if stage.expansion > 1:
        net.conv(f"{name}.expand", stage.expansion * entry.channels, 1)
    net.depthwise(f"{name}.depthwise", stage.size, stride=stride)
    if stage.squeeze:
        # On the mean of each channel: two fully connected layers that leave the shape alone.
        width, squeezed = net.shape.channels, int(stage.squeeze * entry.channels)
        net.gemm(f"{name}.squeeze", 1, squeezed, width)
        net.gemm(f"{name}.excite", 1, width, squeezed)
    net.conv(f"{name}.project", stage.filters, 1)
    if stride == 1 and entry.channels == stage.filters:
        net.join(entry)
