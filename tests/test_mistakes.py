"""What a user of the library may get wrong is refused with its name and what is allowed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import archgym
from archgym.agent import Sampler
from archgym.data import Dataset
from archgym.errors import ArchgymError, InvalidValueError
from archgym.evaluation.outcome import Outcomes
from archgym.space import Designs, Permutation
from tests.helpers import Adder


class Wide(Adder):
    """The adder with two goals."""

    default_objective = {"minimize": ["total_ns"], "maximize": ["speed_rate"]}  # type: ignore[assignment]  # noqa: RUF012


def agent(**given: Any) -> Any:
    return archgym.make_agent("random", Adder.design_space, **given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"trial_id": "a/b"}, "trial_id is a name and no path"),
        ({"trial_id": ".."}, "trial_id is a name and no path"),
        ({"trial_id": "a\nb"}, "trial_id must consist of printable"),
        ({"trial_id": "\ud800"}, "trial_id must consist of printable"),
        ({"trial_id": "x" * 201}, "trial_id must be a text of up to 200"),
        ({"trial_id": 3}, "trial_id must be a text"),
        ({"agent": ""}, "agent must be a text of 1 to 200"),
        ({"agent": None}, "agent must be a text"),
        ({"label": 3}, "label must be a text"),
        ({"seed": -1}, "seed must be an integer of at least 0"),
        ({"seed": 1.0}, "seed must be an integer"),
        ({"seed": 1 << 63}, "seed must be below 2"),
        ({"budget": 1 << 63}, "budget must be below 2"),
        ({"hours": "3"}, "hours must be a positive number"),
        ({"hours": True}, "hours must be a positive number"),
        ({"hyperparameters": [1]}, "hyperparameters must be a mapping"),
        ({"hyperparameters": {"f": print}}, r"hyperparameters\['f'\] is recorded as JSON"),
        ({"resume": "no"}, "resume must be True or False"),
        ({"history": 3}, "history must be a HistoryInfo"),
    ],
)
def test_a_trial_that_cannot_be_recorded_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        archgym.TrialInfo(**given)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"budget": "5"}, "budget must be an integer"),
        ({"budget": 5.0}, "budget must be an integer"),
        ({"budget": -5}, "budget must be an integer of at least 1"),
        ({"hours": "5"}, "hours must be a positive number"),
        ({"budget": 5, "trial_id": "../up"}, "trial_id is a name"),
        ({"budget": 5, "initial": {"x": 1}}, "designs are a list of mappings"),
        ({"budget": 5, "initial": None}, "designs are a list of mappings"),
    ],
)
def test_a_search_names_what_is_wrong(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ArchgymError, match=message):
        agent().search(Adder(), **arguments)


@pytest.mark.parametrize("environment", ["DRAM-v0", Adder, None])
def test_what_is_searched_is_an_environment(environment: Any) -> None:
    with pytest.raises(InvalidValueError, match="is not an archgym environment"):
        agent().search(environment, budget=3)


def test_a_search_takes_the_environment_in_wrappers_of_gymnasium() -> None:
    wrapped = gymnasium.make("archgym/Conformance-v0")
    space = wrapped.unwrapped.design_space  # type: ignore[attr-defined]
    found = archgym.make_agent("random", space).search(wrapped, budget=3)  # type: ignore[arg-type]
    assert found.simulations == 3


@pytest.mark.parametrize(
    "directions", ["minimize", ["minimise"], [], None, 3, ["minimize", 3], {"minimize": "x"}]
)
def test_directions_are_a_list(directions: Any) -> None:
    with pytest.raises(InvalidValueError, match="directions must be a list"):
        archgym.make_agent("auto", Adder.design_space, directions)


@pytest.mark.parametrize("name", ["auto", "ga"])
def test_an_agent_for_another_number_of_goals_says_what_to_give_it(name: str) -> None:
    with pytest.raises(InvalidValueError, match=r"2 goals.*directions=\['minimize', 'minimize'\]"):
        archgym.make_agent(name, Adder.design_space).search(Wide(), budget=3)
    both = archgym.make_agent(name, Adder.design_space, ["minimize", "minimize"])
    assert both.search(Wide(), budget=3).simulations == 3


def test_numbers_of_numpy_are_taken_for_what_they_are(tmp_path: Path) -> None:
    two: Any = np.int64(2)
    env = Adder(record=tmp_path, episode_length=two, levels=two, budget=two, seed=two)
    env.reset(seed=two)
    assert type(env.episode_length) is int
    archgym.make_agent("ga", env.design_space, seed=two, population_size=np.int32(8)).search(
        env, budget=two, hours=float(np.float32(1)), trial_id="a"
    )
    env.start_trial(archgym.TrialInfo(trial_id="b", hyperparameters={"lr": np.float32(0.5)}))
    env.evaluate({"x": two, "y": np.uint8(1), "mode": "plain"})
    env.close()
    first, second = Dataset(tmp_path).trials().to_pylist()
    assert (first["seed"], first["budget"], first["hours"]) == (2, 2, 1.0)
    assert json.loads(first["hyperparameters"])["population_size"] == 8
    assert json.loads(second["hyperparameters"]) == {"lr": 0.5}
    assert len(env.design_space.sample(two, np.random.default_rng(0))) == 2
    assert json.dumps(Permutation("order", np.array(["a", "b"])).to_json())
    assert type(Permutation("order", np.array(["a", "b"])).items[0]) is str


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"record": 3}, "record must be the path of a folder"),
        ({"record": ""}, "record must be the path of a folder"),
        ({"fixed": ["x"]}, "fixed must be a mapping"),
    ],
)
def test_an_environment_names_what_is_wrong(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        Adder(**given)


def test_calls_with_something_else_say_what_is_taken() -> None:
    env = Adder()
    with pytest.raises(InvalidValueError, match="described by a TrialInfo"):
        env.start_trial({"seed": 3})  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="designs are a list of mappings"):
        env.evaluate_batch(3)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="rng must be a generator"):
        env.design_space.sample(3, 0)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="seed must be an integer"):
        env.reset(seed=-1)
    with pytest.raises(InvalidValueError, match="environment must be given by its name"):
        archgym.make(Adder)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="agent must be given by its name"):
        archgym.make_agent(3, env.design_space)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "target", "message"),
    [
        (3, Adder, "the name of an environment"),
        ("a b-v0", Adder, "the name of an environment"),
        ("a/b-v0", Adder, "the name of an environment"),
        (Adder, "Mine-v0", "the name of an environment"),
        ("Mine-v0", dict, "not a subclass"),
        ("Mine-v0", "nocolon", "a class or 'module:Class'"),
        ("DRAM-v0", Adder, "is taken by"),
    ],
)
def test_what_cannot_be_registered_is_refused_at_once(name: Any, target: Any, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        archgym.register(name, target)


CELL = """
class Mine(Adder):
    def simulate(self, design):
        return {"total_ns": RESULT, "speed_rate": 1.0}

class Searcher(Sampler):
    name = "searcher"
    def ask(self, n):
        return self.space.sample(n, self.rng)
    def tell(self, designs, outcomes):
        pass

archgym.register("NotebookCell-v0", Mine)
archgym.register_agent("searcher_of_a_cell", Searcher)
"""


def test_a_cell_of_a_notebook_that_runs_again_replaces_what_it_registered() -> None:
    names: dict[str, Any] = {"Adder": Adder, "Sampler": Sampler, "archgym": archgym}
    names["__name__"] = "__main__"
    for result in (1.0, 2.0):
        exec(CELL.replace("RESULT", str(result)), names)
        env = archgym.make("NotebookCell-v0")
        assert env.evaluate(env.baseline_design).metrics["total_ns"] == result
        made = archgym.make_agent("searcher_of_a_cell", env.design_space)
        assert type(made) is names["Searcher"]
    assert gymnasium.make("archgym/NotebookCell-v0").unwrapped.__class__ is names["Mine"]
    with pytest.raises(InvalidValueError, match="is taken by"):
        archgym.register("NotebookCell-v0", Adder)


class Unwritten(Sampler):
    name = "unwritten"

    def ask(self, n: int) -> Designs:
        return self.space.sample(n, self.rng)

    def tell(self, designs: Designs, outcomes: Outcomes) -> None:
        """Learns nothing."""


def test_a_name_of_an_agent_is_taken_once() -> None:
    archgym.register_agent("unwritten_by_anybody", Unwritten)
    archgym.register_agent("unwritten_by_anybody", f"{__name__}:Unwritten")
    with pytest.raises(InvalidValueError, match="is taken by"):
        archgym.register_agent("ga", Unwritten)
    with pytest.raises(InvalidValueError, match="derive from archgym"):
        archgym.register_agent("adder", Adder)  # type: ignore[arg-type]
