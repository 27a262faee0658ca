"""The batched model gives what its parts give for one array at a time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from archgym.envs.tpe.cost.cycles import Schedules, workload_cycles
from archgym.envs.tpe.cost.model import SCOPES, EngineModel
from archgym.envs.tpe.cost.table import ArrayTable
from archgym.envs.tpe.microarchitecture.edge import edge_blocks, segment_bits
from archgym.envs.tpe.microarchitecture.pe import Array
from archgym.envs.tpe.microarchitecture.structure import edge_counts
from archgym.envs.tpe.space.design_space import array_of, design_space
from archgym.envs.tpe.switching.array_energy import EnergyModel
from archgym.envs.tpe.technology.technology import Technology, load_technology
from archgym.envs.tpe.workload.workload import Workload, load_workload

SPACE = design_space((4, 4))
WORKLOADS = ("resnet18", "digits_cnn")


def one_by_one(
    arrays: list[Array], technology: Technology, workload: Workload, *, alone: bool
) -> dict[str, np.ndarray]:
    """Area, period, cycles and energy from the scalar functions."""
    area = np.array([technology.pe_area_um2(array.pe) * array.pes for array in arrays])
    period = np.array([technology.pe_period_ns(array.pe) for array in arrays])
    if not alone:
        for i, array in enumerate(arrays):
            for block, count in edge_blocks(array):
                area[i] += count * technology.edge_area_um2(block)
                period[i] = max(period[i], technology.edge_period_ns(block))
    cycles = workload_cycles(Schedules.of(arrays), workload).sum(axis=1)
    model = EnergyModel(technology.energies, workload, edge_counts)
    energy = model.dynamic_energy_pj(arrays, cycles, edges=not alone)
    energy = energy + model.leakage_power_mw(area) * period * cycles
    return {"area": area, "period": period, "cycles": cycles, "energy": energy}


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("name", WORKLOADS)
def test_a_batch_is_what_its_parts_are(name: str, scope: str) -> None:
    technology, workload = load_technology("nangate45"), load_workload(name)
    alone = scope == "pe"
    designs = (
        design_space(workload.widths)
        .fix({"clock": "fastest"})
        .sample(120, np.random.default_rng(8))
    )
    arrays = [array_of(design) for design in designs]
    if alone:
        arrays = [replace(array, rows=1, columns=1) for array in arrays]
    expected = one_by_one(arrays, technology, workload, alone=alone)
    model = EngineModel(technology, workload, scope)
    for _ in range(2):  # the second time from what is kept
        results = model.evaluate(designs)
        rows = [result for result in results if not isinstance(result, Exception)]
        assert len(rows) == len(designs)
        found = {key: np.array([row[key] for row in rows]) for key in rows[0]}
        np.testing.assert_allclose(found["area_um2"], expected["area"], rtol=1e-9)
        np.testing.assert_allclose(found["min_period_ns"], expected["period"], rtol=1e-9)
        np.testing.assert_allclose(
            found["macs_per_cycle_rate"], workload.macs / expected["cycles"], rtol=1e-9
        )
        np.testing.assert_allclose(
            found["energy_per_mac_pj"] * workload.macs, expected["energy"], rtol=1e-9
        )


def test_a_table_has_the_fields_of_its_arrays() -> None:
    table = ArrayTable(SPACE.sample(200, np.random.default_rng(6)))
    for row in range(len(table)):
        array = table.array(row)
        pe = array.pe
        own = {
            "rows": array.rows,
            "columns": array.columns,
            "accumulation_length": array.accumulation_length,
            "pairs": pe.operand_pairs,
            "digits": pe.digits,
            "digit_bits": pe.digit_bits,
            "words": pe.words,
            "accumulators": pe.accumulators,
            "partial_products": pe.partial_products,
            "temporal": pe.temporal,
            "hoisted": pe.shift_hoisted,
            "has_encoder": pe.has_encoder,
            "cut_encode": "encode" in pe.cuts,
            "cut_select": "select" in pe.cuts,
            "cut_reduce": "reduce" in pe.cuts,
            "cut_add": "add" in pe.cuts,
            "segment": segment_bits(array),
            "clock_mhz": array.clock_mhz,
        }
        assert {name: getattr(table, name)[row] for name in own} == own


def test_no_designs_give_no_results() -> None:
    model = EngineModel(load_technology("nangate45"), load_workload("resnet18"))
    assert model.evaluate(SPACE.designs([])) == []
