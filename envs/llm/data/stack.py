"""Software stacks: which kernels run, what is kept, and the constants of kernels and links."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from archgym.envs.llm.cost.records import STEPS, TIERS
from archgym.envs.llm.data.fields import Entry, catalogue, field, is_number, read_entry
from archgym.errors import InvalidValueError, UnknownNameError

__all__ = ["Link", "Stack", "load_stack", "stack_names"]

_FILE = "stacks.yaml"


@dataclass(frozen=True)
class Link:
    """How software uses one tier of links.

    Attributes:
        efficiency: share of the bandwidth that long messages reach.
        latency_us: of a message, microseconds.
        usage: share of a chip's arithmetic that moving data takes.
        steps: whether each step of a ring costs the latency, or the whole collective does once.
        reduce_scatter: factor and chunk, see ``stacks.yaml``.
        all_gather: the same.
        all_reduce: the same.
        p2p: factor of a message.
    """

    efficiency: float = 0.8
    latency_us: float = 5.0
    usage: float = 0.0
    steps: bool = True
    reduce_scatter: Sequence[float] = (1.0, -1.0)
    all_gather: Sequence[float] = (1.0, -1.0)
    all_reduce: Sequence[float] = (2.0, -1.0)
    p2p: float = 1.0


_LINKS = (Link(latency_us=3.0), Link(latency_us=8.0), Link(latency_us=20.0))


@dataclass(frozen=True)
class Stack(Entry):
    """Software on a cluster.

    Attributes:
        operators: efficiency by the size of an operator (staircases), not by tiles and kernels.
        roofline: with ``operators``, whether arithmetic and memory accesses overlap.
        flash: attention in one kernel that keeps no scores.
        fused_activation: the activation keeps no input of its own, as calculon can have it.
            Megatron-Core's fused activations keep theirs, gate and up
            (``megatron/core/fusions/fused_bias_swiglu.py``), so its stacks do not set this.
        fused_dropout: dropout and residual are one kernel.
        dropout: whether there is dropout.
        dummy_gradients: whether each shape of weights has a gradient that nobody reads, as
            Transformer Engine 2 has where gradients are added in 32 bits.
        element_bytes: bytes of an activation and a parameter.
        gradient_bytes: bytes of a gradient that is kept.
        master_bytes: bytes of the optimizer by parameter (Adam: master copy and two moments).
        overhead_gib: memory of the runtime, the libraries and fragmentation.
        matrix_share: share of the peak that large tiles reach; 0 for the chip's.
        fp8_share: the same in 8 bits.
        flash_share: share of the peak that fused attention reaches, forward; 0 for the chip's.
        flash_back_share: the same, backward.
        memory_share: share of the memory's bandwidth that long kernels reach.
        tile_overhead: steps of the inner dimension that filling and draining a tile costs.
        kernel_us: shortest kernel, with the gap after it.
        host_us: time of the host to launch a kernel.
        loss_bytes: bytes that the loss reads and writes by logit, forward and backward.
        loss_bytes_alone: the same without tensor parallelism.
        spread: standard deviation of the speed of equal GPUs, a share; the slowest one sets the
            pace of all.
        matrix_steps: pairs of 1e9 operations and share, falling.
        vector_steps: the same.
        memory_steps: pairs of 1e6 bytes and share.
        host_steps: the same.
        links: a :class:`Link` for each tier.
    """

    operators: bool = field(default=False)
    roofline: bool = field(default=False)
    flash: bool = field(default=False)
    fused_activation: bool = field(default=False)
    fused_dropout: bool = field(default=False)
    dropout: bool = field(default=True)
    dummy_gradients: bool = field(default=False)
    element_bytes: float = field(0.5, 8, default=2.0)
    gradient_bytes: float = field(0.5, 8, default=4.0)
    master_bytes: float = field(0, 32, default=12.0)
    overhead_gib: float = field(0, default=1.0)
    matrix_share: float = field(0, 1, default=0.0)
    fp8_share: float = field(0, 1, default=0.0)
    flash_share: float = field(0, 1, default=0.0)
    flash_back_share: float = field(0, 1, default=0.0)
    memory_share: float = field(0.01, 1, default=0.8)
    tile_overhead: float = field(0, default=64.0)
    kernel_us: float = field(0, default=2.0)
    host_us: float = field(0, default=5.0)
    loss_bytes: float = field(0, default=24.0)
    loss_bytes_alone: float = field(0, default=24.0)
    spread: float = field(0, 0.2, default=0.0)
    matrix_steps: Sequence[Sequence[float]] = ((0, 1),)
    vector_steps: Sequence[Sequence[float]] = ((0, 1),)
    memory_steps: Sequence[Sequence[float]] = ((0, 1),)
    host_steps: Sequence[Sequence[float]] = ((0, 1),)
    links: Sequence[Mapping[str, Any]] = ()

    def __post_init__(self) -> None:
        for name in ("matrix_steps", "vector_steps", "memory_steps", "host_steps"):
            steps = getattr(self, name)
            if not _is_staircase(steps):
                raise InvalidValueError(
                    f"stack: {name} is {steps!r:.80}; it must be 1 to {STEPS} pairs of size and "
                    "share, the largest size first, the last size 0, shares above 0 and at most 1"
                )
        good = isinstance(self.links, list | tuple)
        if not good or not all(isinstance(link, Mapping) for link in self.links):
            raise InvalidValueError(
                f"stack: links is {self.links!r:.80}; it must be a list of mappings"
            )
        if len(self.links) > TIERS:
            raise InvalidValueError(f"stack: links has {len(self.links)} tiers; at most {TIERS}")
        fields = {one.name: one for one in dataclasses.fields(Link)}
        for i, link in enumerate(self.links):
            for key, value in link.items():
                if key not in fields:
                    raise UnknownNameError("key", str(key), fields, f"stack: links[{i}]")
                _check_link(f"stack: links[{i}]: {key}", key, value)

    @property
    def tiers(self) -> tuple[Link, ...]:
        """A link for each tier, with defaults where the stack says nothing."""
        given = [dataclasses.replace(_LINKS[i], **link) for i, link in enumerate(self.links)]
        return (*given, *_LINKS[len(given) :])


def load_stack(spec: str | Mapping[str, Any]) -> Stack:
    """A stack by name or from a mapping, where ``base`` names one to change.

    Raises:
        UnknownNameError, InvalidValueError: naming what is not possible.
    """
    return read_entry(Stack, spec, _FILE, "stack")


def stack_names() -> dict[str, str]:
    """The stacks that ship, with a line on each."""
    return {name: str(entry["doc"]) for name, entry in catalogue(_FILE).items()}


def _is_pair(value: Any) -> bool:
    """Whether a value is two numbers."""
    return isinstance(value, list | tuple) and len(value) == 2 and all(map(is_number, value))


def _is_staircase(value: Any) -> bool:
    """Whether a value has pairs of falling sizes, down to 0, and shares that are possible."""
    if not isinstance(value, list | tuple) or not 1 <= len(value) <= STEPS:
        return False
    if not all(map(_is_pair, value)) or value[-1][0] != 0:
        return False
    falling = all(before[0] > after[0] for before, after in itertools.pairwise(value))
    return falling and all(0 < share <= 1 for _, share in value)


def _check_link(where: str, key: str, value: Any) -> None:
    """Refuses a value that no link has."""
    if key == "steps":
        good, allowed = isinstance(value, bool), "true or false"
    elif key in ("reduce_scatter", "all_gather", "all_reduce"):
        good = _is_pair(value) and value[0] > 0 and value[1] >= -1
        allowed = "two numbers, a factor above 0 and a chunk of at least -1"
    elif key == "latency_us":
        good, allowed = is_number(value) and value >= 0, "a number of at least 0"
    elif key == "p2p":
        good, allowed = is_number(value) and value > 0, "a number above 0"
    elif key == "usage":
        good, allowed = is_number(value) and 0 <= value < 1, "a number from 0 to below 1"
    else:
        good, allowed = is_number(value) and 0 < value <= 1, "a number above 0, at most 1"
    if not good:
        raise InvalidValueError(f"{where} is {value!r:.80}; it must be {allowed}")
