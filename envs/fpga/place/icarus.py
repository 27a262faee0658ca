"""A circuit on samples in Icarus Verilog.

The bench is Verilog: it sends the samples at the cycles of the circuit's schedule and prints each
output with its cycle.
"""

from __future__ import annotations

import re

from archgym.envs.fpga.hardware.top import Built
from archgym.envs.fpga.network.integer import Integers, QuantisedNetwork
from archgym.envs.fpga.place.observed import (
    RESET,
    Observed,
    input_words,
    last_cycle,
    observed_of,
    sent_at,
)
from archgym.simulators.external import find_program, private_folder, run_program

__all__ = ["icarus_run"]

_INSTALL = "Icarus Verilog is a package of most systems: apt install iverilog."
_PRINTED = re.compile(r"OUT +(\d+) +([0-9a-f]+)\b")


def icarus_run(
    network: QuantisedNetwork, made: Built, inputs: Integers, *, time_limit_s: float = 300.0
) -> Observed:
    """Simulates a circuit from its Verilog.

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
    compiler = find_program("iverilog", "ARCHGYM_IVERILOG", _INSTALL)
    runner = find_program("vvp", "ARCHGYM_VVP", _INSTALL)
    with private_folder() as folder:
        (folder / "bench.v").write_text(made.verilog + _bench(made, inputs), "utf-8")
        compiled = [str(compiler), "-g2005", "-o", "bench", "bench.v"]
        run_program(compiled, folder, time_limit_s=time_limit_s)
        printed = run_program([runner, "-n", "bench"], folder, time_limit_s=time_limit_s).stdout
    given = [(int(cycle), int(word, 16)) for cycle, word in _PRINTED.findall(printed)]
    return observed_of(network, made, given, len(inputs))


def _bench(made: Built, inputs: Integers) -> str:
    """Verilog that sends the samples and prints what comes."""
    words, width = input_words(made, inputs)
    cycles = sent_at(made.schedule, len(inputs))
    sent = "\n".join(
        f"    {cycle}: begin in_valid = 1; in_data = {width}'h{word:x}; end"
        for cycle, word in zip(cycles, words, strict=True)
    )
    end = last_cycle(made.schedule, len(inputs))
    return f"""
module bench;
reg clk = 0;
always #1 clk = ~clk;
reg [31:0] cycle = 0;
reg in_valid;
reg [{width - 1}:0] in_data;
always @* begin
  in_valid = 0; in_data = 0;
  case (cycle)
{sent}
    default: ;
  endcase
end
wire out_valid;
wire [{made.output_bits - 1}:0] out_data;
top dut(.clk(clk), .rst(cycle < {RESET}), .in_valid(in_valid), .in_data(in_data),
  .out_valid(out_valid), .out_data(out_data));
always @(posedge clk) begin
  if (cycle >= {RESET} && out_valid) $display("OUT %d %h", cycle, out_data);
  cycle <= cycle + 1;
  if (cycle == {end}) $finish;
end
endmodule
"""
