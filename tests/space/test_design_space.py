from __future__ import annotations

import copy
import json
import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from archgym.errors import DesignError, InvalidValueError, UnknownNameError
from archgym.space import (
    Boolean,
    Categorical,
    Designs,
    DesignSpace,
    Expression,
    Integer,
    Ordinal,
    Real,
    Rule,
    param,
)

from .strategies import all_designs, canonical, is_legal, spaces

FEW = settings(max_examples=60, deadline=None)


def rows_of(space: DesignSpace, seed: int, n: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Any levels within what is allowed, shape (n, n_parameters)."""
    rng = np.random.default_rng(seed)
    columns = [rng.choice(space.allowed_codes(i), n) for i in range(len(space.names))]
    return np.stack(columns, axis=1)


@FEW
@given(spaces())
def test_counts_and_enumeration_are_those_of_brute_force(space: DesignSpace) -> None:
    expected = all_designs(space)
    assert space.canonical_cardinality == len(expected)
    for chunk in (1, 7, 10_000):
        chunks = list(space.enumerate(chunk))
        assert all(len(part) == chunk for part in chunks[:-1])
        found = [tuple(design.items()) for part in chunks for design in part]
        assert len(found) == len(expected)
        assert set(found) == expected


@FEW
@given(spaces(reals=True), st.integers(0, 2**32))
def test_one_design_and_many_mean_the_same(space: DesignSpace, seed: int) -> None:
    raw = rows_of(space, seed, 40)
    many = space.canonicalise(raw)
    keys, legal = many.keys(), space.legal(many)
    seen: dict[int, dict[str, Any]] = {}
    for i, codes in enumerate(raw.tolist()):
        one = space.canonical_codes(codes)
        design = many[i]
        values = {p.name: p.value(c) for p, c in zip(space.parameters, codes, strict=True)}
        assert list(one) == many.codes[i].tolist()
        assert design == canonical(space, values) == space.canonical(values)
        assert space.key(one) == keys[i] <= space.largest_key
        assert (space.illegal_reason(one) == "") == legal[i] == is_legal(space, design)
        assert space.codes(design) == one
        assert seen.setdefault(keys[i], design) == design
    assert len(seen) == len({tuple(d.items()) for d in many})


@FEW
@given(spaces(reals=True))
def test_json_and_pickle_round_trips(space: DesignSpace) -> None:
    again = DesignSpace.from_json(json.loads(json.dumps(space.to_json())))
    for copied in (again, pickle.loads(pickle.dumps(space)), copy.deepcopy(space)):
        assert copied == space
        assert hash(copied) == hash(space)
        raw = rows_of(space, 1, 20)
        assert (copied.canonicalise(raw).codes == space.canonicalise(raw).codes).all()
        assert copied.fixed == space.fixed


@FEW
@given(spaces(), st.integers(0, 1000))
def test_neighbours_are_legal_and_one_step_away(space: DesignSpace, seed: int) -> None:
    assume(space.canonical_cardinality > 0)
    design = space.sample(1, np.random.default_rng(seed))[0]
    legal = all_designs(space)
    for other in space.neighbours(design):
        assert tuple(other.items()) in legal
        assert other != design
        both = [name for name in design if name in other and design[name] != other[name]]
        stepped = [
            name
            for name in both
            if not space[name].ordered
            or abs(space[name].code(design[name]) - space[name].code(other[name])) == 1
        ]
        # One parameter took the step; others changed only by becoming active or inactive.
        assert len(both) == len(stepped) == 1


@FEW
@given(spaces(reals=True), st.integers(0, 1000))
def test_samples_are_legal_and_repeatable(space: DesignSpace, seed: int) -> None:
    try:
        samples = space.sample(50, np.random.default_rng(seed))
    except DesignError:
        assert space.raw_cardinality == math.inf or space.canonical_cardinality == 0
        return
    assert len(samples) == 50
    for design in samples:
        assert is_legal(space, design)
        for name, value in space.fixed.items():
            assert design.get(name, value) == value
    again = space.sample(50, np.random.default_rng(seed))
    assert list(again) == list(samples)


def test_samples_are_even_over_the_levels() -> None:
    space = DesignSpace([Categorical("kind", ["a", "b", "c"]), Integer("size", 1, 7)])
    samples = space.sample(21_000, np.random.default_rng(0))
    counts = np.unique(samples.codes @ [7, 1], return_counts=True)[1]
    assert len(counts) == 21
    assert (abs(counts - 1000) < 5 * math.sqrt(1000)).all()


def archgym_dram() -> DesignSpace:
    """The ten knobs of the original's DRAM environment."""
    refreshed = param("refresh_policy") == "all_bank"
    return DesignSpace(
        [
            Categorical("page_policy", ["open", "open_adaptive", "closed", "closed_adaptive"]),
            Categorical("scheduler", ["fifo", "fr_fcfs_grp", "fr_fcfs"]),
            Categorical("scheduler_buffer", ["bankwise", "read_write", "shared"]),
            Integer("request_buffer_size", 1, 8),
            Categorical("resp_queue", ["fifo", "reorder"]),
            Categorical("refresh_policy", ["none", "all_bank"]),
            Integer("refresh_max_postponed", 1, 8, when=refreshed),
            Integer("refresh_max_pulledin", 1, 8, when=refreshed),
            Categorical("arbiter", ["simple", "fifo", "reorder"]),
            Ordinal(
                "max_active_transactions",
                [1, 2, 4, 8, 16, 32, 64, 128],
                when=param("arbiter").isin(["fifo", "reorder"]),
            ),
        ]
    )


def test_the_space_of_the_original_has_the_published_size() -> None:
    space = archgym_dram()
    assert space.raw_cardinality == 1_769_472
    assert space.canonical_cardinality == 636_480
    keys = [key for part in space.enumerate() for key in part.keys()]  # noqa: SIM118
    assert len(keys) == len(set(keys)) == 636_480


def test_conditions_on_conditions_and_fixed_switches() -> None:
    space = DesignSpace(
        [
            Boolean("cache"),
            Categorical("policy", ["lru", "random"], when=param("cache") == True),  # noqa: E712
            Integer("bits", 1, 4, when=param("policy") == "lru"),
        ]
    )
    assert space.canonical({"cache": False, "policy": "lru", "bits": 2}) == {"cache": False}
    assert space.canonical_cardinality == 1 + (4 + 1)
    off = space.fix({"cache": False})
    assert off.canonical_cardinality == 1
    assert list(off.enumerate().__next__()) == [{"cache": False}]
    held = space.fix({"bits": 3})
    assert held.canonical_cardinality == 3
    assert held.canonical({"cache": True, "policy": "lru"})["bits"] == 3
    assert "fixed to 3" in held.broken_rule({"cache": True, "policy": "lru", "bits": 2})
    assert held.broken_rule({"cache": True, "policy": "random", "bits": 2}) == ""


def test_a_rule_holds_where_a_parameter_in_it_is_inactive() -> None:
    space = DesignSpace(
        [
            Boolean("wide"),
            Integer("lanes", 1, 8, when=param("wide") == True),  # noqa: E712
            Integer("depth", 1, 8),
        ],
        [Rule("fits", param("lanes") * param("depth") <= 16, "16 cells")],
    )
    assert space.broken_rule({"wide": False, "depth": 8}) == ""
    assert space.broken_rule({"wide": True, "lanes": 8, "depth": 8}) == "rule 'fits': 16 cells"
    assert space.canonical_cardinality == len(all_designs(space))


@pytest.mark.parametrize(
    ("operation", "holds"),
    [
        (param("a") % param("b") == 0, {(4, 2), (0, 2), (0, 3)}),
        (param("a") / param("b") < 1, {(0, 2), (0, 3)}),
        (param("b") ** param("a") > 8, {(4, 2), (4, 3)}),
        (64 / param("b") > 30, {(0, 2), (4, 2)}),
    ],
)
def test_division_by_zero_breaks_a_rule_alike_for_one_and_for_many(
    operation: Expression, holds: set[tuple[int, int]]
) -> None:
    space = DesignSpace([Ordinal("a", [0, 4]), Ordinal("b", [0, 2, 3])], [Rule("rule", operation)])
    found = {(d["a"], d["b"]) for part in space.enumerate() for d in part}
    assert found == holds
    assert {
        (a, b) for a in (0, 4) for b in (0, 2, 3) if not space.broken_rule({"a": a, "b": b})
    } == holds


def test_large_products_do_not_overflow() -> None:
    names = ("a", "b", "c", "d")
    product = param("a") * param("b") * param("c") * param("d")
    space = DesignSpace(
        [Integer(n, 0, 4_000_000) for n in names], [Rule("small", product <= 10**12)]
    )
    design = dict.fromkeys(names, 4_000_000)
    assert space.broken_rule(design)
    assert not space.legal(space.designs([design]))[0]
    assert space.keys(space.designs([design]).codes) == [space.key(space.codes(design))]


@settings(max_examples=200, deadline=None)
@given(
    st.floats(-1e6, 1e6),
    st.floats(1e-3, 1e6),
    st.booleans(),
    st.lists(st.floats(0, 1), min_size=1, max_size=20),
)
def test_real_parameters_keep_their_ends_and_round_trip(
    low: float, width: float, log: bool, positions: list[float]
) -> None:
    low = abs(low) + 1e-3 if log else low
    high = low + width
    assume(high > low)
    real = Real("x", low, high, log=log)
    codes = real.from_unit_interval(np.array([0.0, 1.0, *positions]))
    values = real.values(codes)
    assert (values[0], values[1]) == (low, high)
    assert ((low <= values) & (values <= high)).all()
    for code, value in zip(codes.tolist(), values.tolist(), strict=True):
        assert real.value(code) == value == real.table[code]
        assert real.code(value) == code
    assert real.code(low) == 0
    assert real.code(high) == real.size - 1
    for outside in (math.nextafter(low, -math.inf), math.nextafter(high, math.inf), math.nan):
        with pytest.raises(DesignError, match="'x'"):
            real.code(outside)


def test_levels_have_equal_shares_of_the_unit_interval() -> None:
    for parameter in (
        Integer("i", 3, 9),
        Categorical("c", list("abc")),
        Ordinal("o", [1, 2, 8, 16]),
    ):
        positions = (np.arange(8400) + 0.5) / 8400
        counts = np.bincount(parameter.from_unit_interval(positions))
        assert (counts == 8400 // parameter.size).all()


def test_messages_name_field_value_and_what_is_allowed() -> None:
    space = DesignSpace(
        [Categorical("policy", ["open", "closed"]), Integer("ways", 1, 16, unit="ways")]
    )
    with pytest.raises(DesignError, match=r"'policy' cannot be 'opne'.*Did you mean 'open'"):
        space.codes({"policy": "opne", "ways": 1})
    with pytest.raises(DesignError, match=r"'ways' cannot be 17: .*from 1 to 16 ways"):
        space.codes({"policy": "open", "ways": 17})
    with pytest.raises(DesignError, match="'ways' cannot be True"):
        space.codes({"policy": "open", "ways": True})
    with pytest.raises(UnknownNameError, match="Did you mean 'ways'"):
        space.codes({"policy": "open", "way": 1})
    with pytest.raises(DesignError, match="lacks parameter 'ways'"):
        space.codes({"policy": "open"})
    for wrong in ("ways=1", 5, None):
        with pytest.raises(DesignError, match=f"mapping of parameters to values, not {wrong!r}"):
            space.codes(wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match=r"can never match.*'open'"):
        DesignSpace(space.parameters, [Rule("r", param("policy") == "opne")])
    with pytest.raises(InvalidValueError, match="must be listed before"):
        DesignSpace([Integer("a", 1, 2, when=param("b") == 1), Integer("b", 1, 2)])
    with pytest.raises(InvalidValueError, match="named twice: a"):
        DesignSpace([Boolean("a"), Boolean("a")])
    for wrong in ("ways >= 2", True):
        with pytest.raises(InvalidValueError, match=f"the rule 'r' cannot be {wrong!r}: allowed"):
            Rule("r", wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="are a list, not 'a' alone"):
        DesignSpace(Boolean("a"))  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="cannot be 'a': allowed are Boolean"):
        DesignSpace(["a"])  # type: ignore[list-item]
    with pytest.raises(InvalidValueError, match="'policy': values are a list, not 'lru'"):
        Categorical("policy", "lru")
    with pytest.raises(InvalidValueError, match=r"must be integers, got low=1, high=4\.5, step=1"):
        Integer("a", 1, 4.5)  # type: ignore[arg-type]
    with pytest.raises(DesignError, match=r"'size' cannot be 3\. "):
        Ordinal("size", [1, 2]).parse("3")
    with pytest.raises(InvalidValueError, match="write & "):
        bool(param("a") == 1)
    with pytest.raises(InvalidValueError, match=r"more than|no real|levels"):
        Integer("a", 0, 10**9)
    with pytest.raises(InvalidValueError, match="next to nothing"):
        DesignSpace([Integer("a", 1, 9)], [Rule("r", param("a") > 9)]).sample(
            1, np.random.default_rng(0)
        )


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"parameters": [{"kind": "integr", "name": "a"}]},
        {"parameters": [{"kind": "integer", "name": "a", "low": 1, "hihg": 2}]},
        {"parameters": [{"kind": "boolean", "name": "a", "when": {"op": "eval", "args": []}}]},
        {"parameters": [{"kind": "boolean", "name": "a", "when": {"op": "not", "args": [1, 2]}}]},
    ],
)
def test_json_that_is_no_space_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises((InvalidValueError, UnknownNameError)):
        DesignSpace.from_json(data)


def test_real_spaces_are_infinite_until_the_real_is_fixed() -> None:
    space = DesignSpace([Boolean("on"), Real("volt", 0.5, 1.0)])
    assert space.raw_cardinality == space.canonical_cardinality == math.inf
    with pytest.raises(InvalidValueError, match="'volt' is real"):
        next(space.enumerate())
    assert space.fix({"volt": 0.75}).canonical_cardinality == 2


def test_groups_hold_the_free_parameters() -> None:
    space = DesignSpace(
        [Boolean("a", group="g"), Boolean("b"), Boolean("c", group="g"), Boolean("d", group="g")]
    )
    assert space.groups == {"g": ("a", "c", "d"), "b": ("b",)}
    assert space.fix({"c": True}).groups == {"g": ("a", "d"), "b": ("b",)}


def test_parse_reads_what_a_command_line_gives() -> None:
    assert Boolean("b").parse("true") is True
    assert Ordinal("o", [1, 2, 4]).parse("4") == 4
    assert Integer("i", 0, 8, step=2).parse("6") == 6
    assert Real("r", 0, 1).parse("0.25") == 0.25
    for parameter, text in (
        (Integer("i", 0, 8), "x"),
        (Ordinal("o", [1, 2]), "3"),
        (Real("r", 0, 1), "nan"),
    ):
        with pytest.raises(DesignError, match=repr(parameter.name)):
            parameter.parse(text)


@FEW
@given(spaces())
def test_rank_is_the_position_in_the_enumeration(space: DesignSpace) -> None:
    designs = [part for part in space.enumerate(1000) if len(part)]
    total = int(space.canonical_cardinality)
    for start, part in zip(range(0, total, 1000), designs, strict=True):
        places = np.arange(start, start + len(part))
        assert (space.rank(part) == places).all()
        assert (space.unrank(places).codes == part.codes).all()
    for place in (-1, total):
        with pytest.raises(InvalidValueError, match="position"):
            space.unrank(np.array([place]))


@FEW
@given(spaces(), st.integers(0, 1000))
def test_what_is_not_in_the_enumeration_has_no_rank(space: DesignSpace, seed: int) -> None:
    free = DesignSpace(space.parameters, space.rules)
    rows = rows_of(free, seed, 40)
    canonical_ones = free.canonicalise(rows)
    ranks = space.rank(canonical_ones)
    assert ((ranks >= 0) == space.legal(canonical_ones)).all()
    raw = space.rank(Designs(space, rows))  # what is not canonical is no design either
    assert (raw == np.where((rows == canonical_ones.codes).all(axis=1), ranks, -1)).all()


def test_a_real_parameter_has_no_rank() -> None:
    space = DesignSpace([Real("voltage", 0.6, 1.1), Integer("ways", 1, 4)])
    with pytest.raises(InvalidValueError, match="'voltage' is real"):
        space.rank(space.designs([{"voltage": 0.7, "ways": 2}]))
    fixed = space.fix({"voltage": 0.7})
    assert fixed.rank(fixed.designs([{"ways": 3}])).tolist() == [2]


def test_rare_designs_are_drawn_evenly() -> None:
    low, high = Integer("low", 0, 49), Integer("high", 0, 49)
    space = DesignSpace([low, high], [Rule("rare", param("low") * 50 + param("high") < 5)])
    codes = space.sample(3000, np.random.default_rng(0)).codes
    assert (codes[:, 0] == 0).all()
    assert np.bincount(codes[:, 1]) == pytest.approx(600, abs=120)
    assert len(space.sample(1, np.random.default_rng(1))) == 1


def test_a_text_in_place_of_a_number_is_called_a_text() -> None:
    for parameter, text in ((Ordinal("size", [1, 2, 4]), "2"), (Boolean("on"), "True")):
        with pytest.raises(DesignError, match=f"It is a text: write {text} without quotes$"):
            parameter.code(text)
        assert parameter.value(parameter.code(parameter.parse(text))) == parameter.parse(text)
