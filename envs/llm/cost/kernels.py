"""Kernels of a layer, added up by the phase of training in which they run."""

from __future__ import annotations

from typing import Any

from archgym.envs.llm.cost.collectives import ALL_GATHER, ALL_REDUCE, REDUCE_SCATTER, collective_s
from archgym.envs.llm.cost.compiled import compiled
from archgym.envs.llm.cost.efficiency import combined_s, matrix_s, memory_s, vector_s

__all__ = [
    "AGAIN",
    "ARITHMETIC",
    "BYTES",
    "COUNT",
    "FLOPS",
    "FORWARD",
    "INPUTS",
    "MEMORY",
    "NETWORK",
    "NETWORK_BYTES",
    "SLOTS",
    "TIME",
    "WEIGHTS",
    "add_kernel",
    "attached_linear",
    "elementwise",
    "linear",
    "network_s",
    "phase_s",
    "product",
]

FORWARD, INPUTS, WEIGHTS, AGAIN = 0, 1, 2, 3
"""Phases: forward, gradients of the inputs, gradients of the weights, recomputed forward."""
TIME, ARITHMETIC, MEMORY, COUNT, FLOPS, BYTES, NETWORK, NETWORK_BYTES = 0, 1, 2, 3, 4, 5, 6, 7
"""Sums of a phase: seconds, those of arithmetic and of memory alone, kernels, operations, bytes,
seconds of the network that nothing hides, and bytes on it."""
SLOTS = 8


@compiled
def add_kernel(
    system: Any, sums: Any, phase: int, compute: float, memory: float, flops: float, size: float
) -> None:
    """Adds a kernel to a phase: seconds of its arithmetic and its memory, operations, bytes."""
    sums[phase, TIME] += combined_s(system, compute, memory)
    sums[phase, ARITHMETIC] += compute
    sums[phase, MEMORY] += memory
    sums[phase, COUNT] += 1.0
    sums[phase, FLOPS] += flops
    sums[phase, BYTES] += size


@compiled
def _accumulate(system: Any, sums: Any, weights: float) -> None:
    """The gradients of weights are added to those of earlier micro-batches."""
    if not system.operators:
        size = 2.0 * weights * system.gradient_bytes
        add_kernel(system, sums, WEIGHTS, 0.0, memory_s(system, size), 0.0, size)


@compiled
def _cast(system: Any, sums: Any, inputs: float, gradients: float, again: bool) -> None:
    """Activations and gradients in 8 bits: each is read once and written in two orders."""
    for phase in range(4):
        if phase == WEIGHTS or (phase == AGAIN and not again):
            continue
        size = (gradients if phase == INPUTS else inputs) * (system.element_bytes + 2.0)
        add_kernel(system, sums, phase, 0.0, memory_s(system, size), 0.0, size)


@compiled
def linear(
    system: Any, sums: Any, fp8: int, groups: float, rows: float, inner: float, columns: float,
    again: bool,
) -> None:  # fmt: skip
    """A product with weights: forward, and the gradients of input and weights."""
    flops = 2.0 * groups * rows * inner * columns
    size = groups * (rows * inner + rows * columns + inner * columns) * system.element_bytes
    memory = memory_s(system, size)
    forward = matrix_s(system, fp8, groups, rows, columns, inner)
    add_kernel(system, sums, FORWARD, forward, memory, flops, size)
    if again:
        add_kernel(system, sums, AGAIN, forward, memory, flops, size)
    add_kernel(
        system, sums, INPUTS, matrix_s(system, fp8, groups, rows, inner, columns), memory, flops,
        size,
    )  # fmt: skip
    add_kernel(
        system, sums, WEIGHTS, matrix_s(system, fp8, groups, inner, columns, rows), memory, flops,
        size,
    )  # fmt: skip
    if fp8:
        _cast(system, sums, groups * rows * inner, groups * rows * columns, again)
    _accumulate(system, sums, groups * inner * columns)


@compiled
def product(
    system: Any, sums: Any, batch: float, rows: float, inner: float, columns: float, again: bool
) -> None:
    """A batch of products of two activations: forward, and the gradients of both."""
    flops = 2.0 * batch * rows * inner * columns
    size = batch * (rows * inner + rows * columns + inner * columns) * system.element_bytes
    memory = memory_s(system, size)
    forward = matrix_s(system, 0, batch, rows, columns, inner)
    add_kernel(system, sums, FORWARD, forward, memory, flops, size)
    if again:
        add_kernel(system, sums, AGAIN, forward, memory, flops, size)
    if system.operators:
        both = matrix_s(system, 0, 2.0 * batch, rows, columns, inner)
        add_kernel(system, sums, INPUTS, both, memory, 2.0 * flops, size)
    else:
        first = matrix_s(system, 0, batch, rows, inner, columns)
        second = matrix_s(system, 0, batch, inner, columns, rows)
        add_kernel(system, sums, INPUTS, first, memory, flops, size)
        add_kernel(system, sums, INPUTS, second, memory, flops, size)


@compiled
def elementwise(
    system: Any, sums: Any, flops: float, size: float, back_flops: float, back_size: float,
    again: bool,
) -> None:  # fmt: skip
    """A kernel without products; nothing forward if ``size`` is 0."""
    if size > 0:
        compute, memory = vector_s(system, flops), memory_s(system, size)
        add_kernel(system, sums, FORWARD, compute, memory, flops, size)
        if again:
            add_kernel(system, sums, AGAIN, compute, memory, flops, size)
    if back_size > 0:
        compute, memory = vector_s(system, back_flops), memory_s(system, back_size)
        add_kernel(system, sums, INPUTS, compute, memory, back_flops, back_size)


@compiled
def network_s(system: Any, plan: Any, sums: Any, phase: int, kind: int, elements: float) -> float:
    """Seconds of a collective of a tensor-parallel group, and of its additions; counts its bytes.

    Args:
        system: the cluster.
        plan: the plan.
        sums: take the bytes.
        phase: in which it runs.
        kind: which collective; below 0 none.
        elements: of the whole activation.
    """
    if kind < 0 or plan.tensor <= 1:
        return 0.0
    size = elements * system.element_bytes
    seconds = collective_s(
        system, kind, size, float(plan.tensor), 1.0, plan.tensor_tier, plan.tensor_slowed
    )
    sums[phase, NETWORK_BYTES] += size * (2.0 if kind == ALL_REDUCE else 1.0)
    sums[phase, COUNT] += 1.0
    if system.operators and phase != AGAIN:
        added = 0.0 if kind == ALL_GATHER else elements * (plan.tensor - 1.0) / plan.tensor
        if plan.tensor_overlap:
            seconds += vector_s(system, added)
        else:
            seconds += combined_s(system, vector_s(system, added), memory_s(system, 2.0 * size))
    return float(seconds)


@compiled
def _hidden(
    system: Any, plan: Any, sums: Any, phase: int, compute: float, piece: float, memory: float,
    flops: float, size: float, network: float,
) -> None:  # fmt: skip
    """A product that is cut into pieces, whose collective runs beside the other pieces.

    Pieces are exchanged by direct copies, which only GPUs of one node have. A piece is a product
    of its own; while one is computed another one is on its way, and moving it takes a share of
    the GPU.
    """
    pieces = float(plan.tensor)
    apart = not system.operators and pieces > system.link_size[0]
    if network <= 0 or not plan.tensor_overlap or apart:
        add_kernel(system, sums, phase, compute, memory, flops, size)
        sums[phase, NETWORK] += network
        return
    usage = system.link_usage[max(0, plan.tensor_tier)]
    if not system.operators:
        one, message = combined_s(system, piece, memory / pieces), network / pieces
        slowed = one + usage * message
        add_kernel(system, sums, phase, pieces * piece, memory, flops, size)
        lengthened = one + (pieces - 1.0) * slowed - combined_s(system, pieces * piece, memory)
        sums[phase, TIME] += lengthened
        sums[phase, COUNT] += pieces - 1.0
        sums[phase, NETWORK] += (pieces - 1.0) * max(0.0, message - slowed)
        sums[phase, NETWORK] += message if plan.tensor_overlap == 2 else 0.0
        return
    slowed = compute / (1.0 - usage)
    add_kernel(system, sums, phase, compute, memory, flops, size)
    exposed = (network - slowed) / pieces
    if exposed > 0:
        extra = combined_s(system, slowed, memory) - combined_s(system, compute, memory)
        sums[phase, TIME] += (pieces - 1.0) / pieces * extra
        sums[phase, NETWORK] += (pieces - 1.0) * exposed
    else:
        sums[phase, TIME] += (pieces - 1.0) / pieces * network * usage
    if plan.tensor_overlap == 2:
        sums[phase, NETWORK] += network / pieces


@compiled
def attached_linear(
    system: Any, plan: Any, sums: Any, rows: float, inner: float, columns: float, again: bool,
    gathers: bool, elements: float, split: bool, gather_again: bool,
) -> None:  # fmt: skip
    """A product with weights cut over a tensor-parallel group, with the group's collective.

    Args:
        system: the cluster.
        plan: the plan.
        sums: take times and sizes.
        rows: tokens.
        inner: inner dimension.
        columns: columns of the result.
        again: whether the forward pass is recomputed.
        gathers: whether the collective comes before (columns are cut), or after (rows are cut).
        elements: of the activation that the group shares.
        split: whether an all-reduce is a reduce-scatter and an all-gather.
        gather_again: whether the forward collective is repeated in the backward pass.
    """
    flops = 2.0 * rows * inner * columns
    size = (rows * inner + rows * columns + inner * columns) * system.element_bytes
    memory = memory_s(system, size)
    if gathers:
        ahead, back = (ALL_GATHER, REDUCE_SCATTER) if split else (-1, ALL_REDUCE)
    else:
        ahead, back = (REDUCE_SCATTER, ALL_GATHER) if split else (ALL_REDUCE, -1)
    part = rows / plan.tensor
    forward = matrix_s(system, plan.fp8, 1.0, rows, columns, inner)
    piece = matrix_s(system, plan.fp8, 1.0, part, columns, inner)
    network = network_s(system, plan, sums, FORWARD, ahead, elements)
    _hidden(system, plan, sums, FORWARD, forward, piece, memory, flops, size, network)
    if again:
        add_kernel(system, sums, AGAIN, forward, memory, flops, size)
    network = network_s(system, plan, sums, INPUTS, back, elements)
    inputs = matrix_s(system, plan.fp8, 1.0, rows, inner, columns)
    piece = matrix_s(system, plan.fp8, 1.0, part, inner, columns)
    _hidden(system, plan, sums, INPUTS, inputs, piece, memory, flops, size, network)
    weights = matrix_s(system, plan.fp8, 1.0, inner, columns, rows)
    piece = matrix_s(system, plan.fp8, 1.0, inner, columns, part)
    repeated = 0.0
    if gather_again or again:
        repeated = network_s(system, plan, sums, AGAIN, ahead, elements)
    _hidden(system, plan, sums, WEIGHTS, weights, piece, memory, flops, size, repeated)
    if plan.fp8:
        _cast(system, sums, rows * inner, rows * columns, again)
    _accumulate(system, sums, inner * columns)


@compiled
def phase_s(system: Any, sums: Any, phase: int) -> float:
    """Seconds of a phase of a layer: of the GPU, or of the host that launches its kernels."""
    busy = sums[phase, TIME] + sums[phase, NETWORK]
    return float(max(busy, sums[phase, COUNT] * system.host_s))
