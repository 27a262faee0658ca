"""Switching with the delays of the gates, against Icarus Verilog on random circuits."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from archgym.envs.tpe.eda.gate_circuit import read_circuit
from archgym.envs.tpe.eda.gate_delays import gate_delays
from archgym.envs.tpe.eda.gate_simulation import WARM_UP, switching_of
from archgym.envs.tpe.eda.liberty_cells import cell_library

FUNCTIONS = {"NAND": "!(A B)", "NOR": "!(A + B)", "XOR": "A ^ B", "BUF": "A"}
VERILOG = {"NAND": "~({} & {})", "NOR": "~({} | {})", "XOR": "{} ^ {}", "BUF": "{}"}
GATES, FLOPS, INPUTS, CYCLES = 120, 8, 6, 40
SETTLED_PS = 10_000_000


@dataclass(frozen=True)
class Kind:
    """A cell with delays to a rising and a falling output, ps: each gate has its own, so that
    no two changes meet at one time, of which simulators make different things."""

    function: str
    rise: int
    fall: int

    @property
    def name(self) -> str:
        return f"{self.function}_{self.rise}_{self.fall}"

    @property
    def inputs(self) -> str:
        return "AB" if "B" in FUNCTIONS[self.function] else "A"


def kinds(rng: np.random.Generator) -> list[Kind]:
    # Exclusive ors pass every change on: without many of them random circuits fall silent.
    names = rng.choice(list(FUNCTIONS), size=GATES, p=[0.2, 0.2, 0.5, 0.1])
    delays = rng.integers(1000, 9999, size=(GATES, 2))
    return [Kind(str(n), int(r), int(f)) for n, (r, f) in zip(names, delays, strict=True)]


def arc(rise: int, fall: int, kind: str, of: str) -> str:
    return f"""timing () {{ related_pin : "{of}"; timing_type : {kind}; timing_sense : non_unate;
        cell_rise (scalar) {{ values ("{rise / 1e3}"); }}
        cell_fall (scalar) {{ values ("{fall / 1e3}"); }} }}"""


def library_text(cells: list[Kind], clock_to_q: tuple[int, int]) -> str:
    text = ""
    for cell in cells:
        arcs = " ".join(arc(cell.rise, cell.fall, "combinational", pin) for pin in cell.inputs)
        pins = " ".join(
            f"pin ({p}) {{ direction : input; capacitance : 0.01; }}" for p in cell.inputs
        )
        text += f"""cell ({cell.name}) {{ area : 1; {pins}
            pin (Y) {{ direction : output; function : "{FUNCTIONS[cell.function]}"; {arcs} }} }}
        """
    return f"""library (random) {{ delay_model : table_lookup; time_unit : "1ns";
      voltage_unit : "1V"; capacitive_load_unit (1, pf); nom_voltage : 1.0;
      {text}
      cell (DFF) {{ area : 4; ff (IQ, IQN) {{ clocked_on : "CK"; next_state : "D"; }}
        pin (D) {{ direction : input; capacitance : 0.01; timing () {{ related_pin : "CK";
          timing_type : setup_rising; rise_constraint (scalar) {{ values ("0.1"); }}
          fall_constraint (scalar) {{ values ("0.1"); }} }} }}
        pin (CK) {{ direction : input; clock : true; capacitance : 0.01; }}
        pin (Q) {{ direction : output; function : "IQ";
          {arc(*clock_to_q, "rising_edge", "CK")} }} }} }}"""


def random_netlist(rng: np.random.Generator, cells_of: list[Kind]) -> dict[str, Any]:
    """Gates that read earlier nets, and flip-flops that take over some of them; net 2 is clk."""
    inputs, flops, gates = INPUTS, FLOPS, GATES
    ports: dict[str, Any] = {"clk": {"direction": "input", "bits": [2]}}
    ports["x"] = {"direction": "input", "bits": list(range(3, 3 + inputs))}
    nets = list(range(3, 3 + inputs + flops))
    cells: dict[str, Any] = {}
    for i, kind in enumerate(cells_of):
        pins = kind.inputs
        # Late nets more often, so that circuits are deep.
        chosen = [nets[-1 - int(rng.integers(0, min(len(nets), 30)))] for _ in pins]
        nets.append(nets[-1] + 1)
        cells[f"g{i}"] = (kind.name, {**dict(zip(pins, chosen, strict=True)), "Y": nets[-1]})
    for i in range(flops):
        data = nets[-1 - int(rng.integers(0, gates))]
        cells[f"f{i}"] = ("DFF", {"CK": 2, "D": data, "Q": 3 + inputs + i})
    return {
        "ports": ports,
        "cells": {
            name: {"type": kind, "connections": {pin: [net] for pin, net in nets.items()}}
            for name, (kind, nets) in cells.items()
        },
    }


def counted_by_icarus(
    module: dict[str, Any], clock_to_q: tuple[int, int], words: list[int], at: int, folder: Path
) -> dict[int, int]:
    """Changes of each net after the first cycles, by an event-driven simulator."""
    nets, lines = [], []
    for cell in module["cells"].values():
        pins = {pin: bits[0] for pin, bits in cell["connections"].items()}
        if cell["type"] == "DFF":
            net, (rise, fall), text = pins["Q"], clock_to_q, f"s{pins['Q']}"
            lines.append(f"reg s{net} = 0; always @(posedge clk) s{net} <= n{pins['D']};")
        else:
            function, *delays = cell["type"].split("_")
            net, (rise, fall) = pins["Y"], map(int, delays)
            text = VERILOG[function].format(*(f"n{pins[pin]}" for pin in "AB" if pin in pins))
        lines.append(f"assign #({rise}, {fall}) n{net} = {text};")
        lines.append(f"integer c{net} = 0; always @(n{net}) if (counting) c{net} = c{net} + 1;")
        nets.append(net)
    inputs = module["ports"]["x"]["bits"]
    lines += [f"assign n{net} = x[{i}];" for i, net in enumerate(inputs)]
    wires = "".join(f"wire n{net};" for net in [*inputs, *nets])
    steps = "\n".join(
        f"clk = 1; counting = {int(t > WARM_UP)}; #{at} x = {word}; #{SETTLED_PS} clk = 0; #1;"
        for t, word in enumerate(words)
        if t  # registers are zero in the first cycle
    )
    shown = "\n".join(f'$display("%0d %0d", {net}, c{net});' for net in nets)
    body = "\n".join(lines)
    (folder / "bench.v").write_text(
        f"""`timescale 1ps/1ps
module bench;
reg clk = 0; reg counting = 0; reg [{len(inputs) - 1}:0] x = 0; {wires}
{body}
initial begin
x = {words[0]}; #{SETTLED_PS};
{steps}
{shown}
end
endmodule
"""
    )
    for command in (["iverilog", "-g2012", "-o", "bench", "bench.v"], ["vvp", "-n", "bench"]):
        done = subprocess.run(
            command, cwd=folder, check=True, timeout=60, capture_output=True, text=True
        )
    return {int(net): int(n) for net, n in re.findall(r"^(\d+) (\d+)$", done.stdout, re.MULTILINE)}


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="needs Icarus Verilog")
@pytest.mark.parametrize("seed", range(6))
def test_every_net_changes_as_often_as_in_an_event_driven_simulator(
    seed: int, tmp_path: Path
) -> None:
    rng = np.random.default_rng(seed)
    cells, clock_to_q = kinds(rng), (1107, 1873)
    module = random_netlist(rng, cells)
    words = [int(rng.integers(0, 1 << INPUTS)) for _ in range(CYCLES)]
    library = cell_library(library_text(cells, clock_to_q))
    circuit = read_circuit(json.dumps({"modules": {"top": module}}), "top", library)

    def drive(cycle: int) -> dict[str, list[int]]:
        return {"x": [words[cycle] >> bit & 1 for bit in range(INPUTS)]}

    at = gate_delays(circuit).inputs
    assert at == sum(clock_to_q) / 2
    expected = counted_by_icarus(module, clock_to_q, words, at, tmp_path)
    counted = CYCLES - 1 - WARM_UP
    found = switching_of(circuit, drive, streams=1, cycles=CYCLES, settling="gate_delays")
    assert {net: round(counted * found.get(net, 0.0)) for net in expected} == expected
    settled = switching_of(circuit, drive, streams=1, cycles=CYCLES, settling="at_once")
    assert sum(found.values()) > 1.2 * sum(settled.values())


def test_streams_do_not_touch_each_other() -> None:
    rng = np.random.default_rng(9)
    cells = kinds(rng)
    library = cell_library(library_text(cells, (1107, 1873)))
    text = json.dumps({"modules": {"top": random_netlist(rng, cells)}})
    circuit = read_circuit(text, "top", library)
    bits = rng.integers(0, 2, size=(CYCLES, INPUTS, 5))

    def switching(streams: list[int]) -> dict[int, float]:
        def drive(cycle: int) -> dict[str, list[int]]:
            return {"x": [sum(int(b[s]) << i for i, s in enumerate(streams)) for b in bits[cycle]]}

        return switching_of(
            circuit, drive, streams=len(streams), cycles=CYCLES, settling="gate_delays"
        )

    together, alone = switching([0, 1, 2, 3, 4]), [switching([s]) for s in range(5)]
    for net, changes in together.items():
        assert changes == pytest.approx(np.mean([one.get(net, 0.0) for one in alone])), net
