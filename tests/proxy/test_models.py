from __future__ import annotations

import numpy as np
import pytest

from archgym.errors import InvalidValueError, UnknownNameError
from archgym.proxy.calibration import Calibration
from archgym.proxy.inputs import Inputs, workload_inputs
from archgym.proxy.models import FAMILIES, family
from archgym.proxy.models.traversal import Trees
from archgym.proxy.ranges import Ranges
from archgym.proxy.scores import score
from archgym.proxy.targets import TargetScale
from archgym.space import Categorical, DesignSpace, Integer, Ordinal, Permutation, param

QUICK = {"epochs": 200, "members": 2, "width": 32, "layers": 2, "trees": 60, "steps": 30}


def problem(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.random((n, 5)).astype(np.float32)
    z = np.stack([np.sin(4 * x[:, 0]) + x[:, 1], x[:, 2] * x[:, 3]], axis=1).astype(np.float64)
    return x, (z - z.mean(axis=0)) / z.std(axis=0)


@pytest.mark.parametrize("kind", FAMILIES)
def test_learns_a_function_and_survives_its_arrays(kind: str) -> None:
    x, z = problem(400, 0)
    unseen, truth = problem(200, 1)
    model = family(kind).fit(x, z, 0, QUICK)
    mean, spread = model.predict(unseen)
    assert mean.shape == spread.shape == (200, 2)
    assert (spread >= 0).all()
    assert np.sqrt(np.mean((mean - truth) ** 2)) < 0.45  # of a standard deviation of 1
    again = family(kind).of(model.arrays(), 5, 2)
    np.testing.assert_array_equal(again.predict(unseen)[0], mean)


@pytest.mark.parametrize("kind", FAMILIES)
def test_same_seed_gives_the_same_model(kind: str) -> None:
    x, z = problem(60, 0)
    first, second = (family(kind).fit(x, z, 3, QUICK).predict(x)[0] for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("kind", FAMILIES)
def test_arrays_of_other_shapes_are_refused(kind: str) -> None:
    x, z = problem(60, 0)
    arrays = family(kind).fit(x, z, 0, QUICK).arrays()
    with pytest.raises(InvalidValueError):
        family(kind).of(arrays, 2, 2)
    with pytest.raises(InvalidValueError):
        family(kind).of({}, 5, 2)


def test_dropping_all_units_is_refused() -> None:
    x, z = problem(60, 0)
    with pytest.raises(InvalidValueError, match=r"dropout must be below 1, not 1\.0"):
        family("residual").fit(x, z, 0, {"dropout": 1.0})


def test_residual_networks_far_from_their_data_stay_finite() -> None:
    x, z = problem(60, 0)
    model = family("residual").fit(x, z, 0, QUICK)
    assert np.isfinite(model.predict(np.float32(-1e4) * x)[0]).all()


def test_residual_networks_learn_on_a_graphics_card_too() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no graphics card")
    x, z = problem(400, 0)
    unseen, truth = problem(200, 1)
    before = torch.cuda.get_rng_state()
    model = family("residual").fit(x, z, 0, {**QUICK, "device": "cuda"})
    assert torch.equal(torch.cuda.get_rng_state(), before)
    assert np.sqrt(np.mean((model.predict(unseen)[0] - truth) ** 2)) < 0.45


def test_forest_predicts_what_scikit_learn_predicts() -> None:
    from sklearn.ensemble import RandomForestRegressor

    x, z = problem(300, 0)
    theirs = RandomForestRegressor(100, max_features=0.5, random_state=7).fit(x, z)
    mean, spread = family("forest").fit(x, z, 7, {}).predict(x)
    np.testing.assert_allclose(mean, theirs.predict(x), rtol=1e-9, atol=1e-12)
    each = np.stack([tree.predict(x) for tree in theirs.estimators_])
    np.testing.assert_allclose(spread, each.std(axis=0), atol=1e-7)


def test_boosting_predicts_what_scikit_learn_predicts() -> None:
    from sklearn.ensemble import HistGradientBoostingRegressor

    x, z = problem(300, 0)
    theirs = HistGradientBoostingRegressor(
        max_iter=40,
        learning_rate=0.1,
        max_leaf_nodes=15,
        min_samples_leaf=5,
        max_bins=64,
        early_stopping=False,
        random_state=0,
    ).fit(x, z[:, 0])
    ours = family("boosting").fit(x, z, 0, {"trees": 40, "rate": 0.1, "leaves": 15})
    np.testing.assert_allclose(ours.predict(x)[0][:, 0], theirs.predict(x), rtol=1e-9, atol=1e-12)


def test_boosting_keeps_to_few_threads_and_leaves_them_as_they_were(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_info, threadpool_limits

    def threads() -> list[int]:
        return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "openmp"]

    grow = HistGradientBoostingRegressor.fit
    seen: list[int] = []

    def watched(self: HistGradientBoostingRegressor, *given: object) -> object:
        seen.extend(threads())
        return grow(self, *given)

    monkeypatch.setattr(HistGradientBoostingRegressor, "fit", watched)
    x, z = problem(60, 0)
    with threadpool_limits(2, user_api="openmp"):
        family("boosting").fit(x, z, 0, QUICK)
        assert set(threads()) == {2}
    assert set(seen) == {1}


def test_trees_that_would_walk_in_a_circle_are_refused() -> None:
    arrays = {
        "feature": np.array([0, -1, -1]),
        "threshold": np.zeros(3),
        "left": np.array([1, 0, 0]),
        "right": np.array([2, 0, 0]),
        "value": np.array([[0.0], [1.0], [2.0]]),
        "roots": np.array([0]),
    }
    x = np.array([[-1.0], [1.0]], dtype=np.float32)
    assert Trees.of(arrays, 1, 1).sums(x).tolist() == [[1.0], [2.0]]
    assert Trees.of(arrays, 1, 1).square_sums(x).tolist() == [[1.0], [4.0]]
    for name, wrong in (("left", [0, 0, 0]), ("right", [9, 0, 0]), ("feature", [1, -1, -1])):
        with pytest.raises(InvalidValueError, match="not trees"):
            Trees.of({**arrays, name: np.array(wrong)}, 1, 1)
    with pytest.raises(InvalidValueError, match="not trees"):
        Trees.of({**arrays, "roots": np.array([3])}, 1, 1)


def test_nodes_that_two_branches_share_and_any_number_of_designs() -> None:
    trees = Trees.of(
        {
            "feature": np.array([-1, 0, 1, -1, -1]),  # the second tree is a leaf
            "threshold": np.array([0.0, 0.5, 0.5, 0.0, 0.0]),
            "left": np.array([0, 2, 3, 0, 0]),
            "right": np.array([0, 3, 4, 0, 0]),
            "value": np.array([[10.0], [0.0], [0.0], [1.0], [2.0]]),
            "roots": np.array([1, 0]),
        },
        *(2, 1),
    )
    x = np.array([[0, 0], [0, 1], [1, 0]] * 30, dtype=np.float32)
    for n in (0, 1, 7, 64, 65, 90):
        assert trees.sums(x[:n])[:, 0].tolist() == ([11.0, 12.0, 11.0] * 30)[:n]


def test_unknown_family() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'forest'"):
        family("forests")


def test_intervals_cover_what_they_say_where_the_noise_is_uneven() -> None:
    rng = np.random.default_rng(0)
    spread = rng.uniform(0.1, 2.0, (20_000, 1))
    residuals = 3.0 * spread * rng.standard_normal((20_000, 1))  # three times as wrong as it thinks
    made = Calibration.of(residuals[:10_000], spread[:10_000])
    for coverage in (0.5, 0.8, 0.9, 0.95):
        half = made.half_width(spread[10_000:], coverage)
        assert abs(np.mean(np.abs(residuals[10_000:]) <= half) - coverage) < 0.015
    with pytest.raises(InvalidValueError, match=r"0.5 and 0.99, not 1.0"):
        made.half_width(spread, 1.0)
    assert Calibration.from_json(made.to_json()).factors.tolist() == made.factors.tolist()


def test_scores_of_a_case_worked_out_by_hand() -> None:
    truth, predicted = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 4.0, 3.0, 2.0])
    found = score(truth, predicted, low=truth - 1, high=truth + np.array([1, 1, -2, 1]))
    assert found.rmse == pytest.approx(2**0.5)
    assert found.relative_rmse == pytest.approx(2**0.5 / 2.5)
    assert found.mape == pytest.approx((1.0 + 0.5) / 4)
    assert found.rms_relative_error == pytest.approx((1.25 / 4) ** 0.5)
    assert found.r2 == pytest.approx(1 - 2 / 1.25)
    assert found.spearman == pytest.approx(0.2)
    assert found.coverage == 0.75
    assert found.top1_regret == 0.0
    assert score(truth, predicted, maximize=True).top1_regret == pytest.approx(0.5)


@pytest.mark.parametrize("form", ["linear", "log", "relative", "auto"])
def test_targets_come_back(form: str) -> None:
    y = np.array([[1.0, 5.0], [2.0, 5.0], [8.0, 5.0]])
    baseline = np.array([[2.0, 10.0]] * 3)
    scale = TargetScale.of(form, y, baseline)
    z = scale.forward(y, baseline)
    assert z.mean(axis=0) == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(scale.backward(z, baseline), y)
    again = TargetScale.from_json(scale.to_json())
    np.testing.assert_allclose(again.backward(z, baseline), y)


def test_logarithms_of_what_is_not_positive_are_refused() -> None:
    y = np.array([[0.0], [1.0]])
    assert TargetScale.of("auto", y, y).form == ("linear",)
    with pytest.raises(InvalidValueError, match="above zero"):
        TargetScale.of("log", y, y)
    with pytest.raises(UnknownNameError, match="Did you mean 'log'"):
        TargetScale.of("logs", y, y)


def test_inputs_of_conditional_parameters() -> None:
    space = DesignSpace(
        [
            Categorical("mode", ["plain", "scaled"]),
            Integer("scale", 1, 2, when=param("mode") == "scaled"),
        ]
    )
    inputs = Inputs(space)
    assert inputs.names == ["mode=plain", "mode=scaled", "scale?", "scale", "scale=1", "scale=2"]
    codes = space.designs([{"mode": "plain"}, {"mode": "scaled", "scale": 2}]).codes
    assert inputs(codes).tolist() == [[1, 0, 0, 0, 0, 0], [0, 1, 1, 0.5, 0, 1]]


def test_inputs_of_permutations_are_positions_and_pairs() -> None:
    space = DesignSpace(
        [
            Categorical("mode", ["nest", "flat"]),
            Permutation("order", ["K", "C", "P"], when=param("mode") == "nest"),
        ]
    )
    inputs = Inputs(space)
    assert inputs.names[2:] == [
        "order?", "order[K]", "order[C]", "order[P]", "order:K<C", "order:K<P", "order:C<P",
    ]  # fmt: skip
    codes = space.designs([{"mode": "nest", "order": "CPK"}, {"mode": "flat"}]).codes
    third = 2 / 3
    expected = np.array([[1, third, -third, 0, -1, -1, 1], [0.0] * 7])
    assert inputs(codes)[:, 2:] == pytest.approx(expected, abs=1e-6)


def test_orders_are_in_range_where_each_item_was_seen_at_its_position() -> None:
    order = Permutation("order", ["A", "B", "C", "D"])
    space = DesignSpace([order])
    seen = space.designs([{"order": text} for text in ("ABCD", "BACD", "ABDC")])
    ranges = Ranges.of(space, seen.codes)
    ranges = Ranges.from_json(space, ranges.to_json())
    new = space.designs([{"order": text} for text in ("BADC", "ABCD", "CABD", "DCBA")])
    assert ranges.outside(new.codes).tolist() == [-1, -1, 0, 0]
    assert "order is 'CABD', not 'ABCD'" in ranges.reason(new.codes[2].tolist(), 0)


def test_parameters_of_the_same_unit_are_compared() -> None:
    space = DesignSpace(
        [
            Ordinal("buffer", [2, 8], unit="requests"),
            Categorical("drain", ["never", "at"]),
            Ordinal("mark", [1, 2, 4], unit="requests", when=param("drain") == "at"),
            Integer("rate", 1, 2, unit="MHz"),
        ]
    )
    inputs = Inputs(space)
    assert inputs.names[-2:] == ["buffer>mark", "buffer<mark"]
    assert inputs.pairs == [(0, 2)]
    designs = [{"buffer": 2, "drain": "at", "mark": mark, "rate": 1} for mark in (1, 2, 4)] + [
        {"buffer": 8, "drain": "never", "rate": 1}
    ]
    found = inputs(space.designs(designs).codes)
    assert found[:, -2:].tolist() == [[1, 0], [0, 0], [0, 1], [0, 0]]
    assert found.shape == (4, len(inputs.names))


def test_features_of_workloads_that_do_not_differ_are_left_out() -> None:
    names, values = workload_inputs(
        [{"writes": 0.1, "same": 1.0, "bytes": 1.0}, {"writes": 0.2, "same": 1.0, "bytes": 100.0}]
    )
    assert names == ["writes", "log bytes"]
    np.testing.assert_allclose(values, [[0.1, 0.0], [0.2, np.log(100.0)]], rtol=1e-6)
