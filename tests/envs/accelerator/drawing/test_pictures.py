"""Pictures of designs: what is drawn, not how it looks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from archgym.envs.accelerator.cost.hardware import DATAFLOWS, Hardware
from archgym.envs.accelerator.drawing.pictures import (
    LayerPicture,
    draw_design,
    energy_figure,
    layer_pictures,
    roofline_figure,
    save_figure,
)
from archgym.envs.accelerator.drawing.schematic import schematic_figure
from archgym.envs.accelerator.environment import AcceleratorEnvironment
from archgym.errors import InvalidValueError

DESIGN = Hardware("nvdla_ws", rows=16, columns=8, dram_bytes_per_cycle=4.0, noc_bytes_per_cycle=32)


def layer(name: str, kind: str, macs: float, cycles: float, traffic: float) -> LayerPicture:
    energy = {"mac": macs, "register_file": 2 * macs, "dram": 50 * traffic}
    return LayerPicture(name, kind, macs, cycles, traffic, energy)


LAYERS = [
    layer("stem", "conv", 1000.0, 10.0, 50.0),
    layer("dw", "depthwise", 200.0, 100.0, 100.0),
    layer("fc", "gemm", 400.0, 100.0, 400.0),
]


def dots(figure: Any) -> dict[str, list[list[float]]]:
    """Position of the dots of each kind."""
    (axes,) = figure.axes
    return {
        str(collection.get_label()): np.asarray(collection.get_offsets()).tolist()
        for collection in axes.collections
        if len(collection.get_offsets()) and not str(collection.get_label()).startswith("_")
    }


def texts(figure: Any) -> str:
    return "\n".join(text.get_text() for axes in figure.axes for text in axes.texts)


def test_layers_stand_at_their_intensity_and_rate() -> None:
    found = dots(roofline_figure(DESIGN, LAYERS, "test"))
    assert found["conv"] == [[20.0, 100.0]]
    assert found["depthwise"] == [[2.0, 2.0]]
    assert found["gemm"] == [[1.0, 4.0]]
    # The whole network: 1600 MACs, 550 bytes, 210 cycles.
    assert found["network"] == [[pytest.approx(1600 / 550), pytest.approx(1600 / 210)]]


def test_the_roof_bends_where_memory_and_array_are_equally_fast() -> None:
    (axes,) = roofline_figure(DESIGN, LAYERS, "test").axes
    (line,) = axes.lines
    across, up = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
    ridge = 128 / 4
    assert up[across < ridge] == pytest.approx(4 * across[across < ridge])
    assert (up[across > ridge] == 128).all()
    assert across[0] < 1.0 < 20.0 < across[-1]


def test_three_links_make_the_roof_three_times_as_steep() -> None:
    (axes,) = roofline_figure(DESIGN.replace(dram_links="separate"), LAYERS, "test").axes
    across, up = axes.lines[0].get_data()
    assert np.asarray(up)[0] == pytest.approx(12 * np.asarray(across)[0])


def test_the_largest_shares_of_time_are_named() -> None:
    named = texts(roofline_figure(DESIGN, LAYERS, "test"))
    assert "dw  48%" in named
    assert "fc  48%" in named
    assert "stem  5%" in named


def test_bars_add_up_to_the_energy() -> None:
    many = [layer(f"layer{i}", "conv", 100.0 + i, 10.0, 50.0) for i in range(40)]
    figure = energy_figure(many, "test")
    whole, each = figure.axes
    bars: Any = [whole.patches, each.patches]
    assert sum(bar.get_width() for bar in bars[0]) == pytest.approx(100.0)
    assert "other layers" in [label.get_text() for label in each.get_yticklabels()][-1]
    total = sum(sum(one.energy_pj.values()) for one in many)
    assert each.get_xlabel() == "energy, nJ"
    assert sum(bar.get_width() for bar in bars[1]) == pytest.approx(total / 1e3)


@pytest.mark.parametrize("dataflow", DATAFLOWS)
def test_the_schematic_says_what_the_design_has(dataflow: str) -> None:
    hardware = DESIGN.replace(
        dataflow=dataflow,
        buffer_bytes=6144,
        buffer_split_bytes=(1024, 2048, 3072),
        input_rf_bytes=0,
        weights_bypass_buffer=True,
    )
    said = texts(schematic_figure(hardware, "test"))
    for part in ("16 x 8 processing elements", "6 KiB", "weights: 2 KiB", "4 B\na cycle"):
        assert part in said
    assert "inputs: no register file" in said
    assert "weights go past the buffer" in said


def test_a_small_array_is_drawn_whole_and_a_large_one_in_part() -> None:
    def squares(rows: int, columns: int) -> int:
        figure = schematic_figure(DESIGN.replace(rows=rows, columns=columns), "test")
        colours = [patch.get_facecolor() for patch in figure.axes[0].patches]
        return max(map(colours.count, colours))

    assert squares(2, 3) == 6
    assert squares(256, 256) == squares(1000, 64) == 25


@pytest.mark.parametrize("space", ["template", "mapping", "eyeriss"])
def test_a_design_of_the_environment_is_drawn(tmp_path: Path, space: str) -> None:
    env = AcceleratorEnvironment(workload="mobilenet_v2", space=space)
    paths = draw_design(
        env.costs(env.baseline_design), env.network, tmp_path / "new" / "folder", "svg"
    )
    assert [path.name for path in paths] == ["roofline.svg", "energy.svg", "schematic.svg"]
    layers = layer_pictures(env.costs(env.baseline_design), env.network)
    metrics = env.evaluate(env.baseline_design).metrics
    assert sum(one.macs for one in layers) == env.network.macs
    assert sum(one.cycles for one in layers) == pytest.approx(metrics["latency_cycles"])
    total = sum(sum(one.energy_pj.values()) for one in layers)
    assert total == pytest.approx(metrics["energy_pj"])


def test_no_layer_lies_above_the_roof() -> None:
    env = AcceleratorEnvironment(workload="resnet50")
    for design in env.design_space.sample(20, np.random.default_rng(3)):
        hardware = env.hardware(design)
        if env.costs(design).unmapped(0):
            continue
        for one in layer_pictures(env.costs(design), env.network):
            rate = one.macs / one.cycles
            assert rate <= hardware.macs_per_cycle * (1 + 1e-9)
            slope = hardware.dram_bytes_per_cycle * one.macs / one.dram_bytes
            assert rate <= slope * (1 + 1e-9)


def test_hardware_for_every_layer_is_no_one_picture(tmp_path: Path) -> None:
    env = AcceleratorEnvironment(workload="alexnet", space="per_layer")
    with pytest.raises(InvalidValueError, match="every layer has its own hardware"):
        draw_design(env.costs(env.baseline_design), env.network, tmp_path)


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_pictures_are_written(tmp_path: Path, ending: str) -> None:
    path = save_figure(schematic_figure(DESIGN, "test"), tmp_path / f"design.{ending}")
    start = path.read_bytes()[:100]
    assert start.startswith(b"\x89PNG") if ending == "png" else b"xml" in start


def test_a_picture_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    figure = schematic_figure(DESIGN, "test")
    with pytest.raises(InvalidValueError, match="cannot write the picture"):
        save_figure(figure, tmp_path / "missing" / "design.png")
    with pytest.raises(InvalidValueError, match="cannot write the picture"):
        save_figure(figure, tmp_path / "design.nonsense")
