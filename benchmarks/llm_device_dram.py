"""Streams of reads: the closed form of LLMDevice-v0 beside DRAM-v0's simulator.

Run as ``python -m benchmarks.llm_device_dram``. Each device of DRAM-v0 reads one stream over all
banks; where a device has currents, the energy by bit is compared too.
"""

from __future__ import annotations

import argparse

import archgym
from archgym.envs.dram.device.data_sheets import device_names, load_device
from archgym.envs.llm.device.data.timing import stream_energy, timing_of


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=60_000)
    arguments = parser.parse_args()
    stream = {
        "generator": "stream",
        "requests": arguments.requests,
        "interval_ns": 1,
        "read_share": 1.0,
    }
    print("| device | GB/s here | DRAM-v0 | off | pJ/bit here | DRAM-v0 | off |")
    print("|---|---|---|---|---|---|---|")
    for name in device_names():
        device, timing = load_device(name), timing_of(name)
        env = archgym.make("DRAM-v0", memory=name, workload=stream)
        design = {
            **env.baseline_design,
            "address_mapping": "rcb_xor" if device.bank_groups > 1 else "rbc_xor",
            "request_buffer_size": 64,
            "page_policy": "open_adaptive",
        }
        found = env.evaluate(design).metrics
        here, there = timing.stream_gb_per_s, found["bandwidth_gb_per_s"] or 0.0
        energy = "| | | |"
        if device.supplies:
            mine, theirs = stream_energy(device).total_pj_per_bit(here), found["energy_per_bit_pj"]
            assert theirs is not None
            energy = f"| {mine:.2f} | {theirs:.2f} | {100 * (mine / theirs - 1):+.1f} % |"
        print(f"| {name} | {here:.2f} | {there:.2f} | {100 * (here / there - 1):+.1f} % {energy}")


if __name__ == "__main__":
    main()
