from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import archgym


def recorded(requests: int) -> archgym.Environment:
    """The environment on the first requests of a recorded program."""
    return archgym.make("DRAM-v0", workload={"recorded": "sqlite", "requests": requests})


def test_a_fidelity_is_the_first_requests_with_totals_scaled_up() -> None:
    env = recorded(2000)
    designs = env.design_space.sample(6, np.random.default_rng(0))
    assert [fidelity.value for fidelity in env.fidelities] == [0.1, 0.3, 1.0]
    for fidelity in env.fidelities:
        found = env.evaluate_batch(designs, fidelity.value)
        n = round(2000 * fidelity.value)
        expected = recorded(n).evaluate_batch(designs)
        assert found.status.tolist() == expected.status.tolist() == [0] * 6
        for i, name in enumerate(found.metric_names):
            scale = 2000 / n if name in ("time_ns", "energy_pj") else 1.0
            assert found.metrics[:, i] == pytest.approx(expected.metrics[:, i] * scale), name


def test_low_fidelities_foretell_the_order_of_designs() -> None:
    env = recorded(4000)
    designs = env.design_space.sample(30, np.random.default_rng(1))
    full = env.evaluate_batch(designs).costs[:, 0]
    for fidelity in env.fidelities[:-1]:
        part = env.evaluate_batch(designs, fidelity.value).costs[:, 0]
        ranks = np.array([values.argsort().argsort() for values in (part, full)])
        assert np.corrcoef(ranks)[0, 1] > 0.9


@pytest.mark.parametrize(
    ("first_write", "left"),
    [(0, [0.1, 0.3, 1.0]), (5, [0.3, 1.0]), (15, [1.0]), (99, [0.1, 0.3, 1.0])],
)
def test_a_part_without_writes_is_no_fidelity_of_a_trace_with_some(
    tmp_path: Path, first_write: int, left: list[float]
) -> None:
    path = tmp_path / "some.stl"
    kinds = ["write" if i == first_write else "read" for i in range(20)]
    path.write_text("".join(f"{10 * i}: {kind} {64 * i:#x}\n" for i, kind in enumerate(kinds)))
    env = archgym.make("DRAM-v0", workload={"file": str(path), "clock_mhz": 1000})
    values = [fidelity.value for fidelity in env.fidelities]
    assert values == left  # of a trace of reads only, every part has all there is
    assert [env.evaluate(env.baseline, value).status for value in values] == ["ok"] * len(values)
