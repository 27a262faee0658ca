"""Latency and energy of layers on sub-accelerators, remembered.

>>> from archgym.envs.accelerator.workload.layer import Layer
>>> costs = LayerCosts()
>>> layers = [Layer("conv", "conv", K=64, C=32, R=3, S=3, P=16, Q=16)]
>>> subs = [SubAccelerator("nvdla_ws", 256, 32), SubAccelerator("eyeriss_rs", 256, 32)]
>>> latency, energy = costs.table(layers, subs)
>>> latency.shape, bool((latency * 256 >= layers[0].macs).all()), costs.evaluated
((1, 2), True, 2)
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from archgym.envs.accelerator.cost.hardware import Hardware
from archgym.envs.accelerator.cost.model import MAPPERS, evaluate
from archgym.envs.accelerator.cost.technology import technology as technology_of
from archgym.envs.accelerator.workload.layer import COLUMNS, Layer, LayerTable
from archgym.envs.nas.hardware import maestro2019
from archgym.envs.nas.hardware.chip import DEFAULT_TECHNOLOGY, MODES, SubAccelerator, hardware
from archgym.errors import InvalidValueError, UnknownNameError

__all__ = ["MAX_PAIRS", "LayerCosts"]

MAX_PAIRS: Final = 2**21
"""Pairs of layer and sub-accelerator that are remembered by default: 32 MiB of figures."""

_Floats = npt.NDArray[np.float64]
_Row = tuple[int, ...]


class LayerCosts:
    """Latency and energy of each layer on each sub-accelerator; equal layers are computed once.

    The cache drops the least recently used sub-accelerators first; results do not depend on its
    content. On arrays whose sides are powers of two, as in the grid of mode ``own``, the mapper
    tries parts of such sizes only: no such array is slower than a smaller one, and the search
    takes less than half the time. Other parts would make a layer 0.4 % faster in the mean of
    random designs for digits_cells, and at most 26 %.

    Args:
        mode: ``own``: the accelerator model's figures, with the memory outside the chip; or
            ``paper``: MAESTRO's rules and its constants of 2019, under each template's published
            mapping, with unlimited buffers and no memory.
        technology: of mode ``own``.
        mapper: of mode ``own``: what the compiler of a sub-accelerator minimises for each layer,
            one of the accelerator model's ``MAPPERS``.
        max_pairs: pairs of layer and sub-accelerator that are remembered.

    Raises:
        UnknownNameError, InvalidValueError: for arguments that are not possible.
    """

    def __init__(
        self,
        mode: str = "own",
        *,
        technology: str = DEFAULT_TECHNOLOGY,
        mapper: str = "latency",
        max_pairs: int = MAX_PAIRS,
    ) -> None:
        if mode not in MODES:
            raise UnknownNameError("mode", mode, MODES)
        if mapper not in MAPPERS:
            raise UnknownNameError("mapper", mapper, MAPPERS)
        if max_pairs < 1:
            raise InvalidValueError(f"max_pairs is {max_pairs!r}; it must be at least 1")
        if technology == "maestro28":
            raise InvalidValueError(
                "technology is 'maestro28', which knows no memory; use mode 'paper'"
            )
        technology_of(technology)
        self.mode = mode
        self.technology = technology
        self.mapper = mapper if mode == "own" else "off"
        self.max_pairs = max_pairs
        self.evaluated = 0
        """Pairs of layer and sub-accelerator that were simulated so far."""
        self._columns: dict[_Row, int] = {}
        # Of each sub-accelerator the latencies and energies of all layers by column, shape
        # (2, columns or fewer), NaN for what is not known.
        self._known: OrderedDict[SubAccelerator, _Floats] = OrderedDict()
        self._held = 0
        unit = technology_of("maestro28").multiply_pj
        self._nj = 1e-3 if mode == "own" else maestro2019.ENERGY_UNIT_NJ / unit

    def table(
        self, layers: Sequence[Layer], subs: Sequence[SubAccelerator]
    ) -> tuple[_Floats, _Floats]:
        """Return latencies in cycles and energies in nJ, each of shape (layers, subs).

        Both are infinite where no mapping of the layer fits the sub-accelerator.
        """
        return self.tables([(layers, subs)])[0]

    def tables(
        self, wanted: Sequence[tuple[Sequence[Layer], Sequence[SubAccelerator]]]
    ) -> list[tuple[_Floats, _Floats]]:
        """Return `table` of each (layers, sub-accelerators); what is missing is simulated at once.

        Sub-accelerators that miss the same layers go through the accelerator model in one call.
        """
        if len(self._columns) * 2 > self.max_pairs:  # more shapes than there is room for
            self._columns.clear()
            self._known.clear()
            self._held = 0
        columns = [self._columns_of(layers) for layers, _ in wanted]
        self._fill(zip(columns, (subs for _, subs in wanted), strict=True))
        found = []
        for chosen, (_, subs) in zip(columns, wanted, strict=True):
            both = np.empty((2, len(chosen), len(subs)))
            for j, sub in enumerate(subs):
                both[:, :, j] = self._known[sub][:, chosen]
            found.append((both[0], both[1]))
        self._forget()
        return found

    def _columns_of(self, layers: Sequence[Layer]) -> npt.NDArray[np.int64]:
        known = self._columns
        return np.array([known.setdefault(layer.row, len(known)) for layer in layers], np.int64)

    def _fill(
        self, wanted: Iterable[tuple[npt.NDArray[np.int64], Sequence[SubAccelerator]]]
    ) -> None:
        """Simulates what is asked for and not known."""
        missing: dict[SubAccelerator, set[int]] = {}
        for chosen, subs in wanted:
            for sub in subs:
                known = self._row_of(sub)
                unknown = chosen[np.isnan(known[0, chosen])]
                if len(unknown):
                    missing.setdefault(sub, set()).update(unknown.tolist())
        if not missing:
            return
        alike: dict[tuple[int, ...], list[SubAccelerator]] = {}
        for sub, columns in missing.items():
            alike.setdefault(tuple(sorted(columns)), []).append(sub)
        rows = list(self._columns)
        for those, subs in alike.items():
            self._simulate(list(those), [rows[column] for column in those], subs)

    def _row_of(self, sub: SubAccelerator) -> _Floats:
        """What is known of a sub-accelerator, with room for all layers."""
        known = self._known.get(sub)
        size = len(self._columns)
        if known is None or known.shape[1] < size:
            room = np.full((2, max(64, size + size // 4)), np.nan)
            if known is not None:
                room[:, : known.shape[1]] = known
                self._held -= known.shape[1]
            self._held += room.shape[1]
            self._known[sub] = known = room
        self._known.move_to_end(sub)
        return known

    def _simulate(
        self, columns: list[int], rows: list[_Row], subs: Sequence[SubAccelerator]
    ) -> None:
        names = tuple(f"layer {column}" for column in columns)
        bounds = np.array(rows, dtype=np.int64).reshape(-1, len(COLUMNS))
        table = LayerTable(names, bounds, np.ones(len(rows), np.int64))
        designs = [hardware(sub, self.mode, self.technology) for sub in subs]
        for thirds in (False, True):
            chosen = [i for i, design in enumerate(designs) if _has_thirds(design) == thirds]
            if not chosen:
                continue
            costs = evaluate(table, [designs[i] for i in chosen], mapper=self.mapper, thirds=thirds)
            latency = np.where(costs.mapped, costs["cycles"], np.inf)
            energy = np.where(costs.mapped, costs["energy_pj"] * self._nj, np.inf)
            for row, i in enumerate(chosen):
                known = self._known[subs[i]]
                known[0, columns] = latency[row]
                known[1, columns] = energy[row]
        self.evaluated += len(columns) * len(subs)

    def _forget(self) -> None:
        """Drops the sub-accelerators that were not asked for the longest."""
        while self._held > self.max_pairs:
            _, dropped = self._known.popitem(last=False)
            self._held -= dropped.shape[1]


def _has_thirds(design: Hardware) -> bool:
    """Whether parts of the array of three times a power of two are tried."""
    return any(side & (side - 1) for side in (design.rows, design.columns))
