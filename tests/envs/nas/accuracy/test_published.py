"""The synthetic accuracies of the paper's tasks."""

from __future__ import annotations

import math

import numpy as np
import pytest

from archgym.envs.nas.accuracy.published import ANCHORS, PublishedAccuracy
from archgym.envs.nas.space import largest_architecture, smallest_architecture
from archgym.envs.nas.tasks import TASKS, architecture_space, family_of
from archgym.errors import UnknownNameError

SOURCE = PublishedAccuracy()


def log_odds(percent: float) -> float:
    return math.log(percent / (100 - percent))


def macs(name: str, architecture: object) -> int:
    task = TASKS[name]
    network = family_of(task).layers(task, architecture)  # type: ignore[arg-type]
    return sum(layer.macs for layer in network.layers)


def test_it_says_that_it_is_synthetic() -> None:
    assert SOURCE.synthetic
    assert SOURCE.name == "synthetic"


@pytest.mark.parametrize(
    ("name", "smallest", "best"),
    [("cifar10", 78.9, 94.17), ("nuclei", 64.0, 83.94), ("stl10", None, 76.50)],
)
def test_published_ends_are_met(name: str, smallest: float | None, best: float) -> None:
    task = TASKS[name]
    ends = [smallest_architecture(task), ANCHORS[name].best_architecture]
    low, high = SOURCE.accuracies(task, ends, 1).tolist()
    assert high == pytest.approx(best)
    if smallest is not None:
        assert low == pytest.approx(smallest)
    else:  # the span of log odds of CIFAR-10
        assert log_odds(high) - log_odds(low) == pytest.approx(log_odds(94.17) - log_odds(78.9))


def test_the_best_published_network_for_cifar10_is_the_papers() -> None:
    architecture = ANCHORS["cifar10"].best_architecture
    assert list(architecture.values()) == [32, 128, 2, 256, 2, 256, 2]


@pytest.mark.parametrize("name", ANCHORS)
def test_accuracy_follows_work_up_to_the_best_network(name: str) -> None:
    task = TASKS[name]
    architectures = list(architecture_space(task).sample(300, np.random.default_rng(5)))
    architectures.append(dict(largest_architecture(task)))
    found = SOURCE.accuracies(task, architectures, 1)
    assert (found < ANCHORS[name].best).all()
    work = np.array([macs(name, architecture) for architecture in architectures])
    order = np.argsort(work, kind="stable")
    steps = np.diff(found[order])
    below = work[order][1:] <= macs(name, ANCHORS[name].best_architecture)
    assert 0 < below.sum() < len(below)
    assert (steps[below] >= 0).all()
    assert (steps[~below][1:] <= 0).all()


@pytest.mark.parametrize(
    ("name", "percent", "share"),
    [("cifar10", 92.85, 1.43 / 3.56), ("nuclei", 83.74, 1.43 / 3.56), ("stl10", 75.72, 2.5 / 3.55)],
)
def test_networks_of_nasaics_work_have_its_accuracy(
    name: str, percent: float, share: float
) -> None:
    task = TASKS[name]
    wanted = share * macs(name, ANCHORS[name].best_architecture)
    architectures = list(architecture_space(task).sample(2000, np.random.default_rng(6)))
    distance = [abs(math.log(macs(name, each) / wanted)) for each in architectures]
    nearest = int(np.argmin(distance))
    assert distance[nearest] < 0.05
    assert SOURCE.accuracies(task, [architectures[nearest]], 1)[0] == pytest.approx(
        percent, abs=0.4
    )


def test_tasks_without_published_figures_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="cifar10"):
        SOURCE.accuracies(TASKS["digits"], [smallest_architecture(TASKS["digits"])], 1)
