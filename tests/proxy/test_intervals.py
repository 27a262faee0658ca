from __future__ import annotations

import json
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import archgym
from archgym.data import Dataset, load
from archgym.errors import DatasetError
from archgym.proxy import Proxy, Settings, load_proxy, read_training_data, save_proxy, train
from archgym.registry import make_agent
from archgym.space import DesignSpace, Integer

QUICK = Settings(("boosting",), per="all", options={"trees": 30})


class Rough(archgym.Environment):
    """A line with steps on it that no model foresees; how high they are is the workload."""

    design_space = DesignSpace([Integer(f"x{i}", 0, 15) for i in range(3)])
    metrics = (archgym.Metric("cost_ns", "ns", "minimize", "of the design"),)
    default_objective: ClassVar = {"minimize": "cost_ns"}
    baseline: ClassVar = {"x0": 0, "x1": 0, "x2": 0}
    heights: ClassVar = {"calm": 0.1, "wild": 10.0}

    def load_workload(self, spec: object) -> None:
        self.height = self.heights[str(spec)]

    def simulate(self, design: dict[str, int]) -> dict[str, float]:
        x = [design[f"x{i}"] for i in range(3)]
        step = (x[0] * 7919 + x[1] * 104729 + x[2] * 1299709) % 101 / 101
        return {"cost_ns": 100.0 + x[0] + self.height * step}


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Proxy:
    folder = tmp_path_factory.mktemp("rough") / "data"
    for workload in ("calm", "wild"):
        env = Rough(workload=workload, record=folder)
        make_agent("random", env.design_space, seed=0).search(env, budget=700)
        env.close()
    Dataset(folder).seal()
    return train(read_training_data(load(folder)), QUICK)


def test_one_model_of_all_workloads_has_intervals_for_each(proxy: Proxy) -> None:
    assert len(proxy.parts) == 1
    widths = {}
    for name in ("calm", "wild"):
        env = Rough(workload=name)
        unseen = env.design_space.sample(1500, np.random.default_rng(1))
        truth = env.evaluate_batch(unseen).metrics[:, 0]
        said = proxy.predict(unseen, proxy.workload(name))
        inside = (said.low[:, 0] <= truth) & (truth <= said.high[:, 0])
        assert 0.86 < inside.mean() < 0.95
        widths[name] = (said.high - said.low).mean()
    assert widths["wild"] > 3 * widths["calm"]


def test_files_of_one_calibration_are_read_and_of_too_few_refused(
    proxy: Proxy, tmp_path: Path
) -> None:
    path = tmp_path / "rough.npz"
    save_proxy(proxy, path)
    with np.load(path, allow_pickle=False) as found:
        arrays = {name: found[name] for name in found.files}
    header = json.loads(arrays["header"].tobytes())
    (part,) = header["parts"]
    both = part["calibrations"]

    def written(**entries: object) -> Path:
        others = {k: v for k, v in part.items() if k != "calibrations"}
        text = json.dumps({**header, "parts": [{**others, **entries}]}).encode()
        np.savez(path, **{**arrays, "header": np.frombuffer(text, dtype=np.uint8)})
        return path

    (old,) = load_proxy(written(calibration=both[1])).parts
    assert [one.to_json() for one in old.calibrations] == [both[1], both[1]]
    with pytest.raises(DatasetError, match="calibrations do not fit"):
        load_proxy(written(calibrations=both[:1]))


def test_what_takes_minutes_is_not_trained_unasked() -> None:
    for rows in (100, 100_000):
        assert "residual" not in Settings().families(rows)
        assert Settings(("residual", "gp")).families(rows) == ["residual", "gp"]
