"""Devices: shipped data sheets, derived figures, user files, bad files."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from archgym.envs.dram.device import device as module
from archgym.envs.dram.device.data_sheets import device_names, load_device
from archgym.envs.dram.device.device import Device
from archgym.errors import InvalidValueError, UnknownNameError

SHIPPED = Path(module.__file__).parent / "sheets"


def sheet(name: str = "DDR3-1600") -> dict[str, Any]:
    document: dict[str, Any] = json.loads((SHIPPED / f"{name}.json").read_text())
    return document


def written(folder: Path, document: object) -> Path:
    path = folder / "mine.json"
    path.write_text(json.dumps(document))
    return path


def test_names() -> None:
    assert set(device_names()) >= {
        "DDR3-1600",
        "DDR4-2400",
        "LPDDR4-3200",
        "DDR5-4800",
        "HBM2-2000",
    }
    assert list(device_names()) == sorted(device_names())


def test_derived_figures_of_ddr3() -> None:
    device = load_device("DDR3-1600")
    assert device.bytes_per_request == 64
    assert device.burst_cycles == 4
    assert device.capacity_bytes == 2**30
    assert device.address_bits == 30
    assert device.banks_per_group == 8
    assert device.peak_bandwidth_gb_per_s == pytest.approx(12.8)


def test_derived_figures_of_ddr4() -> None:
    device = load_device("DDR4-2400")
    assert device.bytes_per_request == 64
    assert device.capacity_bytes == 2**32
    assert device.banks_per_group == 4


@pytest.mark.parametrize(
    ("name", "burst", "request_bytes", "peak"),
    [
        ("DDR3-1600", 4, 64, 12.8),
        ("DDR4-2400", 4, 64, 19.2),
        ("DDR4-3200", 4, 64, 25.6),
        # A 32-bit subchannel; a 16-bit channel; a 64-bit pseudo channel.
        ("DDR5-4800", 8, 64, 19.2),
        ("LPDDR4-3200", 8, 32, 6.4),
        ("LPDDR5-6400", 2, 32, 12.8),
        ("HBM2-2000", 2, 32, 16.0),
    ],
)
def test_bursts_of_the_standards(name: str, burst: int, request_bytes: int, peak: float) -> None:
    device = load_device(name)
    assert device.burst_cycles == burst
    assert device.bytes_per_request == request_bytes
    assert device.peak_bandwidth_gb_per_s == pytest.approx(peak, rel=2e-3)


@pytest.mark.parametrize("name", device_names())
def test_every_figure_names_a_source(name: str) -> None:
    document = sheet(name)
    sections = [document["organisation"], document["timing"], *document["power"].values()]
    figures = [entry for section in sections for entry in section.values()]
    assert len(figures) > 30
    for entry in figures:
        assert entry["source"] in document["sources"]


@pytest.mark.parametrize("name", device_names())
def test_shipped_timings_are_consistent(name: str) -> None:
    device = load_device(name)
    assert device.name == name
    assert device.t_ras_cycles + device.t_rp_cycles <= device.t_rc_cycles
    assert device.t_rcd_cycles < device.t_ras_cycles
    assert 3 * device.t_rrd_s_cycles < device.t_faw_cycles
    assert device.t_rp_ab_cycles == 0 or device.t_rp_ab_cycles >= device.t_rp_cycles


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
    with pytest.raises(InvalidValueError, match=r"no DRAM device file '/no/such/file\.json'"):
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
    with pytest.raises(InvalidValueError, match=r"mine\.json: t_faw_cycles missing"):
        load_device(written(tmp_path, document))


@pytest.mark.parametrize("value", [-5, 0, 2.5, "5", None, True])
def test_file_figure_and_value_are_named(tmp_path: Path, value: Any) -> None:
    document = sheet()
    document["timing"]["t_rrd_l_cycles"] = {"value": value, "source": "J"}
    with pytest.raises(InvalidValueError, match=rf"mine\.json.*t_rrd_l_cycles is {value!r}"):
        load_device(written(tmp_path, document))


def test_a_negative_optional_figure_is_named(tmp_path: Path) -> None:
    document = sheet()
    document["timing"]["t_xp_cycles"] = -1
    with pytest.raises(InvalidValueError, match=r"mine\.json.*t_xp_cycles is -1"):
        load_device(written(tmp_path, document))


def test_bad_supplies_are_named(tmp_path: Path) -> None:
    document = sheet()
    document["power"]["VDD"]["idd3n_ma"] = -45
    with pytest.raises(InvalidValueError, match=r"mine\.json.*VDD idd3n_ma is -45"):
        load_device(written(tmp_path, document))
    document["power"]["VDD"] = {"idd3n_ma": 45}
    with pytest.raises(InvalidValueError, match=r"mine\.json: voltage_v of supply VDD missing"):
        load_device(written(tmp_path, document))
    document["power"]["VDD"] = {"voltage_v": 1.5, "idd3m_ma": 45}
    with pytest.raises(UnknownNameError, match="supply VDD: unknown current 'idd3m_ma'"):
        load_device(written(tmp_path, document))
    document["power"] = {"VDD": 1.5}
    with pytest.raises(InvalidValueError, match=r"power\.VDD must be an object"):
        load_device(written(tmp_path, document))
    document["power"] = {}
    assert load_device(written(tmp_path, document)).supplies == ()


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
        ("t_rfc_pb_cycles", 40),
        ("t_refi_sb_cycles", 4000),
        ("banks", 128),
        ("banks", 6),
        ("bank_groups", 3),
        ("t_ccd_s_cycles", 3),
        ("t_ccd_l_cycles", 3),
        ("t_rrd_l_cycles", 4),
        ("t_rc_cycles", 20),
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


MEMSPEC: dict[str, Any] = {
    "memoryId": "my LPDDR4",
    "memoryType": "LPDDR4",
    "memarchitecturespec": {
        "burstLength": 16,
        "dataRate": 2,
        "nbrOfBanks": 8,
        "nbrOfColumns": 1024,
        "nbrOfRanks": 1,
        "nbrOfRows": 65536,
        "width": 16,
        "nbrOfDevices": 1,
        "nbrOfChannels": 1,
    },
    "memtimingspec": {
        "CCD": 8, "CKE": 12, "CMDCKE": 3, "DQS2DQ": 2, "DQSCK": 6, "DQSS": 1, "FAW": 64, "PPD": 4,
        "RCD": 29, "REFI": 6246, "REFIPB": 780, "RFCAB": 448, "RFCPB": 224, "RL": 28, "RAS": 68,
        "RPAB": 34, "RPPB": 30, "RCAB": 102, "RCPB": 98, "RPST": 0, "RRD": 16, "RTP": 12, "SR": 24,
        "WL": 14, "WPRE": 2, "WR": 27, "WTR": 15, "XP": 11, "XSR": 460, "RTRS": 1, "tCK": 625,
    },
}  # fmt: skip


class TestMemspec:
    """Files in the form of DRAMSys."""

    def test_every_figure(self, tmp_path: Path) -> None:
        device = load_device(written(tmp_path, MEMSPEC))
        assert (device.name, device.standard) == ("my LPDDR4", "LPDDR4")
        assert (device.banks, device.rows, device.columns) == (8, 65536, 1024)
        assert (device.device_width_bits, device.devices_per_rank) == (16, 1)
        assert (device.t_ck_ps, device.burst_length) == (625, 16)
        assert (device.rl_cycles, device.wl_cycles, device.t_rcd_cycles) == (28, 14, 29)
        assert (device.t_rp_cycles, device.t_rp_ab_cycles) == (30, 34)
        assert (device.t_ras_cycles, device.t_rc_cycles) == (68, 98)
        assert (device.t_ccd_s_cycles, device.t_ccd_l_cycles) == (8, 8)
        assert (device.t_rrd_s_cycles, device.t_rrd_l_cycles, device.t_faw_cycles) == (16, 16, 64)
        assert (device.t_wtr_s_cycles, device.t_wtr_l_cycles) == (15, 15)
        assert (device.t_rtp_cycles, device.t_wr_cycles, device.t_ppd_cycles) == (12, 27, 4)
        assert (device.t_refi_cycles, device.t_rfc_cycles) == (6246, 448)
        assert (device.t_refi_pb_cycles, device.t_rfc_pb_cycles) == (780, 224)
        assert (device.t_dqsck_cycles, device.t_dqss_cycles, device.t_dqs2dq_cycles) == (6, 1, 2)
        assert (device.t_wpre_cycles, device.t_rpst_cycles, device.t_rtrs_cycles) == (2, 0, 1)
        assert (device.t_xp_cycles, device.t_cke_cycles, device.t_ckesr_cycles) == (11, 12, 24)
        assert (device.t_xs_cycles, device.t_xsdll_cycles) == (460, 460)
        entries = (device.t_actpden_cycles, device.t_prpden_cycles, device.t_refpden_cycles)
        assert entries == (3, 3, 3)
        assert device.supplies == ()

    @pytest.mark.parametrize("wrapper", ["memspec", "LPDDR4-3200"])
    def test_within_another_object(self, tmp_path: Path, wrapper: str) -> None:
        plain = load_device(written(tmp_path, MEMSPEC))
        assert load_device(written(tmp_path, {"note": "x", wrapper: MEMSPEC})) == plain

    def test_several_in_one_file(self, tmp_path: Path) -> None:
        both = {"one": MEMSPEC, "two": MEMSPEC}
        with pytest.raises(
            InvalidValueError, match=r"mine\.json: must hold one memspec, but holds one, two"
        ):
            load_device(written(tmp_path, both))

    @pytest.mark.parametrize(
        ("clock", "period"), [({"clkMhz": 1600}, 625), ({"tCK": 625e-12}, 625), ({"tCK": 625}, 625)]
    )
    def test_clocks_of_all_versions(
        self, tmp_path: Path, clock: dict[str, float], period: int
    ) -> None:
        timings = {key: v for key, v in MEMSPEC["memtimingspec"].items() if key != "tCK"} | clock
        device = load_device(written(tmp_path, MEMSPEC | {"memtimingspec": timings}))
        assert device.t_ck_ps == period

    def test_a_missing_figure(self, tmp_path: Path) -> None:
        timings = {key: v for key, v in MEMSPEC["memtimingspec"].items() if key != "FAW"}
        with pytest.raises(InvalidValueError, match=r"mine\.json: FAW missing in memtimingspec"):
            load_device(written(tmp_path, MEMSPEC | {"memtimingspec": timings}))

    @pytest.mark.parametrize("value", [-64, "64", 6.5])
    def test_a_bad_figure(self, tmp_path: Path, value: Any) -> None:
        timings = MEMSPEC["memtimingspec"] | {"FAW": value}
        with pytest.raises(InvalidValueError, match=rf"mine\.json.*(faw|FAW).* is {value!r}"):
            load_device(written(tmp_path, MEMSPEC | {"memtimingspec": timings}))

    def test_a_clock_that_stands_still(self, tmp_path: Path) -> None:
        timings = MEMSPEC["memtimingspec"] | {"clkMhz": 0}
        with pytest.raises(InvalidValueError, match=r"mine\.json: clkMhz is 0"):
            load_device(written(tmp_path, MEMSPEC | {"memtimingspec": timings}))

    def test_missing_sections_and_unknown_types(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidValueError, match="memtimingspec must be an object"):
            load_device(written(tmp_path, MEMSPEC | {"memtimingspec": 3}))
        with pytest.raises(UnknownNameError, match="WIDEIO"):
            load_device(written(tmp_path, MEMSPEC | {"memoryType": "WIDEIO"}))

    def test_currents(self, tmp_path: Path) -> None:
        ddr3 = MEMSPEC | {
            "memoryType": "DDR3",
            "memtimingspec": MEMSPEC["memtimingspec"]
            | {
                "RP": 10, "RC": 78, "RFC": 88, "CKESR": 4, "XS": 96, "XSDLL": 512,
                "ACTPDEN": 1, "PRPDEN": 1, "REFPDEN": 1,
            },
            "mempowerspec": {
                "vdd": 1.5, "idd0": 70.5, "idd2n": 45, "idd3n": 46, "idd4r": 140, "idd4w": 145,
                "idd5": 170, "idd6": 8, "idd2p0": 12, "idd2p1": 30, "idd3p0": 35, "idd3p1": 36,
            },
        }  # fmt: skip
        (supply,) = load_device(written(tmp_path, ddr3)).supplies
        assert (supply.name, supply.voltage_v) == ("VDD", 1.5)
        assert (supply.idd0_ma, supply.idd2n_ma, supply.idd3n_ma) == (70.5, 45, 46)
        assert (supply.idd4r_ma, supply.idd4w_ma, supply.idd5_ma, supply.idd6_ma) == (
            140,
            145,
            170,
            8,
        )
        # The currents of a fast exit from power-down.
        assert (supply.idd2p_ma, supply.idd3p_ma) == (30, 36)
        del ddr3["mempowerspec"]["idd5"]
        with pytest.raises(InvalidValueError, match="idd5 missing in mempowerspec"):
            load_device(written(tmp_path, ddr3))


def test_a_figure_that_no_integer_of_the_simulator_holds_is_refused(tmp_path: Path) -> None:
    document = sheet()
    document["timing"]["rl_cycles"] = 10**20
    with pytest.raises(InvalidValueError, match=r"mine\.json.*rl_cycles is 10+, .* 2,147,483,648"):
        load_device(written(tmp_path, document))


def test_an_empty_file_is_called_empty(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text("\n")
    with pytest.raises(InvalidValueError, match=r"mine\.json.*it is empty"):
        load_device(path)
