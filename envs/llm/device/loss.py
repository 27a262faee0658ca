"""Loss that published scaling laws predict for a transformer, and where they hold.

- Shape and data: width, depth, parameters and tokens, as McLeish et al. fitted them on the
  Gemstones ("Gemstones: A Model Suite for Multi-Faceted Scaling Laws", NeurIPS 2025; constants:
  mcleish7/gemstone-scaling-laws 5f42047, parameters_delta-4,
  approach_3_width_depth_parameters_grid_search_0_cool_end.json; MIT). Their models have SwiGLU of
  four times the width, one key head for two query heads and a vocabulary of 50,304; parameters
  here count that vocabulary, whatever a design has. Other feed-forward widths and key heads act
  through the number of parameters only, which is an extrapolation.
- ``chinchilla``: parameters and tokens only (Hoffmann et al., 2022, as refitted by Besiroglu et
  al., arXiv 2404.10102).
- Vocabulary: the term of Tao et al. (NeurIPS 2024; constants: sail-sg/scaling-with-vocab 6701cc2,
  optimal_Nv_predict.py), less its value at the vocabulary of the law above. Its loss is
  normalised by a unigram model, so that vocabularies compare; tokens by character are theirs too.
- Bits: Kumar et al. ("Scaling Laws for Precision", ICLR 2025, arXiv 2411.04330): bits of
  training lessen the effective parameters, those of quantisation afterwards add to the loss. Its
  constants are the paper's; they could not be compared with a second source.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from archgym.envs.llm.device.columns import AFTER_TRAINING, Columns
from archgym.envs.llm.device.model import Transformers

__all__ = ["LAWS", "SOURCES", "characters_per_token", "out_of_range", "predicted_loss"]

Array = NDArray[np.float64]
LAWS: Final = ("gemstones", "chinchilla")
"""Laws of shape and data."""
_REFERENCE_VOCABULARY: Final = {"gemstones": 50304, "chinchilla": 32000}
_GEMSTONES: Final = (
    (1.6375654653, 0.30146699),
    (-0.0254911443, 0.3655461733),
    (7.8653383939, 0.5055007692),
    (9.9838221358, 0.4670177667),
)
"""Logarithm of the coefficient and exponent of width, depth, parameters and tokens."""
_IRREDUCIBLE: Final = 0.4195179541
"""Logarithm of the irreducible loss."""
_CHINCHILLA: Final = (1.8172, 482.01, 0.3478, 2085.43, 0.3658)
"""E, A, alpha, B, beta."""
_VOCABULARY: Final = (0.19584238398665638, 0.6707374679896795)
"""Coefficient and exponent of the vocabulary's parameters, in millions."""
_COMPRESSION: Final = (0.00639222, -0.15811069, 1.20470122)
"""Tokens by character: a parabola of the vocabulary's logarithm."""
_GAMMA_WEIGHT, _GAMMA_ACTIVATION, _GAMMA_KV = 2.6745, 2.2102, 0.9578
_POST: Final = (0.0598, 0.5068, 0.3439, 0.5907)
"""Coefficient, exponents of tokens and of parameters, bits by e-fold."""
_RANGES: Final = {
    "hidden": (256, 3072),
    "layers": (3, 80),
    "parameters": (50e6, 2e9),
    "vocabulary": (4096, 98304),
    "weight_bits": (3, 16),
}
"""Where each law was fitted."""
MAX_GTOKENS: Final = 350.0
"""Tokens of the Gemstones, in 1e9."""
SOURCES: Final = {
    "loss, shape and data": "McLeish et al., Gemstones (NeurIPS 2025), constants of "
    "mcleish7/gemstone-scaling-laws 5f42047 (MIT): widths of 256 to 3,072, depths of 3 to 80, 50M "
    "to 2B parameters, at most 350e9 tokens",
    "loss, chinchilla": "Hoffmann et al. (2022), refitted by Besiroglu et al. (arXiv 2404.10102): "
    "44M to 16B parameters, at most 500e9 tokens",
    "loss, vocabulary": "Tao et al. (NeurIPS 2024), sail-sg/scaling-with-vocab 6701cc2: "
    "vocabularies of 4,096 to 98,304",
    "loss, bits": "Kumar et al. (ICLR 2025, arXiv 2411.04330): 30M to 1.7B parameters, at most "
    "26e9 tokens, 3 bits and more",
}


def predicted_loss(models: Transformers, columns: Columns, gtokens: float, law: str) -> Array:
    """Loss by token of the law's vocabulary, nats.

    Args:
        models: the shapes.
        columns: bits and how weights were quantised.
        gtokens: of training, 1e9.
        law: one of :data:`LAWS`.
    """
    tokens = gtokens * 1e9
    reference = float(_REFERENCE_VOCABULARY[law])
    matrices = 2.0 if law == "gemstones" else 1.0
    nominal = models.layer_weights + matrices * reference * models.hidden
    parameters = nominal * _effective_share(columns)
    if law == "chinchilla":
        e, a, alpha, b, beta = _CHINCHILLA
        base = e + a / parameters**alpha + b / tokens**beta
    else:
        sizes = (models.hidden, models.layers, parameters, np.full_like(parameters, tokens))
        terms = [np.exp(c) / x**p for x, (c, p) in zip(sizes, _GEMSTONES, strict=True)]
        base = np.exp(_IRREDUCIBLE) + np.sum(terms, axis=0)
    factor, exponent = _VOCABULARY
    own = factor / (models.vocabulary * models.hidden / 1e6) ** exponent
    theirs = factor / (reference * models.hidden / 1e6) ** exponent
    return np.asarray(base + own - theirs + _added_afterwards(columns, nominal, tokens))


def _effective_share(columns: Columns) -> Array:
    """Effective parameters by parameter, by those at 16 bits."""
    in_training = columns["quantization"] != AFTER_TRAINING
    weight_bits = np.where(in_training, columns["weight_bits"], 16.0)
    share = np.ones_like(weight_bits)
    for bits, gamma in (
        (weight_bits, _GAMMA_WEIGHT),
        (columns["activation_bits"], _GAMMA_ACTIVATION),
        (columns["kv_bits"], _GAMMA_KV),
    ):
        share = share * (1 - np.exp(-bits / gamma)) / (1 - np.exp(-16 / gamma))
    return np.asarray(share)


def _added_afterwards(columns: Columns, parameters: Array, tokens: float) -> Array:
    """What quantising weights after training adds, nats."""
    factor, of_tokens, of_parameters, fold = _POST
    added = factor * tokens**of_tokens / parameters**of_parameters
    added = added * np.exp(-columns["weight_bits"] / fold)
    after = (columns["quantization"] == AFTER_TRAINING) & (columns["weight_bits"] < 16)
    return np.where(after, added, 0.0)


def out_of_range(models: Transformers, columns: Columns, gtokens: float) -> Array:
    """How many of width, depth, parameters, vocabulary, bits and tokens no law was fitted at."""
    values = {
        "hidden": models.hidden,
        "layers": models.layers,
        "parameters": models.parameters,
        "vocabulary": models.vocabulary,
        "weight_bits": columns["weight_bits"],
    }
    outside = [(values[k] < low) | (values[k] > high) for k, (low, high) in _RANGES.items()]
    count = np.sum(outside, axis=0).astype(np.float64)
    return np.asarray(count + (gtokens > MAX_GTOKENS))


def characters_per_token(vocabulary: Array) -> Array:
    """Mean characters of a token of a vocabulary of that size (Tao et al.)."""
    x = np.log(vocabulary)
    a, b, c = _COMPRESSION
    return np.asarray(1 / (a * x * x + b * x + c))
