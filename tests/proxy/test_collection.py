from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from typer.testing import CliRunner

import archgym
from archgym.cli import app
from archgym.data import load
from archgym.errors import InvalidValueError, SimulationError, UnknownNameError
from archgym.evaluation.outcome import Outcomes
from archgym.proxy import read_training_data
from archgym.proxy.training.active_collection import AGENT, MODELS, collect
from archgym.space import Categorical, DesignSpace, Integer


class Steps(archgym.Environment):
    """Costs that jump where ``hard`` is set, and are a straight line elsewhere."""

    design_space = DesignSpace(
        [Categorical("hard", [False, True]), *(Integer(f"x{i}", 0, 15) for i in range(4))]
    )
    metrics = (archgym.Metric("cost_ns", "ns", "minimize", "of the design"),)
    default_objective: ClassVar = {"minimize": "cost_ns"}
    baseline: ClassVar = {"hard": False, "x0": 0, "x1": 0, "x2": 0, "x3": 0}
    workloads_of: ClassVar = {"small": 1.0, "large": 30.0}

    def load_workload(self, spec: object) -> None:
        self.jump = self.workloads_of[str(spec)]

    def simulate(self, design: dict[str, int]) -> dict[str, float]:
        x = [design[f"x{i}"] for i in range(4)]
        jumps = (x[0] * 7 + x[1] * 5 + x[2] * 3 + x[3]) % 4 if design["hard"] else 0.0
        return {"cost_ns": 200.0 + x[0] + self.jump * jumps}


class Clocked(Steps):
    """Fails wherever ``hard`` is set and ``x0`` is large: half of what models are unsure of."""

    workloads_of: ClassVar = {"failing": 30.0}

    def simulate(self, design: dict[str, int]) -> dict[str, float]:
        if design["hard"] and design["x0"] >= 8:
            raise SimulationError("too fast")
        return super().simulate(design)


def told_of(env: archgym.Environment) -> list[tuple[list[bool], int]]:
    """Levels of ``hard`` and number of designs of each evaluation."""
    found: list[tuple[list[bool], int]] = []

    def keep(outcomes: Outcomes) -> None:
        found.append(((outcomes.designs.codes[:, 0] == 1).tolist(), len(outcomes)))

    env.on_evaluated = keep
    return found


@pytest.mark.parametrize("model", MODELS)
def test_designs_are_chosen_where_models_are_unsure(model: str) -> None:
    env = Steps(workload="large")
    told = told_of(env)
    options = {"epochs": 40, "width": 32, "layers": 2} if model == "residual" else {}
    collect([env], ["cost_ns"], 1000, rounds=2, model=model, options=options, seed=3)
    drawn = [hard for some, _ in told[:1] for hard in some]
    chosen = [hard for some, _ in told[1:] for hard in some]
    assert len(drawn) == 200
    assert len(chosen) == 800
    assert 0.35 < np.mean(drawn) < 0.65
    assert np.mean(chosen) > 0.7


@pytest.mark.parametrize("model", MODELS)
def test_few_designs_that_fail_are_chosen(model: str) -> None:
    env = Clocked(workload="failing")
    status: list[int] = []
    env.on_evaluated = lambda outcomes: status.extend(outcomes.status.tolist())
    options = {"epochs": 40, "width": 32, "layers": 2} if model == "residual" else {}
    collect([env], ["cost_ns"], 1000, rounds=2, model=model, options=options, seed=3)
    drawn, chosen = np.array(status[:200]) != 0, np.array(status[200:]) != 0
    assert len(chosen) == 800
    assert np.mean(drawn) > 0.15
    assert np.mean(chosen) < 0.5 * np.mean(drawn)


def test_a_workload_that_is_harder_gets_more_and_none_twice() -> None:
    small, large = Steps(workload="small"), Steps(workload="large")
    seen: dict[str, list[bytes]] = {"small": [], "large": []}
    for name, env in (("small", small), ("large", large)):
        env.on_evaluated = lambda outcomes, name=name: seen[name].extend(
            row.tobytes() for row in outcomes.designs.codes
        )
    collect([small, large], ["cost_ns"], 1000, rounds=2, seed=0)
    assert len(seen["small"]) + len(seen["large"]) == 1000
    assert len(seen["large"]) > 1.5 * len(seen["small"])
    for keys in seen.values():
        assert len(set(keys)) == len(keys)


def test_no_workload_gets_more_than_the_most() -> None:
    small, large = Steps(workload="small"), Steps(workload="large")
    counts = {"small": 0, "large": 0}
    for name, env in (("small", small), ("large", large)):

        def count(outcomes: Outcomes, name: str = name) -> None:
            counts[name] += len(outcomes)

        env.on_evaluated = count
    collect([small, large], ["cost_ns"], 1000, rounds=2, most=450, seed=0)
    assert counts["large"] == 450
    assert 100 < counts["small"] <= 450


def test_bad_input() -> None:
    env = Steps(workload="small")
    with pytest.raises(InvalidValueError, match=r"drawn must be above 0 .* not 1\.5"):
        collect([env], ["cost_ns"], 1000, drawn=1.5)
    with pytest.raises(InvalidValueError, match="most must be at least 200"):
        collect([env], ["cost_ns"], 1000, most=100)
    with pytest.raises(UnknownNameError, match="Did you mean 'residual'"):
        collect([env], ["cost_ns"], 1000, model="residuals")
    with pytest.raises(InvalidValueError, match=r"budget is .*it must be at least 100"):
        collect([env], ["cost_ns"], 50)
    with pytest.raises(UnknownNameError, match="Did you mean 'cost_ns'"):
        collect([env], ["cost_n"], 500)
    other = archgym.make("Conformance-v0")
    with pytest.raises(InvalidValueError, match="different design spaces"):
        collect([env, other], ["cost_ns"], 500)


@pytest.mark.parametrize(
    "chooser", [[], ["--model", "residual", "--option", "epochs=5", "--option", "width=8"]]
)
def test_command_writes_a_dataset_that_says_what_was_drawn(
    chooser: list[str], tmp_path: Path
) -> None:
    folder = tmp_path / "data"
    arguments = ["Conformance-v0", "--set", "space=finite", "--target", "energy_pj", *chooser]
    done = CliRunner().invoke(
        *(app, ["proxy", "collect", *arguments, "--budget", "200", "--record", str(folder)]),
        catch_exceptions=False,
    )
    assert done.exit_code == 0, done.output
    data = read_training_data(load(folder), ["energy_pj"])
    agents = {trial["agent"] for trial in load(folder).trials}
    assert agents == {"random", AGENT}
    assert 30 <= data.drawn.sum() <= 40
    assert len(data) > 150
