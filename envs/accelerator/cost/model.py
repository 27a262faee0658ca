"""The embedded cost model: designs x layers in, time, energy and traffic out.

>>> from archgym.envs.accelerator.cost.hardware import Hardware
>>> from archgym.envs.accelerator.workload.layer import Layer, Network
>>> layer = Layer("conv", "conv", K=64, C=64, R=3, S=3, P=56, Q=56)
>>> costs = evaluate(Network("one", (layer,), (1,)).table, [Hardware("nvdla_ws", 16, 16)])
>>> int(costs["macs"][0, 0]) == layer.macs, float(costs["compute_cycles"][0, 0])
(True, 451584.0)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from archgym.envs.accelerator.cost.energy import (
    PORT_BYTES,
    accesses,
    area,
    clock_mhz,
    maestro_power_mw,
)
from archgym.envs.accelerator.cost.hardware import Hardware
from archgym.envs.accelerator.cost.mapping import Mapping, loops_of
from archgym.envs.accelerator.kernel.vectors import (
    CODES,
    FOUND,
    HARDWARE,
    OBJECTIVES,
)
from archgym.envs.accelerator.workload.layer import LayerTable
from archgym.errors import InvalidValueError, UnknownNameError
from archgym.simulators.external import available_cores

__all__ = ["MAPPERS", "Costs", "evaluate", "evaluate_mappings"]

MAPPERS: Final = ("latency", "energy", "edp", "off")
"""What the mapper minimises for each layer; ``off`` is the dataflow's published mapping."""

_COLUMN = {name: i for i, name in enumerate(FOUND)}
_FIELD = {name: i for i, name in enumerate(HARDWARE)}
_LINKS = {"shared": 0.0, "separate": 1.0, "duplex": 2.0}
_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Costs:
    """Costs of designs, layer by layer.

    Attributes:
        table: the layers.
        hardware: the designs.
        found: shape (designs, layers, columns), columns as ``kernel.vectors.FOUND``; one occurrence
            of each layer.
        mapped: whether a layer has any mapping that fits, shape (designs, layers).
    """

    table: LayerTable
    hardware: tuple[Hardware, ...]
    found: _Floats
    mapped: npt.NDArray[np.bool_]

    def __getitem__(self, column: str) -> _Floats:
        """One column of ``found``, shape (designs, layers).

        Raises:
            UnknownNameError: if there is none of that name.
        """
        if column not in _COLUMN:
            raise UnknownNameError("column", column, FOUND)
        return self.found[:, :, _COLUMN[column]]

    def total(self, column: str) -> _Floats:
        """Sum of a column over the network, shape (designs,)."""
        # One after the other: the sum of a design is the same in every batch.
        return np.asarray(np.cumsum(self[column] * self.table.counts, axis=1)[:, -1])

    def metrics(self) -> dict[str, _Floats]:
        """The environment's metrics, each of shape (designs,); NaN where a layer has no mapping."""
        missing = ~self.mapped.all(axis=1)
        cycles = np.where(missing, np.nan, self.total("cycles"))
        energy = self.total("energy_pj")
        clock = np.array([clock_mhz(h) for h in self.hardware])
        latency = cycles * 1000 / clock
        peak = np.array([h.macs_per_cycle for h in self.hardware])
        power = energy / latency
        for i, h in enumerate(self.hardware):
            if h.technology == "maestro28":
                power[i] = maestro_power_mw(h)
        values = {
            "latency_cycles": cycles,
            "latency_ns": latency,
            "energy_pj": energy,
            "area_um2": np.array([area(h).total_um2 for h in self.hardware]),
            "power_mw": power,
            "utilisation_rate": self.total("macs") / (cycles * peak),
            "dram_bytes": self.total("dram_bytes"),
            "edp_js": energy * latency * 1e-21,
        }
        for column in values.values():
            column[missing] = np.nan
        return values

    def unmapped(self, design: int) -> list[str]:
        """Names of the layers that a design cannot hold."""
        return [
            name
            for name, mapped in zip(self.table.names, self.mapped[design], strict=True)
            if not mapped
        ]

    def layer(self, design: int, layer: int) -> dict[str, float]:
        """All that is known of one occurrence of a layer on a design, by column."""
        return dict(zip(FOUND, self.found[design, layer].tolist(), strict=True))


def evaluate(
    table: LayerTable,
    hardware: Sequence[Hardware],
    *,
    mapper: str = "latency",
    thirds: bool = True,
) -> Costs:
    """Return what each layer costs on each design.

    What the mapper finds on an array it finds on every larger one; without ``thirds`` on every
    larger one whose sides are powers of two.

    Args:
        table: the layers, n of them.
        hardware: the designs.
        mapper: one of `MAPPERS`, or ``"exhaustive"`` (latency, all candidates; slow, for tests).
        thirds: whether the mapper tries layers on parts of the array's sides that are three times
            a power of two, beside those that are powers of two; it takes about twice as long.

    Raises:
        UnknownNameError: for a mapper that does not exist.
        InvalidValueError: for a design whose dataflow is ``custom``: it needs a mapping.
    """
    from archgym.envs.accelerator.kernel.evaluate import (  # compiles
        evaluate_designs,
        search_exhaustively,
    )

    if mapper not in MAPPERS and mapper != "exhaustive":
        raise UnknownNameError("mapper", mapper, MAPPERS)
    for design in hardware:
        if design.dataflow == "custom":
            raise InvalidValueError(
                "dataflow is 'custom': such a design needs a mapping (evaluate_mappings)"
            )
    # The exhaustive search starts from the results of the published mappings.
    searched = mapper in OBJECTIVES
    objective = OBJECTIVES.get(mapper, OBJECTIVES["latency"])
    vectors = np.array([_vector(h, thirds) for h in hardware]).reshape(-1, len(HARDWARE))
    found = np.zeros((len(hardware), len(table), len(FOUND)))
    mapped = np.zeros((len(hardware), len(table)), dtype=np.bool_)

    def part(chosen: slice) -> None:
        evaluate_designs(
            table.bounds, vectors[chosen], searched, objective, found[chosen], mapped[chosen]
        )
        if mapper == "exhaustive":
            search_exhaustively(
                table.bounds, vectors[chosen], objective, found[chosen], mapped[chosen]
            )

    _compile_first(part, evaluate_designs)
    _on_all_cores(part, len(hardware))
    return Costs(table, tuple(hardware), found, mapped)


def evaluate_mappings(
    table: LayerTable, hardware: Sequence[Hardware], mappings: Sequence[Mapping]
) -> Costs:
    """Return what each layer costs on each design under the design's own mapping.

    Args:
        table: the layers.
        hardware: the designs.
        mappings: one for each design; tiles larger than a layer are cut to it.
    """
    from archgym.envs.accelerator.kernel.evaluate import evaluate_mappings as run  # compiles

    vectors = np.array([_vector(h) for h in hardware]).reshape(-1, len(HARDWARE))
    found = np.zeros((len(hardware), len(table), len(FOUND)))
    mapped = np.zeros((len(hardware), len(table)), dtype=np.bool_)
    outer, inner, parts = loops_of(mappings)

    def part(chosen: slice) -> None:
        run(
            table.bounds,
            vectors[chosen],
            outer[chosen],
            inner[chosen],
            parts[chosen],
            found[chosen],
            mapped[chosen],
        )

    _compile_first(part, run)
    _on_all_cores(part, len(hardware))
    return Costs(table, tuple(hardware), found, mapped)


def _vector(hardware: Hardware, thirds: bool = True) -> list[float]:
    """A design as the kernel reads it (``kernel.vectors.HARDWARE``)."""
    each = accesses(hardware)
    halves = hardware.double_buffered and hardware.keeps_halves and not hardware.ordered
    half = 0.5 if halves else 1.0
    split = hardware.buffer_split_bytes
    parts = (-1.0, -1.0, -1.0) if split is None else tuple(half * size for size in split)
    word, part = hardware.word_bytes, hardware.accumulator_bytes
    values: dict[str, Any] = {
        "dataflow": CODES.get(hardware.dataflow, -1),
        "rows": hardware.rows,
        "columns": hardware.columns,
        "lanes": hardware.lanes,
        "input_rf_words": hardware.input_rf_bytes // word,
        "weight_rf_words": hardware.weight_rf_bytes // word,
        "output_rf_words": hardware.output_rf_bytes // part,
        "buffer_bytes": half * hardware.buffer_bytes,
        "input_part_bytes": parts[0],
        "weight_part_bytes": parts[1],
        "output_part_bytes": parts[2],
        "noc_bytes": hardware.noc_bytes_per_cycle,
        "port_bytes": hardware.banks * PORT_BYTES,
        "dram_bytes": hardware.dram_bytes_per_cycle,
        "dram_links": _LINKS[hardware.dram_links],
        "word_bytes": word,
        "sum_bytes": part,
        "double_buffered": hardware.double_buffered,
        "bypass": hardware.weights_bypass_buffer,
        "waits": hardware.waits_for_first_tile,
        "maestro": hardware.technology == "maestro28",
        "storage_order": hardware.prefetch == "storage_order",
        "divide": hardware.tiles == "divide" and hardware.dataflow == "eyeriss_rs",
        "victory": hardware.victory_condition,
        "orders": hardware.loop_factors if hardware.ordered else 0,
        "drains": hardware.drains,
        "thirds": thirds,
        "mac_pj": each.mac_pj,
        "input_rf_pj": each.input_rf_pj,
        "weight_rf_pj": each.weight_rf_pj,
        "output_rf_pj": each.output_rf_pj,
        "buffer_pj": each.buffer_pj,
        "noc_pj": each.noc_pj,
        "dram_pj": each.dram_pj,
    }
    return [float(values[name]) for name in HARDWARE]


def _compile_first(part: Callable[[slice], None], entry: Callable[..., None]) -> None:
    """Has no designs evaluated, which compiles the entry of the kernel that ``part`` calls."""
    if entry.stats.cache_hits or entry.stats.cache_misses:  # type: ignore[attr-defined]
        return
    part(slice(0, 0))


def _on_all_cores(part: Any, count: int) -> None:
    """Runs ``part`` on slices of ``count`` designs; what it gives does not depend on the cut."""
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    cores = available_cores()
    if wanted.isdigit() and int(wanted):
        cores = min(cores, int(wanted))
    threads = min(cores, count // 8)
    if threads <= 1:
        part(slice(0, count))
        return
    cuts = np.linspace(0, count, 4 * threads + 1).astype(int)
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(part, [slice(a, b) for a, b in pairwise(cuts)]))
