"""Spaces of other libraries have our conditions and rules, and their points are our designs."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings

from archgym.errors import DesignError, InvalidValueError, MissingDependencyError, UnknownNameError
from archgym.space import (
    AxEncoding,
    Boolean,
    Categorical,
    ConfigSpaceEncoding,
    Designs,
    DesignSpace,
    Integer,
    NevergradEncoding,
    Ordinal,
    Permutation,
    PymooEncoding,
    Real,
    Rule,
    param,
)
from archgym.space.libraries.linear import linear_bound
from archgym.space.libraries.points import PointEncoding
from archgym.space.libraries.regions import levels_of, regions

from .strategies import spaces

FEW = settings(max_examples=30, deadline=None)
LIBRARIES: dict[str, Callable[[DesignSpace], PointEncoding]] = {
    "ConfigSpace": ConfigSpaceEncoding,
    "ax": AxEncoding,
    "nevergrad": NevergradEncoding,
    "pymoo": PymooEncoding,
}
by_library = pytest.mark.parametrize("library", LIBRARIES)


def controller() -> DesignSpace:
    return DesignSpace(
        [
            Categorical("policy", ["open", "closed"]),
            Categorical("refresh", ["none", "all_bank", "per_bank"]),
            Integer("postponed", 0, 8, when=param("refresh") != "none"),
            Integer("timeout", 1, 100, when=param("policy") == "closed"),
            Ordinal("buffer", [1, 2, 4, 8], unit="kB"),
            Integer("entries", 0, 3000, step=3),
            Boolean("fast"),
            Real("voltage", 0.6, 1.1, unit="V"),
            Real("period", 1e-9, 1e-6, log=True, when=param("voltage") <= 0.9),
            Permutation("order", ["K", "C", "P"]),
            Integer("rows", 1, 16),
            Integer("columns", 1, 16),
        ],
        [
            Rule("few_postponed", param("postponed") <= param("buffer")),
            Rule("small", param("rows") + param("columns") <= 20),
            Rule("fast_needs_volts", param("fast").isin([True]).implies(param("voltage") >= 0.8)),
        ],
    )


def made(library: str, space: DesignSpace) -> PointEncoding:
    pytest.importorskip(library)
    return LIBRARIES[library](space)


def some_legal(space: DesignSpace) -> Designs:
    try:
        return space.sample(15, np.random.default_rng(0))
    except DesignError:
        assume(False)
        raise


@by_library
def test_points_stand_for_designs(library: str) -> None:
    space = controller()
    encoding = made(library, space)
    designs = some_legal(space)
    points = encoding.to_points(designs)
    assert (encoding.from_points(points).codes == designs.codes).all()
    for point, design in zip(points, designs, strict=True):
        assert encoding.design(point) == design
        assert dict(encoding.point(design)) == dict(point)


@by_library
@FEW
@given(space=spaces(reals=True))
def test_points_of_any_space_stand_for_designs(library: str, space: DesignSpace) -> None:
    assume(space.free)
    designs = some_legal(space)
    try:
        encoding = made(library, space)
    except InvalidValueError:
        assume(False)
        raise
    assert (encoding.from_points(encoding.to_points(designs)).codes == designs.codes).all()


@FEW
@given(space=spaces(reals=True))
def test_configspace_draws_what_is_active_and_legal(space: DesignSpace) -> None:
    pytest.importorskip("ConfigSpace")
    assume(space.free)
    some_legal(space)
    try:
        encoding = ConfigSpaceEncoding(space, seed=0)
    except (DesignError, InvalidValueError):
        assume(False)
        raise
    free = {space.names[position] for position in space.free}
    for configuration in _drawn(encoding, 10):
        design = encoding.design(configuration)
        if not encoding.unexpressed:
            named = {name.split("[")[0] for name in configuration}
            assert named == set(design) & free
            assert not space.broken_rule(design)


def _drawn(encoding: ConfigSpaceEncoding, n: int) -> Any:
    try:
        return encoding.space.sample_configuration(n)
    except Exception as error:  # ConfigSpace gives up where next to nothing is legal
        assume("sample" not in str(error).lower())
        raise


def test_configspace_is_told_conditions_and_rules() -> None:
    pytest.importorskip("ConfigSpace")
    space = controller()
    encoding = ConfigSpaceEncoding(space, seed=1, default=some_legal(space)[0])
    assert encoding.unexpressed == ()
    assert encoding.conditional == {"postponed", "timeout", "period"}
    assert encoding.design(encoding.space.get_default_configuration()) == some_legal(space)[0]
    for configuration in encoding.space.sample_configuration(200):
        assert not space.broken_rule(encoding.design(configuration))
    low = {**encoding.design(configuration), "voltage": 0.9, "fast": False, "period": 1e-7}
    assert "period" in encoding.point(low)
    assert "period" not in encoding.point({**low, "voltage": 0.90001})


def test_configspace_says_what_it_is_not_told() -> None:
    pytest.importorskip("ConfigSpace")
    reals = [
        Real("a", 0.0, 1.0),
        Real("b", 0.0, 1.0),
        Real("c", 0.0, 1.0, when=param("a") * param("b") < 0.5),
    ]
    rules = [
        Rule("product", param("a") * param("b") <= 0.9),
        Rule("order", param("a") <= param("b")),
    ]
    encoding = ConfigSpaceEncoding(DesignSpace(reals, rules), seed=0)
    assert encoding.unexpressed == ("condition of c", "rule product")
    assert all(c["a"] <= c["b"] for c in encoding.space.sample_configuration(50))


def test_a_default_of_configspace_is_legal() -> None:
    pytest.importorskip("ConfigSpace")
    space = controller()
    design = some_legal(space)[0]
    with pytest.raises(DesignError, match="small"):
        ConfigSpaceEncoding(space, default={**design, "rows": 16, "columns": 16})


def test_ax_is_told_dependents_and_linear_bounds() -> None:
    pytest.importorskip("ax")
    encoding = AxEncoding(controller())
    by_name = {parameter.name: parameter for parameter in encoding.parameters}
    assert by_name["policy"].dependent_parameters == {"closed": ["timeout"]}
    assert encoding.parameter_constraints == ["1.0 * rows + 1.0 * columns <= 20.0"] or (
        encoding.parameter_constraints == ["1.0 * columns + 1.0 * rows <= 20.0"]
    )
    assert set(encoding.unexpressed) == {
        "condition of postponed",
        "condition of period",
        "rule few_postponed",
        "rule fast_needs_volts",
    }
    client = pytest.importorskip("ax.api.client").Client(random_seed=0)
    client.configure_experiment(
        encoding.parameters, parameter_constraints=encoding.parameter_constraints
    )
    client.configure_optimization("reward")
    for point in client.get_next_trials(3).values():
        design = encoding.design(point)
        assert design["rows"] + design["columns"] <= 20
        assert ("timeout" in point) == (design["policy"] == "closed")


def test_nevergrad_keeps_rules_and_draws_the_same_with_a_seed() -> None:
    ng = pytest.importorskip("nevergrad")
    space = controller()
    default = some_legal(space)[0]

    def search() -> list[dict[str, Any]]:
        encoding = NevergradEncoding(space, default=default, seed=3)
        optimizer = ng.optimizers.RandomSearch(encoding.parametrization, budget=20)
        found = []
        for _ in range(20):
            candidate = optimizer.ask()
            found.append(encoding.design(candidate.value))
            optimizer.tell(candidate, 0.0)
        return found

    found = search()
    assert found == search()
    assert sum(not space.broken_rule(design) for design in found) >= 18
    assert (
        NevergradEncoding(space, default=default).design(
            NevergradEncoding(space, default=default).parametrization.value
        )
        == default
    )


@by_library
def test_held_parameters_and_those_without_effect_are_in_no_point(library: str) -> None:
    encoding = made(library, controller().fix({"policy": "open", "refresh": "per_bank"}))
    names = {name.split("[")[0] for name in encoding.point(some_legal(encoding.design_space)[0])}
    assert not names & {"policy", "refresh", "timeout"}
    assert "postponed" in names
    with pytest.raises(InvalidValueError, match="nothing to search"):
        made(library, DesignSpace([Integer("ways", 1, 4)]).fix({"ways": 2}))


@by_library
def test_odd_points_are_refused_with_the_name(library: str) -> None:
    encoding = made(library, DesignSpace([Integer("ways", 1, 4), Real("volts", 0.5, 1.0)]))
    good = dict(encoding.point({"ways": 2, "volts": 0.75}))
    with pytest.raises(UnknownNameError, match="Did you mean 'ways'"):
        encoding.design({**good, "wayz": 1})
    with pytest.raises(DesignError, match="volts"):
        encoding.design({"ways": good["ways"]})
    for value in (float("nan"), "x", None, 99, [1]):
        with pytest.raises(DesignError, match="ways"):
            encoding.design({**good, "ways": value})
    with pytest.raises(DesignError, match="volts"):
        encoding.design({**good, "volts": 1e99})


@by_library
def test_without_the_library_the_message_says_what_to_install(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def refuse(name: str, *args: Any) -> Any:
        if name.split(".")[0] == library:
            raise ImportError(name)
        return real(name, *args)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(
        MissingDependencyError, match=rf"pip install 'archgym\[{library.lower()}\]'"
    ):
        LIBRARIES[library](controller())


@FEW
@given(space=spaces(fixed=False))
def test_regions_are_where_a_rule_holds(space: DesignSpace) -> None:
    for rule in space.rules:
        for holds in (True, False):
            found = regions(space, rule.expression, holds)
            assert found is not None
            names = rule.expression.names
            sizes = [space[name].size for name in names]
            count = np.zeros(sizes, dtype=int)
            for box in found:
                picked = [
                    levels_of(box[name]) if name in box else range(space[name].size)
                    for name in names
                ]
                count[np.ix_(*picked)] += 1
            levels = np.indices(sizes).reshape(len(sizes), -1)
            values = {
                name: space[name].values(row) for name, row in zip(names, levels, strict=True)
            }
            truth = np.asarray(rule.expression.evaluate(values), dtype=bool).reshape(sizes)
            assert (count == (truth == holds)).all()


def test_too_many_levels_or_boxes_are_no_regions() -> None:
    space = DesignSpace([Real("a", 0.0, 1.0), Real("b", 0.0, 1.0), Integer("n", 1, 1000)])
    assert regions(space, param("a") * param("b") <= 0.5) is None
    assert regions(space, param("n") % 2 == 0) is None
    found = regions(space, param("a") > 0.25)
    assert found is not None
    ((run,),) = found[0].values()
    assert space["a"].value(run[0]) > 0.25 >= space["a"].value(run[0] - 1)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (param("a") <= 3, "1.0 * a <= 3.0"),
        (3 * param("a") - param("b") / 2 > 1, "-3.0 * a + 0.5 * b < -1.0"),
        (param("a") - param("a") <= 3, " <= 3.0"),
        (param("a") * param("b") <= 3, None),
        (param("a") / 0 <= 3, None),
        (param("a") == 3, None),
        (param("a") ** 2 <= 3, None),
    ],
)
def test_linear_bounds(expression: Any, text: str | None) -> None:
    bound = linear_bound(expression, {})
    assert (None if bound is None else str(bound)) == text


def test_a_strict_bound_of_integers_is_a_bound() -> None:
    bound = linear_bound(param("a") + param("b") < 10, {"b": 3})
    assert bound is not None
    assert str(bound.closed(whole=True)) == "1.0 * a <= 6"
    assert str(bound.closed(whole=False)) == "1.0 * a <= 7.0"
