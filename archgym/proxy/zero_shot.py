"""Zero-shot start: the first designs of a search on a workload that a proxy has never seen.

Each known workload is a scenario: its measured metrics, as ratios to the baseline design, say
how designs would do if the new workload were like it. Scenarios are weighed by how near their
features are, and the first designs are those of which the best does well in all of them: a
portfolio, in which the second design makes up for what the first would miss.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.environment.environment import Environment
from archgym.errors import InvalidValueError
from archgym.evaluation.outcome import Outcomes
from archgym.history.history import HistorySource
from archgym.history.transfer import transferred
from archgym.problem.status import Status
from archgym.proxy.files import load_proxy
from archgym.proxy.known_workloads import KnownWorkloads, described
from archgym.proxy.models.base import Array
from archgym.proxy.proxy import Proxy
from archgym.space import Designs, DesignSpace
from archgym.space.designs import MISSING, recoded

FIRST = 5
"""Designs that are chosen to make up for each other; those after them are the best expected."""
_DECAY = 0.75
"""Weight of the next nearer workload by that of the nearest."""
_MAX_REGRET = 1.0
"""Log ratio to the best from which on a design is just bad."""


@dataclass(frozen=True, eq=False)
class ZeroShot:
    """What a proxy expects of a workload that it has not seen, from its features alone.

    Attributes:
        outcomes: of designs that were simulated on the known workloads, with the metrics that are
            expected here; first those of the portfolio, then the best expected.
        nearest: known workloads with their weights, the heaviest first.
    """

    outcomes: Outcomes
    nearest: tuple[tuple[str, float], ...]

    @property
    def designs(self) -> Designs:
        """The designs, in the order in which they are to be evaluated."""
        return self.outcomes.designs

    def source(self, name: str) -> HistorySource:
        """The designs as history of a search, with predicted outcomes.

        Args:
            name: of the proxy.
        """
        return HistorySource(f"proxy {name}", self.outcomes, ordered=True)


def zero_shot(
    proxy: Proxy, environment: Environment, *, first: int = FIRST, most: int = 300
) -> ZeroShot:
    """The designs with which to begin a search on a workload that a proxy has not seen.

    The baseline design is simulated, if its metrics are not known yet, as every search does; no
    other is.

    Args:
        proxy: trained with ``per="workload-features"``.
        environment: on the workload, with the objective; its design space may hold values fixed.
        first: designs of the portfolio.
        most: maximum number of designs in all.

    Raises:
        InvalidValueError: if the proxy knows no workloads by features, or is for another
            environment or design space, or the environment's workload has no features.
    """
    known = check_zero_shot(proxy, environment)
    labels = [one.name for one in proxy.origin.workloads]
    names = [metric.name for metric in environment.metrics]
    baselines = [[w.baseline.get(name, np.nan) for name in names] for w in proxy.origin.workloads]
    known = known.in_order([metric.name for metric in proxy.metrics], names)
    return start(known, np.array(baselines), labels, environment, first, most, space=proxy.space)


def check_zero_shot(proxy: Proxy, environment: Environment) -> KnownWorkloads:
    """The workloads that a proxy knows, if it can say how to begin a search in an environment.

    Raises:
        InvalidValueError: as :func:`zero_shot`.
    """
    if proxy.known is None:
        raise InvalidValueError(
            "the proxy was not trained across workloads: archgym proxy train --per "
            "workload-features makes one that is"
        )
    _check(proxy, environment)
    if not environment.workload_features:
        raise _no_features(environment)
    return proxy.known


def proxy_source(path: str | Path, environment: Environment) -> HistorySource:
    """A proxy of many workloads as history of a search on one that it has not seen.

    >>> from archgym.history import History
    >>> def search_from(path, env, agent):
    ...     return agent.search(env, 100, history=History((proxy_source(path, env),)))

    Args:
        path: of the file that ``archgym proxy train --per workload-features`` made.
        environment: that is searched.

    Raises:
        DatasetError: if there is no such proxy, or it cannot be read.
        InvalidValueError: as :func:`zero_shot`.
    """
    return zero_shot(load_proxy(path), environment).source(Path(path).name)


def start(
    known: KnownWorkloads,
    baselines: Array,
    names: list[str],
    environment: Environment,
    first: int = FIRST,
    most: int = 300,
    *,
    alike: bool = False,
    space: DesignSpace | None = None,
) -> ZeroShot:
    """As :func:`zero_shot`, from the parts of a proxy.

    Args:
        known: the workloads, with the environment's metrics in its order.
        baselines: metrics of the baseline design on each workload, shape (n_workloads, n_metrics).
        names: of the workloads.
        environment: as there.
        first: as there.
        most: as there.
        alike: whether all known workloads count the same, whatever their features.
        space: of the known designs; by default that of the environment.
    """
    known = _within(known, space or environment.design_space, environment.design_space)
    designs = Designs(environment.design_space, known.codes)
    scenarios = [
        _scenario(designs, metrics, baseline, environment)
        for metrics, baseline in zip(known.metrics, baselines, strict=True)
    ]
    costs = np.stack([_cost(one) for one in scenarios])
    able = np.isfinite(costs).any(axis=1)
    if not able.any():
        raise InvalidValueError(
            "no design that the known workloads share keeps the limits of the objective"
        )
    chosen = np.flatnonzero(able)
    costs = costs[chosen]
    regrets = np.minimum(costs - costs.min(axis=1, keepdims=True), _MAX_REGRET)
    here = known.scale.numbers(_features(environment)).astype(np.float32)
    weights = np.full(len(chosen), 1.0 / len(chosen))
    if not alike:
        weights = _weights(known.values[chosen], here)
    order = _portfolio(regrets, weights, first)
    expected = weights @ regrets
    rest = np.argsort(expected, kind="stable")
    order = list(dict.fromkeys([*order, *rest.tolist()]))[:most]
    predicted = _expected_metrics([scenarios[c] for c in chosen], weights)
    near = np.argsort(-weights, kind="stable")
    return ZeroShot(
        transferred(
            designs[np.array(order)],
            predicted[order],
            np.where(np.isnan(predicted[order]).all(axis=1), Status.FAILED, Status.OK),
            environment.baseline_metrics,
            environment,
        ),
        tuple((names[int(chosen[n])], float(weights[n])) for n in near.tolist()),
    )


def _features(environment: Environment) -> dict[str, float]:
    features = environment.workload_features
    if not features:
        raise _no_features(environment)
    names = [metric.name for metric in environment.metrics]
    baseline = dict(zip(names, environment.baseline_metrics.tolist(), strict=True))
    return described(features, {k: v for k, v in baseline.items() if np.isfinite(v)})


def _no_features(environment: Environment) -> InvalidValueError:
    return InvalidValueError(
        f"{environment.name} has no workload features: override workload_features"
    )


def _check(proxy: Proxy, environment: Environment) -> None:
    if proxy.space.names != environment.design_space.names:
        raise InvalidValueError(
            f"the proxy is for {proxy.origin.environment} with parameters "
            f"{', '.join(proxy.space.names)}, not for {', '.join(environment.design_space.names)}"
        )
    for mine, theirs in zip(environment.design_space.declared, proxy.space.declared, strict=True):
        if mine.size != theirs.size or mine.to_json() != theirs.to_json():
            raise InvalidValueError(f"parameter {mine.name!r} has other values than in the proxy")
    given = {metric.name for metric in proxy.metrics}
    for name in environment.objective.metric_names():
        if name not in given:
            raise InvalidValueError(
                f"the proxy was not trained on metric {name!r} of the objective; it has "
                f"{', '.join(sorted(given))}"
            )


def _within(known: KnownWorkloads, source: DesignSpace, space: DesignSpace) -> KnownWorkloads:
    """Those of the designs that have the values which the space holds fixed and none excluded."""
    known = replace(known, codes=recoded(Designs(source, known.codes), space))
    kept = (known.codes != MISSING).all(axis=1)
    for name, value in space.fixed.items():
        position = space.names.index(name)
        column = known.codes[:, position]
        kept &= (column == space.parameters[position].code(value)) | (column < 0)
    if not kept.any():
        raise InvalidValueError(
            "none of the designs that the known workloads share has "
            f"{space.fixed or 'values that are not excluded'}"
        )
    return known.take(range(len(known)), kept)


def _scenario(designs: Designs, metrics: Array, baseline: Array, env: Environment) -> Outcomes:
    there = np.where(np.isnan(metrics).all(axis=1), Status.FAILED, Status.OK).astype(np.int8)
    return transferred(designs, metrics, there, baseline, env)


def _cost(outcomes: Outcomes) -> Array:
    """Mean cost over the goals, ``inf`` where a limit is broken or nothing was given."""
    return np.where(outcomes.feasible, outcomes.costs.mean(axis=1), np.inf)


def _weights(values: NDArray[Any], here: NDArray[Any]) -> Array:
    """How much each known workload counts, by the rank of its distance; they add up to 1.

    The distance is the root mean square of the differences of scaled features.
    """
    distance = np.sqrt(np.square(values - here).mean(axis=1))
    ranks = np.argsort(np.argsort(distance, kind="stable"), kind="stable")
    weights = _DECAY ** ranks.astype(np.float64)
    return np.asarray(weights / weights.sum())


def _portfolio(regrets: Array, weights: Array, n: int) -> list[int]:
    """Designs of which the best loses least on average over the scenarios, one after another."""
    so_far = np.full(len(regrets), _MAX_REGRET)
    chosen: list[int] = []
    for _ in range(min(n, regrets.shape[1])):
        value = weights @ np.minimum(so_far[:, None], regrets)
        # Among designs that add nothing, the best expected one.
        value += 1e-6 * (weights @ regrets)
        value[chosen] = np.inf
        chosen.append(int(value.argmin()))
        so_far = np.minimum(so_far, regrets[:, chosen[-1]])
    return chosen


def _expected_metrics(scenarios: list[Outcomes], weights: Array) -> Array:
    """Weighted geometric mean of the scenarios' metrics, arithmetic where they are not positive."""
    metrics = np.stack([one.metrics for one in scenarios])
    there = np.isfinite(metrics)
    shares = np.where(there, weights[:, None, None], 0.0)
    shares = shares / np.maximum(shares.sum(axis=0), 1e-300)
    positive = ((metrics > 0) | ~there).all(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        logs = np.where(there & (metrics > 0), np.log(metrics), 0.0)
    plain = np.where(there, metrics, 0.0)
    found = np.where(positive, np.exp((shares * logs).sum(axis=0)), (shares * plain).sum(axis=0))
    found[~there.any(axis=0)] = np.nan
    return np.asarray(found)
