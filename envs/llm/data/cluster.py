"""Chips and clusters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from archgym.envs.llm.data.fields import Entry, catalogue, field, read_entry
from archgym.errors import InvalidValueError

__all__ = [
    "Chip",
    "Cluster",
    "chip_names",
    "cluster_names",
    "cluster_sources",
    "load_chip",
    "load_cluster",
    "without_fp8",
]


@dataclass(frozen=True)
class Chip(Entry):
    """An accelerator.

    Attributes:
        matrix_tflops: peak of dense matrix products in bf16 or fp16, 1e12 operations a second.
        fp8_tflops: the same in 8 bits; 0 where the chip has none.
        fp4_tflops: the same in 4 bits; 0 where the chip has none.
        matrix_share: share of its peak that the largest products reach.
        fp8_share: the same in 8 bits.
        fp4_share: the same in 4 bits.
        flash_share: share of the 16-bit peak that fused attention reaches, forward.
        flash_back_share: the same, backward.
        vector_tflops: peak of element-wise work in 16 bits, 1e12 operations a second.
        memory_gib: capacity, 2^30 bytes.
        memory_gb_per_s: bandwidth of the memory, 1e9 bytes a second.
        processors: streaming multiprocessors or compute units.
        power_w: power limit, W.
        idle_w: power while it waits, W (an estimate).
        usd_per_hour: price, US dollars an hour.
    """

    matrix_tflops: float = field(1e-3)
    fp8_tflops: float = field(0, default=0.0)
    fp4_tflops: float = field(0, default=0.0)
    vector_tflops: float = field(1e-3)
    matrix_share: float = field(0.01, 1, default=0.8)
    fp8_share: float = field(0.01, 1, default=0.7)
    fp4_share: float = field(0.01, 1, default=0.45)
    flash_share: float = field(0.01, 1, default=0.5)
    flash_back_share: float = field(0.01, 1, default=0.4)
    memory_gib: float = field(1e-3)
    memory_gb_per_s: float = field(1e-3)
    processors: int = field(1)
    power_w: float = field(0)
    idle_w: float = field(0, default=0.0)
    usd_per_hour: float = field(0, default=0.0)

    def __post_init__(self) -> None:
        wide, before = self.matrix_tflops, "matrix_tflops"
        for name in ("fp8_tflops", "fp4_tflops"):
            peak = getattr(self, name)
            if peak and peak < wide:
                raise InvalidValueError(
                    f"chip: {name} is {peak:g}; it must be at least {before}, {wide:g}, or 0 for a "
                    "chip without such products"
                )
            wide, before = (peak, name) if peak else (wide, before)
        if self.vector_tflops > self.matrix_tflops:
            raise InvalidValueError(
                f"chip: vector_tflops is {self.vector_tflops:g}; it must be at most matrix_tflops, "
                f"{self.matrix_tflops:g}"
            )
        if self.idle_w > self.power_w:
            raise InvalidValueError(
                f"chip: idle_w is {self.idle_w:g}; it must be at most power_w, {self.power_w:g}"
            )


@dataclass(frozen=True)
class Cluster(Entry):
    """Nodes of one chip, and their links.

    Attributes:
        chip: name or mapping of the chip.
        node_gpus: GPUs that tier 0 joins.
        node_gb_per_s: bandwidth of a GPU to others of its node, one way, 1e9 bytes a second.
        network_gb_per_s: share of a GPU of its node's network cards, one way.
        cards: network cards of a node; 0 for one a GPU.
        host_gb_per_s: bandwidth of a GPU to the host's memory, one way, while all GPUs of the node
            copy.
        host_memory_gb_per_s: bandwidth of the memory of a node's processors, 1e9 bytes a second; if
            left out, or 0, 400, or what all of its GPUs copy where that is more.
        islands: groups of nodes with a network each; 1 or more, of equal size.
        other_island_gb_per_s: share of a GPU in all islands but the first; 0 for the same.
        other_island_efficiency: of those islands' network, against the first one's.
        between_gb_per_s: share of a GPU of the links between islands; needed with islands.
    """

    chip: Any
    node_gpus: int = field(1)
    node_gb_per_s: float = field(1e-3)
    network_gb_per_s: float = field(1e-3)
    cards: int = field(0, default=0)
    host_gb_per_s: float = field(1e-3, default=12.5)
    host_memory_gb_per_s: float = field(0, default=0.0)
    islands: int = field(1, default=1)
    other_island_gb_per_s: float = field(0, default=0.0)
    other_island_efficiency: float = field(0.01, 1, default=1.0)
    between_gb_per_s: float = field(0, default=0.0)

    def __post_init__(self) -> None:
        memory = self.device.memory_gb_per_s
        for name in ("node_gb_per_s", "network_gb_per_s", "host_gb_per_s", "between_gb_per_s"):
            if getattr(self, name) > memory:
                raise InvalidValueError(
                    f"cluster: {name} is {getattr(self, name):g}; it must be at most the bandwidth "
                    f"of the chip's memory, memory_gb_per_s, {memory:g}"
                )
        copied = self.node_gpus * self.host_gb_per_s
        if not self.host_memory_gb_per_s:
            object.__setattr__(self, "host_memory_gb_per_s", max(400.0, copied))
        if copied > self.host_memory_gb_per_s:
            raise InvalidValueError(
                f"cluster: host_gb_per_s is {self.host_gb_per_s:g} for each of {self.node_gpus} "
                f"GPUs, {copied:g} together; it must be at most host_memory_gb_per_s, "
                f"{self.host_memory_gb_per_s:g}, of which all of them copy"
            )
        if self.islands > 1 and not self.between_gb_per_s:
            raise InvalidValueError(
                f"cluster: between_gb_per_s is 0; with {self.islands} islands it must be above 0"
            )
        for name in ("other_island_gb_per_s", "between_gb_per_s"):
            if self.islands == 1 and getattr(self, name):
                raise InvalidValueError(
                    f"cluster: {name} is {getattr(self, name):g}; with one island it must be 0, or "
                    "islands above 1"
                )

    @property
    def device(self) -> Chip:
        """The chip."""
        return load_chip(self.chip)


def load_chip(spec: str | Mapping[str, Any]) -> Chip:
    """A chip by name or from a mapping.

    Raises:
        UnknownNameError, InvalidValueError: naming what is not possible.
    """
    return read_entry(Chip, spec, "chips.yaml", "chip")


def chip_names() -> list[str]:
    """The chips that ship."""
    return list(catalogue("chips.yaml"))


def without_fp8(chips: Iterable[str]) -> str:
    """A sentence: that chips have no products in 8 bits, and which of those that ship have them.

    Args:
        chips: names of the chips that have none.
    """
    have = [name for name in catalogue("chips.yaml") if load_chip(name).fp8_tflops > 0]
    return f"no products in 8 bits on {', '.join(chips)}; there are on {', '.join(have)}"


def load_cluster(spec: str | Mapping[str, Any]) -> Cluster:
    """A cluster by name or from a mapping.

    Raises:
        UnknownNameError, InvalidValueError: naming what is not possible.
    """
    return read_entry(Cluster, spec, "clusters.yaml", "cluster")


def cluster_names() -> dict[str, str]:
    """The clusters that ship, with a line on each."""
    return {name: str(entry["doc"]) for name, entry in catalogue("clusters.yaml").items()}


def cluster_sources() -> dict[str, str]:
    """Where the figures of the clusters that ship, and of their chips, come from."""
    clusters = {name: load_cluster(name) for name in cluster_names()}
    chips = {f"chip {one.chip}": one.device.source for one in clusters.values()}
    return {**{f"cluster {name}": one.source for name, one in clusters.items()}, **chips}
