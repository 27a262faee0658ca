"""The searches that come with archgym, which others learn from by name."""

from __future__ import annotations

import pytest

import archgym
from archgym.data import Dataset
from archgym.data.checks import validate
from archgym.errors import UnknownNameError
from archgym.history import read_history
from archgym.history.shipped import shipped_histories


def test_every_shipped_search_is_sound_and_of_what_there_is_now() -> None:
    assert shipped_histories()
    for folder in shipped_histories().values():
        assert not [check for check in validate(Dataset(folder)) if check.wrong]


def test_a_search_learns_from_a_shipped_one_by_its_name() -> None:
    env = archgym.make(
        "LLMTraining-v0",
        workload="llama3_70b_h100_256",
        objective={"minimize": "training_days", "limits": ["peak_memory_gib <= 79"]},
    )
    (source,) = read_history("shipped:llama3-405b", env)
    assert (source.name, source.same) == ("LLMTraining-v0 llama3_405b_h100_1024", False)
    agent = archgym.make_agent("auto", env.design_space, seed=0)
    best = agent.search(env, 5, history="shipped:llama3-405b").best
    assert best is not None
    baseline = env.evaluate(env.baseline_design)
    assert best.objectives[0] < 0.6 * baseline.objectives[0]  # from nothing: 0.95 in the median


def test_a_misspelt_one_is_answered_with_what_is_meant() -> None:
    env = archgym.make("LLMTraining-v0")
    with pytest.raises(UnknownNameError, match="Did you mean 'llama3-405b'"):
        read_history("shipped:llama3-450b", env)
