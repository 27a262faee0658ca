"""Switching by counting in drawn operands, energies against gate-level simulation, and laws."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from archgym.envs.tpe.microarchitecture.compressors import Reduction
from archgym.envs.tpe.microarchitecture.encodings import digits
from archgym.envs.tpe.microarchitecture.pe import PE, Array
from archgym.envs.tpe.microarchitecture.structure import Counts, counts
from archgym.envs.tpe.switching.activity import activity, word_toggles
from archgym.envs.tpe.switching.array_energy import EnergyModel, switching, work_energy_fj
from archgym.envs.tpe.technology.energies import Energies, load_energies
from archgym.envs.tpe.workload.operands import OperandDistribution
from archgym.envs.tpe.workload.workload import load_workload
from archgym.errors import InvalidValueError, UnknownNameError
from tests.envs.tpe.eda.tiny_liberty import LIBERTY

UNIFORM = OperandDistribution.uniform(8)
NORMAL = OperandDistribution.normal(8, 25.0)
RECTIFIED = OperandDistribution.of_values(
    8, np.maximum(np.random.default_rng(0).normal(0, 30, 20000), 0).clip(0, 127).astype(int)
)
EDGE: dict[str, Any] = {"encoder_place": "edge"}
SAVE: dict[str, Any] = {"accumulator": "carry_save", "final_adder_place": "simd"}
OUT: dict[str, Any] = {"shift_place": "simd", **EDGE, **SAVE}
SPARSE: dict[str, Any] = {"bit_weights": "temporal_sparse", **OUT}
NETLISTS: dict[str, PE] = {
    "separate": PE(8, 8, 32),
    "merged": PE(8, 8, 32, accumulator="merged"),
    "opt1": PE(8, 8, 32, **SAVE),
    "opt1, digits arrive": PE(8, 8, 32, **EDGE, **SAVE),
    "opt2, 4 pairs": PE(8, 8, 14, reduction=4, **OUT),
    "opt4c": PE(8, 8, 26, **SPARSE),
    "opt4e": PE(8, 8, 26, lanes=4, **SPARSE),
    "16 bits": PE(16, 16, 40),
    "Baugh-Wooley": PE(8, 8, 32, encoding="radix2"),
}
# Gate-level simulation without delays of the synthesised netlists, uniform operands, fJ a cycle;
# see energies.json.
MEASURED: Mapping[str, Mapping[str, float]] = {
    "nangate45": {
        "separate": 1596,
        "merged": 1384,
        "opt1": 1687,
        "opt1, digits arrive": 1686,
        "opt2, 4 pairs": 5111,
        "opt4c": 968,
        "opt4e": 1864,
        "16 bits": 4014,
        "Baugh-Wooley": 1669,
    },
}


def drawn(operands: OperandDistribution, n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).choice(operands.values, size=n, p=operands.probability)


def changes(bits: np.ndarray) -> float:
    return float(np.mean(bits[1:] != bits[:-1]))


def partial_products(a: np.ndarray, b: np.ndarray, pe: PE) -> np.ndarray:
    """Bits of the partial products as the selectors make them, shape (n, digits, bits)."""
    found = digits(a, pe.width_a, pe.encoding).astype(int)
    shifts = np.arange(pe.partial_product_width)
    magnitude = np.abs(found)[..., None] * b[:, None, None]
    bits = (magnitude >> shifts) & 1
    return np.where(found[..., None] < 0, 1 - bits, bits)


@pytest.mark.parametrize("a", [UNIFORM, NORMAL, RECTIFIED], ids=str)
@pytest.mark.parametrize("b", [NORMAL, RECTIFIED], ids=str)
def test_switching_of_operands_and_partial_products_is_counted(
    a: OperandDistribution, b: OperandDistribution
) -> None:
    pe = PE(8, 8, 32)
    found = activity(pe, a, b)
    seen_a, seen_b = drawn(a, 20000, 1), drawn(b, 20000, 2)
    bits = (seen_a[:, None] >> np.arange(8)) & 1
    assert found.operand_a == pytest.approx(changes(bits), abs=0.005)
    selected = partial_products(seen_a, seen_b, pe)
    assert found.select == pytest.approx(changes(selected), abs=0.005)
    held = np.mean(
        [changes(partial_products(seen_a[:500], np.full(500, v), pe)) for v in seen_b[:100]]
    )
    stays = activity(pe, a, b, stationary=True)
    assert stays.select == pytest.approx(held, abs=0.02)
    assert stays.operand_b == 0.0


def test_word_toggles_by_hand() -> None:
    assert word_toggles(OperandDistribution.of_values(2, [0, 1])) == pytest.approx(0.25)
    assert word_toggles(OperandDistribution.constant(8, 77)) == 0.0


def test_accumulated_words_switch_as_in_a_simulation() -> None:
    steps = drawn(UNIFORM, 40000, 3) * drawn(UNIFORM, 40000, 4)
    sums = np.cumsum(steps.reshape(400, 100), axis=1) & 0xFFFFFFFF
    bits = (sums[..., None] >> np.arange(32)) & 1
    simulated = float(np.mean(bits[:, 1:] != bits[:, :-1]))
    pe = PE(8, 8, 32, accumulator="merged")
    assert activity(pe, UNIFORM, UNIFORM, accumulation_length=100).accumulator == pytest.approx(
        simulated, rel=0.15
    )


def test_carry_save_words_switch_as_in_their_tree() -> None:
    """The bits of the compressor tree, cell by cell, over many tiles at once."""
    from archgym.envs.tpe.microarchitecture import datapath

    pe = PE(8, 8, 24, **EDGE, **SAVE)
    (heap,) = datapath.heaps(pe)
    tree = heap.reduce(pe.compressor)
    n, rng = 256, np.random.default_rng(6)
    state = {name: np.zeros(n, bool) for name in (*tree.sum, *tree.carry) if name}
    registers = {"sum_0": tree.sum, "carry_0": tree.carry}
    total = count = 0.0
    for cycle in range(40):
        a, b = (rng.integers(-128, 128, n) for _ in "ab")
        values = _inputs(pe, a, b, rng)
        for word, names in registers.items():
            for bit, name in enumerate(names):
                values[f"{word}[{bit}]"] = _bit(state, name, n)
        after = _evaluated(tree, values)
        kept = {name: _bit(after, name, n) for name in state}
        if cycle > 8:
            total += float(sum(np.mean(kept[name] != state[name]) for name in state))
            count += len(state)
        state = kept
    assert activity(pe, UNIFORM, UNIFORM).accumulator == pytest.approx(total / count, abs=0.05)


def _inputs(
    pe: PE, a: np.ndarray, b: np.ndarray, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    found = digits(a, pe.width_a, pe.encoding).astype(int)
    selected = partial_products(a, b, pe).astype(bool)
    values: dict[str, np.ndarray] = {}
    for weight in range(pe.digits):
        for bit in range(pe.partial_product_width):
            top = bit == pe.partial_product_width - 1  # the sign arrives inverted
            values[f"pp_{weight}_0[{bit}]"] = selected[:, weight, bit] ^ top
        values[f"neg_{weight}_0[0]"] = found[:, weight] < 0
    return values


def _bit(values: Mapping[str, np.ndarray], name: str, n: int) -> np.ndarray:
    constants = {"": np.zeros(n, bool), "1'b1": np.ones(n, bool)}
    return constants[name] if name in constants else values[name]


def _evaluated(tree: Reduction, values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    for cell in tree.cells:
        total = np.sum([values[name] for name in cell.inputs], axis=0) + int(cell.one)
        values[cell.sum] = total % 2 == 1
        if cell.carry:
            values[cell.carry] = total >= 2
    return values


@pytest.mark.parametrize("library", MEASURED)
def test_energy_of_a_cycle_is_near_the_gate_level_one(library: str) -> None:
    energies = load_energies(library)
    errors = []
    for name, measured in MEASURED[library].items():
        pe = NETLISTS[name]
        operands = OperandDistribution.uniform(pe.width_a)
        signals = switching(pe, operands, operands, accumulation_length=60, with_glitches=False)
        work = work_energy_fj(energies, signals)
        clock = counts(pe).register_bits * energies.register_clock
        errors.append(abs((work + clock) / measured - 1))
    assert np.mean(errors) < 0.06
    assert max(errors) < 0.15


def test_ratios_of_an_independent_measurement() -> None:
    """Toggle counts of other netlists in Nangate45, fJ a multiplication, to within 25 %."""
    # Carry-save with encoder in the PE is the unit; the others by their work and their digits.
    known = {"opt1, digits arrive": 2081, "opt2, 4 pairs": 1679, "opt4e": 1287}
    macs_per_cycle = {"opt1, digits arrive": 1.0, "opt2, 4 pairs": 4.0, "opt4e": 4 / 2.22}
    energies = load_energies("nangate45")

    def energy(name: str) -> float:
        pe = NETLISTS[name]
        work = work_energy_fj(energies, switching(pe, UNIFORM, UNIFORM, accumulation_length=300))
        return work + counts(pe).register_bits * energies.register_clock

    unit = energy("opt1") / 2165
    for name, fj in known.items():
        assert energy(name) / macs_per_cycle[name] / unit == pytest.approx(fj, rel=0.25)


def _model(workload: Any, cells: Mapping[str, int] | None = None) -> EnergyModel:
    block = Counts(dict(cells or {}))
    return EnergyModel(load_energies("nangate45"), load_workload(workload), lambda _: block)


def test_idle_operands_cost_only_the_clock() -> None:
    spec = {"gemm": [8, 8, 8], "a": {"constant": 3}, "b": {"constant": 5}}
    array = Array("systolic_os", 4, 4, PE(8, 8, 32, **SAVE))
    found = _model(spec).dynamic_energy_pj([array], np.array([1000.0]))
    clock = (
        counts(array.pe).register_bits
        * 16
        * 1000
        * load_energies("nangate45").register_clock
        * 1e-3
    )
    # Operands that never change leave only what is accumulated to switch.
    assert clock <= found[0] < 1.4 * clock
    zero = {"gemm": [8, 8, 8], "a": {"constant": 0}, "b": {"constant": 0}}
    quiet = _model(zero).dynamic_energy_pj([array], np.array([1000.0]))
    assert quiet[0] == pytest.approx(clock)


def test_energy_grows_with_work_and_with_time() -> None:
    array = Array("systolic_os", 8, 8, PE(8, 8, 32))
    small, large = {"gemm": [16, 64, 16]}, {"gemm": [16, 64, 32]}
    time = np.array([5000.0])
    one = _model(small).dynamic_energy_pj([array], time)[0]
    assert _model(large).dynamic_energy_pj([array], time)[0] > one
    later = _model(small).dynamic_energy_pj([array], 2 * time)[0]
    clock = (
        counts(array.pe).register_bits
        * 64
        * 5000
        * load_energies("nangate45").register_clock
        * 1e-3
    )
    assert later - one == pytest.approx(clock)


def test_edge_blocks_cost_where_they_are_counted() -> None:
    array = Array("systolic_os", 8, 8, PE(8, 8, 32, **EDGE, **SAVE))
    model = _model({"gemm": [16, 64, 16]}, {"register_bit": 10, "booth_encoder": 4})
    time = np.array([1000.0])
    with_edges = model.dynamic_energy_pj([array], time)[0]
    assert with_edges > model.dynamic_energy_pj([array], time, edges=False)[0]


def test_quieter_operands_cost_less() -> None:
    for name in ("separate", "opt1", "opt2, 4 pairs"):
        pe = NETLISTS[name]
        loud, quiet = (
            work_energy_fj(load_energies("sg13g2"), switching(pe, a, NORMAL))
            for a in (UNIFORM, RECTIFIED)
        )
        assert quiet < loud


def test_leakage_follows_area() -> None:
    model = _model({"gemm": [4, 4, 4]})
    found = model.leakage_power_mw(np.array([1e6, 2e6]))
    assert found[1] == 2 * found[0]
    assert found[0] == pytest.approx(21.4)  # 1 mm2 of Nangate45 at 21 nW/um2


def test_energies_of_another_library() -> None:
    known = load_energies("nangate45")
    cells = {name: getattr(known, name) for name in ("gate", "register_clock", "register_data")}
    like = Energies.of("like", {**cells, "leakage_nw_per_um2": 1.0})
    for field in fields(Energies):
        if field.name not in ("library", "leakage_nw_per_um2", "drive"):
            assert 0.3 < getattr(like, field.name) / getattr(known, field.name) < 3
    # How much lines are driven is a matter of the sizes that a library offers.
    assert load_energies("sg13g2").drive < like.drive < known.drive
    given = {f.name: float(i + 1) for i, f in enumerate(fields(Energies)[1:])}
    assert Energies.of("full", given) == Energies("full", **given)
    assert Energies.of("sg13g2", {}) == load_energies("sg13g2")
    with pytest.raises(InvalidValueError, match="drive is missing"):
        Energies.of("old", {name: value for name, value in given.items() if name != "drive"})
    with pytest.raises(InvalidValueError, match="register_data is missing"):
        Energies.of("other", {"gate": 1.0, "register_clock": 1.0, "leakage_nw_per_um2": 0.0})
    with pytest.raises(UnknownNameError, match="nangate45"):
        load_energies("nangate54")


def test_lanes_share_what_they_accumulate() -> None:
    one, four = (replace(NETLISTS["opt4c"], lanes=lanes) for lanes in (1, 4))
    energies = load_energies("nangate45")

    def energy(pe: PE) -> float:
        work = work_energy_fj(energies, switching(pe, NORMAL, NORMAL))
        return (work + counts(pe).register_bits * energies.register_clock) / pe.lanes

    assert energy(four) < 0.75 * energy(one)


def test_energies_from_a_liberty_file_by_hand() -> None:
    from archgym.envs.tpe.eda.liberty_cells import cell_library
    from archgym.envs.tpe.eda.liberty_energy import basic_energies

    # Volts squared 4; two NAND inputs are 0.04 pF, so that charging them costs 80 fJ.
    found = basic_energies(cell_library(LIBERTY))
    assert found == pytest.approx(
        {
            "gate": 20 + 80,
            "register_clock": 20 + 10 + 0.02 * 4 * 1e3,
            "register_data": 50 + 5 + 80,
            "leakage_nw_per_um2": (20 + 4 * 4) / (10 + 4 * 2),
        }
    )
    like = Energies.of("tiny", found)
    assert like.register_data == found["register_data"]
    assert 50 < like.gate < 150
    bare = re.sub(r"internal_power \(\) \{.*?\} \}", "", LIBERTY, flags=re.S)
    assert basic_energies(cell_library(bare))["gate"] == pytest.approx(2 * 80)
    with pytest.raises(InvalidValueError, match="NAND"):
        basic_energies(cell_library(LIBERTY.replace("(A B)'", "A B")))
