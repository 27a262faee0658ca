"""Active collection: chooses training designs, more of them where models are uncertain."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from archgym.agent import Sampler
from archgym.environment.environment import Environment
from archgym.errors import InvalidValueError, check_choice, check_integer
from archgym.evaluation.trial_info import TrialInfo
from archgym.problem.status import Status
from archgym.proxy.inputs import Inputs
from archgym.proxy.models import Array, Features, Options, family
from archgym.proxy.targets import TargetScale
from archgym.registry import make_agent
from archgym.space import Designs

AGENT = "proxy-collect"
"""Agent of the trials that hold the chosen designs; those drawn at random are of ``random``."""
MODELS = ("boosting", "residual")
"""Families whose uncertainty can choose designs."""
_COMMITTEE = 3
_QUICK: Options = {"trees": 150, "rate": 0.15}
_NETWORKS: Options = {"members": 4, "width": 96, "layers": 6, "epochs": 80}
_MIN_DRAWN = 20
"""Minimum number of designs of a workload that are drawn at random."""
_MIN_LIKELY = 0.02
"""Minimum chance that a design gives values: a model that predicts failure may be wrong."""
_POOL = 16
"""Number of random designs from which one is chosen."""

Progress = Callable[[int], None]


def collect(
    environments: Sequence[Environment],
    targets: Sequence[str],
    budget: int,
    *,
    rounds: int = 4,
    model: str = "boosting",
    options: Options | None = None,
    drawn: float = 0.2,
    most: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> None:
    """Simulates designs from which a proxy learns more than from as many random ones.

    A part is drawn at random. In each round models are then trained on all results so far, and
    designs are drawn from a large random sample with a chance that grows with the standard
    deviation of their predictions, divided by the mean of the metric: query by committee (Seung,
    Opper and Sompolinsky, COLT 1992) on squared errors. Where some designs gave no values, as with
    a clock frequency that cannot be reached, the chance is also in proportion to how likely a
    design gives them, so that little of the budget is spent on failures. The environments share the
    budget in the same way, so that a workload that is harder to learn gets more.

    With ``boosting`` the committee consists of models of one workload, trained on different parts
    of its data. With ``residual`` it is one ensemble of networks for all workloads; as networks
    disagree a little everywhere, the chance grows with the square. That takes longer, and finds
    more of the designs that such networks would predict badly.

    Args:
        environments: one a workload, with the same design space; with ``record`` set, to keep it.
        targets: metrics that the proxy is for.
        budget: designs to simulate, on all workloads together.
        rounds: how often the models are trained.
        model: one of :data:`MODELS`.
        options: settings of that family, such as ``device``.
        drawn: share that is drawn at random: what validates a proxy must not have been chosen.
        most: maximum number of designs on one workload; a part of the budget may then be left.
        seed: the only source of randomness.
        progress: called with the number of designs that were simulated since the last call.

    Raises:
        InvalidValueError: if a number is not possible, or the design spaces differ.
        UnknownNameError: if there is no such metric or model.
    """
    first = environments[0]
    if any(env.design_space != first.design_space for env in environments):
        raise InvalidValueError("the environments have different design spaces")
    for target in targets:
        check_choice("metric", target, first.metrics_given)
    check_choice("model that chooses", model, MODELS)
    if not 0 < drawn <= 1:
        raise InvalidValueError(f"drawn must be above 0 and at most 1, not {drawn!r}")
    start = int(drawn * budget / len(environments))
    least = math.ceil(_MIN_DRAWN * len(environments) / drawn)
    if budget < least:
        raise InvalidValueError(
            f"budget is {budget}; {drawn:.0%} of it are drawn at random, at least {_MIN_DRAWN} "
            f"designs a workload, so it must be at least {least}"
        )
    rounds = check_integer("rounds", rounds, 1)
    if most is not None and most < start:
        raise InvalidValueError(
            f"most must be at least {start}, what is drawn of a workload at random, not {most}"
        )
    rng = np.random.default_rng(seed)
    seeds = rng.integers(2**32, size=len(environments)).tolist()
    own = [
        _Workload(env, targets, child, progress or (lambda n: None))
        for env, child in zip(environments, seeds, strict=True)
    ]
    for one in own:
        one.simulate(one.draw(start), TrialInfo(agent="random", seed=seed, budget=start))
    uncertainties_of = _committee if model == "boosting" else _ensemble
    left = budget - start * len(own)
    for number in range(rounds):
        share = left // (rounds - number)
        if not share:  # everything so far was drawn at random
            continue
        left -= share
        pools = [one.draw(_POOL * share // len(own)) for one in own]
        uncertainties = uncertainties_of(own, pools, rng, options or {})
        power = 1 if model == "boosting" else 2
        gains = [
            one.likely(pool) * uncertainty**power
            for one, pool, uncertainty in zip(own, pools, uncertainties, strict=True)
        ]
        rooms = [
            min(len(pool), math.inf if most is None else most - len(one.codes))
            for one, pool in zip(own, pools, strict=True)
        ]
        if not any(rooms):  # every design has been simulated
            break
        weights = [float(np.mean(gain) ** (1 / power)) if len(gain) else 0.0 for gain in gains]
        sizes = _shares(share, weights, rooms)
        for one, pool, gain, size in zip(own, pools, gains, sizes, strict=True):
            if size:
                chosen = rng.choice(len(pool), size, replace=False, p=gain / gain.sum())
                trial = TrialInfo(agent=AGENT, seed=seed, budget=size)
                one.simulate(pool[np.sort(chosen)], trial)


class _Workload:
    """One workload: its environment, and the designs that were simulated so far."""

    def __init__(
        self, environment: Environment, targets: Sequence[str], seed: int, progress: Progress
    ) -> None:
        space = environment.design_space
        drawing = make_agent("random", space, seed=seed, batch_size=4096)
        assert isinstance(drawing, Sampler)
        self._environment, self._targets, self._progress = environment, targets, progress
        self.draw, self.inputs = drawing.ask, Inputs(space)
        self.codes = np.empty((0, len(space.parameters)), dtype=np.int64)
        self._gave = np.empty(0, dtype=np.bool_)
        self.values = np.empty((0, len(targets)))

    def simulate(self, designs: Designs, trial: TrialInfo) -> None:
        """Simulates designs and keeps their metrics."""
        env = self._environment
        env.start_trial(trial)
        try:
            for start in range(0, len(designs), 256):
                outcomes = env.evaluate_batch(designs[start : start + 256])
                ok = outcomes.status == Status.OK
                columns = [outcomes.metric_names.index(target) for target in self._targets]
                self.codes = np.concatenate([self.codes, outcomes.designs.codes])
                self._gave = np.concatenate([self._gave, ok])
                self.values = np.concatenate([self.values, outcomes.metrics[ok][:, columns]])
                self._progress(len(outcomes))
        finally:
            env.end_trial("finished")

    @property
    def known(self) -> Features:
        """Features of the designs that gave values, shape (n, n_features)."""
        return self.inputs(self.codes[self._gave])

    def likely(self, pool: Designs) -> Array:
        """Chance that designs give values, by those that were simulated, shape (n,)."""
        if self._gave.all():
            return np.ones(len(pool))
        gave = self._gave[:, None].astype(np.float64)
        model = family("boosting").fit(self.inputs(self.codes), gave, 0, _QUICK)
        return np.asarray(
            np.clip(model.predict(self.inputs(pool.codes))[0][:, 0], _MIN_LIKELY, 1.0)
        )

    def uncertainty(self, deviation: Array) -> Array:
        """Uncertainty from standard deviations of the metrics, both of designs, shape (n,)."""
        typical = np.maximum(np.abs(self.values).mean(axis=0), 1e-300)
        return np.asarray((deviation / typical).sum(axis=1) + 1e-12)


def _committee(
    own: Sequence[_Workload], pools: Sequence[Designs], rng: np.random.Generator, options: Options
) -> list[Array]:
    """How much models that saw different parts disagree on designs, (n,) for each workload."""
    uncertainties = []
    for one, pool in zip(own, pools, strict=True):
        scale, z = _scaled(one.values)
        x, new = one.known, one.inputs(pool.codes)
        parts = rng.integers(_COMMITTEE, size=len(x))
        means = []
        for part in range(_COMMITTEE):
            rows = parts != part
            model = family("boosting").fit(x[rows], z[rows], 0, {**_QUICK, **options})
            mean = model.predict(new)[0]
            means.append(scale.backward(mean, np.full_like(mean, np.nan)))
        uncertainties.append(one.uncertainty(np.std(means, axis=0)))
    return uncertainties


def _ensemble(
    own: Sequence[_Workload], pools: Sequence[Designs], rng: np.random.Generator, options: Options
) -> list[Array]:
    """How much networks of all workloads disagree on designs, (n,) for each workload."""
    marks = np.eye(len(own), dtype=np.float32)
    scaled = [_scaled(one.values) for one in own]
    x = [_marked(one.known, mark) for one, mark in zip(own, marks, strict=True)]
    z = [values for _, values in scaled]
    seed = int(rng.integers(2**31))
    model = family("residual").fit(
        np.concatenate(x), np.concatenate(z), seed, {**_NETWORKS, **options}
    )
    uncertainties = []
    for one, pool, mark, (scale, _) in zip(own, pools, marks, scaled, strict=True):
        mean, spread = model.predict(_marked(one.inputs(pool.codes), mark))
        unknown = np.full_like(mean, np.nan)
        above, below = (scale.backward(mean + s * spread, unknown) for s in (0.5, -0.5))
        uncertainties.append(one.uncertainty(above - below))
    return uncertainties


def _scaled(values: Array) -> tuple[TargetScale, Array]:
    unknown = np.full(values.shape, np.nan)
    scale = TargetScale.of("auto", values, unknown)
    return scale, scale.forward(values, unknown)


def _marked(features: Features, mark: Features) -> Features:
    """Features with those that tell the workload."""
    return np.hstack([features, np.repeat(mark[None], len(features), axis=0)])


def _shares(total: int, weights: Sequence[float], rooms: Sequence[float]) -> list[int]:
    """Whole numbers in proportion to the weights, none above its limit."""
    exact = total * np.asarray(weights) / np.sum(weights)
    sizes = np.floor(exact).astype(int)
    for index in np.argsort(sizes - exact, kind="stable")[: total - sizes.sum()]:
        sizes[index] += 1
    return [int(size) for size in np.minimum(sizes, rooms)]
