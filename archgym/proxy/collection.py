"""Training data by choice: more designs where models that saw other data disagree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from archgym.agent import Sampler
from archgym.environment import Environment
from archgym.errors import InvalidValueError, UnknownNameError
from archgym.proxy.inputs import Inputs
from archgym.proxy.models import Array, family
from archgym.proxy.targets import TargetScale
from archgym.registry import make_agent
from archgym.space import Designs
from archgym.trial import TrialInfo

__all__ = ["AGENT", "collect"]

AGENT = "proxy-collect"
"""Agent of the trials that hold the chosen designs; those drawn at random are of ``random``."""
_DRAWN = 0.3
"""Share that is drawn at random: what validates a proxy must not have been chosen."""
_COMMITTEE = 3
_QUICK = {"trees": 150, "rate": 0.15}
_POOL = 16
"""Random designs that stand for election for each that is chosen."""

Progress = Callable[[int], None]


def collect(
    environments: Sequence[Environment],
    targets: Sequence[str],
    budget: int,
    *,
    rounds: int = 4,
    seed: int = 0,
    progress: Progress | None = None,
) -> None:
    """Simulates designs from which a proxy learns more than from as many random ones.

    A part is drawn at random. In each round boosting is then trained on parts of what is known,
    and designs are drawn from a large random sample with a chance that grows with the standard
    deviation of the models' predictions, by the mean of the metric: query by committee (Seung,
    Opper and Sompolinsky, COLT 1992) on squared errors. The environments share the budget in the
    same way, so that a workload that is harder to learn gets more.

    Args:
        environments: one a workload, with the same design space; with ``record`` set, to keep it.
        targets: metrics that the proxy is for.
        budget: designs to simulate, on all workloads together.
        rounds: how often the models are trained.
        seed: the only source of randomness.
        progress: called with the designs that were simulated since the last call.

    Raises:
        InvalidValueError: if the budget is too small, or the design spaces differ.
        UnknownNameError: if there is no such metric.
    """
    first = environments[0]
    if any(env.design_space != first.design_space for env in environments):
        raise InvalidValueError("the environments have different design spaces")
    for target in targets:
        if target not in first.metrics_given:
            raise UnknownNameError("metric", target, first.metrics_given)
    start = int(_DRAWN * budget / len(environments))
    if start < 20 or rounds < 1:
        least = int(20 * len(environments) / _DRAWN) + 1
        raise InvalidValueError(f"budget must be at least {least}, and rounds at least 1")
    rng = np.random.default_rng(seed)
    own = [
        _Workload(env, targets, int(child), progress or (lambda n: None))
        for env, child in zip(
            environments, rng.integers(2**32, size=len(environments)), strict=True
        )
    ]
    for one in own:
        one.simulate(one.draw(start), TrialInfo(agent="random", seed=seed, budget=start))
    left = budget - start * len(own)
    for number in range(rounds):
        share = left // (rounds - number)
        left -= share
        pools = [one.draw(_POOL * share // len(own)) for one in own]
        doubts = [one.doubt(pool, rng) for one, pool in zip(own, pools, strict=True)]
        sizes = _shares(share, [float(doubt.mean()) for doubt in doubts], [len(d) for d in doubts])
        for one, pool, doubt, size in zip(own, pools, doubts, sizes, strict=True):
            if size:
                chosen = rng.choice(len(pool), size, replace=False, p=doubt / doubt.sum())
                trial = TrialInfo(agent=AGENT, seed=seed, budget=size)
                one.simulate(pool[np.sort(chosen)], trial)


@dataclass(eq=False)
class _Workload:
    """What is known of one workload."""

    environment: Environment
    targets: Sequence[str]
    seed: int
    progress: Progress

    def __post_init__(self) -> None:
        space = self.environment.design_space
        drawing = make_agent("random", space, seed=self.seed, batch_size=4096)
        assert isinstance(drawing, Sampler)
        self._random = drawing
        self._inputs = Inputs(space)
        self._codes = np.empty((0, len(space.parameters)), dtype=np.int64)
        self._values = np.empty((0, len(self.targets)))

    def draw(self, n: int) -> Designs:
        """New designs drawn at random; fewer if no more are left."""
        return self._random.ask(n)

    def simulate(self, designs: Designs, trial: TrialInfo) -> None:
        """Simulates designs and keeps what came out."""
        env = self.environment
        env.start_trial(trial)
        try:
            for start in range(0, len(designs), 256):
                outcomes = env.evaluate_batch(designs[start : start + 256])
                ok = outcomes.status == 0
                names = list(outcomes.metric_names)
                columns = [names.index(target) for target in self.targets]
                self._codes = np.concatenate([self._codes, outcomes.designs.codes[ok]])
                self._values = np.concatenate([self._values, outcomes.metrics[ok][:, columns]])
                self.progress(len(outcomes))
        finally:
            env.end_trial("finished")

    def doubt(self, pool: Designs, rng: np.random.Generator) -> Array:
        """How much models that saw different parts disagree on designs, shape (n,)."""
        unknown = np.full(self._values.shape, np.nan)
        scale = TargetScale.of("auto", self._values, unknown)
        x, z = self._inputs(self._codes), scale.forward(self._values, unknown)
        new = self._inputs(pool.codes)
        parts: NDArray[np.int64] = rng.integers(_COMMITTEE, size=len(x))
        said = []
        for part in range(_COMMITTEE):
            model = family("boosting").fit(x[parts != part], z[parts != part], 0, _QUICK)
            mean = model.predict(new)[0]
            said.append(scale.backward(mean, np.full_like(mean, np.nan)))
        typical = np.maximum(np.abs(self._values).mean(axis=0), 1e-300)
        doubt = (np.std(said, axis=0) / typical).sum(axis=1)
        return np.asarray(doubt + 1e-12)


def _shares(total: int, weights: Sequence[float], most: Sequence[int]) -> list[int]:
    """Whole numbers in proportion to the weights, none above its limit."""
    exact = total * np.asarray(weights) / np.sum(weights)
    sizes = np.floor(exact).astype(int)
    for index in np.argsort(sizes - exact, kind="stable")[: total - sizes.sum()]:
        sizes[index] += 1
    return [int(size) for size in np.minimum(sizes, most)]
