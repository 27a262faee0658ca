"""Transformers: encoders, and a decoder that reads a prompt or writes a token."""

from __future__ import annotations

from archgym.envs.accelerator.workload.networks.builder import Builder, Built, Shape
from archgym.errors import InvalidValueError

__all__ = ["bert_base", "gpt_decode", "gpt_prefill", "vit_b_16"]

_LAYERS, _WIDTH, _HEADS, _HIDDEN = 12, 768, 12, 3072
"""The base size, which BERT, ViT and GPT-2 share."""
_BERT_VOCABULARY, _BERT_POSITIONS, _BERT_SEGMENTS = 30522, 512, 2
_GPT_POSITIONS = 1024
_NORM = 2
"""Trained values of a layer normalisation, for each channel."""


def bert_base(*, batch: int, sequence: int) -> Built:
    """Devlin et al.: BERT, NAACL 2019; base size, with the pooled classification token."""
    net = Builder("bert_base", Shape(_WIDTH, sequence, 1), batch=batch)
    embedded = _BERT_VOCABULARY + _BERT_POSITIONS + _BERT_SEGMENTS
    net.parameters += _WIDTH * (embedded + _NORM)
    for layer in range(_LAYERS):
        for part in ("query", "key", "value"):
            net.gemm(f"layer{layer}.{part}", sequence, _WIDTH, _WIDTH)
        _attend(net, f"layer{layer}", sequence, sequence, _HEADS, _HEADS, _WIDTH // _HEADS)
        net.gemm(f"layer{layer}.output", sequence, _WIDTH, _WIDTH)
        net.gemm(f"layer{layer}.mlp1", sequence, _HIDDEN, _WIDTH)
        net.gemm(f"layer{layer}.mlp2", sequence, _WIDTH, _HIDDEN)
        net.parameters += 2 * _NORM * _WIDTH
    net.gemm("pooler", 1, _WIDTH, _WIDTH)
    return net.built()


def vit_b_16(*, batch: int, image_size: int) -> Built:
    """Dosovitskiy et al.: an image is worth 16x16 words, ICLR 2021; base size, 16x16 patches."""
    patch = 16
    if image_size % patch:
        raise InvalidValueError(
            f"workload: image_size={image_size} of vit_b_16 must be a multiple of {patch}"
        )
    net = Builder("vit_b_16", Shape(3, image_size, image_size), batch=batch)
    net.conv("patches", _WIDTH, patch, stride=patch, padding=0, bias=True, norm=False)
    tokens = net.shape.rows * net.shape.columns + 1  # the class token
    net.parameters += _WIDTH * (1 + tokens)
    for layer in range(_LAYERS):
        net.gemm(f"layer{layer}.qkv", tokens, 3 * _WIDTH, _WIDTH)
        _attend(net, f"layer{layer}", tokens, tokens, _HEADS, _HEADS, _WIDTH // _HEADS)
        net.gemm(f"layer{layer}.output", tokens, _WIDTH, _WIDTH)
        net.gemm(f"layer{layer}.mlp1", tokens, _HIDDEN, _WIDTH)
        net.gemm(f"layer{layer}.mlp2", tokens, _WIDTH, _HIDDEN)
        net.parameters += 2 * _NORM * _WIDTH
    net.parameters += _NORM * _WIDTH
    net.gemm("head", 1, 1000, _WIDTH)
    return net.built()


def gpt_prefill(*, sequence: int, **model: int) -> Built:
    """Reads a prompt of ``sequence`` tokens and gives the scores of the next one.

    Radford et al.: language models are unsupervised multitask learners, 2019 (GPT-2 by default).
    """
    return _decoder("gpt_prefill", tokens=sequence, context=sequence, **model)


def gpt_decode(*, context: int, **model: int) -> Built:
    """Writes one token, which attends to ``context`` tokens (itself and those cached)."""
    return _decoder("gpt_decode", tokens=1, context=context, **model)


def _decoder(
    name: str,
    *,
    tokens: int,
    context: int,
    batch: int,
    depth: int,
    width: int,
    heads: int,
    kv_heads: int,
    hidden: int,
    gated: int,
    vocabulary: int,
) -> Built:
    # Zero means as in GPT-2: a key and a value for every head, four times the width.
    kv_heads, hidden = kv_heads or heads, hidden or 4 * width
    if width % heads:
        raise InvalidValueError(f"workload: heads={heads} must divide width={width}")
    if heads % kv_heads:
        raise InvalidValueError(f"workload: kv_heads={kv_heads} must divide heads={heads}")
    size = width // heads
    net = Builder(name, Shape(width, tokens, 1), batch=batch)
    net.parameters += width * (vocabulary + _GPT_POSITIONS)
    for layer in range(depth):
        net.gemm(f"layer{layer}.qkv", tokens, width + 2 * kv_heads * size, width)
        _attend(net, f"layer{layer}", tokens, context, heads, kv_heads, size)
        net.gemm(f"layer{layer}.output", tokens, width, width)
        for part in ("gate", "mlp1") if gated else ("mlp1",):
            net.gemm(f"layer{layer}.{part}", tokens, hidden, width)
        net.gemm(f"layer{layer}.mlp2", tokens, width, hidden)
        net.parameters += 2 * _NORM * width
    net.parameters += _NORM * width
    # The scores of the last token only; their weights are the embedding's.
    embedding = net.parameters
    net.gemm("head", 1, vocabulary, width, bias=False)
    net.parameters = embedding
    return net.built()


def _attend(
    net: Builder, name: str, tokens: int, context: int, heads: int, kv_heads: int, size: int
) -> None:
    """Scores and weighted values; the query heads that share a key head are rows of one product."""
    rows = tokens * heads // kv_heads
    net.matmul(f"{name}.scores", rows, context, size, each=kv_heads)
    net.matmul(f"{name}.values", rows, size, context, each=kv_heads)
