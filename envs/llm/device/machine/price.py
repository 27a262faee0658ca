"""Area of the processor's die, and what a device costs."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from archgym.envs.llm.device.columns import NEAR_BANK, SRAM_TABLES
from archgym.envs.llm.device.machine.hardware import GIB, Hardware

__all__ = ["areas_mm2", "cost_parts_usd", "leakage_w"]

Array = NDArray[np.float64]
_ON_INTERPOSER = ("HBM2-2000",)


def areas_mm2(hardware: Hardware) -> dict[str, Array]:
    """Area of the die by part, mm2."""
    columns, tech = hardware.columns, hardware.technology
    tables = 1 + tech.table_area_share * (columns["products"] == SRAM_TABLES)
    phys = hardware.near.of(lambda m: m.phy_mm2) * columns["channels"]
    phys = phys + hardware.far.of(lambda m: m.phy_mm2) * columns["far_channels"]
    return {
        "logic": columns["mac_units"] * tech.mac_um2 * 1e-6,
        "sram": columns["sram_mib"] * tech.sram_mm2_per_mib * tables,
        "interfaces": phys,
        "fixed": np.full_like(phys, tech.fixed_mm2),
    }


def leakage_w(hardware: Hardware, areas: dict[str, Array]) -> Array:
    """Power of the die at rest, W."""
    tech = hardware.technology
    other = areas["logic"] + areas["interfaces"] + areas["fixed"]
    sram = hardware.columns["sram_mib"] * tech.sram_leakage_mw_per_mib
    return np.asarray((sram + other * tech.logic_leakage_mw_per_mm2) * 1e-3)


def cost_parts_usd(hardware: Hardware, area_mm2: Array) -> dict[str, Array]:
    """Price by part, USD: good dies of a wafer, memories, package.

    Dies by wafer: pi r^2 / A - pi d / sqrt(2 A); yield of Murphy: ((1 - exp(-A D)) / (A D))^2.
    """
    columns, tech = hardware.columns, hardware.technology
    radius = tech.wafer_mm / 2
    dies = math.pi * radius**2 / area_mm2 - math.pi * tech.wafer_mm / np.sqrt(2 * area_mm2)
    load = np.maximum(area_mm2 * tech.defects_per_cm2 / 100, 1e-12)
    good = (-np.expm1(-load) / load) ** 2
    units = (columns["products"] == NEAR_BANK) * tech.pim_die_share
    units = units * columns["pim_lanes"] / 16 / np.maximum(columns["pim_banks_per_unit"], 1)
    near = hardware.near.of(lambda m: m.usd_per_gib) * hardware.near.bytes / GIB
    far = hardware.far.of(lambda m: m.usd_per_gib) * hardware.far.bytes / GIB
    stacked = np.isin(columns["memory"], _ON_INTERPOSER)
    return {
        "die": tech.wafer_usd / np.maximum(1.0, dies) / good,
        "near": near * (1 + units),
        "far": far,
        "flash": tech.flash_usd_per_gib * hardware.flash_bytes / GIB,
        "package": tech.package_usd + tech.interposer_usd * stacked,
    }
