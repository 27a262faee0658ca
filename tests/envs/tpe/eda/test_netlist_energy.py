"""Gate-level energy: by hand, as a calculator, and the fit that rests on it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from archgym.envs.tpe.calibration.energy import EnergySample, energy_error, fit_energies
from archgym.envs.tpe.eda.gate_simulation import SETTLING
from archgym.envs.tpe.eda.liberty_cells import cell_library
from archgym.envs.tpe.eda.netlist_energy import NetlistEnergy, netlist_energy
from archgym.envs.tpe.eda.operand_drive import pe_drive
from archgym.envs.tpe.microarchitecture.encodings import digits
from archgym.envs.tpe.microarchitecture.pe import PE
from archgym.envs.tpe.microarchitecture.structure import counts
from archgym.envs.tpe.technology.energies import Energies, load_energies
from archgym.envs.tpe.workload.operands import OperandDistribution
from archgym.errors import InvalidValueError, SimulationError
from tests.envs.tpe.eda.tiny_liberty import LIBERTY

UNIFORM = OperandDistribution.uniform(8)


def netlist(cells: Mapping[str, tuple[str, Mapping[str, Any]]], inputs: Mapping[str, int]) -> str:
    ports: dict[str, Any] = {"clk": {"direction": "input", "bits": [2]}}
    ports |= {name: {"direction": "input", "bits": [net]} for name, net in inputs.items()}
    module = {
        "ports": ports,
        "cells": {
            name: {"type": kind, "connections": {pin: [net] for pin, net in nets.items()}}
            for name, (kind, nets) in cells.items()
        },
    }
    return json.dumps({"modules": {"top": module}})


def test_a_register_that_toggles_by_hand() -> None:
    # Q to a NAND whose output is D: both change in every cycle. 4 V^2; see the library.
    text = netlist(
        {
            "flop": ("DFF", {"CK": 2, "D": 4, "Q": 3}),
            "inverter": ("NAND2", {"A": 3, "B": 3, "Y": 4}),
        },
        {},
    )
    found = netlist_energy(text, "top", cell_library(LIBERTY), lambda cycle: {}, streams=4)
    assert found.clock == pytest.approx(30 + 0.02 * 4e3)
    assert found.registers == pytest.approx(50 + 5 + 0.04 * 4e3 / 2)
    assert found.logic == pytest.approx(20 + 0.01 * 4e3 / 2)
    assert found.inputs == 0
    assert found.total == pytest.approx(found.clock + found.registers + found.logic)


def test_gates_are_taken_in_order_and_constants_stay() -> None:
    # y = nand(nand(x, 1), 1) = x, written last gate first: everything changes with x.
    text = netlist(
        {
            "second": ("NAND2", {"A": 5, "B": "1", "Y": 6}),
            "first": ("NAND2", {"A": 4, "B": "1", "Y": 5}),
            "still": ("NAND2", {"A": 4, "B": "0", "Y": 7}),
        },
        {"x": 4},
    )

    def drive(cycle: int) -> dict[str, list[int]]:
        return {"x": [0b01 if cycle % 2 else 0b00]}  # one of two streams changes

    found = netlist_energy(text, "top", cell_library(LIBERTY), drive, streams=2)
    charge = 0.01 * 4e3 / 2
    assert found.logic == pytest.approx((20 + charge + 20) / 2)
    assert found.inputs == pytest.approx(2 * charge / 2)


def test_a_glitch_by_hand() -> None:
    # y = nand(x, not x) is always one; where x rises, it falls until the inverter has followed.
    text = netlist(
        {
            "inverter": ("NAND2", {"A": 4, "B": "1", "Y": 5}),
            "still": ("NAND2", {"A": 4, "B": 5, "Y": 6}),
        },
        {"x": 4},
    )

    def drive(cycle: int) -> dict[str, list[int]]:
        return {"x": [cycle % 2]}

    library = cell_library(LIBERTY)
    # A mean over as many rising as falling edges: ten cycles count.
    quiet, loud, equal = (
        netlist_energy(text, "top", library, drive, streams=1, cycles=19, settling=settling)
        for settling in SETTLING
    )
    inverter = 20 + 0.03 * 4e3 / 2
    assert quiet.logic == pytest.approx(inverter)
    assert loud.logic == pytest.approx(inverter + 2 * 20 / 2)
    assert loud.inputs == quiet.inputs
    # Both gates take 0.1 ns, and the pulse is as long as that.
    assert equal == loud


def test_bad_netlists() -> None:
    library = cell_library(LIBERTY)
    loop = netlist(
        {"a": ("NAND2", {"A": 4, "B": 4, "Y": 5}), "b": ("NAND2", {"A": 5, "B": 5, "Y": 4})}, {}
    )
    with pytest.raises(SimulationError, match="loop"):
        netlist_energy(loop, "top", library, lambda cycle: {})
    with pytest.raises(SimulationError, match="'other'"):
        netlist_energy(loop, "other", library, lambda cycle: {})
    with pytest.raises(InvalidValueError, match="NOR9"):
        netlist_energy(netlist({"a": ("NOR9", {})}, {}), "top", library, lambda cycle: {})


def values(bits: list[int], width: int, streams: int) -> np.ndarray:
    """Two's complement words from the packed bits of one port, shape (words, streams)."""
    lanes = [[bit >> s & 1 for s in range(streams)] for bit in bits]
    table = np.array(lanes).reshape(-1, width, streams)
    weights = 1 << np.arange(width)
    weights[-1] *= -1
    return np.asarray(np.einsum("wbs,b->ws", table, weights))


def test_operands_are_driven_from_their_distributions() -> None:
    pe = PE(8, 8, 24, reduction=2)
    widths = {"a": 16, "b": 16}
    b = OperandDistribution.constant(8, -3)
    rng = np.random.default_rng(0)
    drive = pe_drive(pe, widths, UNIFORM, b, streams=3000, rng=rng)
    given = drive(0)
    assert {name: len(bits) for name, bits in given.items()} == widths
    assert (values(list(given["b"]), 8, 3000) == -3).all()
    assert values(list(given["a"]), 8, 3000).std() == pytest.approx(73.9, rel=0.05)
    assert drive(1)["a"] != given["a"]


@pytest.mark.parametrize("encoding", ["booth", "ent", "serial_sign_magnitude"])
def test_digits_are_driven_as_their_encoding_has_them(encoding: Any) -> None:
    four = encoding != "serial_sign_magnitude"
    pe = PE(
        8,
        8,
        24,
        encoding=encoding,
        encoder_place="edge",
        bit_weights="temporal_sparse",
        accumulator="carry_save",
        final_adder_place="simd",
        shift_place="simd",
    )
    n = 4000
    drive = pe_drive(
        pe, {"digits": pe.digit_bits}, UNIFORM, UNIFORM, streams=n, rng=np.random.default_rng(1)
    )
    bits = [np.array([bit >> s & 1 for s in range(n)]) for bit in drive(0)["digits"]]
    one, two, negative = bits if four else (bits[0], np.zeros(n, int), bits[1])
    assert (one + two == 1).all()  # no zero digit is sent
    every = digits(np.arange(-128, 128), 8, encoding).ravel()
    sent = every[every != 0]
    assert two.mean() == pytest.approx((np.abs(sent) == 2).mean(), abs=0.03)
    assert negative.mean() == pytest.approx((sent < 0).mean(), abs=0.03)


def samples(energies: Energies) -> list[EnergySample]:
    """What a gate-level simulation would say if the model were exact."""
    save: dict[str, Any] = {"accumulator": "carry_save", "final_adder_place": "simd"}
    pes = [
        PE(8, 8, 32),
        PE(4, 4, 16),
        PE(16, 16, 40),
        PE(8, 8, 48),
        PE(8, 8, 32, **save),
        PE(8, 8, 32, encoding="radix2"),
        PE(8, 8, 32, accumulator="merged"),
        PE(8, 8, 32, encoder_place="edge", **save),
        PE(8, 8, 32, encoding="radix2", **save),
        PE(8, 8, 24, reduction=4, accumulator="merged"),
        PE(8, 8, 32, compressor="linear", **save),
        PE(8, 8, 32, pipeline_depth=2),
    ]
    found = []
    for pe in pes:
        operands = OperandDistribution.uniform(pe.width_a)
        empty = NetlistEnergy(0.0, 0.0, 0.0, 0.0)
        signals = EnergySample(pe, operands, operands, 48, empty).signals
        clock = counts(pe).register_bits * energies.register_clock
        registers = signals.pop("register") * energies.register_data
        logic = sum(n * getattr(energies, kind) for kind, n in signals.items())
        energy = NetlistEnergy(clock, registers, logic, 0.0)
        found.append(EnergySample(pe, operands, operands, 48, energy))
    return found


def test_the_fit_finds_the_energies_behind_exact_samples() -> None:
    true = load_energies("nangate45")
    exact = samples(true)
    found = fit_energies("again", exact, {"gate": 3.3, "leakage_nw_per_um2": 1.0})
    assert found.register_clock == pytest.approx(true.register_clock)
    assert found.register_data == pytest.approx(true.register_data)
    assert all(getattr(found, field.name) >= 0 for field in fields(found)[1:])
    mean, maximum = energy_error(found, exact)
    assert mean < 0.02
    assert maximum < 0.06
    assert energy_error(true, exact)[1] == pytest.approx(0, abs=1e-9)


def test_too_few_samples_are_refused() -> None:
    with pytest.raises(InvalidValueError, match="too few"):
        fit_energies("x", samples(load_energies("sg13g2"))[:3], {"gate": 1.0})
