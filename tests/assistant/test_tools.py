"""What tools do and refuse, without the SDK."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from archgym.assistant import Limits, Workplace
from archgym.assistant.tools import Tools
from archgym.data import Dataset
from archgym.errors import ArchgymError, BudgetExhausted, ExperimentError, UnknownNameError

ENVIRONMENT = "Conformance-v0"
ECHO = """
parameters:
  depth: {integer: [1, 16], baseline: 4}
stages:
  run: {run: [echo, "wait: {{ depth }}"]}
metrics:
  wait_ns: {key: wait, unit: ns}
"""


@pytest.fixture
def tools(tmp_path: Path) -> Iterator[Tools]:
    made = Tools(Workplace(tmp_path / "work", Limits(budget=20)))
    yield made
    made.close()


def _run(tools: Tools, name: str = "first", **arguments: Any) -> Any:
    given: dict[str, Any] = {
        "workload": None, "objective": None, "space": None, "fixed": None, "simulator": None,
        "settings": None, "environment": ENVIRONMENT, "agents": ["random"], "budget": 5, "seeds": 1,
    }  # fmt: skip
    return tools.running(name, **{**given, **arguments})


def test_metrics_have_units_and_the_baseline(tools: Tools) -> None:
    found = tools.evaluate(ENVIRONMENT, [{}, {"ways": 8}])
    base, other = found.outcomes
    assert base.reward == 0.5
    assert base.design["ways"] == 4
    assert other.design["ways"] == 8
    assert other.metrics["access_ns"].unit == "ns"
    assert other.metrics["hit_rate"].better == "larger"
    assert other.metrics["access_ns"].baseline == base.metrics["access_ns"].value
    assert (found.budget.spent, found.budget.left) == (2, 18)


def test_the_budget_is_that_of_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    for expected in ([5, 1], [2, 4]):
        tools = Tools(Workplace(folder, Limits(budget=7)))
        found = tools.evaluate(ENVIRONMENT, [{"ways": n} for n in range(expected[1], 11)][:5])
        assert len(found.outcomes) == expected[0]
        assert found.not_evaluated == 5 - expected[0]
        tools.close()
    tools = Tools(Workplace(folder, Limits(budget=7)))
    with pytest.raises(BudgetExhausted, match="7 simulated designs is spent"):
        tools.evaluate(ENVIRONMENT, [{}])
    with pytest.raises(BudgetExhausted, match="0 of the budget of 7 are left"):
        _run(tools).run(lambda done, total: None, lambda: False)
    tools.close()
    assert Dataset(folder / "evaluations" / os.listdir(folder / "evaluations")[0]).info()[
        "agents"
    ] == ["assistant"]


def test_known_and_illegal_designs_are_free(tools: Tools) -> None:
    found = tools.evaluate(ENVIRONMENT, [{"ways": 2}] * 30)
    assert len(found.outcomes) == 30
    assert found.budget.spent == 1
    assert [one.known for one in found.outcomes[:2]] == [False, True]


def test_known_designs_are_answered_when_the_budget_is_spent(tmp_path: Path) -> None:
    tools = Tools(Workplace(tmp_path / "work", Limits(budget=2)))
    tools.evaluate(ENVIRONMENT, [{"ways": 2}, {"ways": 4}])
    found = tools.evaluate(ENVIRONMENT, [{"ways": 4}, {"ways": 2}, {"ways": 8}, {"ways": 2}])
    assert [one.design["ways"] for one in found.outcomes] == [4, 2]
    assert (found.not_evaluated, found.budget.spent) == (2, 2)
    with pytest.raises(BudgetExhausted, match="2 simulated designs is spent"):
        tools.evaluate(ENVIRONMENT, [{"ways": 8}, {"ways": 2}])
    tools.close()


@pytest.mark.parametrize(
    "arguments",
    [
        {"environment": "os:system"},
        {"environment": "../queue.yaml"},
        {"environment": "archgym.envs.dram.environment:DramEnvironment"},
        {"environment": "DRAM-v0", "workload": "/etc/passwd"},
        {"environment": "DRAM-v0", "workload": "stl:../trace.stl"},
        {"environment": "DRAM-v0", "settings": {"memory": "/etc/passwd"}},
        {"environment": "DRAM-v0", "settings": {"memory": "../../device.json"}},
        {"environment": "DRAM-v0", "settings": {"memory": "~/device.json"}},
        {"environment": "DRAM-v0", "settings": {"address_mappings": {"own": "/x.json"}}},
        {"environment": "DRAM-v0", "settings": {"record": "/elsewhere"}},
        {"environment": "DRAM-v0", "settings": {"simulator_options": {"program": "sh"}}},
        {"environment": "DRAM-v0", "simulator": "dramsys"},
        {"environment": "DRAM-v0", "simulator": "proxy:/x.npz"},
        {"environment": "DRAM-v0", "simulator": "tabular:/x.parquet"},
        {"environment": "DRAM-v0", "simulator": "client:x"},
        {"environment": "DRAM-v0", "space": "../other"},
        {"objective": "minimize nothing"},
        {"objective": {"minimise": "access_ns"}},
        {"fixed": {"wayz": 4}},
    ],
)
def test_nothing_outside_can_be_named(tools: Tools, arguments: dict[str, Any]) -> None:
    given = {"environment": ENVIRONMENT, **arguments}
    with pytest.raises(ArchgymError):
        tools.evaluate(designs=[{}], **given)
    with pytest.raises(ArchgymError):
        _run(tools, **given)
    assert tools.workplace.spent == 0
    assert tools.list_results().results == {}


@pytest.mark.parametrize(
    "name", ["", "..", "../x", "/x", "a/b", ".hidden", "x" * 65, "a\0b", "a b", "-x"]
)
def test_names_of_runs_lead_nowhere(tools: Tools, name: str) -> None:
    with pytest.raises(ArchgymError, match="name cannot be"):
        _run(tools, name)
    for read in (tools.best_designs, tools.run_status, tools.make_report):
        with pytest.raises(UnknownNameError):
            read(name)


def test_agents_are_registered_ones(tools: Tools) -> None:
    unknown = {"name": "ga", "hyperparameters": {"x": 1}}
    wrong: list[Any] = ["os:system", unknown, {}, "gaa"]
    for agents in wrong:
        with pytest.raises(ArchgymError):
            _run(tools, agents=[agents])
    with pytest.raises(
        ArchgymError, match=r"agents\[1\] cannot be \{'nam': 'ga'\}: allowed is a name"
    ):
        _run(tools, agents=["random", {"nam": "ga"}])
    with pytest.raises(ArchgymError, match="trials"):
        _run(tools, seeds=100, agents=["random", "ga", "sobol"])


def test_files_are_those_that_were_named_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "echo.yaml").write_text(ECHO)
    (tmp_path / "other.yaml").write_text(ECHO)
    limits = Limits(budget=9, environments=[str(tmp_path / "echo.yaml")])
    tools = Tools(Workplace(tmp_path / "work", limits))
    assert "echo.yaml" in [one.name for one in tools.list_environments().environments]
    found = tools.evaluate("echo.yaml", [{"depth": 9}])
    assert found.outcomes[0].metrics["wait_ns"].value == 9
    for wrong in ("other.yaml", str(tmp_path / "other.yaml"), str(tmp_path / "echo.yaml")):
        with pytest.raises(UnknownNameError):
            tools.evaluate(wrong, [{}])
    for settings in ({"where": "docker"}, {"keep": "always"}, {"stages": "/tmp"}):
        with pytest.raises(UnknownNameError):
            tools.evaluate("echo.yaml", [{}], settings=settings)  # type: ignore[arg-type]
    tools.close()


def test_programs_of_the_machine_need_permission(tmp_path: Path) -> None:
    for programs in (False, True):
        workplace = Workplace(tmp_path / "work", Limits(budget=9, programs=programs))
        tools = Tools(workplace)
        assert ("dramsys" in tools.show_environment("DRAM-v0").simulators) == programs
        tools.close()


def test_one_server_works_in_a_folder(tools: Tools) -> None:
    with pytest.raises(ExperimentError, match="another archgym mcp"):
        Workplace(tools.workplace.folder, Limits(budget=1))


@pytest.mark.parametrize("place", ["runs", "evaluations", "experiments", "runs/planted"])
def test_links_out_of_the_folder_are_refused(tmp_path: Path, place: str) -> None:
    target, link = tmp_path / "outside", tmp_path / "work" / place
    target.mkdir()
    link.parent.mkdir(parents=True)
    link.symlink_to(target)
    with pytest.raises(ExperimentError, match="symbolic link"):
        Workplace(tmp_path / "work", Limits(budget=1))
    assert list(target.iterdir()) == []


@pytest.mark.parametrize("place", ["runs", "evaluations"])
def test_links_that_come_later_are_refused(tools: Tools, tmp_path: Path, place: str) -> None:
    target = tmp_path / "outside"
    target.mkdir()
    (tools.workplace.folder / place).symlink_to(target)
    with pytest.raises(ExperimentError, match="symbolic link"):
        tools.evaluate(ENVIRONMENT, [{}])
    with pytest.raises(ExperimentError, match="symbolic link"):
        tools.list_results()
    with pytest.raises(ExperimentError, match="symbolic link"):
        _run(tools).run(lambda done, total: None, lambda: False)
    assert list(target.iterdir()) == []


def test_everything_can_be_shown(tools: Tools) -> None:
    for one in tools.list_environments().environments:
        info = tools.show_environment(one.name)
        assert info.parameters
        assert all(metric.better in ("smaller", "larger") for metric in info.metrics)
        assert info.model_dump_json()
    for agent in tools.list_agents().agents:
        assert tools.show_agent(agent).description


@pytest.mark.full
def test_a_run_its_results_and_its_report(tools: Tools) -> None:
    told: list[tuple[float, float]] = []
    running = _run(tools, agents=["ga", "random"], seeds=1, budget=8, fixed={"replacement": "lru"})
    state = running.run(lambda *progress: told.append(progress), lambda: False)
    assert (state.state, state.simulations, state.budget.spent) == ("finished", 16, 16)
    assert all(total == 16 for _, total in told)
    (problem,) = tools.best_designs("first").problems
    assert problem.metrics["access_ns"].unit == "ns"
    assert problem.trials == 2
    assert problem.command.startswith("archgym evaluate Conformance-v0")
    report = tools.make_report("first")
    assert Path(report.path).is_relative_to(tools.workplace.folder)
    assert Path(report.path).stat().st_size > 10_000
    again = running.run(lambda done, total: None, lambda: False)  # is over: costs nothing
    assert again.budget.spent == 16
    with pytest.raises(BudgetExhausted, match="4 of the budget of 20 are left"):
        _run(tools, "second").run(lambda done, total: None, lambda: False)


@pytest.mark.full
def test_the_time_of_a_run_is_limited_and_it_goes_on(tmp_path: Path) -> None:
    for minutes in (0.12, 0.6, 3):  # how long a run takes to begin depends on the machine
        slow = f"[sh, -c, 'sleep {60 * minutes / 7}; echo $0',"
        (tmp_path / "slow.yaml").write_text(ECHO.replace("[echo,", slow))
        limits = Limits(500, [str(tmp_path / "slow.yaml")], run_minutes=minutes)
        tools = Tools(Workplace(tmp_path / f"work-{minutes}", limits))
        running = _run(tools, environment="slow.yaml", budget=14)
        state = running.run(lambda done, total: None, lambda: False)
        assert f"ended after {minutes} minutes" in state.message
        if state.state != "not begun":
            break
        tools.close()
    assert state.state == "interrupted"
    assert state.budget.spent == state.simulations < 14
    tools.close()
    tools = Tools(Workplace(tmp_path / f"work-{minutes}", Limits(500, limits.environments)))
    assert tools.workplace.spent == state.simulations
    state = _run(tools, environment="slow.yaml", budget=14).run(lambda *_: None, lambda: False)
    assert (state.state, state.budget.spent) == ("finished", 14)
    tools.close()


def test_no_program_runs_once_the_budget_is_spent(tmp_path: Path) -> None:
    log = tmp_path / "log"
    logged = f"[sh, -c, 'echo >> {log}; echo \"$0\"',"
    (tmp_path / "logged.yaml").write_text(ECHO.replace("[echo,", logged))
    tools = Tools(Workplace(tmp_path / "work", Limits(1, [str(tmp_path / "logged.yaml")])))
    tools.evaluate("logged.yaml", [{"depth": 9}])
    before = log.read_text()
    for objective in ("minimize wait_ns", "maximize wait_ns"):
        with pytest.raises(BudgetExhausted):
            tools.evaluate("logged.yaml", [{}], objective=objective)
    assert log.read_text() == before
    tools.close()


def test_baselines_are_not_endless(tmp_path: Path) -> None:
    tools = Tools(Workplace(tmp_path / "work", Limits(budget=9)))
    illegal = [{"size_kb": 1, "ways": 16}]
    for number in range(9):
        tools.evaluate(ENVIRONMENT, illegal, objective=f"minimize access_ns{' ' * number}")
    with pytest.raises(BudgetExhausted, match="evaluated 9 problems, each with its baseline"):
        tools.evaluate(ENVIRONMENT, illegal, fixed={"size_kb": 16})
    assert tools.workplace.spent == 0
    tools.close()


def test_a_program_that_never_ends_is_ended(tmp_path: Path) -> None:
    endless = '[sh, -c, \'test "$0" = "wait: 9" && sleep 600; echo $0\','
    (tmp_path / "endless.yaml").write_text(ECHO.replace("[echo,", endless))
    limits = Limits(9, [str(tmp_path / "endless.yaml")], run_minutes=0.05)
    tools = Tools(Workplace(tmp_path / "work", limits))
    found = tools.evaluate("endless.yaml", [{"depth": 9}, {"depth": 8}])
    assert [one.status for one in found.outcomes] == ["timeout", "ok"]
    again = tools.evaluate("endless.yaml", [{"depth": 9}])
    assert again.outcomes[0].known
    assert again.budget.spent == 2
    tools.close()


def test_the_extra_is_named_where_the_sdk_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from archgym.cli.serving import mcp

    monkeypatch.setattr(mcp, "find_spec", lambda name: None)
    with pytest.raises(ArchgymError, match=r"pip install 'archgym\[mcp\]'"):
        mcp.mcp(tmp_path / "work", 9)
    assert not (tmp_path / "work").exists()


def test_parts_of_simulations_cost_parts_of_the_budget(tools: Tools) -> None:
    running = _run(tools, "parts", agents=["hyperband"], budget=10)
    state = running.run(lambda done, total: None, lambda: False)
    assert state.simulations > 10  # most of them in part
    assert state.budget.spent == 10


def test_a_run_that_ends_before_it_begins_says_why(tools: Tools) -> None:
    state = _run(tools, "stopped").run(lambda done, total: None, lambda: True)
    assert state.state in ("not begun", "interrupted")
    assert state.message.startswith("stopped; call run_experiment again")


def test_a_run_has_one_process_at_a_time(tools: Tools) -> None:
    first = _run(tools)
    with tools.workplace.running("first"), pytest.raises(ExperimentError, match="is going on"):
        first.run(lambda done, total: None, lambda: False)
    assert first.run(lambda done, total: None, lambda: False).budget.spent == 5


def test_few_runs_go_on_at_a_time(tools: Tools) -> None:
    with contextlib.ExitStack() as others:
        for number in range(4):
            others.enter_context(tools.workplace.running(f"other{number}"))
        with pytest.raises(ExperimentError, match="4 runs are going on, at most 4 are allowed"):
            _run(tools).run(lambda done, total: None, lambda: False)
    assert tools.workplace.spent == 0


@pytest.mark.parametrize("samples", [None, 200_000])
def test_many_trials_are_refused_before_they_are_made(tools: Tools, samples: int | None) -> None:
    many = list(range(2, 4000))
    hyperparameters: dict[str, Any] = {"population_size": {"integer": [2, 4000]}}
    if samples is None:
        hyperparameters = {"population_size": many, "mutation_rate": [n / 9999 for n in many]}
    agent: dict[str, Any] = {"name": "ga", "hyperparameters": hyperparameters}
    if samples is not None:
        agent["samples"] = samples
    began = time.monotonic()
    with pytest.raises(ArchgymError, match=r"these are [\d,]+ trials: at most 200 are run"):
        _run(tools, agents=[agent])
    assert time.monotonic() - began < 2
