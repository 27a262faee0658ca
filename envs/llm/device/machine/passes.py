"""Passes through a transformer: a prompt at once, or a token of each sequence."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from archgym.envs.llm.device.columns import NEAR_BANK
from archgym.envs.llm.device.machine.hardware import Hardware
from archgym.envs.llm.device.machine.placement import Placement
from archgym.envs.llm.device.machine.products import in_banks, product
from archgym.envs.llm.device.machine.work import Work, chosen, total
from archgym.envs.llm.device.model import Transformers

__all__ = ["Pass", "run_pass"]

Array = NDArray[np.float64]
_OPERATORS_AT_ENDS = 3
"""Embedding, last norm, logits."""


class Pass:
    """Time and energy of a pass of all sequences together.

    Attributes:
        work: sums over its operators; operators overlap within, not with one another.
        products_s, attention_s, vector_s, operators_s: parts of the time.
        seconds: their sum.
        energy_j: by part: compute, sram, near, far, flash, in_memory, static.
    """

    def __init__(
        self, products: Work, attention: Work, vector: Work, operators_s: Array, hardware: Hardware
    ) -> None:
        self.work = total([products, attention, vector])
        self.products_s, self.attention_s = products.seconds, attention.seconds
        self.vector_s, self.operators_s = vector.seconds, operators_s
        self.seconds = self.work.seconds + operators_s
        w, tech = self.work, hardware.technology
        near, far = hardware.near, hardware.far
        busy = np.minimum(self.seconds, w.near_s + w.in_memory_s)
        busy_far = np.minimum(self.seconds, w.far_s)
        self.energy_j: dict[str, Array] = {
            "compute": w.compute_j,
            "sram": w.sram_j,
            "near": w.near_bytes * 8 * near.pj_per_bit * 1e-12
            + busy * near.standby_w
            + (self.seconds - busy) * near.idle_w,
            "far": w.far_bytes * 8 * far.pj_per_bit * 1e-12
            + busy_far * far.standby_w
            + (self.seconds - busy_far) * far.idle_w,
            "flash": w.flash_bytes * 8 * tech.flash_pj_per_bit * 1e-12,
            "in_memory": w.in_memory_j,
        }

    @property
    def total_j(self) -> Array:
        """Energy without leakage of the die."""
        return np.asarray(sum(self.energy_j.values()))


def run_pass(
    models: Transformers,
    hardware: Hardware,
    placement: Placement,
    tokens: int,
    batch: int,
    context: float,
) -> Pass:
    """A pass of new tokens through all layers, with logits of the last one of each sequence.

    Args:
        models: the transformers.
        hardware: of the designs.
        placement: of weights and caches.
        tokens: new ones of each sequence: the prompt's, or one.
        batch: sequences.
        context: tokens that a new one attends to, in the mean.
    """
    ones = np.ones_like(models.layers)
    vectors = ones * batch * tokens
    parts = [
        product(shape, ones * batch if name == "logits" else vectors, models, hardware, placement)
        for name, shape in models.products.items()
    ]
    attention = _attention(models, hardware, placement, tokens, batch, context)
    operations = models.vector_operations(batch * tokens, context)
    vector_s = operations / hardware.vector_per_s
    zero = np.zeros_like(vector_s)
    pj = hardware.technology.vector_pj
    vector = Work(
        vector_s, vector_s, zero, zero, zero, zero, zero, zero, zero, zero,
        operations * pj * 1e-12, zero, zero,
    )  # fmt: skip
    operators = hardware.software.operators_layer * models.layers + _OPERATORS_AT_ENDS
    operators_s = operators * hardware.software.operator_us * 1e-6
    return Pass(total(parts), attention, vector, operators_s, hardware)


def _attention(
    models: Transformers,
    hardware: Hardware,
    placement: Placement,
    tokens: int,
    batch: int,
    context: float,
) -> Work:
    """Scores and weighted sums; keys and values are read for every block of queries."""
    columns, tech = hardware.columns, hardware.technology
    macs = models.attention_macs(float(batch * tokens), context)
    passes = hardware.passes(columns["activation_bits"], columns["kv_bits"])
    queries = tokens * models.heads * models.head_size * columns["activation_bits"] / 8
    blocks = np.maximum(1.0, np.ceil(queries / (0.5 * hardware.buffer_bytes)))
    read = models.kv_bytes_per_token * batch
    read = read * (context if tokens == 1 else tokens * (blocks + 1) / 2)
    written = models.kv_bytes_per_token * batch * tokens
    moved = read + written
    near, far = moved * placement.kv_near_share, moved * (1 - placement.kv_near_share)
    items = models.heads * batch * tokens * models.head_size
    compute = macs * passes / (hardware.macs_per_s * hardware.filled_share(models.head_size, items))
    times = (
        compute,
        near / hardware.near.bytes_per_s,
        far / np.maximum(hardware.far.bytes_per_s, 1.0),
        np.zeros_like(near),
    )
    zero = np.zeros_like(near)
    each = np.where(passes >= 4, tech.mac16_pj, tech.mac8_pj * passes) * 1e-12
    sram = 2 * moved * 8 * tech.sram_pj_per_bit * 1e-12
    work = Work(np.max(times, axis=0), *times, zero, near, far, zero, macs, macs * each, sram, zero)
    inside = (columns["attention_in_memory"] > 0) & (columns["products"] == NEAR_BANK)
    inside &= placement.kv_near_share >= 1
    if tokens == 1 and inside.any():
        stored = context * 2 * models.kv_heads * models.head_size * models.kv_bits / 8
        queries_each = models.heads / models.kv_heads
        found = in_banks(
            stored,
            models.kv_bits,
            models.head_size * models.kv_heads,
            2 * context * models.kv_heads,
            batch * models.layers * queries_each,
            hardware,
        )
        found.near_bytes = found.near_bytes + written
        work = chosen(inside & (found.seconds <= work.seconds), found, work)
    return work
