"""Schedulers: rules that no schedule breaks, known answers, brute force, gaps to the optimum."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archgym.envs.nas.schedule import (
    SCHEDULERS,
    SchedulingProblem,
    exact_scheduler,
    hap_scheduler,
    solve,
)
from archgym.errors import InvalidValueError, SpaceTooLargeError, UnknownNameError


def problem_of(latency: Any, energy: Any, lengths: Any) -> SchedulingProblem:
    """Nested lists will do."""
    return SchedulingProblem(latency, energy, lengths)


def random_problem(
    rng: np.random.Generator, lengths: list[int], subs: int, holes: float = 0.0
) -> SchedulingProblem:
    """Whole cycles and energies; a share of the pairs cannot run."""
    layers = sum(lengths)
    latency = rng.integers(1, 20, (layers, subs)).astype(float)
    energy = rng.integers(0, 30, (layers, subs)).astype(float)
    missing = rng.uniform(size=(layers, subs)) < holes
    missing[np.arange(layers), rng.integers(0, subs, layers)] = False
    latency[missing] = energy[missing] = np.inf
    return SchedulingProblem(latency, energy, lengths)


def all_schedules(problem: SchedulingProblem) -> list[tuple[float, float]]:
    """Makespan and energy of every assignment under every interleaving of the networks."""
    layers, subs = problem.latency.shape
    turns = set(
        itertools.permutations([c for c, chain in enumerate(problem.chains) for _ in chain])
    )
    found = []
    for assignment in itertools.product(range(subs), repeat=layers):
        took = problem.latency[np.arange(layers), assignment]
        energy = problem.energy[np.arange(layers), assignment].sum()
        if not np.isfinite(took).all():
            continue
        best = math.inf
        for turn in turns:
            chains = [iter(chain) for chain in problem.chains]
            ready, free = [0.0] * len(chains), [0.0] * subs
            for c in turn:
                layer = next(chains[c])
                sub = assignment[layer]
                ready[c] = free[sub] = max(ready[c], free[sub]) + took[layer]
            best = min(best, max(ready))
        found.append((best, float(energy)))
    return found


problems = st.builds(
    lambda seed, lengths, subs, holes: random_problem(
        np.random.default_rng(seed), lengths, subs, holes
    ),
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(1, 6), min_size=1, max_size=4),
    st.integers(1, 4),
    st.sampled_from([0.0, 0.3]),
)


@settings(max_examples=300, deadline=None)
@given(problems, st.floats(0.0, 1.5), st.sampled_from(["hap", "list"]))
def test_precedence_capacity_and_sums_hold_at_any_limit(
    problem: SchedulingProblem, share: float, scheduler: str
) -> None:
    limit = 1 + share * solve(problem, "hap").makespan
    schedule = solve(problem, scheduler, limit)
    assert problem.violations(schedule) == []
    minimum = problem.latency.min(axis=1)
    assert schedule.makespan >= max(minimum[list(chain)].sum() for chain in problem.chains)
    assert schedule.energy >= problem.energy.min(axis=1).sum()


@settings(max_examples=100, deadline=None)
@given(problems, st.floats(0.5, 1.2))
def test_scaling_time_and_energy_changes_nothing_else(
    problem: SchedulingProblem, share: float
) -> None:
    limit = share * solve(problem, "hap").makespan
    scaled = SchedulingProblem(8 * problem.latency, 4 * problem.energy, problem.lengths)
    a, b = solve(problem, "hap", limit), solve(scaled, "hap", 8 * limit)
    assert b.assignment.tolist() == a.assignment.tolist()
    assert (b.makespan, b.energy) == (8 * a.makespan, 4 * a.energy)


@pytest.mark.parametrize("seed", range(40))
def test_exact_scheduler_agrees_with_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lengths: list[list[int]] = [[2, 2], [3, 2], [1, 1, 2], [4, 1], [3]]
    problem = random_problem(rng, lengths[seed % 5], 2 + seed % 2, holes=0.2 * (seed % 3))
    every = all_schedules(problem)
    fastest = min(makespan for makespan, _ in every)
    assert exact_scheduler.fastest(problem).makespan == fastest
    for limit in sorted({makespan for makespan, _ in every}):
        found = exact_scheduler.solve(problem, limit)
        assert problem.violations(found) == []
        assert found.meets_limit
        assert found.energy == min(energy for makespan, energy in every if makespan <= limit)
    missed = exact_scheduler.solve(problem, fastest - 0.5)
    assert (missed.meets_limit, missed.makespan) == (False, fastest)


@pytest.mark.parametrize("seed", range(30))
def test_no_heuristic_beats_the_exact_scheduler(seed: int) -> None:
    problem = random_problem(np.random.default_rng(seed), [4, 4], 2)
    limit = exact_scheduler.fastest(problem).makespan + seed % 10
    best = exact_scheduler.solve(problem, limit)
    ours = hap_scheduler.solve(problem, limit)
    assert ours.makespan >= exact_scheduler.fastest(problem).makespan
    assert not ours.meets_limit or ours.energy >= best.energy
    assert solve(problem, "list").makespan >= exact_scheduler.fastest(problem).makespan


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_known_answer_of_two_networks_on_two_sub_accelerators(scheduler: str) -> None:
    # Sub-accelerator 0 is fast, 1 thrifty. Everything on 1 takes 12 cycles and 6 nJ. Within 8
    # cycles one layer of the first network has to move (10 nJ more), or both of the second (8).
    problem = problem_of([[2, 4], [2, 4], [1, 2], [1, 2]], [[12, 2]] * 2 + [[5, 1]] * 2, [2, 2])
    schedule = solve(problem, scheduler, 8)
    assert schedule.meets_limit
    if scheduler == "list":
        # The first network, which has more to do, takes 0; both layers of the second fit on 1.
        assert schedule.assignment.tolist() == [0, 0, 1, 1]
        assert schedule.makespan == 4
    else:
        assert schedule.assignment.tolist() == [1, 1, 0, 0]
        assert (schedule.makespan, schedule.energy) == (8, 14)


def test_without_limit_every_layer_is_where_it_takes_the_min_energy() -> None:
    problem = random_problem(np.random.default_rng(3), [6, 5, 4], 3)
    for scheduler in ("hap", "exact"):
        schedule = solve(problem, scheduler)
        assert schedule.energy == problem.energy.min(axis=1).sum()
        assert schedule.meets_limit


def test_a_limit_out_of_reach_gives_the_fastest_schedule_and_says_so() -> None:
    problem = problem_of([[4, 9], [3, 8]], [[7, 1], [6, 1]], [2])
    for scheduler in SCHEDULERS:
        schedule = solve(problem, scheduler, 6)
        assert (schedule.makespan, schedule.meets_limit) == (7, False)
        assert schedule.latency_limit == 6
    assert solve(problem, "hap", 7).meets_limit


def test_a_layer_waits_for_its_network_not_for_others() -> None:
    problem = problem_of([[5], [1], [1]], [[1], [1], [1]], [1, 2])
    schedule = solve(problem, "exact", 7)
    assert schedule.makespan == 7  # one sub-accelerator: the sum, in any order
    apart = problem_of(
        [[5, math.inf], [math.inf, 1], [math.inf, 1]], [[1, math.inf]] + [[math.inf, 1]] * 2, [1, 2]
    )
    assert solve(apart, "hap").makespan == 5


def test_a_cheaper_pair_of_moves_is_found_where_no_single_move_helps() -> None:
    # Within 10 cycles one network has to leave sub-accelerator 0; moving the second is cheaper.
    problem = problem_of([[10, 10], [10, 10]], [[1, 6], [1, 4]], [1, 1])
    schedule = solve(problem, "hap", 10)
    assert schedule.assignment.tolist() == [0, 1]
    assert schedule.energy == 5


def test_energy_gap_to_the_optimum_is_small_over_500_problems() -> None:
    # Two networks of 4 or 5 layers on 2 or 3 sub-accelerators, limits from the fastest makespan
    # to the cheapest assignment's.
    gaps = []
    for seed in range(500):
        rng = np.random.default_rng(seed)
        lengths = rng.integers(4, 5, 2, endpoint=True).tolist()
        drawn = random_problem(rng, lengths, 2 + seed % 2)
        problem = SchedulingProblem(drawn.latency, drawn.energy + 1, lengths)
        fast, cheap = (
            exact_scheduler.fastest(problem).makespan,
            exact_scheduler.solve(problem).makespan,
        )
        limit = float(fast + np.floor(rng.uniform() * (cheap - fast)))
        ours, best = hap_scheduler.solve(problem, limit), exact_scheduler.solve(problem, limit)
        assert problem.violations(ours) == problem.violations(best) == []
        assert best.meets_limit
        if ours.meets_limit:
            gaps.append(ours.energy / best.energy - 1)
    assert len(gaps) >= 490
    assert min(gaps) >= 0
    assert np.mean(gaps) <= 0.05


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (([[1.0]], [[1.0, 2.0]], [1]), "shape"),
        (([[1.0]], [[1.0]], [2]), "lengths"),
        (([[1.0]], [[1.0]], [1, 0]), "lengths"),
        (([[0.0]], [[1.0]], [1]), "latency"),
        (([[math.nan]], [[1.0]], [1]), "latency"),
        (([[1.0]], [[-1.0]], [1]), "energy"),
        (([[math.inf, 1.0]], [[1.0, 1.0]], [1]), "same places"),
        (([[1.0], [math.inf]], [[1.0], [math.inf]], [2]), "layer 1 runs on no"),
    ],
)
def test_problems_that_make_no_sense_are_refused(arguments: Any, match: str) -> None:
    with pytest.raises(InvalidValueError, match=match):
        problem_of(*arguments)


def test_bad_arguments_are_refused() -> None:
    problem = problem_of([[1.0]], [[1.0]], [1])
    with pytest.raises(UnknownNameError, match="'hap'"):
        solve(problem, "happ")
    for limit in (0.0, -1.0, math.nan):
        with pytest.raises(InvalidValueError, match="latency_limit"):
            solve(problem, "hap", limit)
    large = random_problem(np.random.default_rng(0), [6, 6], 3)
    with pytest.raises(SpaceTooLargeError, match="12 layers on 3"):
        exact_scheduler.solve(large, exact_scheduler.fastest(large).makespan + 1, max_nodes=10)


@pytest.mark.parametrize(
    ("field", "value", "match"),
    [
        ("start", [0.0, 0.0, 0.0], "latency"),
        ("assignment", [0, 1, 7], "sub-accelerator"),
        ("makespan", 1.0, "makespan"),
        ("energy", 1.0, "energy"),
        ("meets_limit", False, "meets_limit"),
    ],
)
def test_check_sees_broken_schedules(field: str, value: Any, match: str) -> None:
    problem = problem_of([[2, 5], [3, 1], [4, 4]], [[1, 4], [2, 9], [3, 5]], [2, 1])
    schedule = solve(problem, "hap", 5)
    problem.check(schedule)
    changed = np.asarray(value) if isinstance(value, list) else value
    changes: dict[str, Any] = {field: changed}
    with pytest.raises(InvalidValueError, match=match):
        problem.check(dataclasses.replace(schedule, **changes))


def test_check_sees_overlaps_and_broken_chains() -> None:
    problem = problem_of([[2], [3], [4]], [[1], [1], [1]], [2, 1])
    start = np.array([0.0, 1.0, 20.0])
    chosen, took = np.zeros(3, np.int64), problem.latency[:, 0]
    broken = problem.scheduled(chosen, start, start + took, math.inf)
    assert any("before layer 0 has finished" in text for text in problem.violations(broken))
    start = np.array([0.0, 2.0, 3.0])
    broken = problem.scheduled(chosen, start, start + took, math.inf)
    assert problem.violations(broken) == ["layers 1 and 2 overlap on sub-accelerator 0"]
