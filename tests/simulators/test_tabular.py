from __future__ import annotations

import json
import math
import warnings
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import archgym
from archgym.analysis.trials import read_trials
from archgym.data import Dataset, load
from archgym.enumeration import enumerate_space
from archgym.errors import (
    ArchgymError,
    DatasetError,
    InvalidValueError,
    SimulationError,
    UnknownNameError,
)
from archgym.experiment import RunOptions, read_experiment, run_experiment
from archgym.problem.scoring import Scorer
from archgym.registry import environment_class, make_agent
from archgym.simulators.tabular import Table, pareto_front, shipped_tables, table_named
from archgym.simulators.tabular.blocks import make_blocks
from archgym.space import Categorical, DesignSpace, Integer

FINITE = "Conformance-v0"


class Loaded(archgym.Environment):
    """Counts how often its workload is loaded, and has an argument of its own."""

    design_space = DesignSpace([Integer("x", 0, 9), Categorical("mode", ["slow", "fast"])])
    metrics: ClassVar = (
        archgym.Metric("time_ns", "ns"),
        archgym.Metric("speed_rate", "", "maximize"),
    )
    default_objective: ClassVar = "minimize time_ns"
    baseline: ClassVar = {"x": 5, "mode": "slow"}
    default_workload = "short"
    loads = 0

    def __init__(self, *, factor: float = 1.0, **arguments: Any) -> None:
        self.factor = factor
        super().__init__(**arguments)

    def load_workload(self, spec: Any) -> None:
        type(self).loads += 1
        self.length = {"short": 10, "long": 1000}[spec]

    def hash_workload(self) -> str:
        return f"{self.length:064d}"

    @property
    def settings(self) -> dict[str, Any]:
        return {"factor": self.factor}

    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        time = self.factor * self.length * (1 + (design["x"] - 3) ** 2)
        time /= 3 if design["mode"] == "fast" else 1
        return {"time_ns": time, "speed_rate": 1 / time}


@pytest.fixture(autouse=True)
def _known() -> None:
    """Tests are imported by path, so their classes are registered, not named by module."""
    archgym.register("LoadedForTables-v0", Loaded)


LOADED = "LoadedForTables-v0"


@pytest.fixture(scope="module")
def finite(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The conformance environment's finite space, tabulated."""
    folder = tmp_path_factory.mktemp("finite") / "table"
    enumerate_space(FINITE, {"space": "finite"}, folder, workers=1)
    return f"tabular:{folder}"


@pytest.fixture
def loaded(tmp_path: Path) -> str:
    arguments = {"workload": "long", "factor": 2.5, "fixed": {"mode": "fast"}}
    enumerate_space(LOADED, arguments, tmp_path / "table", workers=1)
    return f"tabular:{tmp_path / 'table'}"


# -- what it serves ------------------------------------------------------------------------------


def test_every_design_is_as_simulated(finite: str) -> None:
    env, table = (archgym.make(FINITE, **a) for a in ({"space": "finite"}, {"simulator": finite}))
    assert table.design_space == env.design_space
    for designs in env.design_space.enumerate(1000):
        expected, found = env.evaluate_batch(designs), table.evaluate_batch(designs)
        assert found.metrics.tobytes() == expected.metrics.tobytes()
        assert found.status.tolist() == expected.status.tolist()
        assert found.reason == expected.reason
    assert 2 in expected.status  # failed ones were among them


def test_dram_designs_are_as_simulated(tmp_path: Path) -> None:
    arguments = {
        "memory": "DDR3-1600",
        "space": "archgym",
        "workload": {"generator": "random", "requests": 300, "seed": 3},
        "fixed": {"page_policy": "open", "scheduler": "fr_fcfs", "refresh_policy": "none"},
    }
    enumerate_space("DRAM-v0", arguments, tmp_path, workers=1)
    env = archgym.make("DRAM-v0", **arguments)
    table = archgym.make("DRAM-v0", simulator=f"tabular:{tmp_path}")
    assert "trace" not in vars(table)  # nothing has asked for it
    assert (table.workload_name, table.workload_sha256) == (env.workload_name, env.workload_sha256)
    designs = env.design_space.sample(200, np.random.default_rng(1))
    expected, found = env.evaluate_batch(designs), table.evaluate_batch(designs)
    assert found.metrics.tobytes() == expected.metrics.tobytes()
    (block, *apart) = table_named(f"tabular:{tmp_path}").blocks
    assert len(block.values) < len(block.index) / 2  # equal outcomes are there once
    assert ("buffer_bits",) in [other.names for other in apart]


def test_the_tables_arguments_are_the_default(loaded: str) -> None:
    before = Loaded.loads
    env = archgym.make(LOADED, simulator=loaded)
    assert Loaded.loads == before
    assert env.workload == "long"
    assert env.settings == {"factor": 2.5}
    assert env.design_space.fixed == {"mode": "fast"}
    assert env.evaluate({"x": 4}).metrics["time_ns"] == 2.5 * 1000 * 2 / 3


def test_same_arguments_given_are_fine(loaded: str) -> None:
    arguments: dict[str, Any] = {"workload": "long", "factor": 2.5, "fixed": {"mode": "fast"}}
    env = archgym.make(LOADED, simulator=loaded, **arguments)
    assert env.design_space.fixed == {"mode": "fast"}
    assert env.optimum is not None
    assert env.optimum.design == {"x": 3, "mode": "fast"}


def test_what_is_not_in_the_table_is_not_covered(loaded: str) -> None:
    with pytest.raises(SimulationError, match="mode is fixed to 'fast'"):
        archgym.make(LOADED, simulator=loaded, space=Loaded.design_space).reset()
    designs = Loaded.design_space.designs([{"x": 5, "mode": "slow"}, {"x": 5, "mode": "fast"}])
    env = archgym.make(LOADED, simulator=loaded)
    (missing, _), (there, _) = env.simulator.simulate(designs)
    assert "does not hold this design: mode is fixed to 'fast'" in str(missing)
    assert isinstance(there, dict)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"workload": "short"}, "is of workload 'long' .*, not 'short'"),
        ({"factor": 3.0}, "for factor=2.5, not 3.0"),
        ({"fixed": {"mode": "slow"}}, "only mode='fast', not 'slow'"),
        ({"space": DesignSpace([Integer("x", 0, 9)])}, "has a parameter 'mode' more"),
        (
            {"space": DesignSpace([Integer("x", 0, 8), *Loaded.design_space.parameters[1:]])},
            r"parameter 'x' differs in high \(9 there, 8 here\)",
        ),
    ],
)
def test_a_table_that_does_not_fit_says_why(
    loaded: str, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidValueError, match=message):
        archgym.make(LOADED, simulator=loaded, **arguments)


def test_a_table_of_another_environment(loaded: str) -> None:
    with pytest.raises(InvalidValueError, match="of environment LoadedForTables-v0, not of"):
        archgym.make(FINITE, simulator=loaded)
    with pytest.raises(InvalidValueError, match="a table of LoadedForTables-v0, does not fit"):
        environment_class(FINITE)(simulator=loaded)


def test_metrics_that_changed(loaded: str, monkeypatch: pytest.MonkeyPatch) -> None:
    time = archgym.Metric("time_ns", "ns", "maximize")
    monkeypatch.setattr(Loaded, "metrics", (time,))
    with pytest.raises(InvalidValueError, match=r"minimize\) there .*; the table has metric 'spe"):
        archgym.make(LOADED, simulator=loaded)


def test_another_version_of_the_simulator_is_said_once(
    loaded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Loaded, "version", "2")
    with pytest.warns(UserWarning, match="version 1 of the embedded simulator, this is version 2"):
        archgym.make(LOADED, simulator=loaded)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        archgym.make(LOADED, simulator=loaded)


def test_a_workload_is_loaded_once_something_asks_for_it(loaded: str) -> None:
    env = archgym.make(LOADED, simulator=loaded)
    before = Loaded.loads
    assert env.evaluate({"x": 3}).metrics["time_ns"] == pytest.approx(2.5 * 1000 / 3)
    assert Loaded.loads == before
    assert (env.length, env.length, Loaded.loads) == (1000, 1000, before + 1)  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="no attribute 'width'"):
        env.width  # type: ignore[attr-defined]  # noqa: B018


def test_a_workload_that_is_gone_is_not_needed(loaded: str, monkeypatch: Any) -> None:
    def gone(self: Loaded, spec: Any) -> None:
        raise InvalidValueError(f"there is no file {spec}")

    monkeypatch.setattr(Loaded, "load_workload", gone)
    env = archgym.make(LOADED, simulator=loaded)
    assert env.evaluate({"x": 3}).status == "ok"
    assert not hasattr(env, "length")
    with pytest.raises(AttributeError, match=r"'length' as long as .* there is no file long"):
        env.length  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("name", ["suite-fpga-jets", "suite-tpe-systolic", "gpu-decode-64"])
def test_searches_of_shipped_tables_are_recorded(name: str, tmp_path: Path) -> None:
    kind = table_named(f"tabular:{name}").header.environment
    with archgym.make(kind, simulator=f"tabular:{name}", record=tmp_path) as env:
        env.evaluate(env.baseline_design)
    (trial,) = load(tmp_path).trials
    assert trial["workload"] == env.workload_name


# -- optima and regret ---------------------------------------------------------------------------


def outcomes_of(simulator: str, **arguments: Any) -> tuple[archgym.Environment, Any]:
    env = archgym.make(FINITE, simulator=simulator, **arguments)
    (designs,) = env.design_space.enumerate(1_000_000)
    return env, env.evaluate_batch(designs)


@pytest.mark.parametrize(
    "objective",
    [
        "minimize access_ns",
        "maximize hit_rate",
        {"product": {"access_ns": 1, "energy_pj": 0.5}, "limits": ["area_mm2 <= 0.3"]},
        {"target": {"energy_pj": 7.0}},
    ],
)
@pytest.mark.parametrize("fixed", [{}, {"ways": 3, "replacement": "fifo"}])
def test_the_optimum_is_that_of_brute_force(
    finite: str, objective: Any, fixed: dict[str, Any]
) -> None:
    env, outcomes = outcomes_of(finite, objective=objective, fixed=fixed)
    values = np.where(outcomes.feasible, outcomes.objectives[:, 0], np.inf)
    best = int(values.argmin())
    assert env.optimum is not None
    assert env.optimum.design == outcomes.designs[best]
    assert env.optimum.metrics == outcomes[best].metrics
    assert env.optimum.designs == int((values == values.min()).sum())


def test_regret_is_relative_to_the_optimum(finite: str) -> None:
    for objective, better in (("minimize access_ns", 1), ("maximize hit_rate", -1)):
        env, outcomes = outcomes_of(finite, objective=objective)
        name = objective.split()[1]
        assert env.optimum is not None
        ratio = outcomes[0].metrics[name] / env.optimum.metrics[name]
        assert env.regret(outcomes[0]) == pytest.approx(ratio**better - 1)
        assert env.regret(None) == math.inf
    limited, outcomes = outcomes_of(
        finite, objective={"minimize": "access_ns", "limits": ["area_mm2 <= 0.05"]}
    )
    broken = next(o for o in outcomes if o.status == "ok" and not o.feasible)
    assert limited.regret(broken) == math.inf


@pytest.mark.parametrize(
    "goals", [["access_ns", "area_mm2"], ["access_ns", "energy_pj", "area_mm2"]]
)
def test_the_pareto_front_is_that_of_brute_force(finite: str, goals: list[str]) -> None:
    objective = {"minimize": goals, "limits": ["area_mm2 <= 0.4"]}
    env, outcomes = outcomes_of(finite, objective=objective)
    assert env.optimum is None
    points = outcomes.objectives[outcomes.feasible]
    front = {
        tuple(p)
        for p in points.tolist()
        if not ((points <= p).all(axis=1) & (points < p).any(axis=1)).any()
    }
    scorer = Scorer(env.objective, env.metrics, env.baseline_metrics)
    found = pareto_front(table_named(finite), env.design_space, scorer)
    assert [tuple(one.metrics[name] for name in goals) for one in found] == sorted(front)
    for one in found:
        same = (points == [one.metrics[name] for name in goals]).all(axis=1)
        assert one.designs == same.sum()


def test_an_exhaustive_search_has_no_regret(finite: str) -> None:
    env = archgym.make(FINITE, simulator=finite, fixed={"replacement": "lru", "prefetch": True})
    size = int(env.design_space.canonical_cardinality)
    agent = make_agent("random", env.design_space)
    some = agent.search(env, 5)
    assert some.regret is not None
    assert some.regret > 0
    (designs,) = env.design_space.enumerate(size)
    all_of_them = make_agent("random", env.design_space).search(env, size, initial=designs)
    assert all_of_them.regret == 0.0


def test_no_regret_without_a_table_or_with_several_goals(finite: str) -> None:
    goals = {"minimize": ["access_ns", "energy_pj"]}
    for arguments in ({"space": "finite"}, {"simulator": finite, "objective": goals}):
        env = archgym.make(FINITE, **arguments)
        directions = ["minimize"] * len(env.objective.goals)
        agent = make_agent("random", env.design_space, directions)
        assert agent.search(env, 5).regret is None


def test_runs_and_datasets_know_the_regret(finite: str, tmp_path: Path) -> None:
    data = {
        "name": "tabulated",
        "budget": 40,
        "seeds": 2,
        "environments": [{"id": FINITE, "simulator": finite}],
        "agents": [{"name": "random"}],
    }
    result = run_experiment(read_experiment(data), tmp_path / "run", RunOptions(True, quiet=True))
    env = archgym.make(FINITE, simulator=finite)
    for summary in result.summaries.values():
        assert summary.regret is not None
        assert summary.regret > 0
        assert summary.regret == env.regret(summary.best)
    (dataset,) = (tmp_path / "run" / "datasets").iterdir()
    again = {s.trial_id: s.regret for s in read_trials(Dataset(dataset))}
    assert again == {s.trial_id: s.regret for s in result.summaries.values()}
    assert Dataset(dataset).sidecar.simulator["version"] == env.simulator.version
    written = json.loads((tmp_path / "run" / "results.json").read_text())
    assert all(trial["regret"] in again.values() for trial in written["trials"])


# -- the file ------------------------------------------------------------------------------------


def test_a_copied_file_is_as_good(finite: str, tmp_path: Path) -> None:
    table = table_named(finite)
    table.save(tmp_path / "copy.parquet")
    folder = Path(finite.removeprefix("tabular:"))
    assert (tmp_path / "copy.parquet").read_bytes() == (folder / "table.parquet").read_bytes()
    again = Table.load(tmp_path / "copy.parquet")
    assert (again.fingerprint, again.failures) == (table.fingerprint, table.failures)
    assert again.header == table.header


def test_unknown_tables(tmp_path: Path) -> None:
    for text, error, message in (
        ("dram-archgym", UnknownNameError, "unknown table"),
        (f"{tmp_path}/none.parquet", DatasetError, "there is no table"),
        (str(tmp_path), DatasetError, r"holds no table\.parquet"),
        ("", InvalidValueError, "names no table"),
    ):
        with pytest.raises(error, match=message):
            archgym.make(FINITE, simulator=f"tabular:{text}")


def test_shipped_tables_open() -> None:
    for name, path in shipped_tables().items():
        assert environment_class(Table.load(path).header.environment).metrics, name


def _without(path: Path, change: Any) -> None:
    """Rewrites a table's file with other columns or metadata."""
    table = pq.read_table(path)
    meta = json.loads(table.schema.metadata[b"archgym.table"])
    columns = {name: table[name].to_pylist() for name in table.column_names}
    change(meta, columns)
    fields = [table.schema.field(name) for name in columns]
    schema = pa.schema(fields, {b"archgym.table": json.dumps(meta).encode()})
    pq.write_table(pa.table(columns, schema), path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m, c: m.update(format=9), "format 9; this version of archgym reads 1"),
        (lambda m, c: m.pop("space"), "damaged: KeyError: 'space'"),
        (lambda m, c: c.pop("metric.access_ns"), "damaged: .*metric.access_ns"),
        (lambda m, c: c["block.0.index"][0].pop(), "entries for 2484 designs"),
        (lambda m, c: c["block.0.index"][0].__setitem__(7, 99_999), "goes beyond its"),
        (lambda m, c: c["failure.status"][0].__setitem__(1, 7), "unknown status"),
        (lambda m, c: m["metrics"].pop(), "its blocks hold"),
        (lambda m, c: m["space"].update(fixed={"ways": 3}), "its space has"),
    ],
)
def test_damaged_tables(finite: str, tmp_path: Path, change: Any, message: str) -> None:
    path = tmp_path / "t.parquet"
    table_named(finite).save(path)
    _without(path, change)
    with pytest.raises(DatasetError, match=message):
        Table.load(path)


def test_flipped_bytes_and_other_files(finite: str, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    table_named(finite).save(path)
    data = bytearray(path.read_bytes())
    data[len(data) // 4] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(DatasetError, match="damaged"):
        Table.load(path)
    path.write_text("nothing")
    with pytest.raises(DatasetError, match="cannot read table"):
        Table.load(path)
    pq.write_table(pa.table({"x": [1]}), path)
    with pytest.raises(ArchgymError, match="not a table of archgym"):
        Table.load(path)


SPECIAL = [0.0, -0.0, math.nan, 5e-324, 1.7e308, -1.0, 0.1, 0.1 + 1e-17]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 5), st.data())
def test_blocks_hold_every_bit(width: int, data: st.DataObject) -> None:
    rows = data.draw(
        st.lists(st.lists(st.sampled_from(SPECIAL), min_size=width, max_size=width), min_size=1)
    )
    values, names = np.array(rows), [f"m{i}" for i in range(width)]
    blocks = make_blocks(names, values)
    assert sorted(name for block in blocks for name in block.names) == names
    for block in blocks:
        columns = [names.index(name) for name in block.names]
        held = np.ascontiguousarray(block.values[block.index])
        assert held.tobytes() == np.ascontiguousarray(values[:, columns]).tobytes()
        bits = np.ascontiguousarray(block.values).view(np.int64)
        assert len(np.unique(bits, axis=0)) == len(bits)


def test_a_metric_of_the_design_alone_gets_a_block_of_its_own() -> None:
    rng = np.random.default_rng(0)
    outcomes = rng.random((40, 3))[np.repeat(np.arange(40), 500)]
    cost = np.tile(rng.random(250), 80)
    blocks = make_blocks(["a", "b", "c", "cost"], np.column_stack([outcomes, cost]))
    assert [block.names for block in blocks] == [("a", "b", "c"), ("cost",)]
    assert [block.values.shape for block in blocks] == [(40, 3), (250, 1)]


def test_a_workload_that_the_table_is_a_part_of_means_the_table_s() -> None:
    name = "tabular:dram-archgym-sort"
    for workload in ("sort", "sort(requests=10000)"):
        env = archgym.make("DRAM-v0", simulator=name, workload=workload)
        assert env.workload == {"recorded": "sort", "requests": 10000}
        assert env.evaluate(env.baseline_design).status == "ok"
    with pytest.raises(InvalidValueError, match=r"the table is of workload 'sort\(requests=10000"):
        archgym.make("DRAM-v0", simulator=name, workload="fft")
