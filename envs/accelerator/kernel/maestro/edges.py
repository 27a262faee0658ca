"""What MAESTRO charges for tiles that a loop cuts short; compiled.

MAESTRO counts the steps of a cluster by the tile that the cluster has, but takes the sizes of its
parts from the cluster's full tile: a short tile costs as much as a full one, and where the last
turn of a full tile keeps one part busy, every tile's last turn has that part's size. Of rows and
columns it then takes the inputs in place of the outputs (CA_reuse-analysis.hpp of commit 4eb08d1).
"""

from __future__ import annotations

from archgym.envs.accelerator.kernel.arrays import Ints
from archgym.envs.accelerator.kernel.compiled import compiled
from archgym.envs.accelerator.kernel.datacentric import DIMS, P, Q, R, S, coupled

__all__ = ["charged_products", "last_part"]


@compiled
def rest(whole: int, size: int) -> int:
    """What the last of the tiles of a loop covers."""
    return whole % size if whole % size > 0 else size


@compiled
def parts_at_end(whole: int, size: int, parts: int) -> int:
    """Parts at work in the last turn of a loop that is spread over ``parts``, as MAESTRO counts."""
    if whole <= parts * size:
        return -(-whole // size)
    left = whole - whole // size // parts * parts * size
    return max(1, left // size)


@compiled
def last_part(whole: int, size: int, parts: int, left: int) -> int:
    """What MAESTRO thinks the largest part works on in the last turn, of which ``left`` is left."""
    if left > size and parts_at_end(whole, size, parts) == 1:
        return rest(whole, size)
    return min(left, size)


@compiled
def charged_products(
    dims: Ints, whole: Ints, loops: Ints, state: Ints, pes: int, depthwise: bool
) -> int:
    """Multiply-accumulates that MAESTRO charges the busiest part of a cluster for one step.

    Args:
        dims: tile that the cluster has.
        whole: its full tile.
        loops: of the cluster, see ``cluster_levels.analyse``.
        state: kind of step, see ``datacentric.next_kind``.
        pes: parts of the cluster.
        depthwise: whether outputs have the inputs' channels.
    """
    products = 1
    for i in range(DIMS):
        dim = loops[i, 0]
        size = min(loops[i, 2], whole[dim])
        short = rest(whole[dim], size)
        if not loops[i, 1]:
            products *= short if state[i] == 2 or (state[i] == 0 and dims[dim] < size) else size
            continue
        alone = parts_at_end(whole[dim], size, pes) == 1
        if state[i] == 2 and alone:
            window = dims[R] if dim == P else (dims[S] if dim == Q else 1)
            products *= short + window - 1
        elif state[i] == 0 and alone and dims[dim] < pes * size and coupled(2, dim, depthwise):
            products *= short
        else:
            products *= size
    return products
