"""The small networks whose operands ship as observed, and the observation of their operands.

Every matrix product of a network goes through :class:`Products`, so that it can be done in 8 bits
and its operands be counted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

__all__ = ["Cnn", "Mlp", "Products", "Transformer"]

_CODES = 256


class Products:
    """Computes every matrix product of a network; when observing, in 8 bits and counted."""

    def __init__(self, *, observing: bool = False) -> None:
        self.observing = observing
        self.observed: list[dict[str, Any]] = []

    def __call__(
        self, name: str, a: torch.Tensor, b: torch.Tensor, *, weighted: bool = True
    ) -> torch.Tensor:
        """The product of a (..., m, k) and b (k, n) or (..., k, n)."""
        if not self.observing:
            return a @ b
        (a, seen_a), (b, seen_b) = _quantised(a), _quantised(b)
        images, heads = a.shape[0], int(np.prod(a.shape[1:-2]))
        self.observed.append(
            {
                "name": name,
                "m": a.shape[-2],
                "k": a.shape[-1],
                "n": b.shape[-1],
                "count": heads,
                "weighted": weighted,
                "images": images,
                "a": seen_a.tolist(),
                "b": seen_b.tolist(),
            }
        )
        return a @ b


def _quantised(tensor: torch.Tensor) -> tuple[torch.Tensor, NDArray[np.int64]]:
    """A tensor rounded to 8-bit codes, and how often each code from -128 up occurs."""
    scale = tensor.abs().max().clamp(min=1e-12) / 127
    codes = (tensor / scale).round()
    counts = np.bincount(codes.long().ravel().numpy() + _CODES // 2, minlength=_CODES)
    return codes * scale, counts


class Linear(nn.Linear):
    """A layer whose product is observed.

    Args:
        products: takes the product.
        name: of the layer.
        inputs: features that come in.
        outputs: features that go out.
    """

    def __init__(self, products: Products, name: str, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs)
        self._products = products
        self._name = name

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """From (n, rows, inputs) to (n, rows, outputs)."""
        return self._products(self._name, x, self.weight.T) + self.bias


class Mlp(nn.Module):
    """64 - 128 - 64 - 10 with rectifiers."""

    def __init__(self) -> None:
        super().__init__()
        self.products = Products()
        self.first = Linear(self.products, "linear1", 64, 128)
        self.second = Linear(self.products, "linear2", 128, 64)
        self.third = Linear(self.products, "linear3", 64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """From pixels (n, 64) to scores (n, 10)."""
        x = torch.relu(self.first(x[:, None, :]))
        scores: torch.Tensor = self.third(torch.relu(self.second(x)))[:, 0]
        return scores


class Cnn(nn.Module):
    """Three 3 x 3 convolutions (16, 32, 32 filters, the second with stride 2), rectifiers."""

    def __init__(self) -> None:
        super().__init__()
        self.products = Products()
        self.first = Linear(self.products, "convolution1", 9, 16)
        self.second = Linear(self.products, "convolution2", 9 * 16, 32)
        self.third = Linear(self.products, "convolution3", 9 * 32, 32)
        self.classifier = Linear(self.products, "classifier", 32 * 16, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """From pixels (n, 64) to scores (n, 10)."""
        x = _convolved(x.reshape(-1, 1, 8, 8), self.first, stride=1)
        x = _convolved(x, self.second, stride=2)
        x = _convolved(x, self.third, stride=1)
        scores: torch.Tensor = self.classifier(x.reshape(len(x), 1, -1))[:, 0]
        return scores


def _convolved(x: torch.Tensor, layer: Linear, stride: int) -> torch.Tensor:
    """A rectified 3 x 3 convolution of square images, as a product of windows and filters."""
    size = x.shape[-1] // stride
    windows = nn.functional.unfold(x, 3, padding=1, stride=stride).mT
    found: torch.Tensor = torch.relu(layer(windows)).mT.reshape(len(x), -1, size, size)
    return found


class _Block(nn.Module):
    """Attention with two heads, then two linear layers, both with normalised inputs."""

    def __init__(self, products: Products, name: str, width: int) -> None:
        super().__init__()
        self._products = products
        self._name = name
        self.norm1 = nn.LayerNorm(width)
        self.inward = Linear(products, f"{name}.query, key, value", width, 3 * width)
        self.outward = Linear(products, f"{name}.output", width, width)
        self.norm2 = nn.LayerNorm(width)
        self.up = Linear(products, f"{name}.up", width, 4 * width)
        self.down = Linear(products, f"{name}.down", 4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Tokens (n, tokens, width), in and out."""
        n, tokens, width = x.shape
        parts = self.inward(self.norm1(x)).reshape(n, tokens, 3, 2, width // 2)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        scores = self._products(f"{self._name}.scores", query, key.mT, weighted=False)
        shares = (scores / (width // 2) ** 0.5).softmax(-1)
        mixture = self._products(f"{self._name}.mixture", shares, value, weighted=False)
        x = x + self.outward(mixture.swapaxes(1, 2).reshape(n, tokens, width))
        found: torch.Tensor = x + self.down(nn.functional.gelu(self.up(self.norm2(x))))
        return found


class Transformer(nn.Module):
    """Two blocks of width 32 with two heads, on 16 patches of 2 x 2 pixels."""

    def __init__(self) -> None:
        super().__init__()
        width = 32
        self.products = Products()
        self.embedding = Linear(self.products, "embedding", 4, width)
        self.positions = nn.Parameter(0.1 * torch.randn(16, width))
        self.block1 = _Block(self.products, "block1", width)
        self.block2 = _Block(self.products, "block2", width)
        self.norm = nn.LayerNorm(width)
        self.classifier = Linear(self.products, "classifier", width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """From pixels (n, 64) to scores (n, 10)."""
        patches = x.reshape(-1, 4, 2, 4, 2).permute(0, 1, 3, 2, 4).reshape(-1, 16, 4)
        x = self.block2(self.block1(self.embedding(patches) + self.positions))
        scores: torch.Tensor = self.classifier(self.norm(x).mean(1, keepdim=True))[:, 0]
        return scores
