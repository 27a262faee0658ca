"""The measured latencies of backbones, and their predictor."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from archgym.envs.nas.backbone import predictor
from archgym.envs.nas.backbone.campaign import COLUMNS, network_order, part_order
from archgym.envs.nas.backbone.fitting import fitted
from archgym.envs.nas.backbone.measured import (
    DEVICES,
    JUDGES,
    measured_networks,
    measured_us,
    part_times,
    sum_of_parts,
)
from archgym.envs.nas.backbone.packing import main as pack
from archgym.envs.nas.backbone.parts import IMAGENET, architecture_of, macs, parts_of

PARTS = {part.key: 1.0 + part.macs / 1e7 for part in part_order(0)}
ORDER = network_order(0)
NETWORKS = [architecture_of(key) for key in ORDER[:600]]


def times_of(networks: list[dict[str, Any]]) -> NDArray[np.float64]:
    """The sum of parts, times a factor that depends on resolution and the last stage."""
    factors = [
        0.7 + 0.001 * n["resolution"] + 0.2 * (n["stage4_kind"] == "attention") for n in networks
    ]
    sums = [sum_of_parts(PARTS, parts_of(IMAGENET, n)) for n in networks]
    found: NDArray[np.float64] = np.array(factors) * np.array(sums)
    return found


def test_a_predictor_learns_what_the_sum_of_the_parts_misses() -> None:
    known, others = NETWORKS[:500], NETWORKS[500:]
    made = predictor.fit(PARTS, known, times_of(known))
    errors = np.abs(made.latency_us(others) / times_of(others) - 1)
    assert np.median(errors) < 0.01
    assert len(made.latency_us([])) == 0


def test_a_few_disturbed_measurements_change_little() -> None:
    times = times_of(NETWORKS)
    disturbed = times.copy()
    disturbed[::10] *= 1.5
    made = predictor.fit(PARTS, NETWORKS, disturbed)
    errors = np.abs(made.latency_us(NETWORKS) / times - 1)
    assert np.median(errors) < 0.02


@pytest.mark.full
def test_the_predictors_that_ship_are_those_of_the_data() -> None:
    again = fitted("h200_batch_64").coefficients
    shipped = predictor.shipped_predictor("h200_batch_64").coefficients
    assert shipped == pytest.approx(again, rel=1e-3, abs=1e-5)


def test_what_a_campaign_wrote_is_packed(tmp_path: Path) -> None:
    key, part = ORDER[1], part_order(0)[0]
    gpu: list[list[Any]] = [
        ["gpu", key, 1, 1, 300.5, 300, 20, True, 1980, 40, 300, "", 5.0],
        ["gpu", key, 1, 64, 2000, 1990, 20, True, 1975, 41, 300, "", 5.1],
        ["gpu", key, 2, 64, 2010, 1990, 20, True, 1975, 41, 300, "", 9.1],
        ["gpu", ORDER[2], 1, 1, 9, 9, 20, True, 1975, 41, 300, "", 9.2],
        ["gpu", part.key, 0, 1, 4.5, 4, 20, True, 1975, 41, 300, "", 9.4],
    ]
    core: list[list[Any]] = [
        ["core", key, 1, 1, 50000, 49000, 5, True, "", "", "", 4, 6.0],
        ["core", key, 3, 1, 48000, 47000, 5, True, "", "", "", 4, 16.0],
    ]
    for name, rows in (("gpu", gpu), ("core", core)):
        lines = [",".join(COLUMNS), *(",".join(map(str, row)) for row in rows)]
        # The last line was cut off.
        (tmp_path / f"{name}.csv").write_text("\n".join([*lines, f"{name},{key},1"]))
    pack([str(tmp_path), str(tmp_path / "out")])
    found, other = measured_networks(tmp_path / "out")
    assert found["network"] == key
    assert found["place"] == 1
    assert found["macs"] == macs(parts_of(IMAGENET, architecture_of(key)))
    times = [found[f"{device}_us"] for device in DEVICES]
    assert times == [300.5, 2000, 49000]
    assert measured_us(found, "cpu_core") == 47000
    assert measured_us(found, "h200_batch_64") == 2000
    assert measured_us(other, "h200_batch_1") == 9
    assert measured_us(other, "cpu_core") is None
    assert found["h200_batch_64_again_us"] == 2010
    assert found["h200_batch_1_again_us"] is None
    assert found["cpu_core_alone_us"] == 47000
    assert found["clock_mhz"] == 1975
    assert part_times("h200_batch_1", tmp_path / "out") == {part.key: 4.5}


def test_at_least_a_thousand_networks_and_every_part_were_measured() -> None:
    rows = measured_networks()
    assert [row["place"] for row in rows] == sorted(row["place"] for row in rows)
    keys = {part.key for part in part_order(0)}
    for device in DEVICES:
        assert set(part_times(device)) == keys
        times = [time for row in rows if (time := measured_us(row, device)) is not None]
        assert len(times) >= 1000 + JUDGES
        assert all(math.isfinite(time) and time > 0 for time in times)
        assert all(row[f"{device}_again_us"] is not None for row in rows[:JUDGES])


@pytest.mark.parametrize("device", DEVICES)
def test_the_predictor_ranks_networks_that_it_was_not_fitted_to(device: str) -> None:
    rows = measured_networks()[:JUDGES]
    times = [measured_us(row, device) for row in rows]
    networks = [architecture_of(row["network"]) for row in rows]
    predicted = predictor.shipped_predictor(device).latency_us(networks)
    rank = stats.spearmanr(times, predicted)[0]
    assert rank >= 0.98
    assert rank > stats.spearmanr(times, [row["macs"] for row in rows])[0]
