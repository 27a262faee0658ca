"""Convolutional networks of plain and residual layers."""

from __future__ import annotations

from archgym.envs.accelerator.workload.networks.builder import Builder, Built, Shape

__all__ = ["alexnet", "resnet18", "resnet34", "resnet50", "vgg16"]

_CLASSES = 1000
_RGB = 3
_VGG16 = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))
"""Filters and convolutions of each stage: configuration D of the paper."""
_RESNET_FILTERS = (64, 128, 256, 512)


def alexnet(*, batch: int) -> Built:
    """Krizhevsky, Sutskever, Hinton: ImageNet classification, NeurIPS 2012.

    The second, fourth and fifth convolution are in two groups, as the paper's two GPUs had them.
    """
    net = Builder("alexnet", Shape(_RGB, 227, 227), batch=batch)
    net.conv("conv1", 96, 11, stride=4, padding=0, bias=True, norm=False)
    net.pool(3, 2)
    net.conv("conv2", 256, 5, groups=2, bias=True, norm=False)
    net.pool(3, 2)
    net.conv("conv3", 384, 3, bias=True, norm=False)
    net.conv("conv4", 384, 3, groups=2, bias=True, norm=False)
    net.conv("conv5", 256, 3, groups=2, bias=True, norm=False)
    net.pool(3, 2)
    net.flatten()
    for name, width in (("fc6", 4096), ("fc7", 4096), ("fc8", _CLASSES)):
        net.linear(name, width)
    return net.built()


def vgg16(*, batch: int) -> Built:
    """Simonyan, Zisserman: very deep convolutional networks, ICLR 2015, configuration D."""
    net = Builder("vgg16", Shape(_RGB, 224, 224), batch=batch)
    for stage, (filters, layers) in enumerate(_VGG16, 1):
        for layer in range(1, layers + 1):
            net.conv(f"conv{stage}_{layer}", filters, 3, bias=True, norm=False)
        net.pool(2, 2)
    net.flatten()
    for name, width in (("fc6", 4096), ("fc7", 4096), ("fc8", _CLASSES)):
        net.linear(name, width)
    return net.built()


def resnet18(*, batch: int, image_size: int) -> Built:
    """He et al.: deep residual learning, CVPR 2016; 18 layers."""
    return _resnet("resnet18", (2, 2, 2, 2), False, batch, image_size)


def resnet34(*, batch: int, image_size: int) -> Built:
    """He et al., CVPR 2016; 34 layers."""
    return _resnet("resnet34", (3, 4, 6, 3), False, batch, image_size)


def resnet50(*, batch: int, image_size: int) -> Built:
    """He et al., CVPR 2016; 50 layers, the stride in a block's 3x3 convolution.

    The paper has it in the first 1x1; the frameworks' ResNet-50 ("v1.5") moved it, which costs
    4.09 instead of 3.86 GMACs.
    """
    return _resnet("resnet50", (3, 4, 6, 3), True, batch, image_size)


def _resnet(
    name: str, blocks: tuple[int, ...], bottleneck: bool, batch: int, image_size: int
) -> Built:
    net = Builder(name, Shape(_RGB, image_size, image_size), batch=batch)
    net.conv("conv1", 64, 7, stride=2)
    net.pool(3, 2, padding=1)
    for stage, (filters, count) in enumerate(zip(_RESNET_FILTERS, blocks, strict=True), 1):
        for block in range(count):
            stride = 2 if stage > 1 and block == 0 else 1
            _residual(net, f"layer{stage}.{block}", filters, stride, bottleneck)
    net.global_pool()
    net.linear("fc", _CLASSES)
    return net.built()


def _residual(net: Builder, name: str, filters: int, stride: int, bottleneck: bool) -> None:
    entry = net.shape
    if bottleneck:
        net.conv(f"{name}.conv1", filters, 1)
        net.conv(f"{name}.conv2", filters, 3, stride=stride)
        net.conv(f"{name}.conv3", 4 * filters, 1)
    else:
        net.conv(f"{name}.conv1", filters, 3, stride=stride)
        net.conv(f"{name}.conv2", filters, 3)
    leaves = net.shape
    net.shape = entry
    if entry != leaves:
        net.conv(f"{name}.downsample", leaves.channels, 1, stride=stride)
    net.join(leaves)
