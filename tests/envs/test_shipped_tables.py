"""The shipped tables of simulators are what these simulators give now."""

from __future__ import annotations

import numpy as np
import pytest

import archgym
from archgym.simulators.tabular.simulator import shipped_tables, table_named

MEASURED = ("boom-", "gpu-")
"""Beginnings of the names of tables that no simulator made."""
TABLES = sorted(name for name in shipped_tables() if not name.startswith(MEASURED))


@pytest.mark.parametrize("name", TABLES)
def test_a_shipped_table_has_the_simulators_metrics(name: str) -> None:
    header = table_named(f"tabular:{name}").header
    kept = archgym.make(header.environment, simulator=f"tabular:{name}")
    env = archgym.make(
        header.environment, workload=kept.workload, space=header.space, **header.arguments
    )
    designs = kept.design_space.sample(25, np.random.default_rng(0))
    stored = kept.evaluate_batch(designs).metrics
    fresh = env.evaluate_batch(env.design_space.designs(list(designs))).metrics
    np.testing.assert_allclose(stored, fresh, rtol=1e-9, atol=1e-12)
