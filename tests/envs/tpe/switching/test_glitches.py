"""Energy with glitches, against gate-level simulations with the delays of the library's gates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from archgym.envs.tpe.microarchitecture.pe import PE
from archgym.envs.tpe.microarchitecture.structure import counts
from archgym.envs.tpe.space.named import named_array
from archgym.envs.tpe.switching.array_energy import switching, work_energy_fj
from archgym.envs.tpe.switching.glitches import glitches
from archgym.envs.tpe.technology.energies import load_energies
from archgym.envs.tpe.workload.operands import OperandDistribution

MAC = PE(8, 8, 32)
KEPT = replace(MAC, accumulator="carry_save", final_adder_place="simd")
OPERANDS = {"uniform": OperandDistribution.uniform(8), "normal": OperandDistribution.normal(8, 25)}
CLASSICS = ("systolic_os", "systolic_os/OPT1", "systolic_os/OPT2", "OPT3", "OPT4C", "OPT4E")

# Synthesised netlists of the classics, 256 streams of 24 cycles, `settling="gate_delays"`, fJ a
# cycle, in the order of CLASSICS.
MEASURED: Mapping[tuple[str, str], tuple[float, ...]] = {
    ("nangate45", "uniform"): (2733, 2414, 3446, 1264, 894, 2212),
    ("nangate45", "normal"): (2705, 2283, 3006, 1258, 815, 2052),
    ("sg13g2", "uniform"): (6735, 6921, 9446, 3817, 2685, 6581),
    ("sg13g2", "normal"): (6685, 6648, 8462, 3794, 2503, 6195),
}


def energy_fj(pe: PE, library: str, operands: str, *, with_glitches: bool = True) -> float:
    """Energy of a cycle of a PE."""
    energies, drawn = load_energies(library), OPERANDS[operands]
    length = 24 * pe.operand_pairs
    signals = switching(pe, drawn, drawn, accumulation_length=length, with_glitches=with_glitches)
    clock = counts(pe).register_bits * energies.register_clock
    return work_energy_fj(energies, signals) + clock


@pytest.mark.parametrize(("library", "operands"), MEASURED)
def test_energy_of_the_classics_is_near_that_of_gates_with_delays(
    library: str, operands: str
) -> None:
    measured = MEASURED[library, operands]
    found = [energy_fj(named_array(name).pe.hardware(), library, operands) for name in CLASSICS]
    assert found == pytest.approx(measured, rel=0.12)  # 23 of the 24 within 8 %
    # Those that differ by more than the model's error come in the same order.
    for i, (one, known) in enumerate(zip(found, measured, strict=True)):
        for other, its in zip(found[:i], measured[:i], strict=True):
            assert known / its < 1.08 or one > other
            assert its / known < 1.08 or other > one
    without = [
        energy_fj(named_array(name).pe.hardware(), library, operands, with_glitches=False)
        for name in CLASSICS
    ]
    errors = [abs(e / m - 1) for e, m in zip(without, measured, strict=True)]
    assert max(errors) > 0.3  # what glitches are good for


def test_without_an_adder_a_mac_saves_energy() -> None:
    """The published OPT1, which the model without glitches has as a loss (HPCA 2025)."""
    assert energy_fj(KEPT, "nangate45", "normal") < 0.9 * energy_fj(MAC, "nangate45", "normal")
    before = energy_fj(KEPT, "nangate45", "normal", with_glitches=False)
    assert before > energy_fj(MAC, "nangate45", "normal", with_glitches=False)


def test_registers_end_glitches() -> None:
    one, two, three = (replace(MAC, pipeline_depth=depth) for depth in (1, 2, 3))
    assert glitches(one).last_adder > glitches(two).last_adder > glitches(three).last_adder >= 1
    assert glitches(one).product_adder > glitches(two).product_adder
    assert glitches(two).product_adder == glitches(three).product_adder
    merged = replace(MAC, accumulator="merged")
    assert glitches(merged).tree > glitches(replace(merged, pipeline_depth=2)).tree


@pytest.mark.parametrize(
    ("more", "less"),
    [
        (MAC, replace(MAC, encoder_place="edge")),
        (PE(16, 16, 40), replace(PE(16, 16, 40), compressor="dadda", width_a=8)),
        (replace(MAC, final_adder="ripple"), MAC),
        (replace(KEPT, reduction=4), KEPT),
    ],
)
def test_what_stands_in_series_makes_glitches(more: PE, less: PE) -> None:
    assert sum(factor[0] for factor in glitches(more)) > sum(factor[0] for factor in glitches(less))


def test_still_operands_have_no_glitches() -> None:
    still = OperandDistribution.of_values(8, [7])
    signals = switching(KEPT, still, still)
    assert signals["select"] == signals["full_adder"] == signals["half_adder"] == 0


def test_every_factor_is_at_least_one() -> None:
    for name in CLASSICS:
        assert all(factor[0] >= 1 for factor in glitches(named_array(name).pe))
    assert glitches(KEPT).last_adder == glitches(KEPT).product_adder == 1
