"""The Gaussian process of `bayesian` against a known answer, on every kind of processor."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

from archgym.agents.common.skopt_surrogates import GaussianProcess
from archgym.agents.common.threads import one_quiet_thread
from archgym.envs.conformance import ConformanceEnvironment
from archgym.registry import make_agent

Array = np.ndarray[Any, Any]
PROCESSORS = (
    {"OPENBLAS_CORETYPE": "Haswell"},
    {"OPENBLAS_CORETYPE": "Prescott"},
    {"NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3 AVX512F AVX512CD AVX512_SKX"},
)
N_INITIAL = 10


def smooth(name: str) -> tuple[Array, Array, Array]:
    """Designs and costs that are smooth and without noise, and designs to predict.

    The signal is then much larger than the noise, and the covariance close to singular.
    """
    rng = np.random.default_rng(5)
    x = rng.random((66, 2)) if name == "plane" else rng.random((46, 3))
    sum_of_squares = 4 * (x**2).sum(axis=1)
    y = np.log(1.0 + sum_of_squares) if name == "product" else sum_of_squares
    return x[:-6], y[:-6], x[-6:]


def exact_deviation(x: Array, at: Array, variance: float, length: float, noise: float) -> Array:
    """Posterior deviation of the signal with 60 digits, by Rasmussen and Williams (2006), 2.26."""
    with localcontext() as context:
        context.prec = 60
        rows, wanted = ([[Decimal(float(v)) for v in row] for row in some] for some in (x, at))

        def kernel(a: list[Decimal], b: list[Decimal]) -> Decimal:
            squared = sum((p - q) ** 2 for p, q in zip(a, b, strict=True))
            r = (5 * Decimal(squared)).sqrt() / Decimal(length)
            return Decimal(variance) * (1 + r + r * r / 3) * (-r).exp()

        # Forward elimination of [covariance | kernel(x, at)], which needs no square root.
        n = len(rows)
        matrix = [
            [kernel(a, b) + (Decimal(noise) if i == j else 0) for j, b in enumerate(rows)]
            + [kernel(a, b) for b in wanted]
            for i, a in enumerate(rows)
        ]
        left = [Decimal(variance)] * len(wanted)
        for pivot in range(n):
            head = matrix[pivot]
            for row in matrix[pivot + 1 :]:
                factor = row[pivot] / head[pivot]
                for column in range(pivot, n + len(wanted)):
                    row[column] -= factor * head[column]
            left = [v - head[n + k] ** 2 / head[pivot] for k, v in enumerate(left)]
        return np.array([float(v.sqrt()) for v in left])


def deviations(name: str) -> tuple[Array, dict[str, float]]:
    """What the surrogate predicts, and the hyperparameters that it found."""
    x, y, at = smooth(name)
    model = GaussianProcess()
    with one_quiet_thread(ThreadpoolController()):
        model.fit(x, y, 0)
        _, deviation = model.predict(at)
    target = model._targets[model._used]
    kernel, jitter = target._kernel, target.model.alpha
    return deviation, {
        "variance": kernel.k1.constant_value,
        "length": kernel.k2.length_scale,
        "noise": target._noise + jitter,
    }


@pytest.mark.parametrize("name", ["product", "sum", "plane"])
def test_deviation_agrees_with_the_exact_one(name: str) -> None:
    deviation, found = deviations(name)
    x, _, at = smooth(name)
    assert (deviation > 0).all()
    assert deviation == pytest.approx(exact_deviation(x, at, **found), rel=1e-4)


def test_the_condition_of_the_covariance_is_bounded() -> None:
    for name in ("product", "sum", "plane"):
        _, found = deviations(name)
        assert found["variance"] / found["noise"] <= 1e8


def proposals(name: str) -> list[int]:
    env = ConformanceEnvironment()
    keys: list[int] = []
    env.on_evaluated = lambda outcomes: keys.extend(outcomes.designs.keys())
    agent = make_agent(name, env.design_space, seed=3, n_initial=N_INITIAL, candidates=100)
    agent.search(env, N_INITIAL + 6)
    return keys


def on_this_processor() -> dict[str, Any]:
    deviation, found = deviations("sum")
    return {
        "deviation": deviation.tolist(),
        "found": found,
        "proposals": {name: proposals(name) for name in ("bayesian", "gp")},
    }


@pytest.mark.full
@pytest.mark.parametrize(
    "processor", PROCESSORS, ids=lambda processor: next(iter(processor.values()))
)
def test_every_processor_has_the_same_answers(processor: dict[str, str]) -> None:
    code = (
        "import json\n"
        "from tests.agents.common.test_skopt_surrogates import on_this_processor\n"
        "print(json.dumps(on_this_processor()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[3],
        env={**os.environ, **processor},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    there, here = json.loads(done.stdout.splitlines()[-1]), on_this_processor()
    x, _, at = smooth("sum")
    exact = exact_deviation(x, at, **there["found"])
    assert there["deviation"] == pytest.approx(exact, rel=1e-4)
    # Hyperparameters are sought with rounded numbers, so that later proposals may differ; designs
    # before the first model, and what counts as a new design, may not.
    for name, keys in there["proposals"].items():
        assert keys[:N_INITIAL] == here["proposals"][name][:N_INITIAL]
        assert len(set(keys)) == len(keys) == N_INITIAL + 6
