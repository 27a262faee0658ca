"""A circuit on samples in Icarus Verilog: its outputs, and the cycles in which it gives them.

The bench is Verilog: it sends samples at the intervals of the circuit's schedule and prints each
output with its cycle.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from archgym.envs.fpga.hardware.top import Built
from archgym.envs.fpga.network.integer import Integers, QuantisedNetwork
from archgym.errors import SimulationError
from archgym.simulators.external import find_program, private_folder, run_program

__all__ = ["Observed", "observed"]

_INSTALL = "Icarus Verilog is a package of most systems: apt install iverilog."
_RESET = 3
"""Cycles for which the bench resets the circuit."""
_PRINTED = re.compile(r"OUT +(\d+) +([0-9a-fx]+)")


@dataclass(frozen=True, eq=False)
class Observed:
    """What a circuit gave.

    Attributes:
        outputs: shape (samples, rows, columns, outputs).
        latency: cycles from the first position of a sample to its last output, both included,
            for each sample.
    """

    outputs: Integers
    latency: Integers


def observed(
    network: QuantisedNetwork, made: Built, inputs: Integers, *, time_limit_s: float = 300.0
) -> Observed:
    """Simulates a circuit.

    Args:
        network: in integers.
        made: its circuit.
        inputs: shape (samples, rows, columns, channels); samples follow each other as closely as
            the schedule allows.
        time_limit_s: for each of compiling and running, s.

    Raises:
        MissingDependencyError: if Icarus Verilog is not installed.
        SimulationError: if the circuit does not give as many outputs as expected.
        TimeoutError: if the simulation takes too long.
    """
    schedule = made.schedule
    rows, columns = network.layers[-1].layer.positions
    wanted = len(inputs) * rows * columns * schedule.outputs
    cycles = _RESET + (len(inputs) - 1) * schedule.sample_interval + schedule.latency + 4
    compiler = find_program("iverilog", "ARCHGYM_IVERILOG", _INSTALL)
    runner = find_program("vvp", "ARCHGYM_VVP", _INSTALL)
    with private_folder() as folder:
        (folder / "bench.v").write_text(made.verilog + _bench(network, made, inputs, cycles))
        compiled = [compiler, "-g2005", "-o", "bench", "bench.v"]
        run_program(compiled, folder, time_limit_s=time_limit_s)
        printed = run_program([runner, "-n", "bench"], folder, time_limit_s=time_limit_s).stdout
    return _read(printed, wanted, len(inputs), made, (rows, columns))


def _bench(network: QuantisedNetwork, made: Built, inputs: Integers, cycles: int) -> str:
    """Verilog that sends the samples and prints what comes."""
    schedule, first = made.schedule, network.layers[0]
    width = made.pins - made.output_bits - 4
    transfers = inputs.reshape(len(inputs), schedule.positions, -1)
    bits = width // transfers.shape[2]
    words = []
    for row in transfers.reshape(-1, transfers.shape[2]).tolist():
        word = sum((int(value) % (1 << bits)) << (i * bits) for i, value in enumerate(row))
        words.append(word)
    memory = "\n".join(f"  data[{i}] = {width}'d{word};" for i, word in enumerate(words))
    assert first.low < 0 or bits > 0
    return f"""module bench;
reg clk = 0;
always #1 clk = ~clk;
initial #{2 * cycles} $finish;
reg [31:0] cycle = 0;
reg [31:0] phase = 0;
reg [31:0] wait_left = 0;
reg [31:0] place = 0;
reg [{width - 1}:0] data [0:{len(words) - 1}];
initial begin
{memory}
end
wire running = cycle >= {_RESET} && place < {len(words)};
wire send = running && wait_left == 0;
wire last = phase == {schedule.positions - 1};
wire out_valid;
wire [{made.output_bits - 1}:0] out_data;
top dut(.clk(clk), .rst(cycle < {_RESET}), .in_valid(send), .in_data(data[place]),
  .out_valid(out_valid), .out_data(out_data));
always @(posedge clk) begin
  cycle <= cycle + 1;
  if (send) begin
    place <= place + 1;
    phase <= last ? 0 : phase + 1;
    wait_left <= last ? {_last_wait(made)} : {schedule.position_interval - 1};
  end else if (wait_left != 0) wait_left <= wait_left - 1;
  if (cycle > 3 && out_valid) $display("OUT %d %h", cycle, out_data);
end
endmodule
"""


def _last_wait(made: Built) -> int:
    schedule = made.schedule
    return schedule.sample_interval - (schedule.positions - 1) * schedule.position_interval - 1


def _read(
    log: str, wanted: int, samples: int, made: Built, positions: tuple[int, int]
) -> Observed:
    found = _PRINTED.findall(log)
    if len(found) != wanted or any("x" in word for _, word in found):
        raise SimulationError(f"the circuit gave {len(found)} outputs rather than {wanted}")
    cycles = np.array([int(cycle) for cycle, _ in found]).reshape(samples, -1)
    sign = 1 << (made.output_bits - 1)
    words = [int(word, 16) for _, word in found]
    values = np.array([word - 2 * (word & sign) for word in words], dtype=np.int64)
    starts = _RESET + np.arange(samples) * made.schedule.sample_interval
    shape = (samples, *positions, made.schedule.outputs)
    return Observed(values.reshape(shape), cycles[:, -1] - starts + 1)
