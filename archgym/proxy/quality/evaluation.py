"""How good a proxy is on designs that it has not seen, and how fast."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.environment.environment import Environment
from archgym.errors import InvalidValueError
from archgym.proxy.proxy import Proxy
from archgym.proxy.quality.within import Within, within
from archgym.proxy.scores import Scores, score
from archgym.proxy.training.data import TrainingData
from archgym.proxy.training.settings import Settings
from archgym.proxy.training.train import Progress, train
from archgym.space import Designs


@dataclass(frozen=True)
class Evaluation:
    """Scores of one metric on one workload, with what they come from.

    Attributes:
        workload: its name.
        metric: its name.
        scores: agreement of predictions and truth.
        truth: shape (n,).
        predicted: shape (n,).
        within: agreement within groups of designs and near the best.
    """

    workload: str
    metric: str
    scores: Scores
    truth: NDArray[np.float64]
    predicted: NDArray[np.float64]
    within: Within

    def to_json(self) -> dict[str, Any]:
        """Plain values, without the designs."""
        head = {"workload": self.workload, "metric": self.metric}
        return {**head, **self.scores.to_json(), "within": self.within.to_json()}


def evaluate(
    proxy: Proxy, data: TrainingData, *, coverage: float = 0.9
) -> tuple[list[Evaluation], int]:
    """Compares a proxy with a dataset, on designs that it was not trained on.

    Args:
        proxy: the proxy.
        data: of the same design space and workloads.
        coverage: of the intervals that are checked.

    Returns:
        Scores by workload and metric, and the number of rows left out since their design, on
        whatever workload, was among the training data.

    Raises:
        InvalidValueError: if the data are of another design space, or no unseen design is left.
        UnknownNameError: if a workload is not one of the proxy's.
    """
    if data.space != proxy.space:
        raise InvalidValueError("the data are of another design space than the proxy")
    seen = np.isin(data.groups, proxy.trained_on)
    if seen.all():
        raise InvalidValueError(
            "the proxy was trained on every design of these data: evaluate it on others "
            "(archgym dataset split --by design makes two parts)"
        )
    found = []
    names = [metric.name for metric in data.metrics]
    for index, workload in enumerate(data.origin.workloads):
        rows = np.flatnonzero((data.workload == index) & ~seen)
        if not rows.size:
            continue
        number = proxy.workload(workload.name, workload.sha256)
        predicted = proxy.predict(Designs(proxy.space, data.codes[rows]), number, coverage=coverage)
        for column, metric in enumerate(proxy.metrics):
            if metric.name not in names:
                continue
            truth = data.targets[rows, names.index(metric.name)]
            values, low, high = (
                one[:, column] for one in (predicted.values, predicted.low, predicted.high)
            )
            there = ~np.isnan(truth) & ~np.isnan(values)
            if there.sum() < 2:
                continue
            truth, values, low, high = (one[there] for one in (truth, values, low, high))
            larger = metric.direction == "maximize"
            scores = score(truth, values, maximize=larger, low=low, high=high)
            parts = within(
                *(proxy.space, data.codes[rows[there]], truth, values, low, high), maximize=larger
            )
            found.append(Evaluation(workload.name, metric.name, scores, truth, values, parts))
    if not found:
        raise InvalidValueError("the data hold no metric that the proxy predicts")
    return found, int(seen.sum())


@dataclass(frozen=True)
class Speed:
    """Evaluations a second of a simulator and a proxy, measured one after the other.

    Attributes:
        simulator: designs a second, in one batch on as many cores as it takes.
        proxy: designs a second, all metrics of each, in one batch.
        metrics: that the proxy predicts of each design.
    """

    simulator: float
    proxy: float
    metrics: int

    @property
    def factor(self) -> float:
        """By how much the proxy is faster."""
        return self.proxy / self.simulator


def measure_speed(
    proxy: Proxy,
    environment: Environment,
    *,
    simulated: int = 50,
    predicted: int = 20_000,
    seed: int = 0,
) -> Speed:
    """Times the real simulator and the proxy in the same run, on random designs.

    Args:
        proxy: the proxy.
        environment: with the real simulator.
        simulated: designs to simulate.
        predicted: designs to predict.
        seed: of the designs.
    """
    space = environment.design_space
    rng = np.random.default_rng(seed)
    workload = proxy.workload(environment.workload_name, environment.workload_sha256)
    some, many = space.sample(simulated, rng), space.sample(predicted, rng)
    environment.simulator.simulate(some[:2])  # what is compiled or read at first is not counted
    proxy.predict(many[:64], workload)
    began = time.perf_counter()
    environment.simulator.simulate(some)
    middle = time.perf_counter()
    proxy.predict(many, workload)
    end = time.perf_counter()
    return Speed(
        len(some) / max(middle - began, 1e-9),
        len(many) / max(end - middle, 1e-9),
        len(proxy.given(workload)),
    )


def learning_curve(
    data: TrainingData,
    test: TrainingData,
    sizes: Sequence[int],
    settings: Settings,
    progress: Progress | None = None,
) -> list[tuple[int, list[Evaluation]]]:
    """Scores of proxies that are trained on more and more of the data.

    Args:
        data: to train on.
        test: to evaluate on.
        sizes: rows to train on; larger samples contain the smaller ones.
        settings: how to train.
        progress: called with what is trained next.

    Raises:
        InvalidValueError: if there are fewer rows than a size.
    """
    found = []
    for size in sizes:
        if not 1 <= size <= len(data):
            raise InvalidValueError(f"sizes must be from 1 to {len(data)}, not {size}")
        if progress is not None:
            progress(f"{size:,} designs")
        proxy = train(data.sample(size, settings.seed), settings)
        found.append((size, evaluate(proxy, test)[0]))
    return found
