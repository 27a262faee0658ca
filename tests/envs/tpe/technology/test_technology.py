"""Calibrated coefficients: what they predict, what they refuse, and how they are fitted."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from archgym.envs.tpe.calibration.area_and_delay import Sample, cross_validate, fit
from archgym.envs.tpe.calibration.calibration_set import calibration_set, classic_pes
from archgym.envs.tpe.calibration.recipes import RECIPES, make, read_samples
from archgym.envs.tpe.microarchitecture.edge import Barrier, OperandEncoder, ResultAdder
from archgym.envs.tpe.microarchitecture.pe import PE
from archgym.envs.tpe.microarchitecture.structure import CELLS, counts, edge_counts
from archgym.envs.tpe.technology.technology import (
    AREA_TERMS,
    Technology,
    area_terms,
    load_technology,
    technology_names,
)
from archgym.errors import InvalidValueError, UnknownNameError
from tests.envs.tpe.legal_pes import legal_pes

KEPT: dict[str, Any] = {"accumulator": "carry_save", "final_adder_place": "simd"}
DIGIT: dict[str, Any] = {
    **KEPT,
    "encoder_place": "edge",
    "bit_weights": "temporal_sparse",
    "shift_place": "simd",
}

MAC = PE(8, 8, 32)
OPT1 = PE(8, 8, 32, **KEPT)
OPT4C = PE(8, 8, 26, **DIGIT)
OPT4E = PE(8, 8, 26, lanes=4, **DIGIT)


def cycles_of_the_optimisations() -> dict[PE, float]:
    """PEs of the paper in its order, with cycles for a product of operands of N(0, 25).

    2.41 non-zero Booth and 2.22 EN-T digits (as the paper has it); OPT4E works on four products.
    """
    return dict(zip(classic_pes(), (1.0, 1.0, 1.0, 2.41, 2.22, 2.22 / 4), strict=True))


@pytest.fixture(params=["nangate45", "sg13g2"])
def technology(request: pytest.FixtureRequest) -> Technology:
    return load_technology(request.param)


def test_the_shipped_ones() -> None:
    assert {"nangate45", "sg13g2"} <= set(technology_names())
    for name in technology_names():
        error = load_technology(name).error
        assert error["area_mean"] < 0.05
        assert error["area_p90"] < 0.10
        assert error["period_mean"] < 0.07


def test_cost_of_a_product_falls_from_each_optimisation_to_the_next(technology: Technology) -> None:
    costs = [
        technology.pe_area_um2(pe) * technology.pe_period_ns(pe) * cycles
        for pe, cycles in cycles_of_the_optimisations().items()
    ]
    assert costs == sorted(costs, reverse=True)


def test_a_pe_that_looks_for_digits_waits_for_the_search(technology: Technology) -> None:
    # Its tree is that of the PE whose digits arrive. Among four digits the next one is found while
    # the tree adds; each further one makes the chain longer.
    finder = replace(OPT4C, encoder_place="pe")
    many = [replace(finder, width_a=width) for width in (16, 24, 32)]
    fed, four, *longer = (technology.pe_period_ns(pe) for pe in (OPT4C, finder, *many))
    assert fed <= four < longer[0]
    assert longer[2] - longer[1] == pytest.approx(longer[1] - longer[0])


def test_an_encoder_that_fills_a_register_is_small(technology: Technology) -> None:
    encoder, stored = (technology.area_um2_of[name] for name in ("encoder", "stored_encoder"))
    assert stored < 0.5 * encoder
    # What encoders at the edge came to with yosys 0.70, registers included.
    measured = {"nangate45": 108.0, "sg13g2": 1078.0}[technology.name]
    block = OperandEncoder(8, "booth")
    assert technology.edge_area_um2(block) == pytest.approx(measured, rel=0.1)


def test_carry_save_periods_do_not_depend_on_the_accumulator(technology: Technology) -> None:
    periods = [technology.pe_period_ns(replace(OPT1, accumulator_width=w)) for w in (20, 32, 48)]
    assert max(periods) / min(periods) < 1.05
    macs = [technology.pe_period_ns(replace(MAC, accumulator_width=w)) for w in (20, 32, 48)]
    assert macs == sorted(macs)
    assert macs[2] / macs[0] > 1.3


def test_more_hardware_is_larger(technology: Technology) -> None:
    for pe in (MAC, OPT1, OPT4C):
        wider = replace(pe, accumulator_width=pe.accumulator_width + 8)
        assert technology.pe_area_um2(wider) > technology.pe_area_um2(pe)
    assert technology.pe_area_um2(OPT4E) < 4 * technology.pe_area_um2(OPT4C)


def test_a_pipeline_register_shortens_the_period(technology: Technology) -> None:
    cut = replace(MAC, pipeline_depth=2)
    assert technology.pe_period_ns(cut) < technology.pe_period_ns(MAC)
    assert technology.pe_area_um2(cut) > technology.pe_area_um2(MAC)


def test_edges_do_not_slow_a_carry_save_array_down(technology: Technology) -> None:
    for block in (
        OperandEncoder(8, "booth"),
        OperandEncoder(8, "csd", serial=True, sparse=True),
        ResultAdder(1, 2, 32, 0, 32, "auto"),
        Barrier(32, 12),
    ):
        assert technology.edge_period_ns(block) < technology.pe_period_ns(MAC)
        assert technology.edge_area_um2(block) > 0


def test_bits_that_are_idle_cost_nothing(technology: Technology) -> None:
    # A Wallace tree of a product has one bit left in each of its low columns, which needs no adder.
    wallace, dadda = (
        counts(PE(16, 16, 40, compressor=tree, final_adder="ripple"))
        for tree in ("wallace", "dadda")
    )
    assert wallace["ripple_bit"] == dadda["ripple_bit"]
    saved = dadda.left("ripple_bit") - wallace.left("ripple_bit")
    assert saved > 1
    alone = technology.area_um2(replace(dadda, spared={})) - technology.area_um2(dadda)
    assert (
        alone > (dadda["ripple_bit"] - dadda.left("ripple_bit")) * technology.area_um2_of["ripple"]
    )


def test_area_terms_leave_no_cell_out() -> None:
    free = {"half_adder_one", "serial_encoder", "prefix_sum"}
    for kind in set(CELLS) - free:
        block = replace(counts(MAC), cells={kind: 1}, spared={})
        assert sum(area_terms(block).values()) == 1, kind


def test_json_round_trip(technology: Technology, tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(technology.to_json()))
    assert load_technology(path) == technology
    assert load_technology(path).sha256 == technology.sha256


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 1}, "simulators calibrate"),
        ({"area_um2_of": {}}, "area_um2_of must have exactly"),
        ({"title": 3}, "must be texts"),
        ({"error": {"area_mean": "small"}}, "area_mean is 'small'"),
        ({"energy": []}, "table of numbers"),
    ],
)
def test_files_that_are_no_technology(change: dict[str, object], message: str) -> None:
    card = load_technology("nangate45").to_json() | change
    with pytest.raises(InvalidValueError, match=message):
        Technology.from_json(card)


def test_negative_areas_are_refused() -> None:
    card = load_technology("nangate45").to_json()
    card["area_um2_of"] = {**card["area_um2_of"], "register": -1.0}
    with pytest.raises(InvalidValueError, match=r"register is -1\.0"):
        Technology.from_json(card)


def test_unknown_names(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'nangate45'"):
        load_technology("nangate")
    broken = tmp_path / "x.json"
    broken.write_text("{")
    with pytest.raises(InvalidValueError, match="no JSON"):
        load_technology(broken)


def samples_of(technology: Technology) -> list[Sample]:
    return [
        Sample(counts(pe), technology.pe_area_um2(pe), technology.pe_period_ns(pe))
        for pe in calibration_set()
    ]


def test_calibration_finds_what_made_the_samples(technology: Technology) -> None:
    # A library that is exactly as the model has it: the fit must give its figures back.
    fitted = fit(samples_of(technology), pull=1e-9)
    for pe in (*calibration_set(), replace(MAC, accumulator_width=28), replace(OPT1, width_b=16)):
        c = counts(pe)
        assert fitted.area_um2(c) == pytest.approx(technology.area_um2(c), rel=1e-3)
        assert fitted.min_period_ns(c) == pytest.approx(technology.min_period_ns(c), rel=1e-2)


def test_calibration_scales_with_the_library(technology: Technology) -> None:
    small = samples_of(technology)
    large = [replace(s, area_um2=9 * s.area_um2, min_period_ns=4 * s.min_period_ns) for s in small]
    one, other = fit(small), fit(large)
    assert other.area_um2_of["register"] == pytest.approx(9 * one.area_um2_of["register"])
    assert other.delay_ns_of["level"] == pytest.approx(4 * one.delay_ns_of["level"], rel=1e-6)


def test_noise_is_averaged_out(technology: Technology) -> None:
    rng = np.random.default_rng(0)
    noisy = [
        replace(
            s,
            area_um2=s.area_um2 * float(np.exp(0.04 * rng.standard_normal())),
            min_period_ns=s.min_period_ns * float(np.exp(0.06 * rng.standard_normal())),
        )
        for s in samples_of(technology)
    ]
    like = [load_technology(name) for name in technology_names()]
    fitted = fit(noisy, pull=0.1, like=like)
    errors = [fitted.min_period_ns(s.counts) / s.min_period_ns - 1 for s in samples_of(technology)]
    assert float(np.mean(np.abs(errors))) < 0.05
    assert float(np.mean(np.abs(cross_validate(noisy, pull=0.1, like=like)["area"]))) < 0.07


def test_the_later_blocks_of_the_calibration_set_tell_what_the_first_leave_open() -> None:
    # What noisy blocks say of PEs that are in no calibration, of a library with known figures.
    technology, others = load_technology("nangate45"), legal_pes(120, seed=5)
    like = [load_technology("sg13g2")]
    errors: dict[int, list[float]] = {40: [], 64: []}
    for seed in range(4):
        rng = np.random.default_rng(seed)
        noisy = [
            replace(
                s,
                area_um2=s.area_um2 * float(np.exp(0.03 * rng.standard_normal())),
                min_period_ns=s.min_period_ns * float(np.exp(0.05 * rng.standard_normal())),
            )
            for s in samples_of(technology)
        ]
        for size, found in errors.items():
            fitted = fit(noisy[:size], pull=0.005, like=like)
            found += [
                abs(fitted.min_period_ns(counts(pe)) / technology.pe_period_ns(pe) - 1)
                for pe in others
            ]
    assert np.mean(errors[64]) < 0.8 * np.mean(errors[40])


def test_calibration_needs_blocks() -> None:
    with pytest.raises(InvalidValueError, match="too few"):
        fit([Sample(counts(MAC), 1.0, 1.0)] * 3)
    with pytest.raises(InvalidValueError, match="no area"):
        fit([Sample(counts(MAC), 0.0, 1.0)] * 12)


def test_the_calibration_set_has_every_kind_of_cell_of_a_pe() -> None:
    chosen = calibration_set()
    assert len(set(chosen)) == len(chosen) == 64
    terms = {name for pe in chosen for name, n in area_terms(counts(pe)).items() if n}
    assert set(AREA_TERMS) - terms == {"recoding"}
    assert area_terms(edge_counts(OperandEncoder(8, "ent")))["recoding"] > 0


@pytest.mark.parametrize("name", RECIPES)
def test_what_ships_is_what_the_recipe_makes(name: str) -> None:
    # Counts that change without a new fit would leave coefficients of other cells behind.
    shipped, made = load_technology(name), make(name, read_samples())
    assert made.source == shipped.source
    for table in ("area_um2_of", "delay_ns_of", "error", "energy"):
        found, kept = getattr(made, table), getattr(shipped, table)
        assert found == pytest.approx(kept, rel=2e-3, abs=1e-6), table


def test_recipes_of_technologies_refuse_what_they_do_not_know(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'sg13g2'"):
        make("sg13g3", read_samples())
    table = tmp_path / "samples.csv"
    table.write_text("technology,area_um2\nsg13g2,3\n")
    with pytest.raises(InvalidValueError, match="min_period_ns"):
        read_samples(table)
