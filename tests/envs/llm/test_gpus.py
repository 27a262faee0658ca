"""The number of GPUs as a choice, and the time of a whole training."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import archgym
from archgym.errors import InvalidValueError

SPEC: dict[str, Any] = {"model": "gpt_1.7b", "cluster": "dgx_a100", "batch": 96}
COUNTS = [8, 16, 24, 32]


def made(**changes: Any) -> archgym.Environment:
    return archgym.make("LLMTraining-v0", workload={**SPEC, "gpus": COUNTS, **changes})


def test_a_chosen_number_gives_the_metrics_of_a_workload_with_that_number() -> None:
    env = made()
    designs = env.design_space.sample(200, np.random.default_rng(0))
    chosen = env.evaluate_batch(designs).metrics
    numbers = np.array([design["gpus"] for design in designs])
    assert set(numbers) == set(COUNTS)
    for gpus in COUNTS:
        alone = made(gpus=gpus)
        plans = [
            {name: value for name, value in design.items() if name != "gpus"}
            for design in designs
            if design["gpus"] == gpus
        ]
        fresh = alone.evaluate_batch(alone.design_space.designs(plans)).metrics
        np.testing.assert_allclose(chosen[numbers == gpus], fresh)


def test_days_are_the_iterations_of_all_tokens() -> None:
    found = (env := made(training_gtokens=30)).evaluate(env.baseline_design).metrics
    iterations = 30e9 / (96 * 2048)
    assert found["gpus_count"] == max(COUNTS)
    assert found["training_days"] == pytest.approx((found["iteration_s"] or 0) * iterations / 86400)
    usual = (env := made()).evaluate(env.baseline_design).metrics
    tokens = 20 * 1.7e9
    expected = (found["training_days"] or 0) * tokens / 30e9
    assert usual["training_days"] == pytest.approx(expected, rel=0.05)


def test_a_search_finds_the_fewest_gpus_for_a_deadline() -> None:
    def fewest(days: float) -> float:
        env = archgym.make(
            "LLMTraining-v0",
            workload={**SPEC, "gpus": COUNTS, "training_gtokens": 100},
            objective={
                "minimize": "gpus_count",
                "limits": [f"training_days <= {days}", "peak_memory_gib <= 80"],
            },
        )
        best = archgym.make_agent("ga", env.design_space, seed=0).search(env, budget=300).best
        assert best is not None
        assert best.feasible
        assert (best.metrics["training_days"] or 0) <= days
        return best.metrics["gpus_count"] or 0

    assert fewest(40) < fewest(5)


def test_the_order_of_numbers_changes_nothing() -> None:
    assert made().hash_workload() == made(gpus=COUNTS[::-1]).hash_workload()
    assert made().hash_workload() != made(gpus=32).hash_workload()
    assert made().hash_workload() != made(training_gtokens=1).hash_workload()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gpus": []}, "empty list"),
        ({"gpus": [8, 8]}, "8 twice"),
        ({"gpus": [8, 12]}, "gpus is 12; more than one node must be whole nodes"),
        ({"gpus": [8, "x"]}, "gpus is 'x'"),
        ({"training_gtokens": 0}, "training_gtokens is 0"),
        ({"training_gtokens": "300e9"}, "training_gtokens is '300e9'"),
        ({"links": {"seed": 0}}, "with links it must be one number"),
    ],
)
def test_what_is_no_choice_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        made(**changes)
