"""The NAS environment through its public interface."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import archgym
from archgym.data import Dataset
from archgym.envs.nas.environment import NASEnvironment
from archgym.envs.nas.families import Architecture, Task
from archgym.envs.nas.reward import RHO, Specs
from archgym.envs.nas.space import CHIPS
from archgym.envs.nas.tasks import family_of
from archgym.errors import InvalidValueError, UnknownNameError
from archgym.experiment.spec.expand import expand
from archgym.experiment.spec.from_mapping import read_experiment
from archgym.views.multi_agent import ParallelView

PAPER = {"cifar10": 94.17, "nuclei": 83.94, "stl10": 76.50}


class Counted:
    """Accuracies that grow with the epochs, NaN for networks of some sizes; counts the calls."""

    name = "counted"
    synthetic = False
    epochs = (1, 5, 20)

    def __init__(self, unknown: Sequence[int] = ()) -> None:
        self.asked: list[tuple[str, int]] = []
        self.failures: dict[tuple[str, str, int], str] = {}
        self._unknown = unknown

    def accuracies(
        self, task: Task, architectures: Sequence[Architecture], epochs: int
    ) -> NDArray[np.float64]:
        family = family_of(task)
        self.asked += [(family.key(task, each), epochs) for each in architectures]
        found = [
            math.nan
            if each.get("stem_filters") in self._unknown
            else 40 + 4 * math.log(family.parameter_count(task, each)) + 0.1 * epochs
            for each in architectures
        ]
        return np.array(found)


def make(**arguments: Any) -> NASEnvironment:
    env = archgym.make("NAS-v0", **{"workload": "W1", **arguments})
    assert isinstance(env, NASEnvironment)
    return env


def small(source: Counted | None = None, **arguments: Any) -> NASEnvironment:
    workload = {"tasks": ["digits", "digits_mbconv"], **arguments.pop("also", {})}
    return make(workload=workload, accuracy=source or Counted(), **arguments)


# -- metrics and objective -----------------------------------------------------------------------


@pytest.mark.parametrize("workload", ["W1", "W2", "W3"])
def test_synthetic_accuracies_are_marked_in_every_output(workload: str) -> None:
    env = make(workload=workload)
    outcome = env.evaluate(env.baseline_design)
    assert outcome.metrics["accuracy_synthetic_share"] == 1.0
    assert env.settings["accuracy"] == "synthetic"
    assert "synthetic" in env.workloads()[workload]
    assert any("synthetic" in text for text in env.not_modelled)
    marked = [m for m in env.metrics if m.name.endswith("_percent")]
    assert len(marked) == 3
    assert all("synthetic" in metric.doc for metric in marked)


def test_the_baseline_has_the_most_accurate_networks_and_breaks_the_specifications() -> None:
    env = make()
    outcome = env.evaluate(env.baseline_design)
    for name in ("cifar10", "nuclei"):
        assert outcome.metrics[f"accuracy_{name}_percent"] == pytest.approx(PAPER[name])
    assert outcome.metrics["accuracy_percent"] == pytest.approx((94.17 + 83.94) / 2)
    assert not outcome.feasible
    for metric in ("latency_cycles", "energy_nj", "area_um2"):
        assert f"limit {metric} <= " in outcome.reason


def test_reward_and_penalty_by_hand() -> None:
    env = make()
    for design in env.design_space.sample(20, np.random.default_rng(0)):
        found = env.evaluate(design).metrics
        penalty = 0.0
        for name, spec in (("latency_cycles", 8e5), ("energy_nj", 2e9), ("area_um2", 4e9)):
            value = found[name]
            assert value is not None
            penalty += max(0.0, value / spec - 1)  # a bound is twice its specification
        assert found["spec_penalty_rate"] == pytest.approx(penalty)
        a, b = found["accuracy_cifar10_percent"], found["accuracy_nuclei_percent"]
        assert a is not None
        assert b is not None
        assert found["nasaic_reward_rate"] == pytest.approx((a + b) / 200 - RHO * penalty)


def test_a_design_is_feasible_exactly_where_the_penalty_is_zero() -> None:
    env = make(space="single")
    outcomes = env.evaluate_batch(env.design_space.sample(300, np.random.default_rng(1)))
    penalty = outcomes.metrics[:, outcomes.metric_names.index("spec_penalty_rate")]
    assert 0 < outcomes.feasible.sum() < len(outcomes)
    np.testing.assert_array_equal(outcomes.feasible, penalty == 0)


@pytest.mark.parametrize(
    "objective",
    [
        "maximize nasaic_reward_rate",
        {"maximize": "accuracy_percent", "minimize": ["latency_cycles", "energy_nj"]},
        {"maximize": "accuracy_percent", "limits": ["spec_penalty_rate <= 0"]},
    ],
)
def test_reward_pareto_and_limits_are_objectives(objective: Any) -> None:
    env = make(workload="W3", objective=objective)
    result = archgym.make_agent(
        "random", env.design_space, ["minimize"] * len(env.objective.goals), seed=0
    ).search(env, budget=20)
    assert result.best is not None
    assert len(result.front) >= (1 if isinstance(objective, str) or "minimize" in objective else 0)


def test_latency_is_the_makespan_and_energy_the_sum() -> None:
    env = make()
    for design in env.design_space.sample(10, np.random.default_rng(2)):
        schedule, found = env.schedule(design), env.evaluate(design).metrics
        assert found["latency_cycles"] == schedule.finish.max()
        assert found["energy_nj"] == pytest.approx(schedule.energy)
        layers = sum(len(network.layers) for network in env.layers(env.architectures(design)))
        assert len(schedule.assignment) == layers


def test_workloads_without_specifications_have_no_limits_and_no_penalty() -> None:
    env = small()
    assert not env.objective.limits
    assert "spec_penalty_rate" not in env.evaluate(env.baseline_design).metrics
    with pytest.raises(UnknownNameError, match="nasaic_reward_rate"):
        small(objective="maximize nasaic_reward_rate")


# -- accuracies ----------------------------------------------------------------------------------


def test_networks_that_come_to_the_same_are_asked_for_once() -> None:
    source = Counted()
    env = small(source)
    env.simulate_baseline()
    asked = len(source.asked)
    base = {**env.baseline_design, "digits_mbconv_block2_skip": True}
    for name in ("digits_mbconv_block2_kernel", "digits_mbconv_block2_expansion"):
        del base[name]
    # Of two equal blocks one is skipped: which one does not matter.
    other = {**env.baseline_design, "digits_mbconv_block2_skip": False}
    assert env.evaluate(base).status == "ok"
    assert len(source.asked) == asked + 1
    for pes in (512, 1024):
        env.evaluate({**base, "sub_1_pes": pes})
    env.evaluate(other)
    assert len(source.asked) == asked + 1


def test_accuracies_that_are_not_known_make_a_design_illegal() -> None:
    env = small(Counted(unknown=(4,)))
    outcome = env.evaluate({**env.baseline_design, "digits_stem_filters": 4})
    assert outcome.status == "illegal"
    assert "no accuracy of this digits" in outcome.reason
    assert env.evaluator.simulations == 0


def test_failed_training_is_a_failure_of_the_designs_that_have_that_network() -> None:
    source = Counted(unknown=(4, 8))
    env = small(source)
    failing, unknown = (
        {**env.baseline_design, "digits_stem_filters": filters} for filters in (4, 8)
    )
    task = env.networks[0].task
    key = family_of(task).key(task, env.architectures(env.design_space.canonical(failing))[0])
    source.failures["digits", key, 2] = "ran out of memory"
    outcome = env.evaluate(failing)
    assert outcome.status == "failed"
    assert "digits (seed 2): ran out of memory" in outcome.reason
    assert env.evaluator.simulations == 1  # the budget counts it
    assert env.evaluate(unknown).status == "illegal"
    assert env.evaluator.simulations == 1


def test_epochs_are_fidelities() -> None:
    source = Counted()
    env = small(source)
    assert [(f.value, f.cost) for f in env.fidelities] == [(0.05, 0.05), (0.25, 0.25), (1.0, 1.0)]
    design = env.baseline_design
    found = {
        fidelity: env.evaluate(design, fidelity=fidelity).metrics for fidelity in (0.05, 0.25, 1.0)
    }
    accuracy = [found[fidelity]["accuracy_digits_percent"] for fidelity in found]
    assert accuracy[1] - accuracy[0] == pytest.approx(0.4)  # type: ignore[operator]
    assert accuracy[2] - accuracy[1] == pytest.approx(1.5)  # type: ignore[operator]
    for name in ("latency_cycles", "energy_nj", "area_um2"):
        assert len({metrics[name] for metrics in found.values()}) == 1
    assert {epochs for _, epochs in source.asked} == {1, 5, 20}
    assert env.evaluator.spent == pytest.approx(1.3)


def test_weights_share_the_accuracy() -> None:
    env = small(also={"weights": [3, 1]})
    found = env.evaluate(env.baseline_design).metrics
    parts = (found["accuracy_digits_percent"], found["accuracy_digits_mbconv_percent"])
    expected = 0.75 * parts[0] + 0.25 * parts[1]  # type: ignore[operator]
    assert found["accuracy_percent"] == pytest.approx(expected)


# -- spaces, fixed parts, views ------------------------------------------------------------------


@pytest.mark.parametrize("form", CHIPS)
def test_every_form_of_chip_is_searched(form: str) -> None:
    env = make(workload="W3", space=form)
    outcomes = env.evaluate_batch(env.design_space.sample(20, np.random.default_rng(3)))
    assert (outcomes.status == 0).all()
    assert np.isfinite(outcomes.metrics).all()


def test_one_part_can_be_held_while_the_other_is_searched() -> None:
    base = make().baseline_design
    chip = {name: value for name, value in base.items() if name.startswith("sub_")}
    networks = {name: value for name, value in base.items() if name not in chip}
    only_networks, only_chip = make(fixed=chip), make(fixed=networks)
    assert not {"chip", "sub_1", "sub_2"} & set(only_networks.design_space.groups)
    assert {"chip", "sub_1", "sub_2", "sub_3", "sub_4"} <= set(only_chip.design_space.groups)
    assert "cifar10" not in only_chip.design_space.groups
    areas = only_networks.evaluate_batch(
        only_networks.design_space.sample(10, np.random.default_rng(4))
    ).metrics
    column = [metric.name for metric in only_networks.metrics].index("area_um2")
    assert len(set(areas[:, column])) == 1
    accuracies = only_chip.evaluate_batch(
        only_chip.design_space.sample(10, np.random.default_rng(4))
    ).metrics
    assert len(set(accuracies[:, 0])) == 1


def test_networks_and_sub_accelerators_are_players() -> None:
    env = make(workload="W3")
    view = ParallelView(env, groups=env.design_space.groups)
    assert view.possible_agents == [
        "cifar10_1",
        "cifar10_2",
        "chip",
        "sub_1",
        "sub_2",
        "sub_3",
        "sub_4",
    ]


def test_more_sub_accelerators_never_make_the_same_chip_slower() -> None:
    env = make(workload="W3")
    one = {name: v for name, v in env.baseline_design.items() if not name.startswith("sub_2")}
    one |= {"sub_accelerators": 1, "sub_1_pes": 2048, "sub_1_bandwidth_gbps": 32}
    two = {**one, "sub_accelerators": 2} | {
        f"sub_2_{knob}": one[f"sub_1_{knob}"] for knob in ("dataflow", "pes", "bandwidth_gbps")
    }
    slow, fast = env.evaluate(one).metrics, env.evaluate(two).metrics
    assert slow["latency_cycles"] == pytest.approx(2 * fast["latency_cycles"])  # type: ignore[operator]
    assert slow["energy_nj"] == pytest.approx(fast["energy_nj"])
    assert fast["area_um2"] == pytest.approx(2 * slow["area_um2"])  # type: ignore[operator]


def test_a_device_runs_networks_whose_chip_is_not_searched() -> None:
    edge, cloud = (make(workload="W3", space="network", device=name) for name in ("edge", "cloud"))
    assert not any(name.startswith("sub_") for name in edge.design_space.names)
    slow, fast = (env.evaluate(env.baseline_design).metrics for env in (edge, cloud))
    assert slow["latency_cycles"] > fast["latency_cycles"]  # type: ignore[operator]
    assert slow["area_um2"] < fast["area_um2"]  # type: ignore[operator]
    own = [{"dataflow": "eyeriss_rs", "pes": 128, "bandwidth_gbps": 8}]
    env = make(workload="W3", space="network", device=own)
    assert env.settings["device"][0]["pes"] == 128


def test_trials_on_different_workloads_keep_apart(tmp_path: Any) -> None:
    make(workload="W3", record=tmp_path / "a").evaluate(make(workload="W3").baseline_design)
    dataset = Dataset(tmp_path / "a")
    dataset.seal()
    (trial,) = dataset.trials().to_pylist()
    assert trial["workload"] == "W3"
    assert '"accuracy": "synthetic"' in trial["settings"]
    assert make(workload="W1").hash_workload() != make(workload="W2").hash_workload()


@pytest.mark.parametrize("space", [None, "single"])
def test_workloads_of_an_experiment_have_datasets_of_their_own(space: str | None) -> None:
    entry = {"id": "NAS-v0", "workload": ["W1", "W3"], **({"space": space} if space else {})}
    experiment = read_experiment(
        {"name": "x", "budget": 1, "environments": [entry], "agents": [{"name": "random"}]}
    )
    assert len({trial.dataset for trial in expand(experiment)}) == 2


# -- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"workload": "W9"}, "W1"),
        ({"workload": 7}, "it must be a name"),
        ({"workload": {"tasks": []}}, "list of 1 to 32 tasks"),
        ({"workload": {"tasks": ["cifar"]}}, "cifar10"),
        ({"workload": {"task": ["cifar10"]}}, "tasks"),
        ({"workload": {"tasks": ["cifar10"], "mode": "papr"}}, "paper"),
        ({"workload": {"tasks": ["cifar10"], "weights": [1, 2]}}, "1 tasks"),
        ({"workload": {"tasks": ["cifar10"], "specs": {"latency_cycles": 1}}}, "lacks energy_nj"),
        ({"workload": {"tasks": ["cifar10"], "specs": {"latency": 1}}}, "latency_cycles"),
        ({"accuracy": "sintetic"}, "synthetic"),
        ({"accuracy_options": {"score": 1}}, "score"),
        ({"accuracy_options": 3}, "mapping"),
        ({"scheduler": "hep"}, "hap"),
        ({"space": "singel"}, "single"),
        ({"device": "edge"}, "space 'network'"),
        ({"space": "network", "device": "edg"}, "edge"),
        ({"space": "network", "device": {"pes": 8}}, "dataflow is missing"),
        ({"space": "network", "device": {"pe": 8}}, "pes"),
        ({"simulator_options": {"table": "x"}}, "latency_table"),
        ({"simulator": "latency_table"}, "space='network'"),
    ],
)
def test_bad_arguments_are_refused(arguments: Mapping[str, Any], message: str) -> None:
    with pytest.raises((InvalidValueError, UnknownNameError), match=message):
        make(**arguments)


@pytest.mark.parametrize("value", [0, -1, math.inf, math.nan, "8e5", True])
def test_specifications_are_positive_numbers(value: Any) -> None:
    with pytest.raises(InvalidValueError, match="energy_nj"):
        Specs.parse({"latency_cycles": 1, "energy_nj": value, "area_um2": 1})
