from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archgym.errors import InvalidValueError, UnknownNameError
from archgym.experiment import Trial, expand
from archgym.experiment.spec.hyperparameters import hyperparameter_sets
from archgym.experiment.spec.schema import AgentEntry
from tests.experiment.experiments import mapping, small


def entry(**hyperparameters: Any) -> AgentEntry:
    return AgentEntry(name="ga", hyperparameters=hyperparameters)


def test_every_combination_is_a_trial() -> None:
    trials = expand(
        small(
            seeds=[3, 5, 8],
            environments=[
                {"id": "Conformance-v0", "workload": ["a", {"generator": "b", "n": 1}]},
                {"id": "m:Other"},
            ],
            agents=[
                {"name": "random"},
                {"name": "ga", "hyperparameters": {"a": [1, 2], "b": [1, 2, 3], "c": 4}},
            ],
        )
    )
    assert len(trials) == 3 * (1 + 6) * 3
    assert {trial.seed for trial in trials} == {3, 5, 8}
    assert [trial.setting for trial in trials[::21]] == [
        "Conformance-v0.a",
        "Conformance-v0.b",
        "Other",
    ]
    assert trials[0].trial_id == "Conformance-v0.a.random.s3"
    assert {trial.dataset for trial in trials} == {"Conformance-v0", "Other"}


@given(
    workloads=st.lists(
        st.one_of(
            st.text(min_size=1, max_size=6),
            st.dictionaries(st.sampled_from("ab"), st.integers(0, 3), min_size=1),
        ),
        min_size=1,
        max_size=4,
        unique_by=lambda value: json.dumps(value, sort_keys=True),
    ),
    values=st.lists(st.integers(0, 9), min_size=1, max_size=5, unique=True),
    seeds=st.lists(st.integers(0, 50), min_size=1, max_size=3, unique=True),
)
def test_ids_are_unique_file_names_and_trials_survive_json(
    workloads: list[Any], values: list[int], seeds: list[int]
) -> None:
    trials = expand(
        small(
            seeds=seeds,
            environments=[{"id": "Conformance-v0", "workload": workloads}, {"id": "m:Other"}],
            agents=[{"name": "random"}, {"name": "ga", "hyperparameters": {"x": values}}],
        )
    )
    ids = [trial.trial_id for trial in trials]
    assert len(set(ids)) == len(ids) == (len(workloads) + 1) * (1 + len(values)) * len(seeds)
    assert all(
        set(i) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")
        for i in ids
    )
    again = [Trial.from_json(json.loads(json.dumps(trial.to_json()))) for trial in trials]
    assert again == trials


def test_is_the_same_in_every_process() -> None:
    data = mapping(
        seed=7,
        agents=[
            {
                "name": "ga",
                "hyperparameters": {
                    "a": {"uniform": [0, 1]},
                    "b": {"log_uniform": [1e-4, 1]},
                    "c": {"integer": [1, 9]},
                    "d": {"choice": ["x", "y", True]},
                },
                "samples": 5,
            }
        ],
    )
    code = (
        "import json, sys; from archgym.experiment import expand, read_experiment;"
        "print(json.dumps([t.to_json() for t in expand(read_experiment(json.load(sys.stdin)))]))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            input=json.dumps(data),
            env={"PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in (1, 2)
    }
    here = json.dumps([trial.to_json() for trial in expand(small(**data))])
    assert outputs == {here + "\n"}


def test_draws_stay_in_range_and_depend_on_the_seed_and_their_name_only() -> None:
    distributions = {
        "u": {"uniform": [2, 3]},
        "l": {"log_uniform": [1e-3, 10.0]},
        "i": {"integer": [4, 400]},
        "c": {"choice": ["x", "y", "z"]},
    }
    drawn = AgentEntry(name="ga", hyperparameters={**distributions, "g": [1, 2]}, samples=40)
    sets = hyperparameter_sets(drawn, 0)
    assert len(sets) == 80
    assert sets[:40] == [{**s, "g": 1} for s in sets[40:]]  # common draws at every grid point
    assert all(2 <= s["u"] <= 3 and 1e-3 <= s["l"] <= 10 and 4 <= s["i"] <= 400 for s in sets)
    assert {s["c"] for s in sets} == {"x", "y", "z"}
    assert sum(s["l"] < 0.1 for s in sets) > 20  # half of the decades
    assert list(sets[0]) == [*distributions, "g"]
    alone = AgentEntry(name="ga", hyperparameters={"u": distributions["u"]}, samples=40)
    assert [s["u"] for s in hyperparameter_sets(alone, 0)] == [s["u"] for s in sets[:40]]
    assert hyperparameter_sets(alone, 1) != hyperparameter_sets(alone, 0)


@pytest.mark.parametrize(
    ("values", "samples", "message"),
    [
        ({"a": []}, None, "a grid lists at least one value"),
        ({"a": [1, 1]}, None, "a value is listed twice"),
        ({"a": {"uniform": [0, 1]}}, None, "samples is missing"),
        ({"a": 1}, 3, "no hyperparameter is a distribution"),
        ({"a": {"uniform": [1, 0]}}, 3, "low < high"),
        ({"a": {"uniform": 3}}, 3, "two numbers"),
        ({"a": {"uniform": ["x", "y"]}}, 3, "two numbers"),
        ({"a": {"integer": [0.5, 2]}}, 3, "two integers"),
        ({"a": {"integer": [1, 2]}}, 3, "only 2 different draws"),
        ({"a": {"log_uniform": [0, 1]}}, 3, "needs low > 0"),
        ({"a": {"choice": []}}, 3, "list of values"),
        ({"a": {"uniform": [0, 1], "integer": [0, 1]}}, 3, "has one key of"),
    ],
)
def test_names_impossible_hyperparameters(
    values: dict[str, Any], samples: int | None, message: str
) -> None:
    agent = {"name": "ga", "hyperparameters": values, "samples": samples}
    with pytest.raises(InvalidValueError) as caught:
        expand(small(agents=[agent]))
    assert message in str(caught.value)
    assert str(caught.value).startswith("agents[0].")


def test_suggests_a_distribution() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'log_uniform'"):
        hyperparameter_sets(entry(a={"loguniform": [1, 2]}), 0)


def test_refuses_equal_entries() -> None:
    with pytest.raises(InvalidValueError, match="agents: two entries are equal"):
        expand(small(agents=[{"name": "ga"}, {"name": "ga"}]))
    with pytest.raises(InvalidValueError, match="environments: two entries are equal"):
        expand(small(environments=[{"id": "Conformance-v0", "workload": ["a", "a"]}]))


def test_a_workload_is_called_by_its_first_text_however_deep() -> None:
    models = [{"base": f"models/{name}.yaml", "sequence": 4096} for name in ("small", "large")]
    workloads = [{"model": model, "cluster": "dgx_h100"} for model in models]
    trials = expand(small(environments=[{"id": "m:Other", "workload": workloads}], seeds=1))
    settings = list(dict.fromkeys(trial.setting for trial in trials))
    assert settings == ["Other.small", "Other.large"]


def test_equal_names_are_told_apart() -> None:
    trials = expand(
        small(
            seeds=1,
            environments=[
                {"id": "Conformance-v0"},
                {"id": "Conformance-v0", "objective": "minimize energy_pj"},
                {"id": "Conformance-v0", "space": "finite"},
                {"id": "Conformance-v0", "initial": [{"ways": 1}]},
            ],
        )
    )
    assert len({trial.setting for trial in trials}) == 4
    # An objective does not change what a row means; a design space does.
    assert len({trial.dataset for trial in trials}) == 2


@pytest.mark.parametrize(("space", "datasets"), [("template", 1), ("mapping", 2)])
def test_workloads_share_a_dataset_unless_the_space_follows_from_them(
    space: str, datasets: int
) -> None:
    layers = [{"network": "resnet18", "only": [name]} for name in ("conv1", "layer1.0.conv1")]
    environment = {"id": "Accelerator-v0", "space": space, "workload": layers}
    trials = expand(small(environments=[environment]))
    assert len({trial.dataset for trial in trials}) == datasets


def test_a_mistyped_agent_is_named_where_it_stands() -> None:
    """Not the entry of an environment that looks for the right name."""
    environments = [{"id": "Conformance-v0", "agents": ["auto"]}]
    with pytest.raises(UnknownNameError, match=r"agents\[0\]\.name: .*'ato'.*'auto'"):
        expand(small(environments=environments, agents=[{"name": "ato"}]))
    with pytest.raises(UnknownNameError, match=r"environments\[0\]\.agents: .*'auto'"):
        expand(small(environments=environments, agents=[{"name": "ga"}]))
