"""RLlib's workers make environments by ``archgym:archgym/NAME``."""

from __future__ import annotations

from pathlib import Path

import pytest

from archgym.data import Dataset, load, validate


@pytest.mark.full
@pytest.mark.nightly
@pytest.mark.timeout(1200)
def test_rllib_learns_and_its_rows_are_recorded(tmp_path: Path) -> None:
    ppo = pytest.importorskip(
        "ray.rllib.algorithms.ppo",
        reason="needs pip install 'ray[rllib]'",
        exc_type=ImportError,
    )
    import ray

    arguments = {
        "record": str(tmp_path / "data"),
        "agent": "rllib-ppo",
        "seed": 1,
        "label": "train",
        "episode_length": 8,
    }
    config = (
        ppo.PPOConfig()
        .environment("archgym:archgym/Conformance-v0", env_config=arguments)
        .env_runners(num_env_runners=2)
        .training(train_batch_size_per_learner=64, minibatch_size=32, num_epochs=1)
        .debugging(seed=1)
    )
    ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False)
    try:
        learner = config.build_algo()
        result = learner.train()
        learner.stop()
    finally:
        ray.shutdown()
    assert result["env_runners"]["num_env_steps_sampled_lifetime"] >= 64
    trials = Dataset(tmp_path / "data").trials().to_pylist()
    assert {(row["agent"], row["seed"], row["label"]) for row in trials} == {
        ("rllib-ppo", 1, "train")
    }
    assert len(trials) >= 2  # one a worker
    assert len(load(tmp_path / "data")) >= 48  # the other steps are resets
    assert not list((tmp_path / "data" / "journal").iterdir())  # sealed, though workers were killed
    assert all(check.passed for check in validate(Dataset(tmp_path / "data")))
