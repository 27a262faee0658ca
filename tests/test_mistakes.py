"""What a user of the library may get wrong is refused with its name and what is allowed."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import archgym
from archgym.agent import Sampler
from archgym.data import Dataset, trial_recorder
from archgym.errors import ArchgymError, DatasetError, InvalidValueError
from archgym.evaluation.outcome import Outcomes
from archgym.space import Categorical, Designs, DesignSpace, Ordinal, Permutation
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


def test_a_folder_is_given_as_any_kind_of_path(tmp_path: Path) -> None:
    class Folder(os.PathLike[str]):
        def __fspath__(self) -> str:
            return str(tmp_path)

    assert Adder(record=Folder()).record == tmp_path


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


class Plus:
    """A simulator beside the environment."""

    name = "plus"
    version: Any = "1"
    metric_names: Any = ("total_ns", "speed_rate")
    gives: Any = None

    def simulate(self, designs: Designs) -> Any:
        metrics = {"total_ns": 1.0, "speed_rate": 1.0}
        return [(metrics, 0.0)] * len(designs) if self.gives is None else self.gives


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("version", 1, "version of simulator Plus .* must be a text"),
        ("version", None, "version of simulator Plus .* must be a text"),
        ("name", 3, "name of simulator Plus .* must be a text"),
        ("metric_names", "total_ns", "metric_names of simulator 'plus' must be a tuple"),
        ("metric_names", None, "metric_names of simulator 'plus' must be a tuple"),
        ("gives", 3, "gave 3, where a batch gives a list of pairs"),
        ("gives", [1.0], "gave 1.0 for a design"),
        ("gives", [({"total_ns": 1.0}, "soon")], "for a design, where a batch gives pairs"),
        ("gives", [({"total_ns": 1.0}, 0.0, 3)], "for a design, where a batch gives pairs"),
    ],
)
def test_a_simulator_is_told_what_is_wrong_with_it(
    field: str, value: Any, message: str, tmp_path: Path
) -> None:
    simulator = Plus()
    setattr(simulator, field, value)
    with pytest.raises(InvalidValueError, match=message):
        Adder(simulator=simulator, record=tmp_path / "rows")


def test_a_class_is_no_simulator() -> None:
    with pytest.raises(InvalidValueError, match="an object that is a Simulator"):
        Adder(simulator=Plus)


@pytest.mark.parametrize("version", [1, 1.5, None, np.int64(1)])
def test_a_version_is_a_text(version: Any) -> None:
    numbered = type("Numbered", (Adder,), {"version": version})
    with pytest.raises(InvalidValueError, match=r"version of Numbered .* must be a text"):
        numbered()


def test_nobody_changes_the_baseline_of_others() -> None:
    env = Adder()
    env.baseline["x"] = 4
    env.baseline_design["x"] = 4
    assert Adder.baseline["x"] == Adder().baseline["x"] == 2
    assert env.baseline_design["x"] == 2
    with pytest.raises(ValueError, match="read-only"):
        env.baseline_metrics[:] = 0.0
    with pytest.raises(ValueError, match="read-only"):
        env.simulate_baseline()[:] = 0.0


@pytest.mark.parametrize("kind", [Categorical, Ordinal])
@pytest.mark.parametrize(
    "values",
    [[(1, 2), (3, 4)], [None, "a"], [float("nan"), 1.0], [[1], [2]], [1 << 63], ["\ud800"], [b"a"]],
)
def test_values_that_no_dataset_holds_are_refused(kind: Any, values: list[Any]) -> None:
    with pytest.raises(InvalidValueError, match="parameter 'm': a value cannot be"):
        kind("m", values)


def test_values_that_are_equal_are_refused() -> None:
    with pytest.raises(InvalidValueError, match="lists a value twice"):
        Ordinal("m", [1, 1.0])


def test_a_source_tree_that_is_not_installed_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    trial_recorder._versions.cache_clear()
    env = Adder(record=tmp_path)
    env.evaluate(env.baseline_design)
    env.close()
    trial_recorder._versions.cache_clear()
    (row,) = Dataset(tmp_path).trials().to_pylist()
    assert json.loads(row["versions"])["archgym"] == archgym.__version__


def searched(
    folder: Path, seed: int = 0, budget: int = 3, name: str = "ga", *, resume: bool, **given: Any
) -> None:
    hyper = given.pop("hyperparameters", {})
    env = Adder(record=folder, **given)
    made = archgym.make_agent(name, env.design_space, seed=seed, **hyper)
    made.search(env, budget=budget, trial_id="a", resume=resume)
    env.close()


@pytest.mark.parametrize("closed", [True, False])
def test_a_trial_is_not_begun_twice_under_one_id(closed: bool, tmp_path: Path) -> None:
    env = Adder(record=tmp_path)
    archgym.make_agent("random", env.design_space).search(env, budget=3, trial_id="a")
    if closed:
        env.close()
    with pytest.raises(DatasetError, match=r"holds a trial 'a' already: resume=True"):
        archgym.make_agent("random", env.design_space).search(env, budget=3, trial_id="a")
    shutil.rmtree(tmp_path)
    searched(tmp_path, resume=False)  # the folder is another one now
    assert Dataset(tmp_path).evaluations(trial_id="a")["step"].to_pylist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hyperparameters": {"population_size": 7}}, "hyperparameters: population_size was 16"),
        ({"seed": 1}, "seed was 0 there and is 1 now"),
        ({"name": "random"}, "agent was 'ga' there and is 'random' now"),
        ({"objective": "maximize speed_rate"}, "objective was"),
        ({"fixed": {"x": 1}}, "fixed was"),
    ],
)
def test_a_trial_goes_on_with_its_settings(
    change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    searched(tmp_path, resume=False)
    with pytest.raises(DatasetError, match=message):
        searched(tmp_path, resume=True, budget=5, **change)
    searched(tmp_path, resume=True, budget=5)
    assert Dataset(tmp_path).trials()["budget"].to_pylist() == [5]


def test_an_environment_is_used_by_one_thread_at_a_time(tmp_path: Path) -> None:
    env, inside, over = Adder(record=tmp_path), threading.Event(), threading.Event()
    refused: list[str] = []

    def wait(outcomes: Outcomes) -> None:
        inside.set()
        assert over.wait(20)

    def other() -> None:
        assert inside.wait(20)
        uses: list[Callable[[], object]] = [
            lambda: env.evaluate({"x": 1, "y": 1, "mode": "plain"}),
            lambda: env.evaluate_batch([env.baseline_design] * 2),
            lambda: agent(seed=1).search(env, budget=2),
            lambda: env.submit([env.baseline_design]),
            env.start_trial,
        ]
        for use in uses:
            with pytest.raises(ArchgymError, match="another thread uses this environment"):
                use()
            refused.append("refused")
        over.set()

    thread = threading.Thread(target=other)
    thread.start()
    env.on_evaluated = wait
    agent().search(env, budget=2)
    env.on_evaluated = None
    thread.join()
    assert len(refused) == 5
    later = threading.Thread(target=lambda: agent(seed=1).search(env, budget=2))
    later.start()  # one after the other is right
    later.join()
    env.close()
    assert Dataset(tmp_path).evaluations().num_rows == 4


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("baseline", [1, 2], "baseline of Own must be a mapping"),
        ("metrics", ("total_ns",), "Own must set metrics to a tuple of Metric"),
        ("metrics", None, "Own must set metrics to a tuple of Metric"),
        ("design_space", [], "Own must set design_space to a DesignSpace"),
    ],
)
def test_a_class_is_told_what_it_must_set(field: str, value: Any, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        type("Own", (Adder,), {field: value})()


@pytest.mark.parametrize("name", [":Own", "tests.helpers:"])
def test_a_class_is_named_with_its_module(name: str) -> None:
    with pytest.raises(InvalidValueError, match="is not of the form module:Class"):
        archgym.make(name)


NUMBER: Any = 3
NOTHING: Any = None
SET: Any = {"a", "b"}
MAPPING: Any = {"a": 1}
TEXTS: Any = ["m < 3"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Categorical("m", SET), "values are a list, not"),
        (lambda: Categorical("m", MAPPING), "values are a list, not"),
        (lambda: Ordinal("m", NUMBER), "values are a list, not 3"),
        (lambda: Permutation("m", NOTHING), "items are a list, not None"),
        (lambda: Permutation("m", SET), "items are a list, not"),
        (lambda: Ordinal("m", [1], doc=NUMBER), "doc must be a text, not 3"),
        (lambda: Ordinal("m", [1], unit=NOTHING), "unit must be a text, not None"),
        (lambda: DesignSpace([Ordinal("m", [1])], TEXTS), "a rule must be a Rule"),
        (lambda: archgym.Metric(NUMBER, "ns"), "name must be a text, not 3"),
        (lambda: archgym.Metric("t_ns", NOTHING), "unit must be a text, not None"),
    ],
)
def test_a_declaration_names_what_is_wrong(make: Any, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        make()
