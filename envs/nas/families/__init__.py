"""Families of networks: residual classifiers, U-Nets, chains of mobile bottlenecks."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from archgym.envs.nas.families.family import Architecture, Family
from archgym.envs.nas.families.mbconv import MBConv, MBConvOptions, Stage
from archgym.envs.nas.families.residual import Residual, ResidualOptions
from archgym.envs.nas.families.unet import UNet, UNetOptions

__all__ = [
    "FAMILIES",
    "Architecture",
    "Family",
    "MBConv",
    "MBConvOptions",
    "Residual",
    "ResidualOptions",
    "Stage",
    "UNet",
    "UNetOptions",
]

FAMILIES: Final[Mapping[str, Family]] = MappingProxyType(
    {"residual": Residual(), "unet": UNet(), "mbconv": MBConv()}
)
"""Every family by its name."""
