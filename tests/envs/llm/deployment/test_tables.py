"""The shipped tables of deployments are what the simulator gives now."""

from __future__ import annotations

import numpy as np
import pytest

import archgym


@pytest.mark.parametrize("table", ["conv", "70b"])
def test_a_shipped_table_has_the_simulators_metrics(table: str) -> None:
    kept = archgym.make("LLMServing-v0", simulator=f"tabular:suite-llm-serving-{table}")
    env = archgym.make("LLMServing-v0", workload=kept.workload)
    designs = kept.design_space.sample(25, np.random.default_rng(0))
    stored = kept.evaluate_batch(designs).metrics
    fresh = env.evaluate_batch(env.design_space.designs(list(designs))).metrics
    np.testing.assert_allclose(stored, fresh, rtol=1e-9, atol=1e-12)
