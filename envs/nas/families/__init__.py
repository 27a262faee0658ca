"""Families of networks: residual classifiers, U-Nets, chains of mobile bottlenecks."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

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
    {"residual": Residual(), "unet": UNet(), "mbconv": MBConv()}
)
"""Every family by its name."""
