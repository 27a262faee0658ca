"""The benchmark of search quality: its statistics, its optima, and that it can be resumed."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import archgym
from archgym.problem.simulator import SimulationResult
from archgym.registry import agent_class, agent_names
from archgym.space import Categorical, Designs, DesignSpace, Integer, Ordinal, Real, param
from benchmarks.search_quality import statistics, summary
from benchmarks.search_quality.contestants import (
    BOUNDED_AGENTS,
    DEAR,
    GRIDS,
    LEARNERS,
    SLOW_AGENTS,
    SLOWEST_AGENTS,
    contestants,
    perform,
)
from benchmarks.search_quality.facts import (
    Facts,
    Volume,
    pareto_facts,
    sampled_facts,
    weighted_facts,
)
from benchmarks.search_quality.landscapes import (
    Landscape,
    environment_of,
    large_landscape,
    nk_landscape,
)
from benchmarks.search_quality.plan import FULL, Size, Task, tasks
from benchmarks.search_quality.plateaus import plateau
from benchmarks.search_quality.problems import problem, suite
from benchmarks.search_quality.runner import (
    RUNS,
    pack_runs,
    perform_task,
    read_runs,
    run_tasks,
    update_best,
)
from benchmarks.search_quality.tables import choose_limits, uniform_weights
from benchmarks.search_quality.tracker import Tracker

DEVELOPMENT = "nk-7"
FACTS = Facts(1.0, 5.0, 1e6, True)
STEPS = [(2, 5.0), (10, 3.0), (40, 1.02), (90, 1.0)]


def tiny() -> Landscape:
    """Five parameters, one real with three knots, one conditional."""
    rng = np.random.default_rng(3)
    space = DesignSpace(
        [
            Categorical("a", ["x", "y", "z"]),
            Ordinal("b", [1, 2, 4, 8], when=param("a").isin(["x", "z"])),
            Real("c", 0.0, 1.0),
            Categorical("d", ["x", "y"]),
            Ordinal("e", [1, 2, 3]),
        ]
    )
    sizes = (3, 4, 3, 2, 3)
    groups = [(0, 1, 2, 3), (1, 2, 3, 4), (0, 2, 3, 4)]
    components = tuple((g, rng.normal(size=[sizes[i] for i in g])) for g in groups)
    active = np.array([True, False, True])
    return Landscape(space, sizes, components, {2: np.array([0.0, 0.3, 1.0])}, ((1, 0, active),))


# -- landscapes ------------------------------------------------------------------------------------


def test_optimum_by_elimination_is_that_of_brute_force_over_knots() -> None:
    landscape = tiny()
    real = landscape.space.parameters[2]
    knots = real.from_unit_interval(landscape.knots[2])
    rows = [
        (a, b, knots[c], d, e) for a, b, c, d, e in itertools.product(*map(range, (3, 4, 3, 2, 3)))
    ]
    costs = landscape.costs(landscape.space.canonicalise(np.array(rows)))
    assert landscape.lowest() == pytest.approx(costs.min(), abs=1e-12)
    assert np.sort(landscape.enumerate()) == pytest.approx(np.sort(costs), abs=1e-6)


def test_no_value_between_knots_is_below_the_optimum() -> None:
    landscape = tiny()
    drawn = landscape.space.sample(20_000, np.random.default_rng(0))
    costs = landscape.costs(drawn)
    assert costs.min() >= landscape.lowest()
    assert costs.min() < landscape.lowest() + 0.05 * costs.std()


def test_inactive_parameter_counts_as_its_first_level() -> None:
    landscape = tiny()
    codes = np.array([[1, -1, 5, 0, 0], [1, 0, 5, 0, 0]])
    costs = landscape.costs(Designs(landscape.space, codes))
    assert costs[0] == costs[1]


def test_nk_landscape_has_the_promised_form_and_its_optimum_by_enumeration() -> None:
    landscape = nk_landscape(7)
    categorical = [p for p in landscape.space.parameters if not p.ordered]
    ordinal = [p for p in landscape.space.parameters if p.ordered]
    assert (len(categorical), len(ordinal)) == (9, 4)
    assert {2 <= p.size <= 4 for p in categorical} == {4 <= p.size <= 8 for p in ordinal} == {True}
    assert sum(p.when is not None for p in landscape.space.parameters) == 2
    assert [len(axes) for axes, _ in landscape.components] == [4] * 13
    assert landscape.enumerate().min() == pytest.approx(landscape.lowest(), abs=1e-5)


def test_landscapes_of_a_seed_are_equal_and_of_others_are_not() -> None:
    drawn = nk_landscape(7).space.sample(50, np.random.default_rng(0))
    costs = nk_landscape(7).costs(drawn)
    assert (nk_landscape(7).costs(drawn) == costs).all()
    assert not np.allclose(nk_landscape(7, 1).costs(drawn), costs)
    assert nk_landscape(8).space != nk_landscape(7).space


def test_environment_is_least_at_one() -> None:
    env = environment_of("Tiny", [tiny()])()
    outcomes = env.evaluate_batch(env.design_space.sample(5000, np.random.default_rng(0)))
    assert 1.0 <= outcomes.objectives.min() < 1.1
    large = large_landscape(7)
    assert sum(p.continuous for p in large.space.parameters) == 4


# -- facts -----------------------------------------------------------------------------------------


def test_a_plateau_is_enumerated_as_its_designs_cost() -> None:
    made = plateau(7)
    costs, areas = made.enumerate()
    rows = np.random.default_rng(0).integers(len(costs), size=200)
    sizes = [parameter.size for parameter in made.space.parameters]
    designs = Designs(made.space, np.stack(np.unravel_index(rows, sizes), axis=1))
    assert made.costs(designs)[0] == pytest.approx(costs[rows])
    assert made.costs(designs)[1] == pytest.approx(areas[rows])


def test_a_plateau_has_few_values_and_its_limit_takes_the_best_away() -> None:
    made = plateau(7)
    costs, areas = made.enumerate()
    kept = areas <= made.limit
    assert len(np.unique(np.round(costs, 9))) <= 3 ** len(made.mechanisms)
    assert costs.min() == 1.0
    assert 1.0 < costs[kept].min() < np.median(costs[kept])
    assert kept.mean() == pytest.approx(0.1, abs=0.001)


@pytest.mark.parametrize("seed", [7, 8])
def test_both_forms_of_a_plateau_have_one_optimum(seed: int) -> None:
    limited, penalised = (
        problem(f"plateau-{form}-{seed}").find_facts() for form in ("limited", "penalised")
    )
    assert limited.optimum == penalised.optimum
    assert limited.optimal == penalised.optimal
    assert limited.feasible == pytest.approx(0.1, abs=0.001)
    assert penalised.feasible == 1.0


def test_the_penalty_of_a_plateau_is_seen_in_its_goal_and_the_limit_in_its_limits() -> None:
    made = plateau(7)
    costs, areas = made.enumerate()
    sizes = [parameter.size for parameter in made.space.parameters]
    large = np.stack(np.unravel_index([int(areas.argmax())], sizes), axis=1)
    for form in ("limited", "penalised"):
        chosen = problem(f"plateau-{form}-7")
        env = chosen.make_environment(chosen.find_facts())
        outcomes = env.evaluate_batch(Designs(made.space, large))
        assert outcomes.feasible[0] == (form == "penalised")
        assert (outcomes.objectives[0, 0] > costs.max() + 10) == (form == "penalised")


def test_expectation_of_random_search_counts_weights_and_limits() -> None:
    values = np.array([1.0, 2.0, 3.0, 0.0])
    weights = np.array([1.0, 2.0, 4.0, 3.0])
    facts = weighted_facts(values, weights, np.array([True, True, True, False]))
    assert (facts.optimum, facts.median) == (1.0, 3.0)
    assert facts.feasible == pytest.approx(0.7)
    assert facts.random_evaluations == pytest.approx(10.0)
    assert not facts.counts


def test_facts_of_draws_by_hand() -> None:
    found = sampled_facts(np.array([3.0, np.nan, 5.0, 9.0]), 3.0)
    assert (found.median, found.feasible, found.random_evaluations) == (5.0, 0.75, 4.0)


def test_limits_that_no_draw_keeps_are_refused() -> None:
    with pytest.raises(ValueError, match="none of 4 random designs keeps the limits"):
        sampled_facts(np.full(4, np.nan), None)


def test_weights_of_canonical_designs_are_the_chances_of_a_uniform_draw() -> None:
    space = DesignSpace([Categorical("a", ["x", "y"]), Integer("b", 0, 3, when=param("a") == "x")])
    (designs,) = space.enumerate()
    chances = dict(zip(designs.keys(), uniform_weights(space, designs.codes), strict=True))
    assert sum(chances.values()) == pytest.approx(1.0)
    assert chances[space.designs([{"a": "y"}]).keys()[0]] == 0.5


def test_limits_are_the_widest_that_make_random_search_slow() -> None:
    rng = np.random.default_rng(0)
    goal, limited = rng.random(200_000), {"bits": rng.random(200_000)}
    sound = np.ones(len(goal), dtype=bool)
    facts, limits = choose_limits(goal, np.ones(len(goal)), limited, sound)
    assert facts.random_evaluations is not None
    assert facts.random_evaluations >= 1000
    bound = float(limits[0].split("<=")[1])
    kept = goal[limited["bits"] <= bound]
    near = kept <= kept.min() + 0.01 * (np.median(kept) - kept.min())
    assert facts.random_evaluations == pytest.approx(len(goal) / near.sum(), rel=0.01)
    assert facts.optimum == kept.min()


def test_hypervolume_of_a_front_by_hand() -> None:
    volume = Volume([0.0, 0.0], [2.0, 2.0])
    assert volume(np.array([[1.0, 0.0], [0.0, 1.0]])) == pytest.approx(-0.75)
    assert volume(np.array([[3.0, 0.0]])) == 0.0
    goals = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]])
    facts = pareto_facts(goals, np.ones(3))
    assert facts.optimum == pytest.approx(-0.75)
    assert facts.random_evaluations is not None
    assert 2 <= facts.random_evaluations <= 12  # both of two designs among three: 4.5 expected


# -- statistics ------------------------------------------------------------------------------------


def test_regret_and_hits_by_hand() -> None:
    assert statistics.regret_at(STEPS, 1, 1.0, 5.0) == math.inf
    assert statistics.regret_at(STEPS, 10, 1.0, 5.0) == 0.5
    assert statistics.regret_at(STEPS, 90, 1.0, 5.0) == 0.0
    assert statistics.first_within(STEPS, 0.01, 1.0, 5.0) == 40
    assert statistics.first_within(STEPS[:2], 0.01, 1.0, 5.0) is None


def test_expected_evaluations_by_hand() -> None:
    assert statistics.expected_evaluations([20, None, 60, 400], 100) == (20 + 60 + 200) / 2
    assert statistics.expected_evaluations([None], 100) == math.inf


def test_bootstrap_interval_holds_the_median_and_copes_with_infinity() -> None:
    sample = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
    low, high = statistics.bootstrap_interval(sample)
    assert low in sample
    assert high in sample
    assert low < 0.4 < high
    assert statistics.bootstrap_interval([1.0, 1.0]) == (1.0, 1.0)
    assert statistics.bootstrap_interval([math.inf] * 3) == (math.inf, math.inf)


def test_ranks_share_ties() -> None:
    assert statistics.scaled_ranks({"a": [0.0], "b": [0.0], "c": [2.0]}) == {
        "a": 1.5,
        "b": 1.5,
        "c": 3.0,
    }
    ranks = statistics.scaled_ranks({"a": [0.0, 1.0], "b": [2.0, math.inf]})
    assert ranks == {"a": 1.0, "b": 2.0}


def test_holm_by_hand() -> None:
    assert statistics.holm({"a": 0.01, "b": 0.04, "c": 0.03}) == {"a": 0.03, "b": 0.06, "c": 0.06}


def test_tests_tell_different_samples_and_not_equal_ones() -> None:
    low, high = [0.1 * i for i in range(10)], [5.0 + 0.1 * i for i in range(10)]
    assert statistics.rank_sum(low, high) < 1e-3
    assert statistics.rank_sum([0.0] * 5, [0.0] * 5) == 1.0
    assert statistics.signed_rank(low, high) == pytest.approx(2 / 2**10)
    assert statistics.signed_rank(low, low) == 1.0


# -- runs ------------------------------------------------------------------------------------------


def test_tracker_tells_kinds_of_duplicates_apart() -> None:
    env = environment_of("Tiny", [tiny()])()
    tracker = Tracker(env, 5, dead=["d"])
    for codes in (
        [0, 0, 5, 0, 0],
        [0, 0, 5, 0, 0],
        [1, 0, 5, 0, 0],
        [1, 2, 5, 0, 0],
        [1, 2, 5, 1, 0],
    ):
        tracker.evaluate(codes)
    mark = tracker.result()["marks"]["5"]
    assert (mark["identical"], mark["equivalent"], mark["functional"]) == (1, 2, 3)


class Trained(archgym.Environment):
    """Looks better than it is where it is trained for a tenth of the time."""

    design_space = DesignSpace([Integer("x", 0, 9)])
    metrics: ClassVar = (archgym.Metric("error_rate", ""),)
    default_objective: ClassVar = "minimize error_rate"
    baseline: ClassVar = {"x": 9}
    fidelities = (archgym.Fidelity(0.1, 0.1, "a tenth"), archgym.Fidelity(1.0, 1.0))

    def simulate_batch_at(
        self, designs: Designs, fidelity: float
    ) -> list[tuple[SimulationResult, float]]:
        return [({"error_rate": fidelity * (1.0 + design["x"])}, 0.0) for design in designs]


def test_a_lower_fidelity_counts_by_its_cost_and_gives_no_result() -> None:
    env = Trained()
    tracker = Tracker(env, 3)
    designs = env.design_space.designs([{"x": x} for x in range(10)])
    env.evaluate_batch(designs, 0.1)
    assert (tracker.proposals, tracker.steps) == (1, [])
    env.evaluate_batch(designs[4:6])
    found = tracker.result()
    assert (found["proposals"], found["steps"], found["best"]) == (3, [(2, 5.0)], [4])
    assert found["marks"]["3"]["identical"] == 0


def test_run_is_deterministic_and_counts_its_proposals() -> None:
    first, second = (perform(problem(DEVELOPMENT), FACTS, "ga", 3, 120) for _ in range(2))
    assert first["steps"] == second["steps"]
    assert (first["proposals"], first["best"]) == (120, second["best"])
    assert perform(problem(DEVELOPMENT), FACTS, "ga", 4, 120)["steps"] != first["steps"]
    values = [value for _, value in first["steps"]]
    assert values == sorted(values, reverse=True)


@pytest.mark.parametrize("name", ["ga", "optuna TPE", "pymoo GA"])
def test_shorter_run_is_the_beginning_of_a_longer_one(name: str) -> None:
    if name == "pymoo GA":
        pytest.importorskip("pymoo")
    short, long = (perform(problem(DEVELOPMENT), FACTS, name, 0, n) for n in (30, 60))
    assert short["steps"] == [step for step in long["steps"] if step[0] <= 30]


def test_interrupted_suite_goes_on_where_it_stopped(tmp_path: Path) -> None:
    todo = [Task(DEVELOPMENT, name, seed, 20) for name in ("random", "ga") for seed in (0, 1)]
    facts = {DEVELOPMENT: FACTS}
    assert run_tasks(todo[:3], facts, tmp_path, processes=0) == 3
    path = tmp_path / RUNS
    path.write_bytes(path.read_bytes()[:-20])  # cut off in mid-line
    assert run_tasks(todo, facts, tmp_path, processes=0) == 2
    assert run_tasks(todo, facts, tmp_path, processes=0) == 0
    assert {line["key"] for line in read_runs(tmp_path)} == {task.key for task in todo}
    before = read_runs(tmp_path)
    pack_runs(tmp_path)
    assert not path.exists()
    assert read_runs(tmp_path) == before
    assert run_tasks(todo, facts, tmp_path, processes=0) == 0


def test_failing_contestant_leaves_a_line_and_can_be_tried_again(tmp_path: Path) -> None:
    bad = Task(DEVELOPMENT, "ga", 0, 20, {"population_size": -1})
    line = perform_task(bad, FACTS)
    assert "population_size" in line["error"]
    assert run_tasks([bad], {DEVELOPMENT: FACTS}, tmp_path, processes=0) == 1
    assert run_tasks([bad], {DEVELOPMENT: FACTS}, tmp_path, processes=0) == 0
    assert run_tasks([bad], {DEVELOPMENT: FACTS}, tmp_path, processes=0, retry=True) == 1


def test_summary_ranks_and_finds_what_is_better() -> None:
    def line(contestant: str, seed: int, value: float) -> summary.Line:
        mark = dict.fromkeys([*summary.WASTE, "illegal", "infeasible", "agent_s"], 0.0)
        steps = [[1, 6.0], [50, value + 0.012 * seed]]
        return {
            "key": f"{contestant}{seed}",
            "problem": "p",
            "contestant": contestant,
            "settings": {},
            "steps": steps,
            "marks": {"100": mark},
        }

    lines = [
        line(c, s, v) for c, v in (("random", 4.0), ("ga", 2.0), ("peer", 1.0)) for s in range(9)
    ]
    found = summary.summarise(lines, {"p": FACTS}, {}, frozenset({"ga", "random"}))
    assert found.reference == {100: "ga"}
    assert [one.contestant for one in found.overall[100]] == ["peer", "ga", "random"]
    assert [one.better for one in found.overall[100]] == [("p",), (), ()]
    assert found.overall[100][2].worse == ("p",)
    best = next(cell for cell in found.cells if cell.contestant == "peer")
    assert best.median == pytest.approx(0.012)
    assert (best.within, best.exact) == (4 / 9, 1 / 9)


def test_best_ever_found_is_kept_and_only_gets_better(tmp_path: Path) -> None:
    def line(*values: float) -> summary.Line:
        steps = [[i + 1, value] for i, value in enumerate(values)]
        return {"key": "k", "problem": "p", "fingerprint": "f", "steps": steps, "best": [0]}

    assert update_best(tmp_path, [line(9.0, 7.0), line()]) == {"p": 7.0}
    assert update_best(tmp_path, [line(8.0)]) == {"p": 7.0}
    assert update_best(tmp_path, [line(6.0)]) == {"p": 6.0}
    assert update_best(tmp_path, [{**line(9.0), "fingerprint": "g"}]) == {"p": 9.0}


def test_plan_gives_every_run_once_and_slow_ones_less() -> None:
    names = [name for name in suite() if name.startswith("nk")]
    planned = list(tasks(FULL, names, ["ga", "bayesian", "skopt gp_minimize"]))
    assert len({task.key for task in planned}) == len(planned)
    plain = [task for task in planned if not task.settings]
    count = {n: sum(task.contestant == n for task in plain) for n in ("ga", "bayesian")}
    assert count == {"ga": 100, "bayesian": 100}
    assert {task.budget for task in plain if task.contestant == "ga"} == {1000}
    assert sum(task.budget == 300 for task in plain if task.contestant == "bayesian") == 5
    assert {t.problem for t in plain if t.contestant == "skopt gp_minimize"} == {"nk-9001"}
    asked_for = Size(seeds=1, slow_seeds=(1, 1), slowest_everywhere=True)
    assert {t.problem for t in tasks(asked_for, names, ["skopt gp_minimize"])} == set(names)
    assert not list(tasks(Size(problems=("none",)), names, ["ga"]))
    everywhere = [name for name in suite() if not name.startswith("table")]
    portfolio = list(tasks(FULL, everywhere, ["auto"]))
    assert sum(task.problem == "nk-9002" for task in portfolio) == 20
    assert sum(task.problem == "dram-xz" for task in portfolio) == 5
    assert [task.problem for task in portfolio if task.budget == 1000] == ["nk-9001"] * 5
    assert {task.budget for task in portfolio} == {300, 1000}


def test_lists_of_agents_name_agents_that_are_there() -> None:
    assert set(SLOW_AGENTS | SLOWEST_AGENTS | BOUNDED_AGENTS) <= set(agent_names())
    assert set(LEARNERS | DEAR.keys()) <= set(contestants())


def test_grids_hold_only_settings_that_agents_have() -> None:
    assert set(GRIDS) <= set(agent_names()) <= set(contestants())
    for agent, grid in GRIDS.items():
        for settings in grid:
            agent_class(agent).check_hyperparameters(settings)
