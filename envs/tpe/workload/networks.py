"""Layers of well-known networks as matrix products, derived from the networks' definitions.

A convolution is the product of a matrix of windows (a row for each output pixel) with a matrix of
filters (a column for each); a grouped one is as many smaller products. Definitions: ResNet, He and
others, CVPR 2016, table 1, with the stride of a bottleneck in its 3x3 convolution, as torchvision
has it; MobileNetV2, Sandler and others, CVPR 2018, table 2; BERT-base, Devlin and others, NAACL
2019.

>>> round(sum(p.macs for p in network_products("resnet18")) / 1e9, 2)
1.81
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from archgym.errors import InvalidValueError, UnknownNameError

__all__ = ["NETWORKS", "Product", "network_products"]

NETWORKS = {
    "resnet18": "ResNet-18, images of 224 x 224",
    "resnet50": "ResNet-50, images of 224 x 224",
    "mobilenet_v2": "MobileNetV2, images of 224 x 224",
    "bert_base": "BERT-base, 128 tokens",
}


@dataclass(frozen=True)
class Product:
    """A matrix product (m, k) by (k, n), done a number of times on different data.

    Attributes:
        name: of the first layer that has this shape.
        m: rows of the first matrix: output pixels or tokens.
        k: length of a dot product.
        n: columns of the second matrix: filters.
        count: how many products of this shape there are: groups, heads, equal layers.
        weighted: whether the second matrix holds weights, not activations too.
    """

    name: str
    m: int
    k: int
    n: int
    count: int = 1
    weighted: bool = True

    @property
    def macs(self) -> int:
        """Multiplications of all of them."""
        return self.m * self.k * self.n * self.count


def network_products(name: str, batch: int = 1) -> tuple[Product, ...]:
    """The products of one inference, equal shapes merged, in the order of their first layer.

    Args:
        name: one of :data:`NETWORKS`.
        batch: images or sequences at a time.

    Raises:
        UnknownNameError: if there is no such network.
        InvalidValueError: if the batch is not at least 1.
    """
    if name not in NETWORKS:
        raise UnknownNameError("network", name, NETWORKS)
    if not isinstance(batch, int) or isinstance(batch, bool) or batch < 1:
        raise InvalidValueError(f"network {name!r}: batch={batch!r} must be an integer from 1 up")
    build: dict[str, Callable[[int], list[Product]]] = {
        "resnet18": lambda n: _resnet(n, (2, 2, 2, 2), bottleneck=False),
        "resnet50": lambda n: _resnet(n, (3, 4, 6, 3), bottleneck=True),
        "mobilenet_v2": _mobilenet_v2,
        "bert_base": _bert_base,
    }
    return _merged(build[name](batch))


def _merged(products: list[Product]) -> tuple[Product, ...]:
    found: dict[tuple[int, int, int, bool], Product] = {}
    for p in products:
        key = (p.m, p.k, p.n, p.weighted)
        first = found.get(key)
        count = p.count + (first.count if first else 0)
        found[key] = Product(first.name if first else p.name, p.m, p.k, p.n, count, p.weighted)
    return tuple(found.values())


class _Convolutions:
    """Collects convolutions on a square image, padded so that only the stride shrinks it."""

    def __init__(self, batch: int, size: int, channels: int) -> None:
        self.batch, self.size, self.channels = batch, size, channels
        self.products: list[Product] = []

    def add(
        self, name: str, filters: int, window: int, *, stride: int = 1, depthwise: bool = False
    ) -> None:
        """A convolution whose output the next one takes."""
        self.shrink(stride)
        pixels = self.batch * self.size**2
        if depthwise:
            self.products.append(Product(name, pixels, window**2, 1, self.channels))
            return
        self.products.append(Product(name, pixels, window**2 * self.channels, filters))
        self.channels = filters

    def shrink(self, stride: int) -> None:
        """Output size of a padded window."""
        self.size = -(-self.size // stride)


def _resnet(batch: int, blocks: tuple[int, ...], *, bottleneck: bool) -> list[Product]:
    net = _Convolutions(batch, 224, 3)
    net.add("stem", 64, 7, stride=2)
    net.shrink(2)  # max pooling
    expansion = 4 if bottleneck else 1
    for stage, n in enumerate(blocks):
        width = 64 << stage
        for block in range(n):
            where = f"stage{stage + 1}.block{block + 1}"
            stride = 2 if stage and not block else 1
            size, channels = net.size, net.channels
            if bottleneck:
                net.add(f"{where}.reduce", width, 1)
                net.add(f"{where}.spatial", width, 3, stride=stride)
                net.add(f"{where}.expand", width * expansion, 1)
            else:
                net.add(f"{where}.first", width, 3, stride=stride)
                net.add(f"{where}.second", width, 3)
            if channels != width * expansion or stride > 1:
                shortcut = _Convolutions(batch, size, channels)
                shortcut.add(f"{where}.shortcut", width * expansion, 1, stride=stride)
                net.products += shortcut.products
    net.products.append(Product("classifier", batch, net.channels, 1000))
    return net.products


def _mobilenet_v2(batch: int) -> list[Product]:
    net = _Convolutions(batch, 224, 3)
    net.add("stem", 32, 3, stride=2)
    stages = (
        # expansion, channels, repeats, stride of the first
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    )
    for number, (expansion, channels, repeats, first) in enumerate(stages, start=1):
        for block in range(repeats):
            where = f"stage{number}.block{block + 1}"
            if expansion > 1:
                net.add(f"{where}.expand", net.channels * expansion, 1)
            net.add(f"{where}.depthwise", 0, 3, stride=1 if block else first, depthwise=True)
            net.add(f"{where}.project", channels, 1)
    net.add("head", 1280, 1)
    net.products.append(Product("classifier", batch, 1280, 1000))
    return net.products


def _bert_base(batch: int) -> list[Product]:
    tokens, hidden, heads, inner, layers = 128, 768, 12, 3072, 12
    per_head = hidden // heads
    rows = batch * tokens
    each = batch * heads * layers
    return [
        Product("query, key, value, output", rows, hidden, hidden, 4 * layers),
        Product("scores", tokens, per_head, tokens, each, weighted=False),
        Product("mixture", tokens, tokens, per_head, each, weighted=False),
        Product("feed-forward in", rows, hidden, inner, layers),
        Product("feed-forward out", rows, inner, hidden, layers),
    ]
