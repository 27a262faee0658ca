"""Networks that differ in size and shape: what a proxy of many workloads is trained on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from archgym.envs.accelerator.workload.networks import NETWORKS

__all__ = ["VARIED"]

_VARIANTS: Final[Mapping[str, tuple[dict[str, Any], ...]]] = {
    "alexnet": ({"batch": 16},),
    "vgg16": ({"batch": 4},),
    "resnet18": ({"image_size": 64}, {"image_size": 448}, {"batch": 8}),
    "resnet50": ({"image_size": 96}, {"image_size": 384}, {"batch": 4}),
    "mobilenet_v2": ({"image_size": 96}, {"image_size": 320}, {"batch": 16}),
    "efficientnet_b0": ({"image_size": 128}, {"batch": 8}),
    "mnasnet_a1": ({"image_size": 112},),
    "mnasnet_b1": ({"image_size": 192, "batch": 4},),
    "bert_base": ({"sequence": 16}, {"sequence": 512}, {"batch": 8}),
    "vit_b_16": ({"image_size": 384}, {"image_size": 112, "batch": 4}),
    "gpt_prefill": (
        {"sequence": 64},
        {"sequence": 2048},
        {"sequence": 256, "depth": 4, "width": 256, "heads": 4},
        {"sequence": 128, "depth": 24, "width": 2048, "heads": 16, "gated": 1, "kv_heads": 4},
    ),
    "gpt_decode": (
        {"context": 4096},
        {"batch": 16},
        {"depth": 6, "width": 384, "heads": 6},
        {"batch": 64, "depth": 24, "width": 2048, "heads": 16, "gated": 1, "kv_heads": 4},
    ),
}

VARIED: Final[tuple[dict[str, Any], ...]] = tuple(
    {"network": name, **settings}
    for name in NETWORKS
    for settings in ({}, *_VARIANTS.get(name, ()))
)
"""Every network, and variants of them in image, batch, tokens and size."""
