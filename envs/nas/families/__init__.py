"""Families of networks: residual classifiers, U-Nets, MBConv chains, vision backbones."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from archgym.envs.nas.backbone.parts import BackboneOptions
from archgym.envs.nas.families.backbone import Backbone
from archgym.envs.nas.families.family import Architecture, Family
from archgym.envs.nas.families.mbconv import MBConv
from archgym.envs.nas.families.options import (
    MBConvOptions,
    ResidualOptions,
    Stage,
    UNetOptions,
)
from archgym.envs.nas.families.residual import Residual
from archgym.envs.nas.families.task import Task
from archgym.envs.nas.families.unet import UNet

__all__ = [
    "FAMILIES",
    "Architecture",
    "Backbone",
    "BackboneOptions",
    "Family",
    "MBConv",
    "MBConvOptions",
    "Residual",
    "ResidualOptions",
    "Stage",
    "Task",
    "UNet",
    "UNetOptions",
]

FAMILIES: Final[Mapping[str, Family]] = MappingProxyType(
    {"residual": Residual(), "unet": UNet(), "mbconv": MBConv(), "backbone": Backbone()}
)
"""Every family by its name."""
