"""Networks by name, each derived from its definition.

>>> build("resnet50").network.macs
4089184256
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from archgym.envs.accelerator.workload.networks import mobile, transformers, vision
from archgym.envs.accelerator.workload.networks.builder import Builder, Built, Shape
from archgym.errors import InvalidValueError, UnknownNameError

__all__ = ["NETWORKS", "Builder", "Built", "Definition", "Setting", "Shape", "build"]


@dataclass(frozen=True)
class Setting:
    """A whole number that a network is built with."""

    name: str
    default: int
    low: int
    high: int
    doc: str


@dataclass(frozen=True)
class Definition:
    """A named network.

    Attributes:
        doc: one line on it.
        make: builds it from its settings.
        settings: what can be set, with defaults.
    """

    doc: str
    make: Callable[..., Built]
    settings: tuple[Setting, ...]

    def checked(self, given: Mapping[str, Any]) -> dict[str, int]:
        """All settings, those not given at their defaults.

        Raises:
            UnknownNameError: for a setting that does not exist.
            InvalidValueError: for a value out of range.
        """
        known = {setting.name: setting for setting in self.settings}
        for name, value in given.items():
            if name not in known:
                raise UnknownNameError("network setting", name, known, "workload")
            low, high = known[name].low, known[name].high
            if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
                raise InvalidValueError(
                    f"workload: {name}={value!r} must be a whole number from {low} to {high}"
                )
        return {name: given.get(name, setting.default) for name, setting in known.items()}


_BATCH = Setting("batch", 1, 1, 4096, "inputs processed together")
_IMAGE = (_BATCH, Setting("image_size", 224, 32, 4096, "rows and columns of the image"))
_GPT = (
    Setting("depth", 12, 1, 1000, "decoder layers"),
    Setting("width", 768, 8, 100_000, "channels of a token"),
    Setting("heads", 12, 1, 1000, "attention heads"),
    Setting("kv_heads", 0, 0, 1000, "key and value heads; 0 for as many as heads"),
    Setting("hidden", 0, 0, 1_000_000, "channels inside the MLP; 0 for four times the width"),
    Setting("gated", 0, 0, 1, "1 for an MLP with a gate (a third matrix)"),
    Setting("vocabulary", 50257, 2, 10_000_000, "tokens that there are"),
)

NETWORKS: Mapping[str, Definition] = MappingProxyType(
    {
        "alexnet": Definition("AlexNet, 227x227 images, two groups", vision.alexnet, (_BATCH,)),
        "vgg16": Definition("VGG-16 (configuration D), 224x224 images", vision.vgg16, (_BATCH,)),
        "resnet18": Definition("ResNet-18", vision.resnet18, _IMAGE),
        "resnet34": Definition("ResNet-34", vision.resnet34, _IMAGE),
        "resnet50": Definition("ResNet-50 (v1.5: stride in the 3x3)", vision.resnet50, _IMAGE),
        "mobilenet_v2": Definition("MobileNetV2, width 1.0", mobile.mobilenet_v2, _IMAGE),
        "efficientnet_b0": Definition("EfficientNet-B0", mobile.efficientnet_b0, _IMAGE),
        "mnasnet_a1": Definition(
            "MnasNet-A1, with squeeze-and-excitation", mobile.mnasnet_a1, _IMAGE
        ),
        "mnasnet_b1": Definition("MnasNet-B1, without it", mobile.mnasnet_b1, _IMAGE),
        "bert_base": Definition(
            "BERT-base encoder",
            transformers.bert_base,
            (_BATCH, Setting("sequence", 128, 1, 100_000, "tokens of an input")),
        ),
        "vit_b_16": Definition("ViT-B/16 on images", transformers.vit_b_16, _IMAGE),
        "gpt_prefill": Definition(
            "GPT-style decoder reading a prompt; GPT-2 by default",
            transformers.gpt_prefill,
            (_BATCH, Setting("sequence", 512, 1, 1_000_000, "tokens of the prompt"), *_GPT),
        ),
        "gpt_decode": Definition(
            "GPT-style decoder writing one token; GPT-2 by default",
            transformers.gpt_decode,
            (_BATCH, Setting("context", 512, 1, 1_000_000, "tokens attended to"), *_GPT),
        ),
    }
)
"""Every named network."""


def build(name: str, **settings: int) -> Built:
    """A named network with its settings.

    Raises:
        UnknownNameError: for a network or a setting that does not exist.
        InvalidValueError: for a value out of range.
    """
    if name not in NETWORKS:
        raise UnknownNameError("network", name, NETWORKS, "workload")
    definition = NETWORKS[name]
    return definition.make(**definition.checked(settings))
