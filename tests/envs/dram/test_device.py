"""Devices: shipped data sheets, derived figures, files of one's own, bad files."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from archgym.envs.dram import device as module
from archgym.envs.dram.device import Device, device_names, load_device
from archgym.errors import InvalidValueError, UnknownNameError

SHIPPED = Path(module.__file__).parent / "devices"


def sheet(name: str = "DDR3-1600") -> dict[str, Any]:
    document: dict[str, Any] = json.loads((SHIPPED / f"{name}.json").read_text())
    return document


def written(folder: Path, document: object) -> Path:
    path = folder / "mine.json"
    path.write_text(json.dumps(document))
    return path


def test_names() -> None:
    assert device_names() == ("DDR3-1600", "DDR4-2400")


def test_derived_figures_of_ddr3() -> None:
    device = load_device("DDR3-1600")
    assert device.bytes_per_request == 64
    assert device.burst_cycles == 4
    assert device.capacity_bytes == 2**30
    assert device.address_bits == 30
    assert device.banks_per_group == 8
    assert device.read_to_write_cycles == 10 + 4 + 2 - 8
    assert device.peak_bandwidth_gb_per_s == pytest.approx(12.8)


def test_derived_figures_of_ddr4() -> None:
    device = load_device("DDR4-2400")
    assert device.bytes_per_request == 64
    assert device.capacity_bytes == 2**32
    assert device.banks_per_group == 4
    assert device.read_to_write_cycles == 16 + 4 + 1 + 1 - 16


@pytest.mark.parametrize("name", device_names())
def test_every_figure_names_a_source(name: str) -> None:
    document = sheet(name)
    figures = [
        entry
        for section in ("organisation", "timing", "power")
        for entry in document[section].values()
    ]
    assert len(figures) > 30
    for entry in figures:
        assert entry["source"] in document["sources"]


@pytest.mark.parametrize("name", device_names())
def test_shipped_timings_are_consistent(name: str) -> None:
    device = load_device(name)
    assert device.name == name
    assert device.t_ras_cycles + device.t_rp_cycles <= device.t_rc_cycles
    assert device.t_rcd_cycles < device.t_ras_cycles
    assert 4 * device.t_rrd_s_cycles <= device.t_faw_cycles


def test_the_same_name_gives_the_same_object() -> None:
    assert load_device("DDR4-2400") is load_device("DDR4-2400")


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    document = sheet("DDR4-2400")
    document["name"] = "DDR4-test"
    document["timing"]["t_rcd_cycles"] = 18
    device = load_device(written(tmp_path, document))
    assert device.name == "DDR4-test"
    assert device.t_rcd_cycles == 18
    assert load_device(str(tmp_path / "mine.json")) == device


def test_unknown_name() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'DDR3-1600'"):
        load_device("DDR3-1660")
    with pytest.raises(UnknownNameError, match="DDR4-2400"):
        load_device("/no/such/file.json")


def test_a_file_that_is_not_json(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text("{")
    with pytest.raises(InvalidValueError, match=r"mine\.json.*JSON"):
        load_device(path)
    with pytest.raises(InvalidValueError, match="object"):
        load_device(written(tmp_path, [1]))


def test_a_missing_figure_is_named(tmp_path: Path) -> None:
    document = sheet()
    del document["timing"]["t_faw_cycles"]
    with pytest.raises(InvalidValueError, match="t_faw_cycles"):
        load_device(written(tmp_path, document))


def test_a_missing_section_is_named(tmp_path: Path) -> None:
    document = sheet()
    del document["power"]
    with pytest.raises(InvalidValueError, match="power"):
        load_device(written(tmp_path, document))


def test_an_unknown_figure_is_named(tmp_path: Path) -> None:
    document = sheet()
    document["timing"]["t_fow_cycles"] = 3
    with pytest.raises(UnknownNameError, match=r"t_fow_cycles.*Did you mean 't_faw_cycles'"):
        load_device(written(tmp_path, document))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("t_rcd_cycles", 0),
        ("t_rcd_cycles", 10.5),
        ("t_rcd_cycles", "10"),
        ("t_rcd_cycles", None),
        ("idd0_ma", -1.0),
        ("idd0_ma", True),
        ("banks", 6),
        ("bank_groups", 3),
        ("t_ccd_s_cycles", 3),
        ("t_ccd_l_cycles", 3),
        ("t_rrd_l_cycles", 4),
        ("t_refi_cycles", 100),
        ("rows", 1000),
    ],
)
def test_senseless_figures_are_named(field: str, value: Any) -> None:
    with pytest.raises(InvalidValueError, match=field.removesuffix("_cycles")):
        dataclasses.replace(load_device("DDR3-1600"), **{field: value})


def test_more_groups_than_banks() -> None:
    with pytest.raises(InvalidValueError, match="bank groups"):
        dataclasses.replace(load_device("DDR3-1600"), bank_groups=16)


def test_unknown_standard(tmp_path: Path) -> None:
    document = sheet()
    document["standard"] = "DDR9"
    with pytest.raises(UnknownNameError, match="DDR9"):
        load_device(written(tmp_path, document))
    document["standard"] = 4
    with pytest.raises(InvalidValueError, match="standard"):
        load_device(written(tmp_path, document))


def test_devices_compare_by_value() -> None:
    device = load_device("DDR3-1600")
    assert dataclasses.replace(device) == device
    assert isinstance(device, Device)
    assert hash(dataclasses.replace(device)) == hash(device)
