"""The embedded simulator: circuits of designs, and the model of synthesis and placement."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from archgym.envs.fpga.hardware.device import DEVICES, Device
from archgym.envs.fpga.hardware.folding import Choices
from archgym.envs.fpga.hardware.top import Built, Schedule, built, foldings
from archgym.envs.fpga.model.prediction import predicted, shipped_coefficients
from archgym.envs.fpga.network.integer import QuantisedNetwork, quantised
from archgym.envs.fpga.network.spec import Network
from archgym.errors import SimulationError

__all__ = ["circuit", "metrics_of", "simulated"]

_SURELY: float = 1.5
"""A circuit whose smallest parts alone fill the device so many times is not built."""


def simulated(network: Network, design: Mapping[str, Any]) -> dict[str, float]:
    """Metrics of a design by the model.

    Raises:
        SimulationError: if the circuit does not fit the device.
    """
    numbers, made, device = circuit(network, design, writes=False)
    found = predicted(made, device, shipped_coefficients())
    for what, used, there in (
        ("LUTs", found.luts, device.luts),
        ("flip-flops", found.ffs, device.ffs),
        ("DSPs", found.dsps, device.dsps),
        ("block RAMs", found.block_rams, device.block_rams),
    ):
        if used > there:
            raise SimulationError(f"too large: {used:.0f} {what}, {device.name} has {there}")
    return metrics_of(
        numbers,
        made.schedule,
        device,
        luts=found.luts,
        ffs=found.ffs,
        dsps=found.dsps,
        block_rams=found.block_rams,
        clock_mhz=found.clock_mhz,
        spread=found.spread,
    )


def circuit(
    network: Network, design: Mapping[str, Any], *, writes: bool = True
) -> tuple[QuantisedNetwork, Built, Device]:
    """The network in integers, its circuit, and the device of a design.

    Args:
        network: in floating point.
        design: of the space.
        writes: whether the circuit has its Verilog.

    Raises:
        SimulationError: if the circuit cannot fit the device, for its pins or by far.
    """
    device = DEVICES[design["device"]]
    choices = Choices.of(design, device.dsp_bits)
    numbers = _quantised(network, choices.weight_bits, choices.activation_bits)
    _refuse_huge(numbers, choices, device)
    made = built(numbers, choices, writes=writes)
    if made.pins > device.pins:
        raise SimulationError(f"too large: {made.pins} pins, {device.name} has {device.pins}")
    return numbers, made, device


@lru_cache(maxsize=128)
def _quantised(network: Network, weight_bits: int, activation_bits: int) -> QuantisedNetwork:
    return quantised(network, weight_bits, activation_bits)


def _refuse_huge(numbers: QuantisedNetwork, choices: Choices, device: Device) -> None:
    """Refuses what is far too large from its sizes alone: a product takes a LUT for each bit."""
    products = ring = 0
    for layer, folding in zip(numbers.layers, foldings(numbers, choices), strict=True):
        if folding.steps == 1:
            products += int(np.count_nonzero(layer.weights))
        else:
            products += folding.lanes * folding.rows
            ring += layer.weights.size * choices.weight_bits
    each = 0 if choices.dsp_bits else choices.activation_bits
    if each * products > _SURELY * device.luts:
        raise SimulationError(
            f"too large: {products} products at once of {choices.activation_bits} bits, "
            f"{device.name} has {device.luts} LUTs"
        )
    if choices.dsp_bits and products > 2 * device.dsps + device.luts // 4:
        raise SimulationError(
            f"too large: {products} products at once, {device.name} has {device.dsps} DSPs"
        )
    if choices.memory == "registers" and ring > device.ffs:
        raise SimulationError(
            f"too large: {ring} flip-flops of weights, {device.name} has {device.ffs}"
        )


def metrics_of(
    numbers: QuantisedNetwork,
    schedule: Schedule,
    device: Device,
    *,
    luts: float,
    ffs: float,
    dsps: float,
    block_rams: float,
    clock_mhz: float,
    spread: float,
) -> dict[str, float]:
    """All metrics from counts and clock.

    Args:
        numbers: the network in integers.
        schedule: the circuit's cycles.
        device: the FPGA.
        luts: how many the circuit takes.
        ffs: flip-flops that it takes.
        dsps: multipliers that it takes.
        block_rams: block RAMs that it takes.
        clock_mhz: its fastest clock.
        spread: standard deviation of the clock over placement seeds, by the clock.
    """
    rate = clock_mhz * 1e6 / schedule.sample_interval
    return {
        "lut_count": float(luts),
        "ff_count": float(ffs),
        "dsp_count": float(dsps),
        "bram_count": float(block_rams),
        "lut_share": luts / device.luts,
        "clock_mhz": clock_mhz,
        "clock_mhz_spread_share": spread,
        "latency_cycles": float(schedule.latency),
        "interval_cycles": float(schedule.sample_interval),
        "latency_ns": 1e3 * schedule.latency / clock_mhz,
        "samples_per_s": rate,
        "samples_per_s_per_lut": rate / max(1.0, luts),
        "sqnr_db": numbers.sqnr_db,
    }
