"""Measuring designs: synthesis, placement and routing of many circuits into a growing table.

``python -m archgym.envs.fpga.tabulate FILE --minutes N`` appends a line of JSON for each run, and
goes on behind the last one, or that of the shipped table. ``--pack TABLE`` adds the lines to a
Parquet table instead. ``--share 1/2`` and ``--share 2/2``, into two files, measure half of the
numbers each, for two processes side by side. The order of designs is fixed: the design with number
*n* is drawn with seed *n*. Those below 2,000 have at most 1,500 LUTs, and every fifth one is placed
with three seeds; those from there on are placed once, and every tenth number is for a circuit of
1,000 to 5,000 LUTs. From 10,000 on a number is a circuit for all devices of a family: it is
synthesised once, since synthesis does not depend on the device, and placed on each device that it
fits on, which makes as many designs; from 13,000 on these are small.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from archgym.envs.fpga.hardware.device import DEVICES, Device
from archgym.envs.fpga.hardware.folding import Choices
from archgym.envs.fpga.hardware.top import Built, built, foldings
from archgym.envs.fpga.measured import measured_rows
from archgym.envs.fpga.network.integer import QuantisedNetwork, quantised
from archgym.envs.fpga.network.named import WORKLOADS, named_network
from archgym.envs.fpga.place.nextpnr import overfull, placed, refusal, synthesised
from archgym.envs.fpga.space import design_space
from archgym.errors import InvalidValueError, SimulationError
from archgym.simulators.external import private_folder

__all__ = ["HELD_OUT_WORKLOADS", "Draw", "circuit_of", "drawn", "measured", "packable", "packed"]

HELD_OUT_WORKLOADS: Final = ("control", "dense_12x12", "filter_bank", "keywords")
"""Networks whose rows no model is fitted to."""
_SHARES: Final = {
    "ice40_hx8k": 0.33,
    "ice40_up5k": 0.2,
    "ecp5_25k": 0.4,
    "ecp5_45k": 0.04,
    "ecp5_85k": 0.03,
}
_MAX_LOGIC: Final = (250, 250, 500, 500, 500, 900, 1500)
"""Largest circuit, in a count of LUTs from its structure; one of these, by the number."""
_SECOND_PLAN: Final = 2000
"""Number from which on smaller circuits and much larger ones are drawn."""
_SECOND_LOGIC: Final = ((0, 150), (0, 250), (0, 400), (1000, 5000), *[(0, 200), (150, 600)] * 3)
"""Smallest and largest circuit of those; one of these, by the number."""
_THIRD_PLAN: Final = 10_000
"""Number from which on one is a circuit for all devices of a family."""
_THIRD_SHARES: Final = {"ecp5_25k": 0.6, "ice40_up5k": 0.4}
"""How often the circuit is one of the family of these devices, which have DSPs."""
_FAMILY_LOGIC: Final = {
    _THIRD_PLAN: {
        (0, 250): 0.25,
        (0, 400): 0.4,
        (0, 700): 0.27,
        (400, 1200): 0.05,
        (1200, 5000): 0.03,
    },
    13_000: {(0, 250): 0.45, (0, 400): 0.4, (0, 700): 0.15},
    13_500: {(0, 250): 0.6, (0, 400): 0.4},
}
"""From a number on: smallest and largest circuit of those, and how often these are asked for. A
large one holds a core for minutes, so that the later ones are small."""
_PRODUCTS_OF_LOGIC: Final = 1.5
"""Products times bits of an activation that a circuit may have for each LUT; no more are built."""
_TURN: Final = 10
"""Numbers in a row that one process measures; as many as there are sizes."""
_FFS_OF_LOGIC: Final = 2
"""Flip-flops that it may have for each of them."""
_SEEDS: Final = (1, 2, 3)
_TIME_LIMIT_S: Final = 1200.0


@dataclass(frozen=True)
class Draw:
    """What a number stands for.

    Attributes:
        workload: name of the network.
        designs: on it, which differ in the device only, as far as all devices have the parameters.
        seeds: of placement.
    """

    workload: str
    designs: Sequence[dict[str, Any]]
    seeds: Sequence[int]


def drawn(number: int) -> Draw | None:
    """What is measured under a number; None if the circuit's size is wrong or it fits no device."""
    shared = number >= _THIRD_PLAN
    shares = _THIRD_SHARES if shared else _SHARES
    random = np.random.default_rng(number)
    workload = str(random.choice(list(WORKLOADS)))
    device = str(random.choice(list(shares), p=list(shares.values())))
    (sampled,) = design_space().fix({"device": device}).sample(1, random)
    design = {"device": device, **dict(sampled)}
    least, largest = _sizes(number, random)
    if shared and _products(workload, design) > _PRODUCTS_OF_LOGIC * largest:
        return None
    made = circuit_of(workload, design)
    parts = made.circuit.parts
    if not least <= _logic(made) <= largest or parts["ff"] > _FFS_OF_LOGIC * largest:
        return None
    same = _on_all_devices(design) if shared else [design]
    designs = [one for one in same if not refusal(made, DEVICES[one["device"]])]
    seeds = _SEEDS if number % 5 == 0 and number < _SECOND_PLAN else _SEEDS[:1]
    return Draw(workload, designs, seeds) if designs else None


def _sizes(number: int, random: np.random.Generator) -> tuple[int, int]:
    """The smallest and the largest circuit that a number may be, in LUTs as :func:`_logic`."""
    if number < _SECOND_PLAN:
        return 0, _MAX_LOGIC[number % len(_MAX_LOGIC)]
    if number < _THIRD_PLAN:
        return _SECOND_LOGIC[number % len(_SECOND_LOGIC)]
    sizes = _FAMILY_LOGIC[max(first for first in _FAMILY_LOGIC if first <= number)]
    return list(sizes)[random.choice(len(sizes), p=list(sizes.values()))]


def _logic(made: Built) -> int:
    """The size of a circuit, in a count of LUTs from its structure."""
    names = (
        "adder_bits",
        "short_bits",
        "tiny_bits",
        "constant_bits",
        "and_bits",
        "mux_bits",
        "rom_luts",
        "rom_selects",
    )
    return sum(made.circuit.parts[name] for name in names)


def _products(workload: str, design: Mapping[str, Any]) -> int:
    """Products that are made in a cycle, times the bits of an activation."""
    choices = _choices(design)
    folded = foldings(_quantised(workload, choices), choices)
    return choices.activation_bits * sum(one.lanes * one.rows for one in folded)


def _on_all_devices(design: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The same design on each device of its family that can make its products the same way."""
    family = DEVICES[design["device"]].family
    found = []
    for name, device in DEVICES.items():
        one = {**design, "device": name}
        if not device.dsps and one.get("product") == "logic":
            del one["product"]  # such a device has no choice
        if device.family == family and _legal(one) == one:
            found.append(one)
    return found


def circuit_of(workload: str, design: dict[str, Any]) -> Built:
    """The circuit of a design on a network by name."""
    choices = _choices(design)
    return built(_quantised(workload, choices), choices)


def _choices(design: Mapping[str, Any]) -> Choices:
    return Choices.of(design, DEVICES[design["device"]].dsp_bits)


def _quantised(workload: str, choices: Choices) -> QuantisedNetwork:
    return quantised(named_network(workload), choices.weight_bits, choices.activation_bits)


def measured(draw: Draw) -> Iterator[dict[str, Any]]:
    """Rows of designs, one for each device and placement seed; they are synthesised once."""
    largest = max(draw.designs, key=lambda one: DEVICES[one["device"]].luts)
    made, choices = circuit_of(draw.workload, largest), _choices(largest)
    digest = hashlib.sha256(made.verilog.encode()).hexdigest()[:16]
    rows: list[dict[str, Any]] = [
        {"workload": draw.workload, "design": design, "verilog_sha256": digest}
        for design in draw.designs
    ]
    device = DEVICES[largest["device"]]
    with private_folder() as folder:
        start = time.perf_counter()
        try:
            net = synthesised(made, choices, device, folder, time_limit_s=_TIME_LIMIT_S)
        except (SimulationError, TimeoutError) as error:
            yield from (_failed(row, 0, str(error)) for row in rows)
            return
        counts = {
            "lut_count": net.luts,
            "ff_count": net.ffs,
            "dsp_count": net.dsps,
            "bram_count": net.block_rams,
            "cells": dict(net.cells),
            "synthesis_s": round(time.perf_counter() - start, 2),
        }
        for row in rows:
            device = DEVICES[row["design"]["device"]]
            if reason := overfull(net, device):
                yield _failed(row, 0, reason)
                continue
            for seed in draw.seeds:
                yield _placed_row({**row, **counts}, device, folder, seed)


def _placed_row(row: dict[str, Any], device: Device, folder: Path, seed: int) -> dict[str, Any]:
    start = time.perf_counter()
    try:
        found = placed(device, folder, seed, time_limit_s=_TIME_LIMIT_S)
    except (SimulationError, TimeoutError) as error:
        return _failed(row, seed, str(error))
    return {
        **row,
        "seed": seed,
        "status": "ok",
        "reason": "",
        "clock_mhz": round(found.clock_mhz, 3),
        "logic_share": round(found.logic_share, 5),
        "place_s": round(time.perf_counter() - start, 2),
    }


def _failed(row: dict[str, Any], seed: int, reason: str) -> dict[str, Any]:
    return {**row, "seed": seed, "status": "failed", "reason": reason[:300]}


def packed(lines: Path, table: Path) -> int:
    """Adds the rows of a file of lines to a Parquet table; how many it then has.

    Rows of designs that the present space does not have, and of circuits that the present
    generator makes otherwise, are left out.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns: list[dict[str, Any]] = []
    for row in _rows(lines):
        design = _legal(dict(row.pop("design")))
        if design is None:
            continue
        made = circuit_of(row["workload"], design)
        if hashlib.sha256(made.verilog.encode()).hexdigest()[:16] != row["verilog_sha256"]:
            continue
        columns.append({**design, **packable(row)})

    def key(row: dict[str, Any]) -> tuple[Any, ...]:
        return row["verilog_sha256"], row["device"], row["seed"]

    new = {key(row) for row in columns}
    before = pq.read_table(table).to_pylist() if table.exists() else []
    columns = [row for row in before if key(row) not in new] + columns
    names = list(dict.fromkeys(name for row in columns for name in row))
    data = {name: [row.get(name) for row in columns] for name in names}
    pq.write_table(pa.table(data), table, compression="zstd")
    return len(columns)


def packable(row: dict[str, Any]) -> dict[str, Any]:
    """A row with the number of its carry cells instead of those of all kinds."""
    cells = row.get("cells", {})
    rest = {name: value for name, value in row.items() if name != "cells"}
    return {**rest, "carry_count": cells.get("SB_CARRY", cells.get("CCU2C", 0))}


def _legal(design: dict[str, Any]) -> dict[str, Any] | None:
    """The design as the space has it; None if it has no such design."""
    try:
        (found,) = design_space().designs([design])
    except InvalidValueError:
        return None
    same = dict(found)
    dropped = set(design) - set(same)
    if "operand_register" in dropped and not design["operand_register"]:
        return None  # it was measured without the register that the space now has
    return same


def _rows(lines: Path) -> list[dict[str, Any]]:
    """The complete lines of a file; the last one may have been cut off."""
    found = []
    for line in lines.read_text("utf-8").splitlines():
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return found


def _share(text: str) -> tuple[int, int]:
    """Which part of the numbers, of how many."""
    share, _, shares = text.partition("/")
    if not (share.isdecimal() and shares.isdecimal() and 1 <= int(share) <= int(shares)):
        raise argparse.ArgumentTypeError(f"{text!r} is no share, such as 1/2 or 2/2")
    return int(share), int(shares)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lines", type=Path)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--pack", type=Path)
    parser.add_argument("--first", type=int, default=0, help="number to begin with, at least")
    parser.add_argument(
        "--share",
        type=_share,
        default=(1, 1),
        help="as 1/2: every second ten numbers, for processes side by side",
    )
    arguments = parser.parse_args()
    if arguments.pack:
        print(f"{packed(arguments.lines, arguments.pack)} rows")
        return
    share, shares = arguments.share
    end = time.monotonic() + 60.0 * arguments.minutes
    rows = _rows(arguments.lines) if arguments.lines.exists() else []
    rows += measured_rows()
    number = max(1 + max((row["number"] for row in rows), default=-1), arguments.first)
    with arguments.lines.open("a", encoding="utf-8") as file:
        while time.monotonic() < end:
            mine = number // _TURN % shares == share - 1
            found = drawn(number) if mine else None
            if found is not None:
                for row in measured(found):
                    file.write(json.dumps({"number": number, **row}) + "\n")
                    file.flush()
            number += 1


if __name__ == "__main__":
    main()
