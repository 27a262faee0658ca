"""Runs generated Verilog on integers with Icarus Verilog and computes the expected outputs."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from archgym.envs.tpe.eda.verilog import Verilog
from archgym.envs.tpe.microarchitecture import datapath
from archgym.envs.tpe.microarchitecture.encodings import digits, operand_range
from archgym.envs.tpe.microarchitecture.pe import PE

Ints = NDArray[np.int64]


def run_cycles(
    verilog: Verilog, stimulus: Mapping[str, list[int]], folder: Path
) -> list[dict[str, int]]:
    """Outputs after each clock edge, ports of the stimulus driven before it."""
    inputs = [port for port in verilog.ports if not port.output]
    outputs = [port for port in verilog.ports if port.output]
    assert {port.name for port in inputs} == set(stimulus)
    cycles = len(next(iter(stimulus.values())))
    width = sum(port.width for port in inputs)
    lines = []
    for t in range(cycles):
        word, at = 0, 0
        for port in inputs:
            word |= (stimulus[port.name][t] & ((1 << port.width) - 1)) << at
            at += port.width
        lines.append(f"{word:x}")
    (folder / "stimulus.hex").write_text("\n".join(lines) + "\n")
    declared, at = "", 0
    for port in inputs:
        declared += f"  wire [{port.width - 1}:0] {port.name} = word[{at + port.width - 1}:{at}];\n"
        at += port.width
    for port in outputs:
        declared += f"  wire [{port.width - 1}:0] {port.name};\n"
    wired = ", ".join(f".{port.name}({port.name})" for port in verilog.ports)
    shown = " ".join("%h" for _ in outputs)
    names = ", ".join(port.name for port in outputs)
    bench = f"""module bench;
  reg clk; integer t; reg [{width - 1}:0] words [0:{cycles - 1}]; reg [{width - 1}:0] word;
{declared}  {verilog.top} dut(.clk(clk), {wired});
  initial begin
    $readmemh("stimulus.hex", words); clk = 0; word = 0;
    for (t = 0; t < {cycles}; t = t + 1) begin
      word = words[t]; #1 clk = 1; #1 clk = 0; #1 $display("{shown}", {names});
    end
  end
endmodule
"""
    return [
        dict(zip([p.name for p in outputs], (int(x, 16) for x in line.split()), strict=True))
        for line in _simulate(verilog, bench, folder)
    ]


def run_sparse(pe: PE, verilog: Verilog, a: Ints, b: Ints, weight: int, folder: Path) -> int:
    """The last `result` of a PE that looks for digits itself; every pair at its own pace.

    `a` and `b`: shape (windows, pairs, operands of one window).
    """
    count, pairs, group = a.shape
    size = datapath.sparse_window_bits(pe)
    window = [[window_bits(pe, a[i, p], weight) for p in range(pairs)] for i in range(count)]
    (folder / "a.hex").write_text(
        "\n".join(f"{window[i][p]:x}" for p in range(pairs) for i in range(count)) + "\n"
    )
    mask = (1 << pe.width_b) - 1
    (folder / "b.hex").write_text(
        "\n".join(
            f"{int(b[i, p, k]) & mask:x}"
            for p in range(pairs)
            for i in range(count)
            for k in range(group)
        )
        + "\n"
    )
    top = int(weight == pe.digits - 1)
    ports = {port.name: port.width for port in verilog.ports}
    declared = "".join(f"  wire [{w - 1}:0] {n};\n" for n, w in ports.items() if n != "top")
    declared += "".join(f"  integer at_{p};\n" for p in range(pairs))
    lines = []
    for p in range(pairs):
        held = f"at_{p} < {count} ? wa[{p * count} + at_{p}] : 0"
        lines.append(f"  assign a[{(p + 1) * size - 1}:{p * size}] = {held};")
        if pe.shift_hoisted:
            # The window in work is the one before the pointer; B is fetched by position in it.
            base = f"({p * count} + at_{p} - 1) * {group}"
            value = "0"
            for k in range(group):
                value = f"(position[{p * pe.digits + k}] ? wb[{base} + {k}] : {value})"
            value = f"(at_{p} > 0 && at_{p} <= {count} ? {value} : 0)"
        else:
            value = f"(at_{p} < {count} ? wb[{p * count} + at_{p}] : 0)"
        lines.append(f"  assign b[{(p + 1) * pe.width_b - 1}:{p * pe.width_b}] = {value};")
    steps = " ".join(f"take[{p}] = done[{p}];" for p in range(pairs))
    moves = " ".join(f"if (take[{p}]) at_{p} = at_{p} + 1;" for p in range(pairs))
    start = " ".join(f"at_{p} = 0;" for p in range(pairs))
    cycles = count * (group if pe.shift_hoisted else pe.digits) + 12
    top_wire = f"  wire [0:0] top = {top};\n" if "top" in ports else ""
    wired = ", ".join(f".{n}({n})" for n in ports)
    bench = f"""module bench;
  reg clk; integer t; reg [{pairs - 1}:0] take;
  reg [{size - 1}:0] wa [0:{count * pairs - 1}];
  reg [{pe.width_b - 1}:0] wb [0:{count * pairs * group - 1}];
{top_wire}{declared}{chr(10).join(lines)}
  {verilog.top} dut(.clk(clk), {wired});
  initial begin
    $readmemh("a.hex", wa); $readmemh("b.hex", wb); clk = 0; {start}
    for (t = 0; t < {cycles}; t = t + 1) begin
      #1 {steps} clk = 1; #1 {moves} clk = 0;
    end
    #1 $display("%h", result);
  end
endmodule
"""
    return int(_simulate(verilog, bench, folder)[-1], 16)


def window_bits(pe: PE, operands: Ints, weight: int) -> int:
    """What a PE that looks for digits gets of the operands of one window."""
    if not pe.shift_hoisted:
        return int(operands[0]) & ((1 << pe.width_a) - 1)
    word = 0
    for i, value in enumerate(operands):
        if pe.encoding == "booth":
            word |= ((int(value) << 1) >> (2 * weight) & 7) << (3 * i)
        else:
            word |= (int(value) >> weight & 1) << i
    return word


def code(digit: int, radix_bits: int) -> int:
    """A digit as the bits one, two (radix 4 only), neg."""
    size = abs(digit)
    if radix_bits == 2:
        return int(size == 1) | int(size == 2) << 1 | int(digit < 0) << 2
    return int(size == 1) | int(digit < 0) << 1


def pack(values: Ints, width: int) -> int:
    """Words side by side, the first lowest."""
    return sum((int(v) & ((1 << width) - 1)) << (i * width) for i, v in enumerate(values))


def operands(rng: np.random.Generator, width: int, shape: tuple[int, ...]) -> Ints:
    """Random operands with many extreme ones."""
    low, high = operand_range(width)
    values = rng.integers(low, high + 1, shape)
    extreme = rng.choice(np.array([low, high, -1, 0, 1]), shape)
    return np.where(rng.random(shape) < 0.4, extreme, values)


def accumulated(pe: PE, result: int) -> list[int]:
    """The accumulated numbers, sum and carry added, modulo 2**accumulator_width."""
    w = pe.accumulator_width
    words = [result >> (i * w) & ((1 << w) - 1) for i in range(pe.accumulators * pe.words)]
    return [sum(words[i : i + pe.words]) % (1 << w) for i in range(0, len(words), pe.words)]


def check(pe: PE, verilog: Verilog, folder: Path, cycles: int = 24, seed: int = 0) -> None:
    """Asserts that a PE accumulates exactly, cycle after cycle."""
    rng = np.random.default_rng(seed)
    n, modulus = pe.operand_pairs, 1 << pe.accumulator_width
    radix = 1 << pe.radix_bits
    if datapath.finds_digits(pe):
        group = pe.digits if pe.shift_hoisted else 1
        a = operands(rng, pe.width_a, (cycles, n, group))
        b = operands(rng, pe.width_b, (cycles, n, group))
        weight = int(rng.integers(pe.digits))
        got = accumulated(pe, run_sparse(pe, verilog, a, b, weight, folder))
        of_a = digits(a, pe.width_a, pe.encoding)[..., weight] if pe.shift_hoisted else a
        assert got == [int((of_a.astype(np.int64) * b).sum()) % modulus], pe
        return
    a, b = operands(rng, pe.width_a, (cycles, n)), operands(rng, pe.width_b, (cycles, n))
    of_a = digits(a, pe.width_a, pe.encoding).astype(np.int64)
    flush = 6
    stimulus = {"b": [pack(row, pe.width_b) for row in b] + [0] * flush}
    if pe.temporal:
        places = rng.integers(0, pe.digits, cycles)
        chosen = of_a[np.arange(cycles), :, places]
        scale = np.ones(cycles, np.int64) if pe.shift_hoisted else radix ** places.astype(np.int64)
        steps = [[int(x)] for x in (chosen * b).sum(axis=1) * scale]
        if pe.has_encoder:
            stimulus["a"] = [pack(row, pe.width_a) for row in a] + [0] * flush
            stimulus["weight"] = [int(w) for w in places] + [0] * flush
        else:
            stimulus["digits"] = [
                pack(np.array([code(int(d), pe.radix_bits) for d in row]), pe.digit_bits)
                for row in chosen
            ] + [0] * flush
            if not pe.shift_hoisted:
                bits = (pe.digits - 1).bit_length()
                stimulus["weight"] = [pack(np.full(n, w), bits) for w in places] + [0] * flush
    else:
        products = of_a * b[:, :, None]
        if pe.shift_hoisted:
            steps = [[int(x) for x in row] for row in products.sum(axis=1)]
        else:
            steps = [[int(x)] for x in (a * b).sum(axis=1)]
        if pe.encoder_place == "pe":
            stimulus["a"] = [pack(row, pe.width_a) for row in a] + [0] * flush
        else:
            stimulus["digits"] = [
                pack(np.array([code(int(d), 2) for d in row.ravel()]), 3) for row in of_a
            ] + [0] * flush
    sums = np.cumsum(np.array(steps, dtype=object), axis=0)
    # Zeros first: what the pipeline holds at the start is none of the operands' doing.
    warm = 4
    seen = run_cycles(verilog, {k: [0] * warm + v for k, v in stimulus.items()}, folder)[warm:]
    latency = 1 + len(pe.cuts)
    start = accumulated(pe, seen[0]["result"])
    for t in range(latency, cycles + latency):
        expected = [int(x + s) % modulus for x, s in zip(sums[t - latency], start, strict=True)]
        assert accumulated(pe, seen[t]["result"]) == expected, (pe, t)


def _simulate(verilog: Verilog, bench: str, folder: Path) -> list[str]:
    (folder / "block.v").write_text(verilog.text)
    (folder / "bench.v").write_text(bench)
    for command in (
        ["iverilog", "-g2005", "-DARCHGYM_SIMULATION", "-o", "bench.out", "bench.v", "block.v"],
        ["vvp", "-N", "bench.out"],
    ):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr + done.stdout
    return [line for line in done.stdout.splitlines() if line.strip()]
