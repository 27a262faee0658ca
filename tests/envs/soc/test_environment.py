"""SoC-v0: known answers, conservation, legality, workloads of one's own, and bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import archgym
from archgym.envs.soc.embedded import simulated
from archgym.envs.soc.environment import SoCEnvironment
from archgym.errors import InvalidValueError, MissingDependencyError, UnknownNameError

GRAPH: dict[str, Any] = {
    "name": "mine",
    "latency_budget_ms": 5,
    "tasks": {
        "first": {"operations": 2e6},
        "left": {"operations": 4e6},
        "right": {
            "operations": 4e6,
            "iterations": 64,
            "accelerator": {"cycles": 2e5, "energy_fj": 9000.0, "area_um2": 20000.0},
        },
    },
    "data": [
        ["input", "first", 4096],
        ["first", "left", 4096],
        ["first", "right", 4096],
        ["left", "output", 4096],
        ["right", "output", 4096],
    ],
}


def made(**arguments: Any) -> SoCEnvironment:
    env = archgym.make("SoC-v0", **arguments)
    assert isinstance(env, SoCEnvironment)
    return env


def file_of(folder: Path, graph: dict[str, Any]) -> str:
    path = folder / "mine.json"
    path.write_text(json.dumps(graph), encoding="utf-8")
    return str(path)


def metrics_of(env: SoCEnvironment, **changes: Any) -> dict[str, Any]:
    outcome = env.evaluate(env.design_space.canonical({**env.baseline_design, **changes}))
    assert outcome.status == "ok", outcome.reason
    return dict(outcome.metrics)


def test_one_core_runs_one_task_after_the_other(tmp_path: Path) -> None:
    env = made(workload=file_of(tmp_path, GRAPH))
    found = metrics_of(env)
    assert found["latency_ms"] == pytest.approx(1e3 * 10e6 / 2e9)  # 2 GHz, one a half cycle
    assert found["latency_budget_share"] == pytest.approx(1.0)
    assert found["processor_utilisation_share"] == pytest.approx(1.0)
    assert found["energy_mj"] > 1e3 * 10e6 / 47019607843


def test_two_cores_run_two_tasks_at_a_time(tmp_path: Path) -> None:
    env = made(workload=file_of(tmp_path, GRAPH))
    found = metrics_of(env, right_on="core1")
    assert found["latency_ms"] == pytest.approx(1e3 * 6e6 / 2e9)
    assert found["area_mm2"] == pytest.approx(metrics_of(env)["area_mm2"] + 0.65)


def test_an_accelerator_takes_its_cycles_by_lanes_and_clock(tmp_path: Path) -> None:
    graph = {**GRAPH, "tasks": {**GRAPH["tasks"], "first": {"operations": 2.0}}}
    env = made(workload=file_of(tmp_path, graph))
    on = {"right_on": "accelerator", "right_lanes": 1}
    slow = metrics_of(env, **on, right_clock_mhz=100, right_bus=0)
    fast = metrics_of(env, **{**on, "right_lanes": 2}, right_clock_mhz=400, right_bus=0)
    moved_ms = 2 * 4096 / 400e6 * 1e3  # what the first task writes; then 2 ms, as on the core
    assert slow["latency_ms"] == pytest.approx(2.0 + moved_ms)
    assert fast["area_mm2"] - slow["area_mm2"] == pytest.approx(20000 * 0.0374e-6)


def test_tasks_share_a_memory_by_their_bursts(tmp_path: Path) -> None:
    """Two equal tasks that only move data take twice as long as one of them."""
    tasks = {name: {"operations": 64.0} for name in ("left", "right")}
    data = [["input", name, 4096000] for name in tasks] + [[name, "output", 64] for name in tasks]
    env = made(workload=file_of(tmp_path, {**GRAPH, "tasks": tasks, "data": data}))
    apart = metrics_of(env)
    together = metrics_of(env, right_on="core1")
    second = 4096000 / 400e6 * 1e3  # 4 bytes a cycle of 100 MHz
    assert apart["latency_ms"] == pytest.approx(2 * second, rel=1e-3)
    assert together["latency_ms"] == pytest.approx(2 * second, rel=1e-2)
    wider = metrics_of(env, right_on="core1", memory0_width_b=8)
    assert wider["latency_ms"] == pytest.approx(2 * second, rel=1e-2)  # the bus is as narrow
    both = metrics_of(env, right_on="core1", memory0_width_b=8, bus0_width_b=8)
    assert both["latency_ms"] == pytest.approx(second, rel=1e-2)
    assert both["memory_utilisation_share"] == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("workload", ["edge_detection", "cava", "audio", "ar"])
def test_every_design_is_simulated_within_bounds(workload: str) -> None:
    env = made(workload=workload)
    designs = env.design_space.sample(200, np.random.default_rng(1))
    found = simulated(env.loaded, designs)
    for metrics in found:
        assert all(np.isfinite(value) and value >= 0 for value in metrics.values())
        for share in ("processor", "memory", "bus"):
            assert metrics[f"{share}_utilisation_share"] <= 1
        own = [metrics[f"{graph.name}_latency_ms"] for graph in env.loaded.graphs]
        assert metrics["latency_ms"] == max(own)
        # Energy is mean power times time, and the highest mean is not below it.
        mean_mw = 1e3 * metrics["energy_mj"] / metrics["latency_ms"]
        assert metrics["power_mw"] >= mean_mw * (1 - 1e-9)
    alone = [simulated(env.loaded, designs[i : i + 1])[0] for i in range(20)]
    assert alone == found[:20]


def test_names_of_blocks_do_not_matter() -> None:
    env = made(workload="audio")
    design = dict(env.design_space.sample(1, np.random.default_rng(3))[0])
    swapped = dict(design)
    names = {"core0": "core1", "core1": "core0"}
    for name, value in design.items():
        if name.endswith("_on"):
            swapped[name] = names.get(value, value)
    swapped["core0_bus"], swapped["core1_bus"] = design["core1_bus"], design["core0_bus"]
    assert env.evaluate(design).metrics == pytest.approx(env.evaluate(swapped).metrics, nan_ok=True)


def test_faster_blocks_never_take_longer() -> None:
    env = made(workload="cava", space="small")
    for design in env.design_space.sample(30, np.random.default_rng(5)):
        slow = metrics_of(env, **design)
        fast = metrics_of(env, **{**design, "bus0_width_b": 128, "memory0_width_b": 128})
        assert fast["latency_ms"] <= slow["latency_ms"] * (1 + 1e-9)


def test_budgets_of_the_paper_can_be_met() -> None:
    env = made(workload="edge_detection", space="small")
    names = [name for name in env.design_space.names if name.endswith("_on")]
    design = dict.fromkeys(names, "accelerator") | {
        "lanes": 64,
        "clock_mhz": 600,
        "memory0_kind": "sram",
        "memory0_width_b": 4,
        "bus0_width_b": 4,
    }
    found = metrics_of(env, **design)
    assert found["budget_distance_share"] == 0
    assert found["latency_ms"] < 34
    assert found["power_mw"] < 8.737
    assert found["area_mm2"] < 17.475


def test_graphs_together_share_a_system() -> None:
    both = metrics_of(made(workload={"graphs": ["audio", "cava"]}))
    audio, cava = metrics_of(made(workload="audio")), metrics_of(made(workload="cava"))
    assert both["latency_ms"] == pytest.approx(audio["latency_ms"] + cava["latency_ms"], rel=1e-2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"task": {}}, "Did you mean 'tasks'"),
        ({"latency_budget_ms": -1}, "latency_budget_ms is -1"),
        ({"data": [["input", "frist", 1]]}, "Did you mean 'first'"),
        ({"data": [["input", "first", 1], ["first", "output", 0]]}, "data from first to output"),
        ({"data": [*GRAPH["data"], ["left", "first", 5]]}, "wait for each other"),
        ({"tasks": {**GRAPH["tasks"], "idle": {"operations": 1.0}}}, "idle reads nothing"),
        ({"tasks": {"Bad Name": {"operations": 1.0}}}, "lower-case"),
        ({"tasks": {}}, "1 to 64 tasks"),
        ({"tasks": 3}, "allowed is a mapping"),
        ({"tasks": {"core0": {"operations": 1.0}}}, "that of a block"),
        ({"tasks": {**GRAPH["tasks"], "left": {"operations": 1e-300}}}, "from 1e-6 to 1e15"),
        ({"data": [*GRAPH["data"][:-1], ["right", "output", 1e14]]}, r"up to 4\.194e\+09 bytes"),
    ],
)
def test_bad_graphs_are_refused_with_their_place(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    with pytest.raises((InvalidValueError, UnknownNameError), match=message):
        made(workload=file_of(tmp_path, {**GRAPH, **change}))


def test_an_empty_graph_file_is_called_empty(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text("")
    with pytest.raises(InvalidValueError, match=r"mine\.json: the file is empty"):
        made(workload=str(path))


def test_a_task_that_is_given_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(GRAPH).replace('"left": {', '"first": {', 1), encoding="utf-8")
    with pytest.raises(InvalidValueError, match="'first' is given twice"):
        made(workload=str(path))


def test_graphs_whose_tasks_have_one_name_together_are_refused(tmp_path: Path) -> None:
    paths = []
    for name, first in (("a", "b_c"), ("a_b", "c")):
        text = json.dumps({**GRAPH, "name": name}).replace('"first"', f'"{first}"')
        paths.append(tmp_path / f"{name}.json")
        paths[-1].write_text(text, encoding="utf-8")
    with pytest.raises(InvalidValueError, match="tasks of two graphs"):
        made(workload={"graphs": [str(path) for path in paths]})


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'audio'"):
        made(workload="audoi")
    with pytest.raises(UnknownNameError, match="Did you mean 'farsi'"):
        made(accounting="frasi")
    with pytest.raises(UnknownNameError, match="Did you mean 'small'"):
        made(space="smal")
    with pytest.raises(InvalidValueError, match="same name twice"):
        made(workload={"graphs": ["audio", "audio"]})
    with pytest.raises(InvalidValueError, match="cannot be read"):
        made(workload="nothing.json")


def test_farsi_that_is_not_there_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ARCHGYM_FARSI", raising=False)
    with pytest.raises(MissingDependencyError, match="Project_FARSI and set ARCHGYM_FARSI"):
        made(simulator="farsi")
    with pytest.raises(MissingDependencyError, match="not FARSI's folder"):
        made(simulator="farsi", simulator_options={"folder": str(tmp_path)})
