"""The metrics of the NAS environment, which depend on networks and source of accuracies."""

from __future__ import annotations

from collections.abc import Sequence

from archgym.envs.nas.space import Player
from archgym.problem.metrics import Metric

__all__ = ["accuracy_metrics", "hardware_metrics", "spec_metrics"]


_MEASURES = {
    "accuracy": "share of test images classified right",
    "iou": "intersection over union of the test masks",
}


def accuracy_metrics(networks: Sequence[Player], source: str) -> tuple[Metric, ...]:
    """Accuracy of each network, then the weighted one.

    Zero-cost scores are no accuracies and are not called so; their scale is each task's own
    (:mod:`archgym.envs.nas.accuracy.zero_cost`), so that they may be weighted.

    Args:
        networks: name and task of each.
        source: where accuracies come from.
    """
    if source == "proxy":
        return (
            *(
                Metric(
                    f"score_{player.name}_rate",
                    "",
                    "maximize",
                    f"zero-cost score of network {player.name}, untrained: 0 is the smallest "
                    "network's of the task, 1 the largest one's",
                    signed=True,
                )
                for player in networks
            ),
            Metric("score_rate", "", "maximize", "weighted zero-cost score", signed=True),
        )
    kind = "synthetic, nothing was trained" if source == "synthetic" else source
    return (
        *(
            Metric(
                f"accuracy_{player.name}_percent",
                "percent",
                "maximize",
                f"{_MEASURES[player.task.metric]} of network {player.name} ({kind})",
            )
            for player in networks
        ),
        Metric("accuracy_percent", "percent", "maximize", f"weighted accuracy ({kind})"),
        Metric(
            "accuracy_synthetic_share",
            "",
            "minimize",
            "1 if the accuracies are a curve through published points, 0 if networks were trained",
        ),
    )


def hardware_metrics() -> tuple[Metric, ...]:
    """Latency, energy and area."""
    return (
        Metric("latency_cycles", "cycles", "minimize", "until the last network is done"),
        Metric("latency_ns", "ns", "minimize", "the same, at the chip's clock"),
        Metric("energy_nj", "nJ", "minimize", "dynamic energy of one inference of every network"),
        Metric("area_um2", "µm²", "minimize", "of the chip: the sum of its sub-accelerators"),
    )


def spec_metrics(*, reward: bool = True) -> tuple[Metric, ...]:
    """How a design meets the specifications, and NASAIC's reward if there are accuracies."""
    penalty = Metric(
        "spec_penalty_rate",
        "",
        "minimize",
        "sum of the excesses over the specifications, as shares of their bounds; 0 meets all",
    )
    doc = "weighted accuracy as a share, less ten times the penalty (NASAIC)"
    found = Metric("nasaic_reward_rate", "", "maximize", doc, signed=True)
    return (penalty, found) if reward else (penalty,)
