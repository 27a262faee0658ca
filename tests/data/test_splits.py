from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from archgym.data import Dataset, Selection, Split, load
from archgym.errors import InvalidValueError, UnknownNameError
from archgym.evaluation.trial_info import TrialInfo
from tests.data.datasets import Loaded, recorded, rows_of

Row = tuple[str, str, int, int]
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["random", "ga", "sa"]),
        st.sampled_from(["light", "heavy"]),
        st.integers(0, 3),
        st.integers(0, 3),
    ),
    min_size=12,
    max_size=40,
)
PARAMETERS = ("param.x", "param.y", "param.mode", "param.scale")


def write(folder: str, rows: list[Row]) -> Selection:
    environments = {name: Loaded(workload=name, record=folder) for name in ("light", "heavy")}
    for agent, workload, x, y in rows:
        env = environments[workload]
        env.start_trial(TrialInfo(agent=agent))
        env.evaluate({"x": x, "y": y, "mode": "plain"})
    for env in environments.values():
        env.close()
    return load(folder)


def keys(part: Selection, more: tuple[str, ...] = ()) -> set[tuple[Any, ...]]:
    return {tuple(row.values()) for row in part.arrow([*PARAMETERS, *more]).to_pylist()}


def check_no_leak(split: Split[Selection], by: str) -> None:
    more = ("workload",) if by == "workload" else ()
    parts = [keys(part, more) for part in split.parts.values()]
    for i, one in enumerate(parts):
        for other in parts[i + 1 :]:
            assert not one & other


@given(
    rows=ROWS, by=st.sampled_from(["design", "workload", "agent", "time"]), seed=st.integers(0, 9)
)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_design_is_in_two_parts_and_no_row_is_lost(rows: list[Row], by: str, seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        data = write(folder, rows)
        try:
            split = data.split(by, {"train": 0.6, "test": 0.4}, seed=seed)
        except InvalidValueError as error:
            assert "would be empty" in str(error) or "cannot make 2 parts" in str(error)  # noqa: PT017
            return
        check_no_leak(split, by)
        kept = [rows_of(part) for part in split.parts.values()]
        assert not kept[0] & kept[1]
        assert sum(map(len, kept)) + sum(split.dropped.values()) == len(rows)
        if by != "design":
            column = {"time": "timestamp"}.get(by, by)
            values = [part.arrow([column])[column].to_pylist() for part in split.parts.values()]
            assert not set(values[0]) & set(values[1])
            assert by != "time" or max(values[0]) < min(values[1])
        else:
            assert not sum(split.dropped.values())


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Selection:
    return recorded(tmp_path_factory.mktemp("splits") / "data", budget=40)


def test_a_design_is_on_one_side_for_all_workloads(data: Selection) -> None:
    split = data.split("design", {"train": 0.5, "valid": 0.25, "test": 0.25}, seed=4)
    check_no_leak(split, "design")
    designs = {name: len(keys(part)) for name, part in split.parts.items()}
    assert sum(designs.values()) == len(keys(data))
    assert designs["train"] > designs["valid"] > 4 < designs["test"]


def test_seeds_decide(data: Selection) -> None:
    one, same, other = (data.split("design", seed=seed)["test"] for seed in (1, 1, 2))
    assert rows_of(one) == rows_of(same) != rows_of(other)


@pytest.mark.parametrize(("by", "name"), [("workload", "heavy"), ("agent", "ga")])
def test_what_is_held_out_is_the_second_part(data: Selection, by: str, name: str) -> None:
    split = data.split(by, hold_out=[name])
    assert set(split["test"].arrow([by])[by].to_pylist()) == {name}
    assert name not in split["train"].arrow([by])[by].to_pylist()
    # Another workload is another experiment; another agent's look at the same design is not.
    assert bool(split.dropped["test"]) == (by == "agent")


def test_one_workload_under_two_names_does_not_leak(tmp_path: Path) -> None:
    class Alias(Loaded):
        def load_workload(self, spec: Any) -> None:
            super().load_workload("light")

        def hash_workload(self) -> str:
            return "the same"

    for name in ("first", "second"):
        env = Alias(workload=name, record=tmp_path)
        env.evaluate_batch(
            [{"x": x, "y": 0, "mode": "plain"} for x in range(4 if name == "first" else 5)]
        )
        env.close()
    split = load(tmp_path).split("workload", hold_out=["second"])
    assert split.dropped == {"train": 0, "test": 4}


def test_parts_can_be_written_and_read(data: Selection, tmp_path: Path) -> None:
    split = data.split("workload", {"train": 0.5, "test": 0.5})
    for name, part in split.parts.items():
        part.write(tmp_path / name)
        assert rows_of(load(tmp_path / name)) == rows_of(part)
    assert len(Dataset(tmp_path / "train").info()["workloads"]) == 1
    with pytest.raises(UnknownNameError, match="Did you mean 'train'"):
        split["trian"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"by": "row"}, "unknown kind of split 'row'"),
        ({"by": "desing"}, "Did you mean 'design'"),
        ({"by": "design", "shares": {"train": 0.8, "test": 0.3}}, "with the sum 1"),
        ({"by": "design", "shares": {"train": 1.0}}, "between 0 and 1"),
        ({"by": "design", "hold_out": ["ga"]}, "hold_out names workloads or agents"),
        ({"by": "agent", "hold_out": ["gaa"]}, "Did you mean 'ga'"),
        ({"by": "agent", "shares": {"a": 0.5, "b": 0.3, "c": 0.2}}, "cannot make 3 parts"),
        ({"by": "agent", "hold_out": ["ga", "random"]}, "'train' would be empty"),
        ({"by": "design", "seed": -1}, "seed must be an integer"),
    ],
)
def test_splits_that_cannot_be_are_refused(
    data: Selection, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises((InvalidValueError, UnknownNameError), match=message):
        data.split(**arguments)
