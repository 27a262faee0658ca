"""Shapes of transformers as columns: parameters, bytes and multiplications of each product."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from archgym.envs.llm.device.columns import Columns

__all__ = ["GROUP_WEIGHTS", "Product", "Transformers"]

Array = NDArray[np.float64]
GROUP_WEIGHTS: Final = 32
"""Weights that share a scale of 16 bits where weights have fewer bits: blocks of llama.cpp's Q4_0
and of MLC's q4f16_1."""
_SCALE_BITS: Final = 16


@dataclass(frozen=True)
class Product:
    """A product with a matrix of weights, in every layer or once.

    Attributes:
        inputs: rows of the matrix, shape (n,).
        outputs: its columns, shape (n,).
        times: how often a token goes through one of these, shape (n,).
    """

    inputs: Array
    outputs: Array
    times: Array

    @property
    def weights(self) -> Array:
        """Weights of all of them."""
        return np.asarray(self.inputs * self.outputs * self.times)


class Transformers:
    """Decoder-only transformers, one by design.

    Attributes:
        layers, hidden, heads, kv_heads, feedforward, vocabulary: shape (n,) each.
        head_size: width of a head.
        weight_bits: of a weight in memory, its share of a scale included.
        embedding_weights: of the embedding where it is a matrix of its own, else 0.
        products: queries, keys and values; output; gate and up; down; logits.
    """

    def __init__(self, columns: Columns) -> None:
        self.layers, self.hidden = columns["layers"], columns["hidden"]
        self.heads, self.kv_heads = columns["heads"], columns["kv_heads"]
        self.head_size = columns["hidden"] / columns["heads"]
        if "head_size" in columns:
            self.head_size = columns["head_size"]
        self.vocabulary = columns["vocabulary"]
        self.feedforward = columns["feedforward_ratio"] * self.hidden
        if "feedforward" in columns:
            self.feedforward = columns["feedforward"]
        self.gated = columns["gated"]
        bits = columns["weight_bits"]
        self.weight_bits = np.where(bits < 16, bits + _SCALE_BITS / GROUP_WEIGHTS, bits)
        self.kv_bits = columns["kv_bits"]
        self.tied = columns["tied_embeddings"]
        query, pair = self.heads * self.head_size, 2 * self.kv_heads * self.head_size
        once = np.ones_like(self.layers)
        self.products = {
            "qkv": Product(self.hidden, query + pair, self.layers),
            "output": Product(query, self.hidden, self.layers),
            "up": Product(self.hidden, (1 + self.gated) * self.feedforward, self.layers),
            "down": Product(self.feedforward, self.hidden, self.layers),
            "logits": Product(self.hidden, self.vocabulary, once),
        }
        self.embedding_weights = np.where(self.tied > 0, 0.0, self.vocabulary * self.hidden)

    @property
    def layer_weights(self) -> Array:
        """Weights of all layers, norms left out."""
        return np.asarray(sum(p.weights for name, p in self.products.items() if name != "logits"))

    @property
    def parameters(self) -> Array:
        """All weights, embedding and output layer included, norms left out."""
        logits = self.products["logits"].weights
        return np.asarray(self.layer_weights + logits + self.embedding_weights)

    @property
    def kv_bytes_per_token(self) -> Array:
        """Keys and values of a token in all layers, bytes."""
        return np.asarray(2 * self.layers * self.kv_heads * self.head_size * self.kv_bits / 8)

    def weight_bytes(self, weights: Array) -> Array:
        """Bytes of so many weights in memory."""
        return np.asarray(weights * self.weight_bits / 8)

    def attention_macs(self, tokens: Array | float, context: Array | float) -> Array:
        """Multiplications of scores and weighted sums in all layers.

        Args:
            tokens: new tokens.
            context: mean number of tokens that each of them attends to.
        """
        return np.asarray(2 * self.layers * self.heads * self.head_size * tokens * context)

    def vector_operations(self, tokens: Array | float, context: Array | float) -> Array:
        """Operations beside products: norms, rotations, softmax, activation, residuals.

        Counted by element: norms 4 each twice a layer, residuals 2, rotation 3 on queries and
        keys, softmax 5 by score, activation and gate 5 on the inner width.
        """
        query = self.heads * self.head_size
        keys = self.kv_heads * self.head_size
        layer = 10 * self.hidden + 3 * (query + keys) + 5 * self.heads * context
        layer = layer + 5 * self.feedforward
        return np.asarray(tokens * self.layers * layer)
