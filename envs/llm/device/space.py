"""The design space: a transformer, how it is quantised, and the device that runs it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from archgym.envs.llm.device.columns import AFTER_TRAINING, NEAR_BANK, PROCESSOR, SRAM_TABLES
from archgym.envs.llm.device.data.records import memory_names
from archgym.space import Boolean, Categorical, DesignSpace, Ordinal, Parameter, Rule, param

__all__ = ["BASELINE", "device_space"]

BASELINE: Final[Mapping[str, Any]] = {
    "layers": 16,
    "hidden": 1024,
    "heads": 16,
    "kv_heads": 4,
    "feedforward_ratio": 4.0,
    "vocabulary": 32000,
    "tied_embeddings": True,
    "weight_bits": 8,
    "quantization": AFTER_TRAINING,
    "activation_bits": 16,
    "kv_bits": 16,
    "mac_units": 4096,
    "clock_mhz": 800,
    "sram_mib": 4.0,
    "sram_resident_share": 0.0,
    "memory": "LPDDR5-6400",
    "channels": 4,
    "ranks": 1,
    "far_memory": "none",
    "flash_gb_per_s": 0,
    "products": PROCESSOR,
}
"""A model of 0.3e9 parameters in 8 bits on a processor with 51 GB/s."""


def device_space() -> DesignSpace:
    """Parameters and rules."""
    return DesignSpace(_transformer() + _processor() + _memories(), _rules())


def _transformer() -> list[Parameter]:
    few = param("weight_bits") < 16
    return [
        Ordinal("layers", [4, 6, 8, 10, 12, 16, 20, 24, 28, 32, 40, 48], doc="depth"),
        Ordinal(
            "hidden",
            [256, 384, 512, 640, 768, 896, 1024, 1280, 1536, 1792, 2048, 2560, 3072],
            doc="width of the residual stream",
        ),
        Ordinal("heads", [4, 6, 8, 10, 12, 14, 16, 20, 24, 32], doc="attention heads"),
        Ordinal("kv_heads", [1, 2, 4, 8, 16], doc="heads of keys and values"),
        Ordinal(
            "feedforward_ratio",
            [2.0, 2.5, 3.0, 4.0, 5.0, 6.0],
            doc="inner width of the gated feed-forward blocks, by the width",
        ),
        Ordinal(
            "vocabulary",
            [16384, 32000, 50304, 65536, 98304, 131072, 151936],
            unit="tokens",
            doc="of the tokenizer",
        ),
        Boolean("tied_embeddings", doc="embedding and output layer share their matrix"),
        Ordinal("weight_bits", [2, 3, 4, 5, 6, 8, 16], unit="bits", doc="of a weight"),
        Categorical(
            "quantization",
            [AFTER_TRAINING, "in_training"],
            when=few,
            doc="whether weights are quantised after training or trained so",
        ),
        Ordinal("activation_bits", [8, 16], unit="bits", doc="of inputs of products"),
        Ordinal("kv_bits", [4, 8, 16], unit="bits", doc="of cached keys and values"),
    ]


def _processor() -> list[Parameter]:
    return [
        Ordinal(
            "mac_units",
            [256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536],
            doc="multipliers of 8 bits; wider operands take several passes",
        ),
        Ordinal("clock_mhz", [200, 400, 600, 800, 1000, 1300, 1600], unit="MHz", doc="of all"),
        Ordinal(
            "sram_mib", [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0], unit="MiB", doc="on chip"
        ),
        Ordinal(
            "sram_resident_share",
            [0.0, 0.25, 0.5, 0.75],
            doc="share of the SRAM for weights that stay there",
        ),
        Categorical(
            "products",
            [PROCESSOR, NEAR_BANK, SRAM_TABLES],
            doc="where weights are multiplied: by the processor, at the banks of the near memory, "
            "or by tables in SRAM",
        ),
        Ordinal(
            "pim_lanes",
            [4, 8, 16, 32],
            when=param("products") == NEAR_BANK,
            doc="multipliers of a unit at the banks",
        ),
        Ordinal(
            "pim_banks_per_unit",
            [1, 2, 4],
            when=param("products") == NEAR_BANK,
            doc="banks that share a unit",
        ),
        Boolean(
            "attention_in_memory",
            when=param("products") == NEAR_BANK,
            doc="scores and weighted sums of a token are computed at the banks too",
        ),
        Ordinal(
            "table_weights",
            [2, 3, 4, 5],
            when=param("products") == SRAM_TABLES,
            doc="weights that share a table",
        ),
    ]


def _memories() -> list[Parameter]:
    return [
        Categorical("memory", list(memory_names()), doc="the near memory"),
        Ordinal("channels", [1, 2, 4, 8, 16, 32, 64], doc="of the near memory"),
        Ordinal("ranks", [1, 2, 4], doc="of each channel: capacity, not bandwidth"),
        Categorical(
            "far_memory",
            ["none", "LPDDR5-6400", "DDR5-4800"],
            doc="a second memory, for what the near one has no room for",
        ),
        Ordinal(
            "far_channels", [1, 2, 4], when=param("far_memory") != "none", doc="of the far memory"
        ),
        Boolean(
            "far_striped",
            when=param("far_memory") != "none",
            doc="weights lie in both memories by their bandwidths, not in the far one only where "
            "the near one has no room",
        ),
        Ordinal(
            "flash_gb_per_s",
            [0, 1, 2, 4],
            unit="GB/s",
            doc="bandwidth of flash from which weights without room elsewhere stream; 0 for none",
        ),
    ]


def _rules() -> list[Rule]:
    heads, hidden = param("heads"), param("hidden")
    return [
        Rule("heads", hidden % heads == 0, "the heads divide the width"),
        Rule(
            "head_size",
            (hidden >= heads * 32) & (hidden <= heads * 256),
            "heads are 32 to 256 wide",
        ),
        Rule("kv_heads", heads % param("kv_heads") == 0, "heads share those of keys and values"),
        Rule(
            "units_in_far_memory",
            (param("products") != NEAR_BANK) | (param("far_memory") == "none"),
            "a device with units at its banks has one memory",
        ),
    ]
