from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from archgym.errors import ArchgymError, ExperimentError, InvalidValueError, UnknownNameError
from archgym.experiment import load_experiment, read_experiment, shipped_experiments
from archgym.experiment.spec.load import experiment_yaml, with_settings
from tests.experiment.experiments import mapping, small

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"bugdet": 3}, "unknown key 'bugdet'. Did you mean 'budget'?"),
    ({"budget": -1}, "budget cannot be -1: allowed is at least 1"),
    ({"budget": 1.5}, "budget cannot be 1.5: allowed is an integer"),
    ({"budget": True}, "budget cannot be True"),
    ({"budget": "many"}, "budget cannot be 'many'"),
    ({"seeds": 0}, "seeds cannot be 0: a number of seeds is at least 1"),
    ({"seeds": []}, "seeds cannot be []"),
    ({"seeds": [1, -1]}, "a seed is an integer of at least 0"),
    ({"seeds": [1, 1]}, "a seed is listed twice"),
    ({"seeds": True}, "seeds cannot be True"),
    ({"name": "a/b"}, "name cannot be 'a/b': allowed are letters, digits"),
    ({"agents": []}, "agents cannot be []: allowed is a list of at least 1"),
    ({"agents": "ga"}, "agents cannot be 'ga': allowed is a list"),
    ({"agents": ["ga"]}, "agents[0] cannot be 'ga': allowed is a mapping with the keys name, "),
    ({"agents": ["ga"]}, "; write {name: ga}"),
    ({"environments": [{"id": 3}]}, "environments[0].id cannot be 3: allowed is a text"),
    (
        {"environments": [{"id": "A", "objective": 3}]},
        "environments[0].objective cannot be 3: allowed is 'minimize METRIC', 'maximize METRIC' or",
    ),
    ({"budget": {"hour": 3}}, "budget cannot be {'hour': 3}: there is no 'hour'. Did you mean"),
    ({"budget": {"hours": 0}}, "hours is a number above 0"),
    ({"budget": {"designs": 2.5, "hours": 3}}, "designs is an integer of at least 1"),
    ({"budget": {}}, "give designs, hours or both"),
    ({"simulation": None}, "simulation cannot be None: allowed is a mapping with the keys workers"),
    ({"simulation": {"time_limit_s": "x"}}, "simulation.time_limit_s cannot be 'x': allowed is a"),
    ({"agents": [{"nam": "ga"}]}, "agents[0]: unknown key 'nam'. Did you mean 'name'?"),
    ({"agents": [{}]}, "agents[0].name is missing"),
    ({"agents": [{"name": "ga", "samples": 0}]}, "agents[0].samples cannot be 0"),
    ({"environments": [{"id": "A", "workload": []}]}, "list at least one workload"),
    (
        {"environments": [{"id": "A", "arguments": {"space": "x"}}]},
        "space is a key of the entry itself",
    ),
    (
        {"environments": [{"id": "A", "arguments": {"record": "x"}}]},
        "every trial is recorded in the output folder",
    ),
    ({"environments": [{"id": "A", "memory": "x"}]}, "go under 'arguments'"),
    ({"environments": [{"id": "A", "worklod": "x"}]}, "Did you mean 'workload'?"),
    ({"resources": {"cpu_per_trial": 1}}, "resources: unknown key 'cpu_per_trial'"),
    ({"resources": {"cpus_per_trial": 0}}, "resources.cpus_per_trial cannot be 0"),
]


@pytest.mark.parametrize(("change", "message"), WRONG)
def test_names_what_is_wrong(change: dict[str, Any], message: str) -> None:
    with pytest.raises((InvalidValueError, UnknownNameError)) as caught:
        read_experiment(mapping(**change))
    assert message in str(caught.value)


def test_one_excluded_value_needs_no_list() -> None:
    entries = [{"id": "A", "exclude": {"scheduler": "fifo", "ways": [2, 4]}}]
    (entry,) = read_experiment({**mapping(), "environments": entries}).environments
    assert entry.exclude == {"scheduler": ["fifo"], "ways": [2, 4]}


def test_names_what_is_missing() -> None:
    data = mapping()
    del data["budget"]
    with pytest.raises(InvalidValueError, match="budget is missing"):
        read_experiment(data)


@pytest.mark.parametrize("data", [None, [1], "text", 3])
def test_refuses_what_is_no_mapping(data: Any) -> None:
    with pytest.raises(InvalidValueError, match="an experiment is a mapping"):
        read_experiment(data)


def test_survives_a_round_trip_through_yaml(tmp_path: Path) -> None:
    experiment = small(
        description="1e-3",
        environments=[{"id": "Conformance-v0", "fixed": {"voltage": 1e-5}, "workload": "on"}],
    )
    path = tmp_path / "again.yaml"
    path.write_text(experiment_yaml(experiment))
    assert load_experiment(path) == experiment


def test_every_shipped_experiment_is_valid() -> None:
    assert "quickstart" in shipped_experiments()
    for name in shipped_experiments():
        assert load_experiment(name).name == name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("budget: [1, 2", "line 1, column 14 is not YAML"),
        ("a: 1\n b: 2", "line 2, column 3 is not YAML"),
        ("budget: 1\nbudget: 2", "line 2, column 1 is not YAML: the key 'budget' is there twice"),
        ("on: 1", "the key on is read as true"),
        ("\tbudget: 1", "is not YAML"),
        ("a: !!python/object:os.system x", "is not YAML"),
    ],
)
def test_says_where_the_yaml_breaks(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text(text)
    with pytest.raises(ExperimentError) as caught:
        load_experiment(path)
    assert message in str(caught.value)
    assert "broken.yaml" in str(caught.value)


def test_names_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match=r"nowhere\.yaml: No such file"):
        load_experiment(tmp_path / "nowhere.yaml")
    with pytest.raises(UnknownNameError, match="Did you mean 'quickstart'"):
        load_experiment("quickstrat")
    (tmp_path / "picture.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ExperimentError, match="UTF-8"):
        load_experiment(tmp_path / "picture.yaml")


def test_yaml_numbers_are_numbers(tmp_path: Path) -> None:
    changed = with_settings(mapping(), ["environments.0.fixed={voltage: 1e-3, way: 1_000}"])
    assert changed["environments"][0]["fixed"] == {"voltage": 0.001, "way": 1000}
    changed = with_settings(mapping(), ["environments.0.workload=2024-01-01"])
    assert changed["environments"][0]["workload"] == "2024-01-01"


def test_set_changes_values_and_leaves_the_original_alone() -> None:
    data = mapping()
    changed = with_settings(
        data, ["budget=50", "environments.0.workload=[a, b]", "resources.max_concurrent=2"]
    )
    assert changed["budget"] == 50
    assert changed["environments"][0]["workload"] == ["a", "b"]
    assert changed["resources"] == {"max_concurrent": 2}
    assert data == mapping()


def test_a_file_that_declares_an_environment_is_no_experiment(tmp_path: Path) -> None:
    path = tmp_path / "core.yaml"
    path.write_text("parameters: {}\nmetrics: {}\n")
    with pytest.raises(InvalidValueError, match="declares an environment, and an experiment names"):
        load_experiment(path)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("budget", "is not of the form key=value"),
        ("=3", "is not of the form key=value"),
        ("agents.9.name=ga", "'9' is no position in agents: allowed is 0 to 1"),
        ("agents.x.name=ga", "'x' is no position in agents"),
        ("budget.x=1", "budget is 12 and has no 'x'"),
        ("budgt=5", "unknown key 'budgt'. Did you mean 'budget'?"),
        ("agents.0.hyperparameter={}", "Did you mean 'hyperparameters'?"),
        ("budget=[1", "--set budget=[1, line 1"),
    ],
)
def test_set_says_what_is_wrong(setting: str, message: str) -> None:
    with pytest.raises(ArchgymError) as caught:
        read_experiment(with_settings(mapping(), [setting]))
    assert message in str(caught.value)
