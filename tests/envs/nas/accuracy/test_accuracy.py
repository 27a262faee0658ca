"""Sources of accuracies: tables, training on the spot, zero-cost scores."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from archgym.envs.nas.accuracy.tabulate import collect
from archgym.envs.nas.accuracy.tabulated import TabulatedAccuracy, shipped_accuracy_tables
from archgym.envs.nas.accuracy.train_on_demand import TrainedAccuracy
from archgym.envs.nas.accuracy.training_loop import RECIPES, Recipe, train
from archgym.envs.nas.accuracy.zero_cost import ProxyAccuracy, naswot, synflow
from archgym.envs.nas.data import load
from archgym.envs.nas.space import largest_architecture, smallest_architecture
from archgym.envs.nas.tasks import TASKS, architecture_space, distinct_architectures, family_of
from archgym.errors import DatasetError, InvalidValueError, UnknownNameError

CHAIN = {
    **{f"block{n}_{what}": 3 for n in (1, 3, 4) for what in ("kernel", "expansion")},
    "block2_skip": True,
    "block4_skip": False,
    "block5_skip": True,
}
SAME_CHAIN = {
    **{f"block{n}_{what}": 3 for n in (1, 3, 5) for what in ("kernel", "expansion")},
    "block2_skip": True,
    "block4_skip": True,
    "block5_skip": False,
}
SMALL = {"stem_filters": 4, "stage1_filters": 8, "stage1_skips": 0} | {
    "stage2_filters": 8,
    "stage2_skips": 0,
}
CURVES = {
    "k3e3-k3e3.k3e3": [[10, 20, 30, 40], [10, 20, 30, 43], [10, 20, 30, 46]],
    "k5e6-k3e3": [[11, 12, 13, 14], [11, 12, 13, 14], [11, 12, 13, 14]],
}


def journal(path: Path, curves: dict[str, Any] = CURVES, **fields: Any) -> Path:
    recipe = RECIPES["digits_mbconv"]
    header = {
        "task": "digits_mbconv",
        "data": load("digits").digest,
        "networks": 1,
        "recipe": {**vars(recipe), "epochs": list(recipe.epochs)},
        "machine": {"torch": "2.0", "numpy": "2.0", "processor": "abacus", "device": "cpu"},
        **fields,
    }
    lines = [
        {"architecture": key, "seeds": [0, 1, 2], "percent": percent}
        for key, percent in curves.items()
    ]
    text = "".join(json.dumps(line) + "\n" for line in [header, *lines])
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def source(tmp_path: Path) -> TabulatedAccuracy:
    collect([journal(tmp_path / "a.jsonl")], tmp_path / "digits_mbconv.parquet")
    return TabulatedAccuracy(tmp_path)


# -- tables --------------------------------------------------------------------------------------


def test_an_accuracy_is_the_mean_over_seeds(source: TabulatedAccuracy) -> None:
    task = TASKS["digits_mbconv"]
    curve = [source.accuracies(task, [CHAIN, SAME_CHAIN], n).tolist() for n in source.epochs]
    assert curve == [[10, 10], [20, 20], [30, 30], [43, 43]]
    assert source.table(task).spread(27).tolist() == [3.0, 0.0]
    assert source.table(task).pooled_spread(27) == pytest.approx(math.sqrt(4.5))


def test_a_network_that_is_not_in_the_table_has_no_accuracy(source: TabulatedAccuracy) -> None:
    wide = {**CHAIN, "block1_kernel": 5}
    found = source.accuracies(TASKS["digits_mbconv"], [wide, CHAIN], 27)
    assert np.isnan(found).tolist() == [True, False]


def test_a_task_without_a_table_is_named(source: TabulatedAccuracy) -> None:
    with pytest.raises(UnknownNameError, match=r"'cifar10'.*digits_mbconv"):
        source.accuracies(TASKS["cifar10"], [], 27)


def test_epochs_that_were_not_looked_at_are_refused(source: TabulatedAccuracy) -> None:
    with pytest.raises(InvalidValueError, match=r"epochs is 5.*1, 3, 9, 27"):
        source.accuracies(TASKS["digits_mbconv"], [CHAIN], 5)


def test_files_that_are_no_tables_are_refused(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    (tmp_path / "digits.parquet").write_text("no table")
    pq.write_table(pa.table({"architecture": ["4"]}), tmp_path / "cells.parquet")
    for name, words in (("digits", "cannot be read"), ("cells", "no table of accuracies")):
        with pytest.raises(DatasetError, match=words):
            TabulatedAccuracy(tmp_path).accuracies(TASKS[name], [], 27)


def test_a_table_with_gaps_is_refused(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    path = tmp_path / "digits_mbconv.parquet"
    collect([journal(tmp_path / "a.jsonl")], path)
    pq.write_table(pq.read_table(path).slice(1), path)
    with pytest.raises(DatasetError, match="23 rows"):
        TabulatedAccuracy(tmp_path).accuracies(TASKS["digits_mbconv"], [], 27)


@pytest.mark.parametrize("name", ["cells", "digits", "digits_mbconv"])
def test_every_network_is_in_the_table_that_ships(name: str) -> None:
    task = TASKS[name]
    source = TabulatedAccuracy()
    assert name in shipped_accuracy_tables()
    table = source.table(task)
    assert set(table.rows) == set(distinct_architectures(task))
    assert len(table.seeds) >= 3
    assert task.data is not None
    assert table.made["data"] == load(task.data).digest
    assert table.made["networks"] == family_of(task).version
    recipe = RECIPES[name]
    assert table.made["recipe"] == {**vars(recipe), "epochs": list(recipe.epochs)}
    networks = list(architecture_space(task).sample(20, np.random.default_rng(0)))
    assert np.isfinite(source.accuracies(task, networks, recipe.epochs[0])).all()
    # Networks differ by more than the seeds of one do.
    assert table.mean(27).std(ddof=1) > table.pooled_spread(27) / len(table.seeds) ** 0.5


# -- training ------------------------------------------------------------------------------------


def test_a_seed_trains_the_same_network_again() -> None:
    task, data = TASKS["digits"], load("digits")
    one, again, other = (
        train(task, SMALL, data, seeds=[seed], epochs=1).tolist() for seed in (0, 0, 1)
    )
    assert one == again
    assert one != other
    both = train(task, SMALL, data, seeds=[0, 1], epochs=1)
    assert both.tolist() == [*one, *other]


def test_networks_learn() -> None:
    wide = {**SMALL, "stem_filters": 32, "stage1_filters": 32, "stage2_filters": 32}
    curve = train(TASKS["digits"], wide, load("digits"), seeds=[0], epochs=3)[0]
    assert curve[0] > 20
    assert curve[1] > 70


@pytest.mark.full
def test_what_is_trained_is_remembered(tmp_path: Path) -> None:
    task = TASKS["digits_mbconv"]
    first = TrainedAccuracy(cache=tmp_path).accuracies(task, [CHAIN, SAME_CHAIN], 3)
    assert len(list(tmp_path.rglob("*.json"))) == 1
    here = train(task, CHAIN, load("digits"), seeds=[0], epochs=3)
    assert first.tolist() == [here[0, 1]] * 2
    # In a millisecond nothing can be trained.
    hurried = TrainedAccuracy(cache=tmp_path, time_limit_s=1e-3)
    assert hurried.accuracies(task, [SAME_CHAIN], 3).tolist() == [here[0, 1]]
    assert hurried.accuracies(task, [SAME_CHAIN], 1).tolist() == [here[0, 0]]
    assert not hurried.failures


def test_a_network_that_takes_too_long_has_no_accuracy(tmp_path: Path) -> None:
    source = TrainedAccuracy(cache=tmp_path, time_limit_s=1e-3, seeds=[3])
    with pytest.warns(UserWarning, match=r"digits 4-8s0-8s0, seed 3: .*within 0\.001 s"):
        found = source.accuracies(TASKS["digits"], [SMALL], 1)
    assert np.isnan(found).all()
    assert "time_limit_s" in source.failures["digits", "4-8s0-8s0", 3]
    assert not list(tmp_path.rglob("*.json"))


@pytest.mark.nightly
def test_a_memory_that_is_spoilt_is_not_believed(tmp_path: Path) -> None:
    source = TrainedAccuracy(cache=tmp_path, seeds=[0])
    before = source.accuracies(TASKS["digits"], [SMALL], 1)
    (file,) = tmp_path.rglob("*.json")
    stored = json.loads(file.read_text())
    file.write_text(json.dumps({**stored, "data": "other", "percent": [99.0]}))
    assert source.accuracies(TASKS["digits"], [SMALL], 1).tolist() == before.tolist()
    assert json.loads(file.read_text()) == stored


def test_networks_learn_from_a_users_folder(tmp_path: Path) -> None:
    place = tmp_path / "cifar"
    place.mkdir()
    rng = np.random.default_rng(0)
    for name in (*(f"data_batch_{n}.bin" for n in range(1, 6)), "test_batch.bin"):
        records = rng.integers(0, 256, (4, 3073), dtype=np.uint8)
        records[:, 0] %= 10
        (place / name).write_bytes(records.tobytes())
    source = TrainedAccuracy(cache=tmp_path / "cache", data={"cifar10": place})
    task = TASKS["cifar10"]
    network = next(iter(architecture_space(task).sample(1, np.random.default_rng(0))))
    assert source.accuracies(task, [network], 1)[0] in {0.0, 25.0, 50.0, 75.0, 100.0}


def test_tasks_without_data_are_not_trained(tmp_path: Path) -> None:
    source = TrainedAccuracy(cache=tmp_path)
    with pytest.raises(InvalidValueError, match=r"imagenet_mbconv.*no data"):
        source.accuracies(TASKS["imagenet_mbconv"], [], 1)
    with pytest.raises(InvalidValueError, match=r"'stl10' does not ship.*stl10_binary"):
        source.accuracies(TASKS["stl10"], [], 1)
    with pytest.raises(InvalidValueError, match="epochs is 2"):
        source.accuracies(TASKS["digits"], [], 2)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"seeds": []}, "seeds"),
        ({"seeds": [0, 0]}, "seeds"),
        ({"seeds": [-1]}, "seeds"),
        ({"time_limit_s": 0}, "time_limit_s"),
        ({"processes": 0}, "processes"),
        ({"data": {"cifar": "here"}}, "Did you mean 'cifar10'"),
    ],
)
def test_impossible_arguments_of_training_are_named(arguments: Any, words: str) -> None:
    with pytest.raises((InvalidValueError, UnknownNameError), match=words):
        TrainedAccuracy(**arguments)


def test_all_sources_have_the_recipes_epochs() -> None:
    assert TabulatedAccuracy().epochs == TrainedAccuracy().epochs == Recipe().epochs
    assert {recipe.epochs for recipe in RECIPES.values()} == {Recipe().epochs}


# -- zero-cost scores ----------------------------------------------------------------------------


def test_synaptic_flow_by_hand() -> None:
    first, second = (nn.Conv2d(*shape, 1, bias=False) for shape in ((1, 2), (2, 1)))
    with torch.no_grad():
        first.weight.copy_(torch.tensor([1.0, -2.0]).reshape(2, 1, 1, 1))
        second.weight.copy_(torch.tensor([-3.0, 0.5]).reshape(1, 2, 1, 1))
    # Each of 6 pixels gives 1 * 3 + 2 * 0.5 = 4; both layers carry the whole flow.
    chain = nn.Sequential(first, nn.ReLU(), second)
    assert synflow(chain, (1, 2, 3)) == pytest.approx(math.log(2 * 6 * 4))


def test_naswot_by_hand() -> None:
    relu = nn.Sequential(nn.ReLU())
    images = np.array([[1, -1, -1], [1, 1, -1]], dtype=np.float32)
    # Equal states: all 3 with itself, 2 with the other; 3 * 3 - 2 * 2 = 5.
    assert naswot(relu, images) == pytest.approx(math.log(5))
    same = np.array([[1, -1, -1], [2, -1, -1]], dtype=np.float32)
    assert math.isfinite(naswot(relu, same))
    assert naswot(relu, same) < -20


@pytest.mark.parametrize("score", ["synflow", "parameters"])
def test_wider_networks_score_higher(score: str) -> None:
    narrow = {"height": 2, "level1_filters": 4, "level2_filters": 8}
    wide = {"height": 2, "level1_filters": 16, "level2_filters": 32}
    low, high = ProxyAccuracy(score).accuracies(TASKS["cells"], [narrow, wide], 1)
    assert high > low


@pytest.mark.parametrize("name", ["digits", "cells", "digits_mbconv"])
@pytest.mark.parametrize("score", ["synflow", "naswot", "parameters"])
def test_scores_are_the_same_again(name: str, score: str) -> None:
    task = TASKS[name]
    networks = list(architecture_space(task).sample(2, np.random.default_rng(0)))
    one, again = (ProxyAccuracy(score).accuracies(task, networks, 1) for _ in range(2))
    assert one.tolist() == again.tolist()
    assert np.isfinite(one).all()


@pytest.mark.parametrize("score", ["synflow", "parameters"])
def test_scores_of_all_tasks_have_one_scale(score: str) -> None:
    source = ProxyAccuracy(score)
    for name in ("digits", "cells", "digits_mbconv"):
        task = TASKS[name]
        ends = [smallest_architecture(task), largest_architecture(task)]
        assert source.accuracies(task, ends, 1).tolist() == [0.0, 1.0]
        between = list(architecture_space(task).sample(5, np.random.default_rng(1)))
        found = source.accuracies(task, between, 1)
        assert (found >= 0).all()
        assert (found <= 1).all()


def test_a_score_is_its_place_between_smallest_and_largest() -> None:
    task = TASKS["cells"]
    count = family_of(task).parameter_count
    network = {"height": 2, "level1_filters": 8, "level2_filters": 16}
    ends = [smallest_architecture(task), largest_architecture(task)]
    low, high, here = (math.log10(count(task, each)) for each in (*ends, network))
    (found,) = ProxyAccuracy("parameters").accuracies(task, [network], 1)
    assert found == pytest.approx((here - low) / (high - low))


def test_the_whole_space_of_proxylessnas_is_scored() -> None:
    task = TASKS["imagenet_mbconv"]
    network = next(iter(architecture_space(task).sample(1, np.random.default_rng(0))))
    assert math.isfinite(ProxyAccuracy().accuracies(task, [network], 1)[0])


def test_impossible_arguments_of_scores_are_named() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'synflow'"):
        ProxyAccuracy("synflo")
    with pytest.raises(InvalidValueError, match="images is 1"):
        ProxyAccuracy("naswot", images=1)
