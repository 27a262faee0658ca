"""Operand lines that limit the clock: against synthesised netlists, by hand, and where not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from archgym.envs.tpe.microarchitecture.pe import PE
from archgym.envs.tpe.microarchitecture.structure import counts
from archgym.envs.tpe.space.named import named_array
from archgym.envs.tpe.switching.array_energy import switching, work_energy_fj
from archgym.envs.tpe.switching.line_drive import DEPTH, line_drive
from archgym.envs.tpe.technology.energies import load_energies
from archgym.envs.tpe.workload.operands import OperandDistribution

OPT1 = named_array("systolic_os/OPT1").pe
OPT2 = named_array("systolic_os/OPT2").pe
OPT4C = named_array("OPT4C").pe
VARIANTS: Mapping[str, PE] = {
    "OPT2": OPT2,
    "OPT2, A of 4 bits": replace(OPT2, width_a=4),
    "OPT2, A of 16 bits": replace(OPT2, width_a=16),
    "OPT2, B of 4 bits": replace(OPT2, width_b=4, accumulator_width=14),
    "OPT2, B of 16 bits": replace(OPT2, width_b=16, accumulator_width=26),
    "OPT2, 16 bits": replace(OPT2, width_a=16, width_b=16, accumulator_width=26),
    "OPT2, encoder inside": replace(OPT2, encoding="booth", encoder_place="pe"),
    "OPT2, two pairs": replace(OPT2, reduction=2, accumulator_width=20),
    "OPT2, two stages": replace(OPT2, pipeline_depth=2),
    "OPT1, digits arrive": replace(OPT1, encoder_place="edge"),
    "OPT4C, B of 16 bits": replace(OPT4C, width_b=16, accumulator_width=26),
}
# Synthesised netlists on uniform operands, 24 cycles, all signals settling at once, fJ a cycle.
MEASURED: Mapping[str, tuple[int, ...]] = {
    "nangate45": (3081, 1473, 5955, 1925, 5053, 11074, 2833, 4187, 3236, 1761, 1321),
    "sg13g2": (8839, 4630, 17333, 6089, 14443, 28081, 8992, 12516, 10929, 5502, 4203),
}


@pytest.mark.parametrize("library", MEASURED)
def test_energy_is_near_that_of_netlists_of_many_fan_outs(library: str) -> None:
    energies = load_energies(library)
    for (name, pe), measured in zip(VARIANTS.items(), MEASURED[library], strict=True):
        a, b = OperandDistribution.uniform(pe.width_a), OperandDistribution.uniform(pe.width_b)
        length = 24 * pe.operand_pairs
        signals = switching(pe.hardware(), a, b, accumulation_length=length, with_glitches=False)
        found = work_energy_fj(energies, signals)
        found += counts(pe.hardware()).register_bits * energies.register_clock
        assert found == pytest.approx(measured, rel=0.06), name
        if library == "nangate45" and name == "OPT2, 16 bits":
            without = found - signals["drive"] * energies.drive
            assert without < 0.8 * measured


def test_drive_by_hand() -> None:
    # A bit of B drives four partial products, a digit nine bits; then a full and a half adder.
    (stage,) = counts(OPT2.hardware()).stages
    assert stage.depth == 1.5
    assert line_drive(OPT2.hardware()) == pytest.approx(6.0 * 2.718281828 ** (-1.5 / DEPTH))
    wide, narrow = (line_drive(replace(OPT2, width_a=bits).hardware()) for bits in (16, 4))
    assert wide == pytest.approx(2.0 * narrow)
    deeper = replace(OPT2, reduction=4, accumulator_width=20)
    assert 0 < line_drive(deeper.hardware()) < 0.1 * line_drive(OPT2.hardware())


@pytest.mark.parametrize(
    "pe",
    [
        OPT1,  # the encoder is in the same stage
        replace(OPT2, pipeline_depth=2),  # registers follow
        named_array("systolic_os").pe,  # an adder follows
        replace(named_array("systolic_os").pe, encoder_place="edge"),
        replace(OPT1, encoding="radix2"),  # an AND array: nothing selects
    ],
)
def test_lines_that_do_not_limit_the_clock_have_none(pe: PE) -> None:
    assert line_drive(pe.hardware()) == 0.0
