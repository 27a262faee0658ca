from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from archgym.errors import DesignError, InvalidValueError
from archgym.space import (
    BoxEncoding,
    Categorical,
    Designs,
    DesignSpace,
    Encoding,
    FeatureEncoding,
    FlatEncoding,
    Integer,
    MultiDiscreteEncoding,
    OptunaEncoding,
    Real,
    SkoptEncoding,
    UnitCubeEncoding,
    param,
)

from .strategies import spaces

FEW = settings(max_examples=40, deadline=None)
ANY: list[Callable[[DesignSpace], Encoding]] = [
    BoxEncoding,
    UnitCubeEncoding,
    FeatureEncoding,
    SkoptEncoding,
]
FINITE: list[Callable[[DesignSpace], Encoding]] = [MultiDiscreteEncoding, FlatEncoding]


def some_designs(space: DesignSpace) -> Designs:
    """Canonical designs, legal or not."""
    rng = np.random.default_rng(0)
    columns = [rng.choice(space.allowed_codes(i), 40) for i in range(len(space.names))]
    return space.canonicalise(np.stack(columns, axis=1))


@pytest.mark.parametrize("kind", [*ANY, *FINITE])
@FEW
@given(data=st.data())
def test_decode_gives_back_what_was_encoded(
    kind: Callable[[DesignSpace], Encoding], data: st.DataObject
) -> None:
    space = data.draw(spaces(reals=kind in ANY))
    assume(space.free)
    encoding, designs = kind(space), some_designs(space)
    rows = encoding.encode(designs)
    assert (encoding.decode(rows).codes == designs.codes).all()
    for row, codes in zip(rows, designs.codes.tolist(), strict=True):
        assert encoding.decode_one(row) == tuple(codes)


@FEW
@given(spaces(reals=True))
def test_gymnasium_spaces_hold_the_rows(space: DesignSpace) -> None:
    assume(space.free)
    designs = some_designs(space)
    for kind in (BoxEncoding, UnitCubeEncoding, FeatureEncoding):
        encoding = kind(space)
        for row in encoding.encode(designs):
            assert encoding.space.contains(row)
    box = BoxEncoding(space)
    one = [np.array(box.encode_one(codes), np.float32) for codes in designs.codes.tolist()]
    assert (np.stack(one) == box.encode(designs)).all()


@FEW
@given(spaces(), st.integers(0, 100))
def test_every_action_of_a_finite_space_is_a_design(space: DesignSpace, seed: int) -> None:
    assume(space.free)
    for encoding in (MultiDiscreteEncoding(space), FlatEncoding(space), BoxEncoding(space)):
        encoding.space.seed(seed)
        for _ in range(20):
            action = encoding.space.sample()
            codes = encoding.decode_one(action)
            assert space.canonical_codes([max(code, 0) for code in codes])
            assert all(c == -1 or c in space.allowed_codes(i) for i, c in enumerate(codes))


def test_optuna_parameters_round_trip() -> None:
    pytest.importorskip("optuna")
    space = DesignSpace(
        [
            Categorical("policy", ["open", "closed"]),
            Integer("ways", 1, 4, when=param("policy") == "open"),
            Real("volt", 0.6, 1.1),
            Real("pitch", 1e-6, 1e-3, log=True),
        ]
    )
    encoding = OptunaEncoding(space)
    designs = space.sample(50, np.random.default_rng(0))
    params = encoding.to_params(designs)
    for point in params:
        for name, distribution in encoding.distributions.items():
            assert distribution._contains(distribution.to_internal_repr(point[name]))
    assert list(encoding.from_params(params)) == list(designs)


def test_skopt_points_lie_in_its_dimensions() -> None:
    space = DesignSpace(
        [Categorical("policy", ["open", "closed"]), Integer("ways", 1, 4), Real("volt", 0.6, 1.1)]
    )
    encoding = SkoptEncoding(space)
    for point in encoding.encode(space.sample(50, np.random.default_rng(0))):
        for value, dimension in zip(point, encoding.dimensions, strict=True):
            assert value in dimension


SPACE = DesignSpace([Categorical("kind", list("abc")), Integer("size", 1, 4)])
REAL = DesignSpace([Integer("size", 1, 4), Real("volt", 0.5, 1.0)])


@pytest.mark.parametrize(
    "bad", [[3, 0], [-1, 0], [0], [0, 0, 0], [0.5, 0], [math.nan, 0], ["a", 0]]
)
def test_levels_that_do_not_exist_are_refused(bad: list[Any]) -> None:
    encoding = MultiDiscreteEncoding(SPACE)
    with pytest.raises(DesignError):
        encoding.decode_one(bad)
    with pytest.raises(DesignError):
        encoding.decode(np.array([bad]))


def test_whole_numbers_of_any_type_are_levels() -> None:
    encoding = MultiDiscreteEncoding(SPACE)
    for action in ([2, 1], (2, 1), np.array([2, 1], np.int32), np.array([2.0, 1.0])):
        assert encoding.decode_one(action) == (2, 1)
    assert FlatEncoding(SPACE).decode_one(np.int64(9)) == (2, 1)


def test_the_message_names_the_parameter() -> None:
    with pytest.raises(DesignError, match=r"level 7 of parameter 'size'.*0 to 3"):
        MultiDiscreteEncoding(SPACE).decode_one(np.array([0, 7]))


def test_box_positions_beyond_the_ends_are_the_ends_and_nan_is_refused() -> None:
    encoding = BoxEncoding(REAL)
    top = REAL.codes({"size": 4, "volt": 1.0})
    bottom = REAL.codes({"size": 1, "volt": 0.5})
    for big in (1.0, 3.0, 1e30, math.inf):
        assert encoding.decode_one(np.array([big, big])) == top
        assert encoding.decode_one(np.array([-big, -big])) == bottom
    for encoder in (encoding, UnitCubeEncoding(REAL), FeatureEncoding(REAL)):
        with pytest.raises(DesignError, match="NaN"):
            encoder.decode(np.full((1, 2), math.nan))


def test_a_discrete_view_of_a_real_needs_levels_and_reaches_both_ends() -> None:
    with pytest.raises(InvalidValueError, match=r"'volt' is real.*levels="):
        MultiDiscreteEncoding(REAL)
    encoding = MultiDiscreteEncoding(REAL, levels=5)
    seen = [encoding.decode(np.array([[0, level]]))[0]["volt"] for level in range(5)]
    assert seen == [0.5, 0.625, 0.75, 0.875, 1.0]
    assert encoding.encode(REAL.designs([{"size": 2, "volt": 0.74}])).tolist() == [[1, 2]]
    assert FlatEncoding(REAL, levels=5).size == 20


def test_features_of_an_inactive_parameter_are_zero() -> None:
    space = DesignSpace(
        [Categorical("kind", ["a", "b"]), Integer("size", 1, 4, when=param("kind") == "b")]
    )
    encoding = FeatureEncoding(space)
    assert encoding.feature_names == ["kind=a", "kind=b", "size?", "size"]
    rows = encoding.encode(space.designs([{"kind": "a"}, {"kind": "b", "size": 4}]))
    assert rows.tolist() == [[1, 0, 0, 0], [0, 1, 1, 0.875]]


def test_nothing_to_search_is_an_error() -> None:
    with pytest.raises(InvalidValueError, match=r"every parameter .* fixed"):
        BoxEncoding(SPACE.fix({"kind": "a", "size": 1}))


@pytest.mark.parametrize("kind", [UnitCubeEncoding, FeatureEncoding, FlatEncoding])
def test_mappings_are_no_batch_of_designs(kind: type[Encoding]) -> None:
    space = DesignSpace([Categorical("policy", ["open", "closed"]), Integer("ways", 1, 16)])
    design = {"policy": "open", "ways": 2}
    assert len(kind(space).encode(space.designs([design]))) == 1
    with pytest.raises(DesignError, match=r"space\.designs\(\[design\]\), not list"):
        kind(space).encode([design])  # type: ignore[arg-type]
