"""Do multiply-accumulates rank the latency of networks? Backbones measured on a GPU and a core.

``python -m benchmarks.backbone_latency`` prints, for the networks that no predictor was fitted to:
the spread of repeated measurements, the rank correlation of the measured latency with
multiply-accumulates, parameters, the sum of the parts and the predictor, the errors of the last
two, and what a search by each finds. The shorter of a network's two measurements counts. With
``--score synflow`` the search is by that zero-cost score of NAS-v0 (minutes), else by the number
of parameters.
"""

from __future__ import annotations

import argparse
import math
import statistics
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from archgym.envs.nas.accuracy.zero_cost import SCORES, ProxyAccuracy
from archgym.envs.nas.backbone.measured import (
    DEVICES,
    JUDGES,
    measured_networks,
    measured_us,
    part_times,
    sum_of_parts,
)
from archgym.envs.nas.backbone.parts import IMAGENET, architecture_of, parts_of
from archgym.envs.nas.backbone.predictor import shipped_predictor
from archgym.envs.nas.tasks import TASKS

Floats = NDArray[np.float64]
METHODS = ("macs", "parameters", "sum of parts", "predictor")
SHARES = (0.5, 0.75, 0.9)
"""Shares of the networks whose score is below the one that a search asks for."""


def repeats(device: str, ending: str = "again_us") -> tuple[int, float, float, float]:
    """How far two measurements of a network are apart.

    Returns:
        Networks measured again; median and 90 % point of the relative differences, percent; rank
        correlation of the two.
    """
    pairs = np.array(
        [
            (row[f"{device}_us"], row[f"{device}_{ending}"])
            for row in measured_networks()
            if row[f"{device}_{ending}"] is not None
        ]
    )
    apart = 100 * np.abs(pairs[:, 1] / pairs[:, 0] - 1)
    rank = float(stats.spearmanr(pairs[:, 0], pairs[:, 1])[0])
    return len(pairs), float(np.median(apart)), float(np.quantile(apart, 0.9)), rank


def estimates(rows: list[dict[str, Any]], device: str) -> dict[str, Floats]:
    """What each method gives for some networks; the last two in us."""
    times = part_times(device)
    networks = [architecture_of(row["network"]) for row in rows]
    return {
        "macs": np.array([float(row["macs"]) for row in rows]),
        "parameters": np.array([float(row["parameters"]) for row in rows]),
        "sum of parts": np.array([sum_of_parts(times, parts_of(IMAGENET, n)) for n in networks]),
        "predictor": shipped_predictor(device).latency_us(networks),
    }


def losses(times: Floats, by: Floats, scores: Floats, groups: NDArray[np.int64]) -> list[float]:
    """Latency of what a search finds, over the least possible.

    For each group and each of :data:`SHARES`, the search takes, of the networks of the group whose
    score is high enough, the one that is least by one method.

    Args:
        times: measured.
        by: what the method gives.
        scores: of the networks; larger is better.
        groups: a number for each network.
    """
    found = []
    for group in np.unique(groups):
        here = np.flatnonzero(groups == group)
        for share in SHARES:
            good = here[scores[here] >= np.quantile(scores[here], share)]
            found.append(float(times[good[np.argmin(by[good])]] / times[good].min()))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--score", choices=SCORES, default="parameters")
    given = parser.parse_args()
    every = measured_networks()
    rows = every[:JUDGES]
    for device in DEVICES:
        count = sum(measured_us(row, device) is not None for row in every)
        print(f"{device}: {count} networks measured, {len(rows)} of them judge")
    groups = np.array([row["resolution"] for row in rows])
    source = ProxyAccuracy(given.score)
    networks = [architecture_of(row["network"]) for row in rows]
    scores = source.accuracies(TASKS["imagenet_backbone"], networks, 1)
    for device in DEVICES:
        count, middle, most, rank = repeats(device)
        line = f"\n{device}: {count} again: {middle:.2f} % apart (median), {most:.2f} % (90 %), "
        print(line + f"Spearman {rank:.4f}")
        if device == DEVICES[-1]:
            count, middle, most, rank = repeats(device, "alone_us")
            print(f"alone: {count}: {middle:.2f} % apart (median), {most:.2f} % (90 %)")
        times = np.array([measured_us(row, device) for row in rows], dtype=np.float64)
        for name, by in estimates(rows, device).items():
            rank, tau = stats.spearmanr(times, by)[0], stats.kendalltau(times, by)[0]
            line = f"{name:13} Spearman {rank:.4f}  Kendall {tau:.4f}"
            if name in METHODS[2:]:
                error = 100 * np.abs(by / times - 1)
                line += f"  error {np.median(error):5.2f} % (median) {np.quantile(error, 0.9):5.2f}"
                line += " % (90 %)"
            lost = losses(times, by, scores, groups)
            mean = 100 * (math.exp(statistics.fmean(map(math.log, lost))) - 1)
            found = sum(each < 1.0001 for each in lost)
            line += f"  search: {mean:.1f} % slower (mean), {100 * (max(lost) - 1):.1f} % (worst), "
            print(line + f"best in {found} of {len(lost)}")


if __name__ == "__main__":
    main()
