"""The ``eyeriss`` space: the knobs of ArchGym's Timeloop environment, with exactly their values.

An Eyeriss-like row-stationary array: scratch pads for inputs, partial sums and weights in every
PE, an idle buffer for each column ("DummyBuffer" of the Timeloop exercises, which keeps nothing),
and a shared buffer that weights go around. Words have 16 bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from archgym.envs.accelerator.cost.hardware import MEMORY_CLASSES, Hardware
from archgym.space import Categorical, DesignSpace, Ordinal, Parameter, Rule, param

__all__ = ["BASELINE", "eyeriss_space", "hardware"]

_CLASSES = ("regfile", "smartbuffer_SRAM", "smartbuffer_RF", "SRAM")
_PADS: Final = {"ifmap": "inputs", "psum": "partial sums", "weights": "weights"}
_BANDWIDTHS = [2, 4, 8, 16]
_WORD_BYTES: Final = 2

BASELINE: Final[dict[str, Any]] = {
    "n_pes": 168,
    "mesh_x": 14,
    **{
        f"{pad}_{knob}": value
        for pad, depth in (("ifmap", 16), ("psum", 16), ("weights", 256))
        for knob, value in (
            ("class", "regfile"),
            ("depth", depth),
            ("block_size", 1),
            ("read_bandwidth", 2),
            ("write_bandwidth", 2),
        )
    },
    "dummy_class": "regfile",
    "dummy_depth": 2,
    "dummy_block_size": 1,
    "shared_class": "smartbuffer_SRAM",
    "shared_depth": 16384,
    "shared_n_banks": 32,
    "shared_block_size": 4,
    "shared_read_bandwidth": 16,
    "shared_write_bandwidth": 16,
}
"""Eyeriss as in the Timeloop exercises, scratch pads rounded up to what the space has."""

assert set(_CLASSES) == set(MEMORY_CLASSES)


def eyeriss_space() -> DesignSpace:
    """Return the space: 2.15e18 combinations."""
    parameters: list[Parameter] = [
        Ordinal(
            "n_pes",
            list(range(14, 337, 14)),
            doc="processing elements",
            unit="PEs",
            group="array",
        ),
        Ordinal("mesh_x", [2, 7, 14], doc="columns of the array", unit="PEs", group="array"),
    ]
    for pad, what in _PADS.items():
        parameters += [
            _class(f"{pad}_class", f"how the scratch pad for {what} is built", pad),
            _depth(f"{pad}_depth", f"entries of the scratch pad for {what}", pad),
            _block(f"{pad}_block_size", pad),
            *_ports(pad),
        ]
    parameters += [
        _class("dummy_class", "how the idle buffer of a column is built", "dummy"),
        _depth("dummy_depth", "its entries", "dummy"),
        _block("dummy_block_size", "dummy"),
        _class("shared_class", "how the shared buffer is built", "shared"),
        Ordinal(
            "shared_depth",
            [1024 << i for i in range(7)],
            doc="entries of the shared buffer",
            unit="entries",
            group="shared",
        ),
        Ordinal("shared_n_banks", [16, 32, 64, 128], doc="its banks", group="shared"),
        _block("shared_block_size", "shared"),
        *_ports("shared"),
    ]
    return DesignSpace(
        parameters,
        [
            Rule(
                "columns_are_full",
                param("n_pes") % param("mesh_x") == 0,
                doc="the columns divide the processing elements",
            )
        ],
    )


def hardware(design: Mapping[str, Any], **fixed: Any) -> Hardware:
    """Return the hardware of a design of this space."""

    def size(name: str) -> int:
        return int(design[f"{name}_depth"] * design[f"{name}_block_size"] * _WORD_BYTES)

    columns = design["mesh_x"]
    words = min(design["shared_read_bandwidth"], design["shared_write_bandwidth"])
    return Hardware(
        **{
            "dataflow": "eyeriss_rs",
            "rows": design["n_pes"] // columns,
            "columns": columns,
            "input_rf_bytes": size("ifmap"),
            "weight_rf_bytes": size("weights"),
            "output_rf_bytes": size("psum"),
            "buffer_bytes": size("shared"),
            "banks": design["shared_n_banks"],
            "noc_bytes_per_cycle": float(words * _WORD_BYTES),
            "dram_bytes_per_cycle": 8.0,
            "word_bits": 16,
            "accumulator_bits": 16,
            # Timeloop's view: transfers overlap computation, reads and writes each other.
            "double_buffered": True,
            "keeps_halves": False,
            "dram_links": "duplex",
            "weights_bypass_buffer": True,
            "memory_classes": tuple(
                design[f"{name}_class"] for name in ("ifmap", "weights", "psum", "shared")
            ),
            "unused_bytes": columns * size("dummy"),
            "technology": "cmos45",
            **fixed,
        }
    )


def _class(name: str, doc: str, group: str) -> Parameter:
    return Categorical(name, _CLASSES, doc=doc, group=group)


def _depth(name: str, doc: str, group: str) -> Parameter:
    sizes = [1 << i for i in range(1, 17)]
    return Ordinal(name, sizes, doc=doc, unit="entries", group=group)


def _block(name: str, group: str) -> Parameter:
    return Ordinal(name, [1, 2, 4], doc="words of an entry", unit="words", group=group)


def _ports(name: str) -> list[Parameter]:
    return [
        Ordinal(
            f"{name}_{way}_bandwidth", _BANDWIDTHS, doc=f"{way}s", unit="words/cycle", group=name
        )
        for way in ("read", "write")
    ]
