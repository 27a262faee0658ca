"""The design space, and the design that others are compared with."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from archgym.envs.fpga.hardware.device import DEVICES
from archgym.space import Boolean, Categorical, DesignSpace, Ordinal, Rule, param

__all__ = ["BASELINE", "design_space"]

_REUSED = param("reuse") > 1
_HAS_DSPS = tuple(name for name, device in DEVICES.items() if device.dsps)
_ECP5 = tuple(name for name, device in DEVICES.items() if device.family == "ecp5")

BASELINE: Final[dict[str, Any]] = {
    "device": "ecp5_25k",
    "weight_bits": 6,
    "activation_bits": 6,
    "reuse": 64,
    "fold": "inputs",
    "memory": "logic",
    "product": "logic",
    "product_register": True,
    "tree_registers": 1,
}
"""Registers everywhere, 64 cycles a layer, weights and products in logic."""


@cache
def design_space() -> DesignSpace:
    """The design space; it is the same for every network."""
    bits = param("weight_bits") + param("activation_bits")
    dsp = param("product") == "dsp"
    return DesignSpace(
        [
            Categorical("device", list(DEVICES), doc="the FPGA"),
            Ordinal("weight_bits", [2, 3, 4, 5, 6, 8], doc="of a weight", unit="bits"),
            Ordinal("activation_bits", [2, 3, 4, 5, 6, 8], doc="of an activation", unit="bits"),
            Ordinal(
                "reuse",
                [1, 2, 4, 8, 16, 32, 64, 128, 256],
                doc="cycles over which the products of a layer are spread, at most; with 1 the "
                "weights are constants of the circuit",
                unit="cycles",
            ),
            Categorical(
                "fold",
                ["inputs", "outputs"],
                doc="what is worked on in steps first, the inputs of a sum or the sums",
                when=_REUSED,
            ),
            Categorical(
                "memory",
                ["logic", "registers", "block"],
                doc="what holds the weights: LUTs, a ring of flip-flops, or block RAM",
                when=_REUSED,
            ),
            Categorical(
                "product",
                ["logic", "dsp"],
                doc="what multiplies: carry chains, or DSPs",
                when=_REUSED & param("device").isin(_HAS_DSPS),
            ),
            Boolean(
                "operand_register",
                doc="a register before the products; other memories have it anyway",
                when=_REUSED & (param("memory") == "registers"),
            ),
            Boolean("product_register", doc="a register behind the products"),
            Ordinal(
                "tree_registers",
                [0, 1, 2],
                doc="levels of the adder tree from one register to the next; 0 for none",
                unit="levels",
            ),
        ],
        rules=[
            Rule(
                "dsp_width_ice40",
                dsp.implies((param("device") != "ice40_up5k") | (bits >= 11)),
                "synthesis makes products of fewer than 11 bits of LUTs",
            ),
            Rule(
                "dsp_width_ecp5",
                dsp.implies(~param("device").isin(_ECP5) | (bits >= 9)),
                "synthesis makes products of fewer than 9 bits of LUTs",
            ),
        ],
    )
