"""How a layer's products are spread over cycles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from archgym.envs.fpga.hardware.arithmetic import tree_levels
from archgym.envs.fpga.hardware.device import DEVICES

__all__ = ["Choices", "Folding", "folding_of"]


@dataclass(frozen=True)
class Choices:
    """What a design chooses for all layers.

    Attributes:
        weight_bits, activation_bits: of the numbers.
        reuse: cycles over which a layer's products are spread, at most.
        fold: ``inputs`` or ``outputs``: what is folded first.
        dsp_bits: bits of a product from which on a DSP makes it; 0 if none does.
        dsp_clocked: whether paths end and begin at a DSP.
        memory: ``logic``, ``registers`` or ``block``: what holds the weights.
        operand_register, product_register: registers before and after the products.
        tree_registers: every so many levels of the adder tree are registered; 0 for none.
    """

    weight_bits: int
    activation_bits: int
    reuse: int
    fold: str
    dsp_bits: int
    dsp_clocked: bool
    memory: str
    operand_register: bool
    product_register: bool
    tree_registers: int

    @classmethod
    def of(cls, design: Mapping[str, Any], dsp_bits: int) -> Choices:
        """The choices of a design.

        Args:
            design: of :func:`archgym.envs.fpga.space.design_space`.
            dsp_bits: the fewest bits of a product that the device's DSPs are used for.
        """
        memory = design.get("memory", "logic")
        return cls(
            weight_bits=int(design["weight_bits"]),
            activation_bits=int(design["activation_bits"]),
            reuse=int(design["reuse"]),
            fold=str(design.get("fold", "inputs")),
            dsp_bits=dsp_bits if design.get("product", "logic") == "dsp" else 0,
            dsp_clocked=DEVICES[str(design["device"])].dsp_clocked,
            memory=str(memory),
            operand_register=bool(design.get("operand_register", True)),
            product_register=bool(design["product_register"]),
            tree_registers=int(design["tree_registers"]),
        )


@dataclass(frozen=True)
class Folding:
    """How a layer's matrix product is spread over cycles.

    Attributes:
        input_steps: cycles that the inputs of a window take.
        output_steps: groups of outputs, one after the other.
        lanes: inputs that are multiplied in a cycle, for each output.
        rows: outputs that are worked on in a cycle.
        stages: registers between the weights and the accumulator.
    """

    input_steps: int
    output_steps: int
    lanes: int
    rows: int
    stages: int

    @property
    def steps(self) -> int:
        """Cycles of a window, and so cycles between two of them."""
        return self.input_steps * self.output_steps

    @property
    def cycles(self) -> int:
        """From the cycle in which a window is complete to the one in which its outputs are."""
        return self.steps + self.stages + (2 if self.input_steps > 1 else 1)


@cache
def folding_of(inputs: int, outputs: int, terms: int, choices: Choices) -> Folding:
    """The folding of a layer with the most cycles that ``reuse`` allows.

    Args:
        inputs: of a window.
        outputs: of a window.
        terms: most terms of a sum where all products are made at once; else ignored.
        choices: of the design.
    """
    first, second = (inputs, outputs) if choices.fold == "inputs" else (outputs, inputs)
    folds_first = max(d for d in _divisors(first) if d <= choices.reuse)
    folds_second = max(d for d in _divisors(second) if d * folds_first <= choices.reuse)
    by_input, by_output = folds_first, folds_second
    if choices.fold == "outputs":
        by_input, by_output = by_output, by_input
    lanes = inputs // by_input
    constant = by_input * by_output == 1
    levels = tree_levels(terms if constant else lanes)
    stages = int(choices.product_register)
    stages += int(choices.operand_register and not constant)
    stages += levels // choices.tree_registers if choices.tree_registers else 0
    return Folding(by_input, by_output, lanes, outputs // by_output, stages)


@cache
def _divisors(number: int) -> tuple[int, ...]:
    return tuple(d for d in range(1, number + 1) if number % d == 0)
