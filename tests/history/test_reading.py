"""History from datasets: known answers of small environments."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import archgym
from archgym.data import Dataset
from archgym.errors import DatasetError, InvalidValueError
from archgym.history import History
from archgym.history.reading import check_history, read_history
from archgym.registry import make_agent
from archgym.space import Categorical, DesignSpace, Integer, Ordinal, Real
from tests.data.datasets import Loaded
from tests.helpers import Adder, Grumpy

Designs = list[dict[str, Any]]


def record(folder: Path, designs: Designs, kind: type[Adder] = Adder, **arguments: Any) -> Path:
    env = kind(record=folder, **arguments)
    env.evaluate_batch(designs)
    env.close()
    return folder


def plain(x: int, y: int) -> dict[str, Any]:
    return {"x": x, "y": y, "mode": "plain"}


def only(history: History) -> Any:
    (source,) = history
    return source


def test_rows_of_another_objective_are_scored_by_the_new_one(tmp_path: Path) -> None:
    designs = [plain(0, 0), plain(1, 2), plain(4, 3), plain(2, 2)]
    record(tmp_path, designs, objective="maximize total_ns")
    env = Adder(objective={"minimize": "total_ns", "limits": ["total_ns <= 5"]})
    source = only(read_history(tmp_path, env))
    assert source.same
    found = {(o.design["x"], o.design["y"]): o for o in source.outcomes}
    assert {at: o.objectives[0] for at, o in found.items()} == {
        (0, 0): 1.0, (1, 2): 4.0, (2, 2): 5.0, (4, 3): 8.0,
    }  # fmt: skip
    assert [at for at, o in found.items() if not o.feasible] == [(4, 3)]
    assert found[4, 3].violations[0] == pytest.approx(0.6)
    assert found[2, 2].reward == pytest.approx(0.5)  # the baseline
    cost = dict(zip(found, source.outcomes.costs[:, 0].tolist(), strict=True))
    assert cost[1, 2] == pytest.approx(np.log(4 / 5))


def test_what_the_same_problem_gave_is_what_it_gives_now(tmp_path: Path) -> None:
    before = archgym.make("Conformance-v0", record=tmp_path)
    make_agent("random", before.design_space, seed=3).search(before, 150)
    before.close()
    objective = {"minimize": ["energy_pj", "area_mm2"], "limits": ["access_ns <= 30"]}
    env = archgym.make("Conformance-v0", objective=objective)
    recorded = only(read_history(tmp_path, env)).outcomes
    now = env.evaluate_batch(recorded.designs)
    assert len(now) == 150
    assert (now.status == recorded.status).all()
    for name in ("metrics", "objectives", "costs", "violations", "reward", "feasible"):
        np.testing.assert_array_equal(getattr(now, name), getattr(recorded, name))


def test_of_another_workload_ratios_to_the_baseline_transfer(tmp_path: Path) -> None:
    record(tmp_path, [plain(0, 0), plain(4, 1)], Loaded, workload="heavy")
    env = Loaded(workload="light", objective={"minimize": "total_ns", "limits": ["total_ns <= 4"]})
    source = only(read_history(tmp_path, env))
    assert not source.same
    assert source.name == f"{env.name} heavy"
    # The baseline takes 15 ns on the heavy workload and 5 ns on the light one.
    metrics = source.outcomes.metrics[:, 0].tolist()
    assert metrics == pytest.approx([11 / 3, 16 / 3])
    assert source.outcomes.feasible.tolist() == [True, False]


def test_rows_of_several_objectives_and_folders_are_one_source(tmp_path: Path) -> None:
    one = record(tmp_path / "one", [plain(0, 0), plain(1, 1)], objective="minimize total_ns")
    two = record(tmp_path / "two", [plain(1, 1), plain(2, 1)], objective="maximize total_ns")
    history = read_history([one, str(two), one], Adder())
    assert sorted(o.design["x"] for o in only(history).outcomes) == [0, 1, 2]
    (account,) = history.accounts
    assert (account.rows, account.used) == (4, 3)
    assert account.folders == (str(one), str(two))
    assert account.left_out == {"that repeat a design": 1}


def test_workloads_are_sources_of_their_own(tmp_path: Path) -> None:
    for workload in ("heavy", "light"):
        record(tmp_path, [plain(1, 1)], Loaded, workload=workload)
    history = read_history(tmp_path, Loaded())
    assert {source.name.split()[1]: source.same for source in history} == {
        "heavy": False,
        "light": True,
    }


def test_failed_designs_are_known_as_such(tmp_path: Path) -> None:
    designs = [plain(x, 1) for x in range(5)] + [plain(2, 0)]
    record(tmp_path, designs, Grumpy)
    source = only(read_history(tmp_path, Grumpy()))
    by_x = {o.design["x"]: o for o in source.outcomes if o.design["y"] == 1}
    assert {x: o.status for x, o in by_x.items()} == {
        0: "failed", 1: "timeout", 2: "ok", 4: "failed"
    }  # fmt: skip
    assert by_x[0].reward == -1.0
    assert not by_x[0].feasible


def test_lower_fidelities_are_left_out(tmp_path: Path) -> None:
    before = archgym.make("Conformance-v0", record=tmp_path)
    before.evaluate(before.baseline)
    before.evaluate({**before.baseline, "ways": 2}, fidelity=0.1)
    before.close()
    history = read_history(tmp_path, archgym.make("Conformance-v0"))
    assert len(only(history)) == 1
    assert history.accounts[0].left_out == {"at a lower fidelity": 1}


class Wide(Adder):
    """The adder with other values, a parameter more and one less."""

    design_space = DesignSpace(
        [
            Ordinal("x", [0, 2, 4, 8]),
            Integer("y", 1, 3),
            Categorical("mode", ["plain", "doubled"]),
            Integer("z", 0, 9),
        ]
    )
    baseline: ClassVar = {"x": 2, "y": 2, "mode": "plain", "z": 7}
    recorded_as: ClassVar = f"{Adder.__module__}:Adder"

    @property
    def name(self) -> str:
        return self.recorded_as

    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        return {"total_ns": 1.0 + design["x"], "speed_rate": 1.0}


def test_designs_are_translated_to_the_new_space(tmp_path: Path) -> None:
    designs = [
        plain(3, 1),  # between 2 and 4: the smaller one
        plain(4, 2),
        plain(4, 0),  # below the range of y
        {"x": 0, "y": 3, "mode": "scaled", "scale": 2},  # a mode that is not there
    ]
    record(tmp_path, designs)
    history = read_history(tmp_path, Wide())
    source, (account,) = only(history), history.accounts
    assert not source.same
    assert sorted(tuple(o.design.values()) for o in source.outcomes) == [
        (2, 1, "plain", 7),
        (4, 2, "plain", 7),
    ]
    assert {o.design["x"]: o.metrics["total_ns"] for o in source.outcomes} == pytest.approx(
        {2: 5.0 * 3 / 5, 4: 7.0 * 3 / 5}  # the baselines take 5 ns and 3 ns
    )
    assert account.left_out == {
        "with a value that y has not": 1,
        "with a value that mode has not": 1,
    }
    assert "without z" in account.differences
    assert "also with scale" in account.differences
    assert "with the nearest values in 1 of the designs" in account.differences


def test_the_first_of_designs_that_coincide_counts(tmp_path: Path) -> None:
    class Narrow(Wide):
        design_space = DesignSpace([Integer("x", 0, 4), Integer("scale", 1, 2)])
        baseline: ClassVar = {"x": 1, "scale": 1}

    scaled = [{"x": 1, "y": y, "mode": "scaled", "scale": 2} for y in (2, 0, 1)]
    record(tmp_path, [*scaled, plain(3, 0)])
    history = read_history(tmp_path, Narrow())
    (outcome,) = only(history).outcomes
    assert outcome.design == {"x": 1, "scale": 2}
    assert outcome.metrics["total_ns"] == pytest.approx(6.0 * 2 / 5)
    assert history.accounts[0].left_out == {"without scale": 1, "that repeat a design": 2}


def test_what_is_held_now_leaves_out_other_values(tmp_path: Path) -> None:
    record(tmp_path, [plain(x, y) for x in range(3) for y in range(3)])
    env = Adder(fixed={"x": 1})
    history = read_history(tmp_path, env)
    assert [(o.design["x"], o.metrics["total_ns"]) for o in only(history).outcomes] == [
        (1, 2.0), (1, 3.0), (1, 4.0)
    ]  # fmt: skip
    assert only(history).same  # so metrics are not scaled by the new baseline
    assert history.accounts[0].left_out == {"with another x than 1": 6}


def test_what_was_held_is_a_source_of_its_own(tmp_path: Path) -> None:
    record(tmp_path, [plain(1, y) for y in range(3)], fixed={"x": 1})
    record(tmp_path, [plain(2, 2)])
    history = read_history(tmp_path, Adder())
    assert sorted(len(source) for source in history) == [1, 3]
    name = Adder().name
    assert {source.name for source in history} == {name, f"{name} with x=1"}
    assert all(source.same for source in history)
    assert all("same problem" in str(account) for account in history.accounts)


def test_another_version_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, name = Adder().version, Adder().name
    record(tmp_path, [plain(1, 1)])
    monkeypatch.setattr(Adder, "version", "7")
    (source,), (account,) = (history := read_history(tmp_path, Adder())), history.accounts
    assert source.name == f"{name}, version {before}"
    assert f"1 design of 1 row; differs: version {before} and not 7" in str(account)


def test_illegal_designs_are_left_out(tmp_path: Path) -> None:
    class Free(Adder):
        design_space = DesignSpace(Adder.design_space.parameters)

        @property
        def name(self) -> str:
            return Wide.recorded_as

    record(tmp_path, [plain(4, 4), plain(1, 1)], Free)
    history = read_history(tmp_path, Adder())
    assert len(only(history)) == 1
    assert history.accounts[0].left_out == {"that break a rule": 1}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda cls: setattr(cls, "version", "2"), "version 1 and not 2"),
        (
            lambda cls: setattr(cls, "settings", property(lambda self: {"clock_ghz": 2})),
            "clock_ghz=None and not 2",
        ),
    ],
)
def test_a_changed_simulator_is_another_problem(
    tmp_path: Path, change: Callable[[type], None], says: str
) -> None:
    class Changed(Adder):
        """The same under a name of its own."""

        @property
        def name(self) -> str:
            return Wide.recorded_as

    record(tmp_path, [plain(1, 1)])
    change(Changed)
    history = read_history(tmp_path, Changed())
    assert not only(history).same
    assert says in history.accounts[0].differences


def test_edited_source_is_another_problem(tmp_path: Path) -> None:
    source = "from tests.helpers import Adder\nclass Own(Adder):\n    EXTRA = {}\n"
    classes = []
    for extra in (0, 1):
        folder = tmp_path / str(extra)
        folder.mkdir()
        path = folder / f"own_{extra}.py"
        path.write_text(source.format(extra), encoding="utf-8")
        classes.append(_loaded(path))
    for one in classes:
        one.name = property(lambda self: "own:Own")
    data = record(tmp_path / "data", [plain(1, 1)], classes[0])
    assert only(read_history(data, classes[0]())).same
    history = read_history(data, classes[1]())
    assert not only(history).same
    assert "the source of the simulator has changed" in history.accounts[0].differences


def _loaded(path: Path) -> Any:
    import importlib.util
    import sys

    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module.Own


def renamed(metrics: Any, space: DesignSpace = Adder.design_space) -> type[Adder]:
    class Other(Adder):
        design_space = space
        baseline: ClassVar = {
            name: value for name, value in Adder.baseline.items() if name in space.names
        }

        def simulate(self, design: dict[str, Any]) -> dict[str, float]:
            return {metric.name: 1.0 + design.get("x", 0) for metric in self.metrics}

    Other.metrics = metrics
    Other.default_objective = f"minimize {metrics[0].name}"
    return Other


@pytest.mark.parametrize(
    ("metrics", "says"),
    [
        ((archgym.Metric("total_ms", "ms"),), "no metric 'total_ns', which the objective needs"),
        (
            (archgym.Metric("total_ns", "ns"), archgym.Metric("power_mw", "MW")),
            "metric 'power_mw' is in 'MW' there and in 'mW' here",
        ),
    ],
)
def test_other_metrics_are_refused(tmp_path: Path, metrics: Any, says: str) -> None:
    now = renamed((archgym.Metric("total_ns", "ns"), archgym.Metric("power_mw", "mW")))
    record(tmp_path, [plain(1, 1)], renamed(metrics))
    for read in (read_history, check_history):
        with pytest.raises(DatasetError, match=re.escape(says)) as raised:
            read(tmp_path, now())
        assert str(tmp_path) in str(raised.value)


def test_another_environment_needs_half_of_the_parameters(tmp_path: Path) -> None:
    class Far(renamed(Adder.metrics, DesignSpace([Integer("x", 0, 4), Integer("b", 0, 1)]))):  # type: ignore[misc]
        baseline: ClassVar = {"x": 1, "b": 1}

    record(tmp_path / "far", [{"x": 1, "b": 0}], Far)
    with pytest.raises(DatasetError, match=r"1 of the 4 parameters .* at least half are needed"):
        read_history(tmp_path / "far", Adder())
    near = renamed(Adder.metrics, DesignSpace([*Adder.design_space.parameters[:3]]))
    record(tmp_path / "near", [plain(1, 1)], near)
    assert not only(read_history(tmp_path / "near", Adder())).same


def test_parameters_in_another_unit_are_refused(tmp_path: Path) -> None:
    units = [
        renamed(Adder.metrics, DesignSpace([Integer("x", 0, 4, unit=unit)])) for unit in ("kB", "")
    ]
    record(tmp_path, [{"x": 1}], units[0])
    with pytest.raises(DatasetError, match="parameter 'x' is in 'kB' there and in '' here"):
        read_history(tmp_path, units[1]())


def test_a_metric_that_a_row_lacks(tmp_path: Path) -> None:
    class Partial(Adder):
        metrics_given = ("total_ns",)

        def simulate(self, design: dict[str, Any]) -> dict[str, float]:
            return {"total_ns": super().simulate(design)["total_ns"]}

        @property
        def name(self) -> str:
            return Wide.recorded_as

    record(tmp_path, [plain(1, 1)], Partial)
    assert len(only(read_history(tmp_path, Adder()))) == 1
    with pytest.raises(DatasetError, match="its baseline design has no 'speed_rate'"):
        read_history(tmp_path, Adder(objective="maximize speed_rate"))


def test_real_parameters_keep_their_values(tmp_path: Path) -> None:
    def made(low: float, high: float, log: bool) -> type[Adder]:
        space = DesignSpace([Integer("x", 0, 4), Real("volts", low, high, log=log)])
        cls = renamed(Adder.metrics, space)
        cls.baseline = {"x": 2, "volts": 0.9}
        cls.name = property(lambda self: "some:Name")  # type: ignore[assignment, method-assign]
        return cls

    for log in (False, True):
        cls = made(0.6, 1.1, log)
        env = cls()
        designs = env.design_space.sample(200, np.random.default_rng(1))
        folder = record(tmp_path / str(log), list(designs), cls)
        source = only(read_history(folder, cls()))
        assert source.same
        assert set(source.outcomes.designs.keys()) == set(designs.keys())
        inside = only(read_history(folder, made(0.8, 1.0, log)()))
        volts = designs.values("volts")
        assert len(inside) == np.count_nonzero((volts >= 0.8) & (volts <= 1.0))


def test_the_best_are_kept_and_a_sample_whatever_the_files(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    space = DesignSpace([Integer("x", 0, 4_000), Integer("y", 0, 9)])
    cls = renamed(Adder.metrics, space)
    designs = list(cls().design_space.sample(7_000, rng))
    one = record(tmp_path / "one", designs, cls)
    two = tmp_path / "two"
    for part in range(3):
        record(two, designs[part::3], cls)
        Dataset(two).seal()
    first, second = (only(read_history(folder, cls())).outcomes for folder in (one, two))
    np.testing.assert_array_equal(first.designs.codes, second.designs.codes)
    assert len(first) == 2000
    assert (np.diff(first.reward) <= 0).all()
    x = np.sort(np.array([design["x"] for design in {str(d): d for d in designs}.values()]))
    assert first.designs.values("x")[999] == x[999]
    others = first.designs.values("x")[1000:]
    assert others.min() >= x[999]
    assert np.median(others) == pytest.approx(np.median(x[1000:]), rel=0.1)


def test_live_journals_are_read(tmp_path: Path) -> None:
    env = Adder(record=tmp_path)
    env.evaluate_batch([plain(1, 1), plain(2, 1)])
    assert any((tmp_path / "journal").glob("*.jsonl"))
    assert len(only(read_history(tmp_path, Adder()))) == 2
    env.close()


def wrong_paths() -> Mapping[str, tuple[Any, str]]:
    return {
        "a number": (3, "3 is no path: allowed as history is the folder of a run"),
        "a number in a list": ([3], "3 is no path"),
        "an empty text": ([""], "'' is no path"),
    }


@pytest.mark.parametrize(("given", "says"), wrong_paths().values(), ids=wrong_paths())
def test_what_is_no_path(given: Any, says: str) -> None:
    with pytest.raises(InvalidValueError, match=re.escape(says)):
        read_history(given, Adder())


def test_folders_without_data(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="holds neither a run nor a dataset"):
        read_history(tmp_path, Adder())
    record(tmp_path / "runs1", [plain(1, 1)])
    with pytest.raises(DatasetError, match=r"Did you mean .*runs1"):
        read_history(tmp_path / "run1", Adder())
    record(tmp_path / "above" / "between" / "runs2", [plain(1, 1)])
    with pytest.raises(DatasetError, match=r"itself. There are: .*runs2"):
        read_history(tmp_path / "above", Adder())
    (tmp_path / "runs1" / "inner").mkdir()
    with pytest.raises(DatasetError, match=r"It lies inside .*runs1: give that"):
        read_history(tmp_path / "runs1" / "inner", Adder())
    Adder(record=tmp_path / "empty").close()
    with pytest.raises(DatasetError, match="it has no trials"):
        read_history(tmp_path / "empty", Adder())


def test_the_file_of_a_proxy_is_told_where_to_go(tmp_path: Path) -> None:
    (tmp_path / "many.npz").write_bytes(b"PK")
    env = archgym.make("Conformance-v0")
    with pytest.raises(DatasetError, match=r"many\.npz is a file: .*proxy_source gives a source"):
        read_history(tmp_path / "many.npz", env)


def test_a_damaged_dataset_is_named(tmp_path: Path) -> None:
    record(tmp_path, [plain(1, 1)])
    Dataset(tmp_path).seal()
    (part,) = (tmp_path / "evaluations").glob("*.parquet")
    part.write_bytes(part.read_bytes()[:-20])
    with pytest.raises(DatasetError, match=re.escape(str(part))):
        read_history(tmp_path, Adder())


def test_links_are_not_followed(tmp_path: Path) -> None:
    record(tmp_path / "data", [plain(1, 1)])
    (tmp_path / "data" / "more").symlink_to(tmp_path)
    with pytest.raises(DatasetError, match="is a symbolic link"):
        read_history(tmp_path / "data", Adder())


def test_rows_that_were_changed_after_they_were_recorded_are_refused(tmp_path: Path) -> None:
    record(tmp_path, [plain(0, 0), plain(4, 3)])
    env = Adder()
    assert len(only(read_history(tmp_path, env))) == 2
    (part,) = tmp_path.glob("evaluations/*.parquet")
    table = pq.read_table(part)
    rows = table.to_pylist()
    rows[1]["metric.total_ns"] = 0.5  # the worst of them would be the best
    forged = pa.Table.from_pylist(rows, schema=table.schema)
    pq.write_table(forged, part)
    message = rf"evaluations/{part.name} was changed: its checksum .* archgym dataset repair"
    for reader in (read_history, check_history):
        with pytest.raises(DatasetError, match=message):
            reader(tmp_path, env)
