"""Speed of the embedded DRAM controller: simulated requests a second, one thread.

Run as ``python benchmarks/dram_speed.py``; each figure is the best CPU time of several runs, after
one that compiles, and covers everything from the arrays of the trace to the metrics.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from archgym.envs.dram.controller.config import ControllerConfig
from archgym.envs.dram.controller.controller import simulate
from archgym.envs.dram.controller.prepared_trace import prepare
from archgym.envs.dram.device.memory import load_memory
from archgym.envs.dram.traces.trace import Trace

LINE = 64


def stream(n: int) -> Trace:
    """Reads of consecutive lines, one each 5 ns."""
    index = np.arange(n, dtype=np.int64)
    return Trace("stream", index * 5000, index * LINE, np.zeros(n, np.uint8))


def stream_saturated(n: int) -> Trace:
    """Reads of consecutive lines, one each 1.25 ns: more than the memory can take."""
    index = np.arange(n, dtype=np.int64)
    return Trace("stream, saturated", index * 1250, index * LINE, np.zeros(n, np.uint8))


def random_mix(n: int) -> Trace:
    """Random lines of 512 MiB, 70 % reads, 14 ns apart on average."""
    rng = np.random.default_rng(206)
    arrival = np.cumsum(rng.exponential(14_000, n).astype(np.int64))
    address = rng.integers(0, 2**29 // LINE, n) * LINE
    return Trace("random 70/30", arrival, address, (rng.random(n) < 0.3).astype(np.uint8))


def zipf_rows(n: int) -> Trace:
    """Rows of 8 KiB drawn with a Zipf law, random line in the row, 80 % reads, 8 ns apart."""
    rng = np.random.default_rng(207)
    arrival = np.cumsum(rng.exponential(8_000, n).astype(np.int64))
    row = np.minimum(rng.zipf(1.2, n), 2**15) * 40503 % 2**16
    address = row * 8192 + rng.integers(0, 128, n) * LINE
    return Trace("zipf rows", arrival, address, (rng.random(n) < 0.2).astype(np.uint8))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=200_000)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--device", default="DDR4-2400")
    args = parser.parse_args()
    memory = load_memory(args.device)
    config = ControllerConfig()
    start = time.process_time()
    simulate(prepare(stream(10), memory), config)
    print(f"first call (compile, or load from the cache): {time.process_time() - start:.1f} s")
    print("| trace | decode, ms | simulate, ms | million requests/s | with decoding |")
    print("|---|---|---|---|---|")
    for make in (stream, stream_saturated, random_mix, zipf_rows):
        decode, run = [], []
        for _ in range(args.repeats):
            trace = make(args.requests)
            start = time.process_time()
            prepared = prepare(trace, memory, config.address_mapping)
            decode.append(time.process_time() - start)
            start = time.process_time()
            simulate(prepared, config)
            run.append(time.process_time() - start)
        once, each = min(decode), min(run)
        print(
            f"| {trace.name} | {once * 1e3:.1f} | {each * 1e3:.1f} "
            f"| {args.requests / each / 1e6:.2f} | {args.requests / (once + each) / 1e6:.2f} |"
        )


if __name__ == "__main__":
    main()
