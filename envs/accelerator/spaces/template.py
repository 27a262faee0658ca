"""The ``template`` space: dataflow, array, memories, links and number format of an accelerator."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from archgym.envs.accelerator.cost.energy import PORT_BYTES
from archgym.envs.accelerator.cost.hardware import DATAFLOWS, SYSTOLIC_DATAFLOWS, Hardware
from archgym.envs.accelerator.cost.technology import TECHNOLOGIES
from archgym.errors import InvalidValueError, UnknownNameError
from archgym.space import Boolean, Categorical, DesignSpace, Expression, Ordinal, Rule, param

__all__ = ["BASELINE", "baseline", "hardware", "template_space"]

BASELINE: Final[dict[str, Any]] = {
    "dataflow": "nvdla_ws",
    "rows": 16,
    "columns": 16,
    "input_rf_bytes": 16,
    "weight_rf_bytes": 64,
    "output_rf_bytes": 32,
    "buffer_kib": 256,
    "banks": 16,
    "noc_bytes_per_cycle": 64,
    "dram_bytes_per_cycle": 16,
    "word_bits": 8,
    "double_buffered": True,
    "technology": "cmos28",
}
"""A small NVDLA-like accelerator."""

MAX_PES: Final = 16384
"""Largest array: 128 x 128, that of the second TPU."""

_NO_FILES = (*SYSTOLIC_DATAFLOWS, "nlr_cp")
_FLOWS = tuple(name for name in DATAFLOWS if name != "custom")
_SIDES: Final = (4, 6, 8, 12, 14, 16, 24, 32, 48, 64, 96, 128)
_BUFFERS_KIB: Final = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)


def template_space(
    budget: Mapping[str, float] | None = None, fixed: Mapping[str, Any] | None = None
) -> DesignSpace:
    """Return the space; it holds the technology, which a problem gives, at the baseline's.

    Args:
        budget: most ``pes``, and most ``memory_kib`` (the buffer with each kind of register file).
        fixed: fields of `Hardware` that hold whatever a design says; the rules go by them.

    Raises:
        UnknownNameError, InvalidValueError: for a budget that is not possible, or fixed fields
            that no design is legal with.
    """
    budget = budget or {}
    for key, value in budget.items():
        if key not in ("pes", "memory_kib"):
            raise UnknownNameError("key of the budget", key, ["pes", "memory_kib"])
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            raise InvalidValueError(f"budget: {key} is {value!r}; it must be a number above 0")
    files = ~param("dataflow").isin(_NO_FILES)
    per_pe = [
        Ordinal(
            "input_rf_bytes",
            [0, 4, 8, 16, 32, 64, 128],
            doc="inputs that a PE holds",
            unit="B",
            when=files & (param("dataflow") != "shidiannao_os"),
            group="registers",
        ),
        Ordinal(
            "weight_rf_bytes",
            [2, 8, 16, 32, 64, 128, 256, 512, 1024],
            doc="weights that a PE holds",
            unit="B",
            when=files & (param("dataflow") != "shidiannao_os"),
            group="registers",
        ),
        Ordinal(
            "output_rf_bytes",
            [4, 8, 16, 32, 64, 128, 256],
            doc="partial sums that a PE holds",
            unit="B",
            when=files,
            group="registers",
        ),
    ]
    rules = _rules(budget, fixed or {}, [file.name for file in per_pe])
    return DesignSpace(
        [
            Categorical(
                "dataflow",
                _FLOWS,
                doc="what stays in place and what the rows and columns compute side by side",
                group="array",
            ),
            Ordinal("rows", _SIDES, doc="rows of processing elements", unit="PEs", group="array"),
            Ordinal(
                "columns", _SIDES, doc="columns of processing elements", unit="PEs", group="array"
            ),
            *per_pe,
            Ordinal(
                "buffer_kib",
                _BUFFERS_KIB,
                doc="global buffer",
                unit="KiB",
                group="buffer",
            ),
            Ordinal("banks", [4, 8, 16, 32, 64], doc="banks of the buffer", group="buffer"),
            Ordinal(
                "noc_bytes_per_cycle",
                [8, 16, 32, 64, 128, 256, 512],
                doc="between buffer and array, each way",
                unit="B/cycle",
                group="links",
            ),
            Ordinal(
                "dram_bytes_per_cycle",
                [2, 4, 8, 16, 32, 64, 128],
                doc="between memory and chip",
                unit="B/cycle",
                group="links",
            ),
            Ordinal("word_bits", [8, 16], doc="inputs and weights", unit="bits", group="format"),
            Boolean(
                "double_buffered",
                doc="transfers overlap computation, and buffers hold half",
                group="buffer",
            ),
            Categorical(
                "technology",
                [name for name in TECHNOLOGIES if name != "maestro28"],
                doc="process of the chip",
                group="format",
            ),
        ],
        rules,
        fixed={"technology": BASELINE["technology"]},
    )


def _rules(
    budget: Mapping[str, float], fixed: Mapping[str, Any], files: Sequence[str]
) -> list[Rule]:
    def value(name: str) -> Any:
        return fixed.get(name, param(name))

    pes = value("rows") * value("columns")
    buffer_kib = fixed["buffer_bytes"] / 1024 if "buffer_bytes" in fixed else param("buffer_kib")
    laws: list[tuple[str, Any, str]] = [
        (
            "pes_in_budget",
            pes <= min(MAX_PES, budget.get("pes", MAX_PES)),
            "rows x columns within the budget of processing elements",
        ),
        (
            "ports_feed_the_array",
            value("noc_bytes_per_cycle") <= value("banks") * PORT_BYTES,
            f"each bank delivers {PORT_BYTES} bytes a cycle",
        ),
        (
            "banks_are_not_slivers",
            buffer_kib * 1024 >= value("banks") * 512,
            "a bank has at least 512 bytes",
        ),
    ]
    if "memory_kib" in budget:
        maximum = budget["memory_kib"]
        laws.append(
            (
                "buffer_in_budget",
                buffer_kib <= maximum,
                "the buffer alone within the budget of memory",
            )
        )
        laws.extend(
            (
                f"{name}_in_budget",
                buffer_kib + pes * value(name) / 1024 <= maximum,
                f"the buffer and all {name.split('_')[0]} register files within it",
            )
            for name in files
        )
    rules = []
    for name, law, doc in laws:
        if isinstance(law, Expression):
            rules.append(Rule(name, law, doc=doc))
        elif not law:  # nothing of it is searched
            raise InvalidValueError(f"hardware: rule {name!r} is broken by every design: {doc}")
    return rules


def baseline(budget: Mapping[str, float] | None = None) -> dict[str, Any]:
    """Return `BASELINE`, or what of it is within the budget.

    The longer side of the array, then the buffer, go down until it is; a budget of memory that
    no register file is within has a systolic array.

    Raises:
        InvalidValueError: for a budget that no design is within.
    """
    budget = budget or {}
    design = dict(BASELINE)
    pes, memory = budget.get("pes", math.inf), budget.get("memory_kib", math.inf)
    if pes < _SIDES[0] ** 2:
        raise InvalidValueError(f"budget: pes is {pes}; the smallest array has {_SIDES[0] ** 2}")
    if memory < _BUFFERS_KIB[0]:
        raise InvalidValueError(
            f"budget: memory_kib is {memory}; the smallest buffer has {_BUFFERS_KIB[0]}"
        )
    while design["rows"] * design["columns"] > pes:
        side = "rows" if design["rows"] > design["columns"] else "columns"
        design[side] = _SIDES[_SIDES.index(design[side]) - 1]
    files_bytes = max(design[f"{name}_rf_bytes"] for name in ("input", "weight", "output"))
    files_kib = files_bytes * design["rows"] * design["columns"] / 1024
    if _BUFFERS_KIB[0] + files_kib > memory:
        design["dataflow"], files_kib = "systolic_ws", 0.0
    fitting = [size for size in _BUFFERS_KIB if size + files_kib <= memory]
    design["buffer_kib"] = min(design["buffer_kib"], fitting[-1])
    return design


def hardware(design: Mapping[str, Any], **fixed: Any) -> Hardware:
    """Return the hardware of a design of this space.

    Args:
        design: canonical.
        fixed: fields of `Hardware` that are not searched.
    """
    word = design["word_bits"]
    return Hardware(
        **{
            "dataflow": design["dataflow"],
            "rows": design["rows"],
            "columns": design["columns"],
            "input_rf_bytes": design.get("input_rf_bytes", 0),
            "weight_rf_bytes": design.get("weight_rf_bytes", 0),
            "output_rf_bytes": design.get("output_rf_bytes", 0),
            "buffer_bytes": 1024 * design["buffer_kib"],
            "banks": design["banks"],
            "noc_bytes_per_cycle": float(design["noc_bytes_per_cycle"]),
            "dram_bytes_per_cycle": float(design["dram_bytes_per_cycle"]),
            "word_bits": word,
            "accumulator_bits": 2 * word + 8,
            "double_buffered": design["double_buffered"],
            "technology": design["technology"],
            **fixed,
        }
    )
