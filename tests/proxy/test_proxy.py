from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import archgym
from archgym.data import Dataset, load
from archgym.errors import DatasetError, InvalidValueError, UnknownNameError
from archgym.proxy import Proxy, Settings, load_proxy, read_training_data, save_proxy, train
from archgym.proxy.quality.evaluation import evaluate, learning_curve, measure_speed
from archgym.proxy.search import search_and_verify
from archgym.registry import make_agent
from tests.data.datasets import Loaded, recorded

QUICK = Settings(("boosting",), options={"trees": 40})


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("proxy") / "data"
    env = archgym.make("Conformance-v0", space="finite", record=folder)
    make_agent("random", env.design_space, seed=0).search(env, budget=600)
    env.close()
    Dataset(folder).seal()
    return folder


@pytest.fixture(scope="module")
def file(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("file") / "cache.npz"
    save_proxy(train(read_training_data(load(dataset)).sample(450, 0), QUICK), path)
    return path


def test_file_gives_the_same_predictions(file: Path, dataset: Path) -> None:
    data = read_training_data(load(dataset))
    proxy = train(data.sample(450, 0), QUICK)
    again = load_proxy(file)
    designs = archgym.make("Conformance-v0", space="finite").design_space.sample(
        100, np.random.default_rng(5)
    )
    np.testing.assert_array_equal(again.predict(designs).values, proxy.predict(designs).values)
    assert again.origin == proxy.origin
    assert len(again.fingerprint) == 64


def test_proxy_takes_the_simulators_place(file: Path) -> None:
    real = archgym.make("Conformance-v0", space="finite")
    env = archgym.make("Conformance-v0", space="finite", simulator=f"proxy:{file}")
    np.testing.assert_array_equal(env.baseline_metrics, real.baseline_metrics)
    designs = real.design_space.sample(200, np.random.default_rng(1))
    truth, said = real.evaluate_batch(designs), env.evaluate_batch(designs)
    both = (truth.status == 0) & (said.status == 0)
    assert both.sum() > 150
    size = truth.metrics[both]
    error = np.abs(said.metrics[both] - size) / size
    assert np.median(error) < 0.05
    assert make_agent("ga", env.design_space).search(env, 300).simulations == 300


def test_make_takes_space_and_settings_from_the_proxy(file: Path) -> None:
    env = archgym.make("Conformance-v0", simulator=f"proxy:{file}")
    assert env.design_space == archgym.make("Conformance-v0", space="finite").design_space
    assert env.evaluate(env.baseline_design).status == "ok"
    with pytest.raises(InvalidValueError, match="the proxy is of environment Conformance-v0"):
        archgym.make("DRAM-v0", simulator=f"proxy:{file}")


def test_designs_out_of_range_are_illegal_with_the_reason(dataset: Path, tmp_path: Path) -> None:
    few = load(dataset, ["ways <= 8", "replacement in lru, fifo"])
    path = tmp_path / "narrow.npz"
    save_proxy(train(read_training_data(few), QUICK), path)
    env = archgym.make("Conformance-v0", space="finite", simulator=f"proxy:{path}")
    base = env.baseline_design
    assert env.evaluate({**base, "ways": 8}).status == "ok"
    wide = env.evaluate({**base, "ways": 12})
    assert wide.status == "illegal"
    assert "ways is 12, not 1 to 8" in wide.reason
    other = env.evaluate({**base, "replacement": "random"})
    assert other.status == "illegal"
    assert "replacement is 'random', not 'lru', 'fifo'" in other.reason


def test_what_does_not_fit_is_refused(file: Path, tmp_path: Path) -> None:
    simulator = f"proxy:{file}"
    with pytest.raises(InvalidValueError, match="voltage"):
        archgym.make("Conformance-v0", space="default", simulator=simulator)
    with pytest.raises(UnknownNameError, match="proxy:PATH"):
        archgym.make("Conformance-v0", simulator="proxi")
    with pytest.raises(InvalidValueError, match="write proxy:PATH"):
        archgym.make("Conformance-v0", simulator="proxy:")
    with pytest.raises(DatasetError, match="cannot read"):
        archgym.make("Conformance-v0", simulator=f"proxy:{tmp_path / 'none.npz'}")


def test_metric_that_was_not_learned_is_no_objective(dataset: Path, tmp_path: Path) -> None:
    path = tmp_path / "one.npz"
    save_proxy(train(read_training_data(load(dataset), ["access_ns"]), QUICK), path)
    arguments = {"space": "finite", "simulator": f"proxy:{path}"}
    assert archgym.make("Conformance-v0", **arguments).simulator.metric_names == ("access_ns",)
    with pytest.raises(InvalidValueError, match="does not give metric 'energy_pj'"):
        archgym.make("Conformance-v0", objective="minimize energy_pj", **arguments)


def _with_header(file: Path, change: Any) -> bytes:
    with np.load(file, allow_pickle=False) as found:
        arrays = {name: found[name] for name in found.files}
    header = json.loads(arrays["header"].tobytes())
    change(header)
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def test_damaged_files_are_refused(file: Path, tmp_path: Path) -> None:
    path = tmp_path / "damaged.npz"
    content = file.read_bytes()
    cases = [
        (content[: len(content) // 2], "not a proxy, or damaged"),
        (b"no archive", "not a proxy, or damaged"),
        (_with_header(file, lambda h: h.update(format=9)), "has format 9"),
        (_with_header(file, lambda h: h.pop("origin")), "not a proxy, or damaged"),
        (_with_header(file, lambda h: h["parts"][0].update(kind="os")), "unknown family"),
        (_with_header(file, lambda h: h["parts"][0].update(workloads=[4])), "no such workload"),
        (_with_header(file, lambda h: h["parts"][0]["scale"].update(centre=[10**400])), "damaged"),
        (
            _with_header(file, lambda h: h["origin"]["workloads"][0].update(baseline_design=[[]])),
            "not a proxy, or damaged",
        ),
    ]
    for text, message in cases:
        path.write_bytes(text)
        with pytest.raises(DatasetError, match=message):
            load_proxy(path)


def test_pickles_are_not_read(file: Path, tmp_path: Path) -> None:
    path = tmp_path / "pickle.npz"
    with np.load(file, allow_pickle=False) as found:
        arrays: dict[str, Any] = {name: found[name] for name in found.files}
    arrays["trained_on"] = np.array([{"a": 1}], dtype=object)
    np.savez(path, **arrays)
    assert "trained_on.npy" in zipfile.ZipFile(path).namelist()
    with pytest.raises(DatasetError, match="array of objects"):
        load_proxy(path)


def test_evaluation_leaves_out_what_was_seen(file: Path, dataset: Path) -> None:
    data, proxy = read_training_data(load(dataset)), load_proxy(file)
    found, seen = evaluate(proxy, data)
    assert seen == 450
    assert {one.scores.n for one in found} == {len(data) - 450}
    assert all(one.scores.r2 > 0.9 for one in found)
    with pytest.raises(InvalidValueError, match="trained on every design"):
        evaluate(proxy, data.take(np.flatnonzero(np.isin(data.groups, proxy.trained_on))))


def test_more_data_make_it_better(dataset: Path) -> None:
    data = read_training_data(load(dataset), ["energy_pj"])
    test, rest = data.take(np.arange(100)), data.take(np.arange(100, len(data)))
    curve = learning_curve(rest, test, [30, 400], QUICK)
    few, many = (points[0].scores.relative_rmse for _, points in curve)
    assert many < few / 2


def test_families_compete_and_the_best_is_taken(dataset: Path) -> None:
    data = read_training_data(load(dataset), ["energy_pj"]).sample(150, 0)
    proxy = train(data, Settings(("forest", "gp"), options={"trees": 20, "steps": 20}))
    (row,) = proxy.report["validation"]
    assert set(row["scores"]) == {"forest", "gp"}
    assert row["chosen"] == min(row["scores"], key=lambda kind: row["scores"][kind]["rmse"])
    assert row["validated_on"] == 150


@pytest.mark.parametrize("per", ["workload", "all"])
def test_workloads(per: str, tmp_path: Path) -> None:
    data = read_training_data(recorded(tmp_path / "data", budget=60), ["total_ns"])
    assert [one.name for one in data.origin.workloads] == ["heavy", "light"]
    proxy = train(data, Settings(("gp",), per=per))
    assert len(proxy.parts) == (2 if per == "workload" else 1)
    path = tmp_path / "adder.npz"
    save_proxy(proxy, path)
    design = {"x": 1, "y": 2, "mode": "plain"}
    for workload, expected in (("light", 4.0), ("heavy", 14.0)):
        env = Loaded(workload=workload, simulator=f"proxy:{path}")
        assert env.evaluate(design).metrics["total_ns"] == pytest.approx(expected, rel=0.1)
    with pytest.raises(UnknownNameError, match="Did you mean 'light'"):
        proxy.workload("lights")


def test_designs_stay_on_one_side_of_cross_validation(tmp_path: Path) -> None:
    data = read_training_data(recorded(tmp_path, budget=60))
    folds = data.folds(5, 0)
    for group in np.unique(data.groups):
        assert len(set(folds[data.groups == group].tolist())) == 1
    assert len(np.unique(folds)) == 5


def test_too_few_rows_and_unknown_names(dataset: Path) -> None:
    data = read_training_data(load(dataset))
    with pytest.raises(InvalidValueError, match="20 are needed"):
        train(data.take(np.arange(10)), QUICK)
    with pytest.raises(UnknownNameError, match="Did you mean 'boosting'"):
        Settings(("bosting",))
    with pytest.raises(UnknownNameError, match="Did you mean 'epochs'"):
        Settings(options={"epoch": 3})
    with pytest.raises(UnknownNameError, match="Did you mean 'energy_pj'"):
        read_training_data(load(dataset), ["energy_pJ"])


def test_search_verifies_the_best_on_the_real_simulator(file: Path) -> None:
    arguments: dict[str, Any] = {"space": "finite", "objective": "minimize energy_pj"}
    real = archgym.make("Conformance-v0", **arguments)
    learned = archgym.make("Conformance-v0", simulator=f"proxy:{file}", **arguments)
    found = search_and_verify(learned, real, budget=400, verify=10)
    assert len(found.outcomes) == len(found.predicted) == 10
    said = [one.objectives[0] for one in found.predicted]
    assert said == sorted(said)
    assert found.best is not None
    assert found.best.metrics == real.evaluate(found.best.design).metrics
    assert found.best.objectives[0] == min(o.objectives[0] for o in found.outcomes if o.feasible)
    assert found.best.objectives[0] < real.evaluate(real.baseline_design).objectives[0]


def test_speed_counts_designs(file: Path) -> None:
    proxy: Proxy = load_proxy(file)
    made = measure_speed(
        proxy, archgym.make("Conformance-v0", space="finite"), simulated=5, predicted=100
    )
    assert made.metrics == 4
    assert made.factor == pytest.approx(made.proxy / made.simulator)
    assert made.proxy > 0
