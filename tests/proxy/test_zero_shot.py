from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from typer.testing import CliRunner

import archgym
from archgym.agent import Agent
from archgym.cli import app
from archgym.data import find_datasets, load
from archgym.errors import ArchgymError, DatasetError, InvalidValueError, UnknownNameError
from archgym.experiment import RunOptions, run_experiment
from archgym.experiment.spec.schema import Experiment
from archgym.history import History
from archgym.proxy import Proxy, Settings, load_proxy, read_training_data, save_proxy, train
from archgym.proxy.known_workloads import FeatureScale, KnownWorkloads
from archgym.proxy.provenance import Workload
from archgym.proxy.training.data import TrainingData
from archgym.proxy.training.workload_collection import collect_workloads
from archgym.proxy.zero_shot import proxy_source, start, zero_shot
from archgym.registry import make_agent
from archgym.space import DesignSpace, Integer


class Tuned(archgym.Environment):
    """The best design is where the workload says; a second feature says nothing."""

    design_space = DesignSpace([Integer("x", 0, 40), Integer("y", 0, 40)])
    metrics = (
        archgym.Metric("time_ns", "ns", "minimize", "of a run"),
        archgym.Metric("area_um2", "um2", "minimize", "of the chip"),
    )
    default_objective: ClassVar = {"minimize": "time_ns"}
    baseline: ClassVar = {"x": 0, "y": 0}
    default_workload: ClassVar = 4

    def load_workload(self, spec: object) -> None:
        self.wanted = int(str(spec))

    @property
    def workload_features(self) -> dict[str, float]:
        return {"wanted_count": float(self.wanted), "noise": float(self.wanted * 7919 % 13)}

    def simulate(self, design: dict[str, int]) -> dict[str, float]:
        away = (design["x"] - self.wanted) ** 2 + (design["y"] - 40 + self.wanted) ** 2
        return {"time_ns": 100.0 + away, "area_um2": 1.0 + design["x"]}


class Featureless(Tuned):
    @property
    def workload_features(self) -> dict[str, float]:
        return {}


WORKLOADS = list(range(2, 40, 4))


def features_of(trial: Any) -> dict[str, float]:
    return Tuned(workload=int(trial["workload"])).workload_features


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> TrainingData:
    folder = tmp_path_factory.mktemp("many")

    def make(workload: Any, objective: Any) -> archgym.Environment:
        return Tuned(workload=workload, objective=objective, record=folder)

    n = collect_workloads(make, WORKLOADS, [None], drawn=30, searched=120, crossed=2, seed=3)
    assert len(WORKLOADS) <= n <= 2 * len(WORKLOADS)
    return read_training_data(load(folder), features=features_of)


@pytest.fixture(scope="module")
def proxy(data: TrainingData) -> Proxy:
    return train(data, Settings(("boosting",), "workload-features", options={"trees": 30}))


def best_of(env: archgym.Environment, designs: Any) -> float:
    return float(env.evaluate_batch(designs).objectives.min())


def test_all_workloads_share_the_random_and_the_best_designs(data: TrainingData) -> None:
    known = KnownWorkloads.of(
        *([w.features for w in data.origin.workloads], data.workload, data.codes),
        *(data.targets, data.groups),
    )
    assert len(known) == len(WORKLOADS)
    assert len(known.codes) >= 30 + len(WORKLOADS)
    assert np.isfinite(known.metrics).all()


def test_left_out_workloads_begin_better_with_features_than_without(proxy: Proxy) -> None:
    assert proxy.known is not None
    by_features: list[float] = []
    alike: list[float] = []
    names = [one.name for one in proxy.origin.workloads]
    for number, wanted in enumerate(int(name) for name in names):
        kept = [n for n in range(len(names)) if n != number]
        # Nor may it profit from what its own search found.
        not_own = ~((proxy.known.codes[:, 0] == wanted) & (proxy.known.codes[:, 1] == 40 - wanted))
        known = proxy.known.take(kept, np.flatnonzero(not_own))
        table = [list(proxy.origin.workloads[n].baseline.values()) for n in kept]
        env = Tuned(workload=wanted)
        for ways, values in ((True, alike), (False, by_features)):
            found = start(
                *(known, np.array(table), [names[n] for n in kept], env, 2, 2), alike=ways
            )
            values.append(best_of(env, found.designs) - 100.0)
    assert np.mean(by_features) < 0.5 * np.mean(alike)


def test_an_unseen_workload_is_predicted(proxy: Proxy) -> None:
    env = Tuned(workload=21)
    baseline = {"time_ns": float(env.baseline_metrics[0]), "area_um2": 1.0}
    unseen = Workload("21", "", 21, dict(env.baseline), baseline, env.workload_features)
    more = proxy.with_workload(unseen)
    designs = env.design_space.sample(200, np.random.default_rng(0))
    predicted = more.predict(designs, len(WORKLOADS)).values[:, 0]
    true = env.evaluate_batch(designs).metrics[:, 0]
    assert np.corrcoef(predicted, true)[0, 1] > 0.8


def test_the_nearest_workloads_count_most(proxy: Proxy) -> None:
    found = zero_shot(proxy, Tuned(workload=20))
    assert {name for name, _ in found.nearest[:3]} <= {"10", "14", "18", "22", "26", "30"}
    assert sum(weight for _, weight in found.nearest) == pytest.approx(1.0)


def test_metrics_that_were_not_learned_may_be_missing(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = recorded(tmp_path_factory.mktemp("fewer"))
    fewer = read_training_data(load(folder), ["time_ns"], features=features_of)
    proxy = train(fewer, Settings(("boosting",), "workload-features", options={"trees": 5}))
    assert len(zero_shot(proxy, Tuned(workload=4)).designs) == 30
    with pytest.raises(InvalidValueError, match="not trained on metric 'area_um2'"):
        zero_shot(proxy, Tuned(workload=4, objective="minimize area_um2"))


def test_a_file_keeps_what_it_knows(proxy: Proxy, tmp_path: Path) -> None:
    path = tmp_path / "many.npz"
    save_proxy(proxy, path)
    env = Tuned(workload=20)
    again, first = zero_shot(load_proxy(path), env), zero_shot(proxy, env)
    assert (again.designs.codes == first.designs.codes).all()
    assert again.nearest == first.nearest


def test_a_damaged_table_is_refused(proxy: Proxy, tmp_path: Path) -> None:
    path = tmp_path / "many.npz"
    save_proxy(proxy, path)
    with np.load(path) as stored:
        arrays = dict(stored)
    arrays["known/codes"] = arrays["known/codes"] + 1000
    np.savez_compressed(path, **arrays)
    with pytest.raises(DatasetError, match="no such design"):
        load_proxy(path)


def test_it_is_history_of_a_search_in_the_order_of_the_portfolio(
    proxy: Proxy, tmp_path: Path
) -> None:
    path = tmp_path / "many.npz"
    save_proxy(proxy, path)
    env = Tuned(workload=20)
    source = proxy_source(path, env)
    assert source.name == "proxy many.npz"
    history = History((source,))
    wanted = zero_shot(proxy, env).designs.codes[:5]
    assert (history.start(5).codes == wanted).all()
    agent: Agent = make_agent("random", env.design_space, seed=1)
    result = agent.search(env, 5, history=history)
    assert result.best is not None
    assert result.best.objectives[0] <= 100 + 2 * 2**2


def test_fixed_values_and_limits_hold(proxy: Proxy) -> None:
    env = Tuned(workload=20, objective={"minimize": "time_ns", "limits": ["area_um2 <= 12"]})
    found = zero_shot(proxy, env)
    assert (found.outcomes.metrics[:5, 1] <= 12).all()
    some = int(found.designs.codes[0, 0])
    held = Tuned(workload=20, fixed={"x": some})
    assert set(zero_shot(proxy, held).designs.codes[:, 0].tolist()) == {some}


def test_an_environment_without_features_is_told_what_to_override(
    data: TrainingData, proxy: Proxy, tmp_path: Path
) -> None:
    with pytest.raises(InvalidValueError, match="override workload_features"):
        zero_shot(proxy, Featureless(workload=20))
    bare = read_training_data(load(recorded(tmp_path)))
    with pytest.raises(InvalidValueError, match=r"has no features.*workload_features"):
        train(bare, Settings(("boosting",), "workload-features"))


def recorded(folder: Path) -> Path:
    for workload in (1, 2, 3):
        env = Tuned(workload=workload, record=folder / "some")
        env.evaluate_batch(env.design_space.sample(30, np.random.default_rng(0)))
        env.close()
    return folder / "some"


def test_a_proxy_of_another_scope_has_no_start(data: TrainingData) -> None:
    other = train(data, Settings(("boosting",), "all", options={"trees": 5}))
    with pytest.raises(InvalidValueError, match="--per workload-features"):
        zero_shot(other, Tuned(workload=20))
    with pytest.raises(InvalidValueError, match="--per workload-features"):
        other.with_workload(other.origin.workloads[0])


def test_a_mistyped_scope_is_met_with_a_suggestion() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'workload-features'"):
        Settings(per="workload-feature")


def test_features_missing_or_far_away() -> None:
    scale = FeatureScale.of([{"a": 1.0, "b": 5.0}, {"a": 2.0, "b": 5.0}, {"a": 900.0, "b": 5.0}])
    assert scale.names == ("a",)  # b tells nothing apart
    assert abs(scale.numbers({"a": 1e30})[0]) <= 6
    with pytest.raises(InvalidValueError, match="lacks feature 'a'"):
        scale.numbers({"b": 1.0})
    assert FeatureScale.from_json(scale.to_json()).numbers({"a": 2.0}) == scale.numbers({"a": 2.0})


def test_too_few_workloads_or_designs_are_refused() -> None:
    with pytest.raises(InvalidValueError, match="at least 3"):
        collect_workloads(lambda w, o: Tuned(workload=w), [1, 2], [None])
    with pytest.raises(InvalidValueError, match="searched"):
        collect_workloads(lambda w, o: Tuned(workload=w), [1, 2, 3], [None], searched=0)


def test_a_mistyped_agent_or_hyperparameter_is_met_before_anything_is_simulated_or_written(
    tmp_path: Path,
) -> None:
    simulated: list[Any] = []

    class Watched(Tuned):
        def simulate(self, design: Any) -> dict[str, float]:
            simulated.append(design)
            return super().simulate(design)

    def make(workload: Any, objective: Any) -> archgym.Environment:
        return Watched(workload=workload, objective=objective, record=tmp_path / "many")

    with pytest.raises(UnknownNameError, match="'auto'"):
        collect_workloads(make, WORKLOADS, [None], agent="atuo")
    with pytest.raises(UnknownNameError, match="effort"):
        collect_workloads(make, WORKLOADS, [None], hyperparameters={"efort": "fast"})
    assert not simulated
    assert not (tmp_path / "many").exists()


@pytest.mark.full
def test_commands(tmp_path: Path) -> None:
    runner = CliRunner()
    many, file = str(tmp_path / "many"), str(tmp_path / "many.npz")
    workloads = [f"{{generator: {name}, requests: 300}}" for name in ("stream", "zipf", "random")]
    given = [text for one in workloads for text in ("--workload", one)]
    sizes = ["--drawn", "20", "--searched", "15", "--crossed", "2", "--quiet"]
    made = runner.invoke(
        app, ["proxy", "collect-workloads", "DRAM-v0", "--record", many, *given, *sizes]
    )
    assert made.exit_code == 0, made.output
    target = ["--target", "read_latency_mean_ns", "--target", "energy_per_bit_pj"]
    target += ["--target", "buffer_bits", "--model", "boosting", "--option", "trees=20", "--quiet"]
    trained = runner.invoke(
        app, ["proxy", "train", many, "--per", "workload-features", *target, "--out", file]
    )
    assert trained.exit_code == 0, trained.output
    unseen = ["--workload", "{generator: mixed, requests: 300}"]
    begun = runner.invoke(app, ["proxy", "start", file, *unseen, "--designs", "3"])
    assert begun.exit_code == 0, begun.output
    assert "is most like" in begun.output
    assert "minimize read_latency_mean_ns" in begun.output.replace("\n", " ")
    assert len(re.findall(r"^ [123] best ", begun.output, re.MULTILINE)) == 1
    command = shlex.split(begun.output.strip().splitlines()[-1])
    again = runner.invoke(app, command[1:])
    assert again.exit_code == 0, again.output


def test_an_experiment_takes_a_proxy_as_history(
    proxy: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it expects most of comes first, and a resumed run needs its file no more."""
    monkeypatch.chdir(tmp_path)
    many = tmp_path / "many.npz"
    save_proxy(proxy, many)

    def experiment(budget: int = 8, env: str = "Tuned") -> Experiment:
        entry = {"id": f"{__name__}:{env}", "workload": 20, "history": "many.npz"}
        agents = [{"name": "auto"}, {"name": "ga"}]
        return Experiment.model_validate(
            {"name": "unseen", "budget": budget, "environments": [entry], "agents": agents}
        )

    run_experiment(experiment(), tmp_path / "run", RunOptions(local=True, quiet=True))
    wanted = zero_shot(proxy, Tuned(workload=20)).designs[0]
    trials = designs_by_trial(tmp_path / "run")
    assert len(trials) == 2
    assert all(wanted in designs[:2] for designs in trials.values()), "the baseline is before it"
    many.unlink()
    resumed = RunOptions(local=True, quiet=True, resume=True)
    run_experiment(experiment(budget=12), tmp_path / "run", resumed)
    assert [len(designs) for designs in designs_by_trial(tmp_path / "run").values()] == [12, 12]
    save_proxy(proxy, many)
    bare = experiment(env="Featureless")
    with pytest.raises(ArchgymError, match=r"many.npz cannot be history.*no workload features"):
        run_experiment(bare, tmp_path / "other", RunOptions(local=True, quiet=True))


def designs_by_trial(folder: Path) -> dict[str, list[dict[str, int]]]:
    (dataset,) = find_datasets(folder)
    found: dict[str, list[dict[str, int]]] = {}
    for row in dataset.evaluations().to_pylist():
        design = {"x": row["param.x"], "y": row["param.y"]}
        found.setdefault(row["trial_id"], []).append(design)
    return found
