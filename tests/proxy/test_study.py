from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import archgym
from archgym.data import load
from archgym.errors import InvalidValueError
from archgym.proxy import Settings, read_training_data, train
from archgym.proxy.quality.diversity import MIXED, study_diversity
from archgym.proxy.torch.predictor import TorchPredictor
from archgym.registry import make_agent
from archgym.space import Designs
from tests.data.datasets import recorded


def test_sources_of_equal_size(tmp_path: Path) -> None:
    selection = recorded(tmp_path, budget=60)
    agents = {
        name: read_training_data(selection.where(agents=name), ["total_ns"])
        for name in ("random", "ga")
    }
    test = read_training_data(selection, ["total_ns"])
    settings = Settings(("boosting",), per="all", options={"trees": 20})
    points = study_diversity(agents, test, [30, 10_000], settings, repetitions=3)
    assert {(point.source, point.size) for point in points} == {
        ("random", 30),
        ("ga", 30),
        (MIXED, 30),
    }
    for point in points:
        low, middle, high = point.interval
        assert len(point.errors) == 3
        assert 0 < low <= middle <= high
    with pytest.raises(InvalidValueError, match="two agents"):
        study_diversity({"ga": agents["ga"]}, test, [30], settings)


@pytest.mark.parametrize("kind", ["mlp", "residual"])
def test_torch_gives_what_numpy_gives(kind: str, tmp_path: Path) -> None:
    for workload in ("random", "stream"):  # a space with conditions and parameters of one unit
        env = archgym.make("DRAM-v0", workload=workload, record=tmp_path)
        make_agent("random", env.design_space, seed=0).search(env, 30)
        env.close()
    data = read_training_data(load(tmp_path), ["time_ns", "energy_pj"])
    options = {"epochs": 30, "members": 2, "width": 16}
    proxy = train(data, Settings((kind,), per="all", options=options))
    for place in (0, 1):
        predictor = TorchPredictor(proxy, place)
        expected = proxy.predict(Designs(data.space, data.codes), place).values
        found = predictor(predictor.codes(data.codes)).numpy()
        columns = [[m.name for m in proxy.metrics].index(name) for name in predictor.names]
        np.testing.assert_allclose(found, expected[:, columns], rtol=2e-4)


def test_torch_runs_networks_only(tmp_path: Path) -> None:
    data = read_training_data(recorded(tmp_path, budget=60))
    proxy = train(data, Settings(("forest",), options={"trees": 5}))
    with pytest.raises(InvalidValueError, match="only networks"):
        TorchPredictor(proxy)
