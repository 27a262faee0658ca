"""The ``per_layer`` space: PEs and PE buffers of every layer, under a budget (ConfuciuX).

Each layer of the network has its own array, and all of them are on the chip; a design says
how many PEs each has and how large their buffers are (Kao, Jeong and Krishna, MICRO 2020). The
budget is a share of what the largest design takes, of area or of peak power, and a rule of the
space.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from archgym.envs.accelerator.cost.energy import accesses, area, clock_mhz
from archgym.envs.accelerator.cost.hardware import Hardware
from archgym.envs.accelerator.workload.layer import Network
from archgym.errors import InvalidValueError, UnknownNameError
from archgym.space import Categorical, DesignSpace, Expression, Ordinal, Rule, param

__all__ = ["DATAFLOW_NAMES", "baseline", "hardware", "per_layer_space"]

DATAFLOW_NAMES: Final = ("nvdla_ws", "shidiannao_os", "eyeriss_rs")
"""ConfuciuX's dla, shi and eye."""

PES: Final = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128)
UNITS: Final = tuple(range(1, 13))
UNIT_BYTES: Final = 32
"""One unit of a PE's buffer: 8 bytes for inputs, 16 for weights, 8 for partial sums."""

BUDGETS: Final = ("area", "power")
_DEFAULT_BUDGET: Final = {"of": "area", "share": 0.25}


def per_layer_space(
    network: Network,
    budget: Mapping[str, Any] | None = None,
    fixed: Mapping[str, Any] | None = None,
) -> DesignSpace:
    """Return the space for a network's distinct layers.

    Args:
        network: its layers, each with two parameters, numbered from 0.
        budget: ``of`` is ``area`` or ``power``, ``share`` the share of the largest design's that
            may be used, in (0, 1]; default a quarter of its area.
        fixed: fields of `Hardware` that are the same for all designs; the budget depends on them.

    Raises:
        UnknownNameError, InvalidValueError: for a budget that is not possible.
    """
    kind, share = _budget(budget)
    parameters: list[Any] = [
        Categorical("dataflow", DATAFLOW_NAMES, doc="of all arrays", group="dataflow")
    ]
    for i, layer in enumerate(network.layers):
        parameters += [
            Ordinal(
                f"pes_{i}",
                list(PES),
                doc=f"processing elements of layer {layer.name}",
                unit="PEs",
                group=f"layer_{i}",
            ),
            Ordinal(
                f"buffer_units_{i}",
                list(UNITS),
                doc=f"buffer of each, in units of {UNIT_BYTES} bytes",
                unit="units",
                group=f"layer_{i}",
            ),
        ]
    base, slope = _line(kind, fixed or {})
    used: Expression | None = None
    for i in range(len(network.layers)):
        one = param(f"pes_{i}") * (base + slope * param(f"buffer_units_{i}"))
        used = one if used is None else used + one
    assert used is not None  # a network has layers
    maximum = len(network.layers) * PES[-1] * (base + slope * UNITS[-1])
    rule = Rule(
        f"{kind}_in_budget",
        used <= share * maximum,
        doc=f"PEs and their buffers take at most {share:.0%} of the largest design's {kind}",
    )
    return DesignSpace(parameters, [rule])


def baseline(
    network: Network,
    budget: Mapping[str, Any] | None = None,
    fixed: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the same PEs for every layer, as many as the budget allows with 4 units each."""
    kind, share = _budget(budget)
    base, slope = _line(kind, fixed or {})
    allowed = share * PES[-1] * (base + slope * UNITS[-1])
    units = 4
    fitting = [pes for pes in PES if pes * (base + slope * units) <= allowed]
    if not fitting:
        units = 1
        fitting = [pes for pes in PES if pes * (base + slope * units) <= allowed]
    if not fitting:
        raise InvalidValueError(
            f"budget: share {share} is less than one PE with one unit a layer takes"
        )
    design: dict[str, Any] = {"dataflow": "nvdla_ws"}
    for i in range(len(network.layers)):
        design[f"pes_{i}"] = fitting[-1]
        design[f"buffer_units_{i}"] = units
    return design


def hardware(design: Mapping[str, Any], layer: int, **fixed: Any) -> Hardware:
    """Return the array of one layer of a design."""
    pes = int(design[f"pes_{layer}"])
    return _array(design["dataflow"], pes, int(design[f"buffer_units_{layer}"]), **fixed)


def _array(dataflow: str, pes: int, units: int, **fixed: Any) -> Hardware:
    """An array as square as its PEs allow."""
    rows = max(d for d in range(1, math.isqrt(pes) + 1) if pes % d == 0)
    return Hardware(
        **{
            "dataflow": dataflow,
            "rows": rows,
            "columns": pes // rows,
            "input_rf_bytes": UNIT_BYTES // 4 * units,
            "weight_rf_bytes": UNIT_BYTES // 2 * units,
            "output_rf_bytes": UNIT_BYTES // 4 * units,
            "buffer_bytes": 65536,
            "banks": 8,
            "noc_bytes_per_cycle": 64.0,
            "dram_bytes_per_cycle": 16.0,
            "technology": "cmos28",
            **fixed,
        }
    )


def _line(kind: str, fixed: Mapping[str, Any]) -> tuple[float, float]:
    """What a PE takes: a constant, and a part for each unit.

    Both models are straight lines for register files; for SRAM the energy is the line through the
    smallest and the largest buffer.
    """
    small, large = (_taken(kind, units, fixed) for units in (UNITS[0], UNITS[-1]))
    slope = (large - small) / (UNITS[-1] - UNITS[0])
    return small - UNITS[0] * slope, slope


def _taken(kind: str, units: int, fixed: Mapping[str, Any]) -> float:
    array = _array("nvdla_ws", 1, units, **fixed)
    if kind == "area":
        parts = area(array)
        return parts.macs_um2 + parts.register_files_um2
    each = accesses(array)
    work = each.mac_pj + each.input_rf_pj + each.weight_rf_pj + 2 * each.output_rf_pj
    return array.lanes * work * clock_mhz(array) / 1000


def _budget(budget: Mapping[str, Any] | None) -> tuple[str, float]:
    chosen = {**_DEFAULT_BUDGET, **(budget or {})}
    for key in chosen:
        if key not in _DEFAULT_BUDGET:
            raise UnknownNameError("key of the budget", key, _DEFAULT_BUDGET)
    kind, share = chosen["of"], chosen["share"]
    if kind not in BUDGETS:
        raise UnknownNameError("budget", kind, BUDGETS)
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
        raise InvalidValueError(f"budget: share is {share!r}; it must be above 0 and at most 1")
    return str(kind), float(share)
