"""Which node has which ranks, on a cluster whose links were measured one by one (Pipette)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.envs.llm.data.model import Model

__all__ = ["PLACEMENTS", "LinkRates", "Shape", "link_rates", "place"]

PLACEMENTS = ("in order", "by bandwidth")
"""Ranks in the order of the nodes, or nodes exchanged until no exchange helps."""
_ROUNDS = 4
_WIDTH = 2.0
"""Bytes of an activation or a gradient, for the shares of the groups in what is sent."""
_Rings = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Shape:
    """How groups of a plan lie over the ranks.

    Attributes:
        gpus: ranks.
        node_gpus: ranks of a node.
        groups: rings of tensor parallelism, of those that add up gradients, and of stages: members
            and stride of each. Where stages lie between data-parallel ranks, those that add up
            gradients have two rings: of context ranks, and of data ranks.
        volumes: bytes that a GPU sends in an iteration in a group of each kind.
    """

    gpus: int
    node_gpus: int
    groups: Sequence[_Rings]
    volumes: Sequence[float]

    def hops(self, group: int) -> NDArray[np.int64]:
        """Pairs of nodes between which neighbours of a kind of groups send, shape (n, 2)."""
        ranks = np.arange(self.gpus)
        found = []
        for count, stride in self.groups[group]:
            place = ranks // stride % count
            there = ranks + np.where(place == count - 1, -(count - 1) * stride, stride)
            found.append(np.stack([ranks // self.node_gpus, there // self.node_gpus], axis=1))
        pairs = np.concatenate(found)
        return np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)


def link_rates(
    links: NDArray[np.float64], shape: Shape, nodes: NDArray[Any]
) -> tuple[float, float, float]:
    """Rate of the slowest link that each kind of groups uses, inf where none leaves its node.

    Args:
        links: rates between nodes, shape (n_nodes, n_nodes).
        shape: of the plan.
        nodes: the node that stands at each place, shape (n_nodes,).
    """
    placed = links[np.ix_(nodes, nodes)]
    tensor, data, pipeline = (
        float(placed[hops[:, 0], hops[:, 1]].min(initial=np.inf))
        for hops in (shape.hops(group) for group in range(3))
    )
    return tensor, data, pipeline


def place(links: NDArray[np.float64], shape: Shape) -> NDArray[np.int64]:
    """An order of the nodes in which a plan's groups send fastest.

    From the given order and from a chain in which each node follows the one that it reaches
    fastest, nodes are exchanged in pairs as long as that helps.
    """
    hops = [(shape.hops(group), shape.volumes[group]) for group in range(3)]

    def cost(order: NDArray[np.int64]) -> float:
        total = 0.0
        for pairs, volume in hops:
            if len(pairs):
                times = 1.0 / links[order[pairs[:, 0]], order[pairs[:, 1]]]
                # The slowest counts; the others break ties, so that no plateau stops the search.
                total += volume * float(times.max() + 1e-3 * times.mean())
        return total

    found = [_exchanged(order, cost) for order in (np.arange(len(links)), _chain(links))]
    return min(found, key=cost)


def _chain(links: NDArray[np.float64]) -> NDArray[np.int64]:
    """Each node behind the one that reaches it fastest among those that are left."""
    order, left = [0], set(range(1, len(links)))
    while left:
        following = max(left, key=lambda node: (links[order[-1], node], -node))
        order.append(following)
        left.remove(following)
    return np.array(order, np.int64)


def _exchanged(
    nodes: NDArray[np.int64], cost: Callable[[NDArray[np.int64]], float]
) -> NDArray[np.int64]:
    """The order after all exchanges of two nodes that lower its cost, in a few rounds."""
    best = cost(nodes)
    for _ in range(_ROUNDS):
        before = best
        for i in range(len(nodes)):
            for j in range(i + 1, len(nodes)):
                nodes[[i, j]] = nodes[[j, i]]
                if (found := cost(nodes)) < best:
                    best = found
                else:
                    nodes[[i, j]] = nodes[[j, i]]
        if best == before:
            break
    return nodes


def _gradient_rings(plan: Any) -> _Rings:
    """The rings of the ranks that add up gradients in a record of ``PLAN``."""
    data, context = int(plan["data"]), int(plan["context"])
    near, far = int(plan["context_stride"]), int(plan["data_stride"])
    if far <= near * context:
        return ((data * context, near),)
    return ((context, near), (data, far))


class LinkRates:
    """The links of a cluster, and what they mean for plans; remembers the plans that it has seen.

    Args:
        links: bandwidths between nodes, 1e9 bytes a second and GPU, shape (n_nodes, n_nodes).
        nominal: bandwidth by which the cost model counts.
        gpus: ranks.
        node_gpus: ranks of a node.
        model: what is trained.
        tokens: of an iteration.
    """

    def __init__(
        self, links: NDArray[np.float64], nominal: float, gpus: int, node_gpus: int,
        model: Model, tokens: int,
    ) -> None:  # fmt: skip
        self._links = links / nominal
        self._model, self._tokens = model, tokens
        self._gpus, self._node_gpus = gpus, node_gpus
        self._known: dict[tuple[Any, ...], tuple[float, float, float]] = {}

    def fill(self, plans: NDArray[Any], placements: Sequence[str]) -> None:
        """Sets the fields ``*_slowed`` of records of plans.

        Args:
            plans: records of ``PLAN``, shape (n,).
            placements: of each plan, one of :data:`PLACEMENTS`.
        """
        for i, placement in enumerate(placements):
            one = plans[i]
            groups = (
                ((int(one["tensor"]), 1),),
                _gradient_rings(one),
                ((int(one["pipeline"]), int(one["pipeline_stride"])),),
            )
            key = (groups, placement)
            if key not in self._known:
                shape = Shape(self._gpus, self._node_gpus, groups, self._volumes(groups))
                self._known[key] = self._rates(shape, placement)
            for name, rate in zip(("tensor", "data", "pipeline"), self._known[key], strict=True):
                one[f"{name}_slowed"] = rate if rate < np.inf else 1.0

    def _volumes(self, groups: Sequence[_Rings]) -> tuple[float, float, float]:
        tensor, data, stages = (math.prod(count for count, _ in rings) for rings in groups)
        flow = self._tokens / data * self._model.hidden * _WIDTH
        layers = self._model.layers / stages
        gradients = 2.0 * _WIDTH * self._model.parameters / (tensor * stages)
        return 8.0 * layers * flow, gradients, 2.0 * flow / tensor

    def _rates(self, shape: Shape, placement: str) -> tuple[float, float, float]:
        nodes = np.arange(len(self._links))
        if placement == PLACEMENTS[1]:
            nodes = place(self._links, shape)
        return link_rates(self._links, shape, nodes)
