"""Costs of operations, accesses and area: published points, and how they scale."""

from __future__ import annotations

import pytest

from archgym.envs.accelerator.cost.energy import accesses, area, clock_mhz, maestro_power_mw
from archgym.envs.accelerator.cost.hardware import Hardware
from archgym.envs.accelerator.cost.model import evaluate
from archgym.envs.accelerator.cost.technology import TECHNOLOGIES, technology
from archgym.envs.accelerator.workload.layer import Layer
from archgym.errors import InvalidValueError, UnknownNameError
from tests.envs.accelerator.random_designs import table

DESIGN = Hardware("nvdla_ws", 16, 16)


@pytest.mark.parametrize(
    ("pes", "lanes", "l1", "l2", "noc", "area_um2", "power_mw"),
    [  # MAESTRO 4eb08d1's own output: its figures have six digits
        (64, 1, 54, 2306, 64, 8.53948e6, 149.538),
        (256, 1, 54, 4928, 4, 3.55677e7, 418.897),
        (256, 1, 54, 4928, 64, 5.8669e7, 600.451),
    ],
)
def test_maestro28_gives_maestros_area_and_power(
    pes: int, lanes: int, l1: int, l2: int, noc: int, area_um2: float, power_mw: float
) -> None:
    design = Hardware(
        "nvdla_ws",
        pes // 16,
        16,
        lanes=lanes,
        input_rf_bytes=l1,
        weight_rf_bytes=0,
        output_rf_bytes=0,
        buffer_bytes=l2,
        noc_bytes_per_cycle=noc,
        technology="maestro28",
    )
    assert area(design).total_um2 == pytest.approx(area_um2, rel=1e-5)
    assert maestro_power_mw(design) == pytest.approx(power_mw, rel=1e-5)


def test_published_points_at_45_nm() -> None:
    """Horowitz, ISSCC 2014: an 8-bit product 0.2 pJ, a 32-bit sum 0.1, 64 bits of 32 KiB 20."""
    assert accesses(DESIGN.replace(accumulator_bits=32)).mac_pj == pytest.approx(0.3)
    table_45 = technology("cmos45")
    one_bank = DESIGN.replace(buffer_bytes=32768, banks=1)
    buffer_mm = area(one_bank).buffer_um2 ** 0.5 / 1000
    wire = table_45.wire_pj * 64 * buffer_mm / 2
    assert 8 * accesses(one_bank).buffer_pj - wire == pytest.approx(20.0)
    # Accelergy's Eyeriss example: 192 words of 16 bits, 1.98 pJ at 65 nm.
    eyeriss = DESIGN.replace(word_bits=16, weight_rf_bytes=384, technology="cmos65")
    assert accesses(eyeriss).weight_rf_pj == pytest.approx(1.98, rel=0.02)


def test_energy_and_area_shrink_with_the_node() -> None:
    nodes = [name for name in TECHNOLOGIES if name != "maestro28"]
    macs = [accesses(DESIGN.replace(technology=name)).mac_pj for name in nodes]
    sizes = [area(DESIGN.replace(technology=name)).macs_um2 for name in nodes]
    assert macs == sorted(macs, reverse=True)
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] / sizes[1] == pytest.approx((65 / 45) ** 2)


def test_larger_memories_and_words_cost_more() -> None:
    wide = DESIGN.replace(word_bits=16, accumulator_bits=40)
    assert accesses(wide).mac_pj > accesses(DESIGN).mac_pj
    deep = DESIGN.replace(weight_rf_bytes=4 * DESIGN.weight_rf_bytes)
    assert accesses(deep).weight_rf_pj > accesses(DESIGN).weight_rf_pj
    assert area(deep).register_files_um2 > area(DESIGN).register_files_um2
    large = DESIGN.replace(buffer_bytes=4 * DESIGN.buffer_bytes)
    assert accesses(large).buffer_pj > accesses(DESIGN).buffer_pj
    banked = DESIGN.replace(banks=64)
    assert accesses(banked).buffer_pj < accesses(DESIGN).buffer_pj
    assert area(banked).buffer_um2 > area(DESIGN).buffer_um2
    smart = DESIGN.replace(memory_classes=("smartbuffer_RF", "regfile", "regfile", "SRAM"))
    assert accesses(smart).input_rf_pj > accesses(DESIGN).input_rf_pj
    assert area(DESIGN.replace(spare_pes=5)).macs_um2 > area(DESIGN).macs_um2
    assert area(DESIGN.replace(unused_bytes=64)).total_um2 > area(DESIGN).total_um2


def test_power_is_energy_over_time_and_the_clock_scales_time() -> None:
    layer = Layer("conv", "conv", K=32, C=32, R=3, S=3, P=14, Q=14)
    slow, fast = DESIGN.replace(clock_mhz=100.0), DESIGN.replace(clock_mhz=200.0)
    found = evaluate(table(layer), [slow, fast]).metrics()
    assert found["latency_cycles"][0] == found["latency_cycles"][1]
    assert found["latency_ns"][0] == 2 * found["latency_ns"][1]
    assert found["latency_ns"][0] == found["latency_cycles"][0] * 10
    assert found["power_mw"] == pytest.approx(found["energy_pj"] / found["latency_ns"])
    assert found["edp_js"] == pytest.approx(found["energy_pj"] * 1e-12 * found["latency_ns"] * 1e-9)
    assert clock_mhz(DESIGN) == technology("cmos45").clock_mhz


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"dataflow": "nvdla"}, UnknownNameError, "nvdla_ws"),
        ({"rows": 0}, InvalidValueError, "rows is 0"),
        ({"noc_bytes_per_cycle": 0}, InvalidValueError, "noc_bytes_per_cycle is 0"),
        ({"clock_mhz": -1.0}, InvalidValueError, "clock_mhz"),
        ({"dram_links": "sharde"}, UnknownNameError, "Did you mean 'shared'"),
        ({"buffer_split_bytes": (1, 2, 3)}, InvalidValueError, "sum to"),
        ({"prefetch": "storage_order"}, InvalidValueError, "buffer_split_bytes"),
        ({"tiles": "divides"}, UnknownNameError, "Did you mean 'divide'"),
        ({"victory_condition": -1}, InvalidValueError, "victory_condition is -1"),
        ({"drains": "yes"}, InvalidValueError, "drains is 'yes'"),
        ({"memory_classes": ("ram",) * 4}, UnknownNameError, "SRAM"),
    ],
)
def test_impossible_hardware_is_refused(
    change: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        DESIGN.replace(**change)


def test_unknown_technologies_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'cmos28'"):
        technology("cmos-28")


def test_the_memory_interface_is_priced_by_bandwidth_and_node() -> None:
    """A fifth of 1.3 mm2 for 16 bits of 2133 Mb/s at 40 nm (McPAT): 0.061 mm2 for each GB/s."""
    design = DESIGN.replace(technology="cmos45", clock_mhz=1000.0, dram_bytes_per_cycle=8.0)
    at_45 = area(design).interface_um2
    assert at_45 == pytest.approx(8 * 60_947 * (45 / 40) ** 2, rel=1e-3)
    assert area(design.replace(dram_bytes_per_cycle=16.0)).interface_um2 == 2 * at_45
    small = area(design.replace(technology="cmos7")).interface_um2
    assert small == pytest.approx(at_45 * (7 / 45) ** 2)
