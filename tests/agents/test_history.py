"""What agents make of earlier searches."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import archgym
from archgym import Metric
from archgym.agents.auto import Auto
from archgym.agents.gp.search import GaussianProcessSearch
from archgym.evaluation.outcome import Outcomes
from archgym.history import History, HistorySource
from archgym.history.transfer import transferred
from archgym.registry import agent_names, make_agent
from archgym.space import Categorical, DesignSpace, Integer

SPACE = DesignSpace(
    [Integer(f"x{i}", 0, 9, doc="a coordinate") for i in range(4)]
    + [Categorical("kind", ["a", "b", "c", "d", "e", "f"], doc="a way")]
)


class Bowl(archgym.Environment):
    """A bowl whose lowest point is moved, on the b side."""

    version = "1"
    design_space = SPACE
    metrics = (Metric("time_ns", "ns", doc="how long it takes"),)
    baseline = {"x0": 0, "x1": 0, "x2": 0, "x3": 9, "kind": "f"}  # noqa: RUF012
    default_objective = "minimize time_ns"

    def __init__(
        self, centre: tuple[int, ...] = (3, 5, 2, 7), kind: str = "b", **kw: object
    ) -> None:
        self.centre, self.kind = centre, kind
        super().__init__(**kw)  # type: ignore[arg-type]

    @property
    def settings(self) -> dict[str, object]:
        return {"centre": self.centre, "kind": self.kind}

    def simulate(self, design):  # type: ignore[no-untyped-def]
        far = sum((design[f"x{i}"] - c) ** 2 for i, c in enumerate(self.centre))
        return {"time_ns": 10.0 + far + 20.0 * (design["kind"] != self.kind)}


def searched(env: archgym.Environment, n: int = 80, seed: int = 0) -> Outcomes:
    designs = env.design_space.sample(n, np.random.default_rng(seed))
    return env.evaluate_batch(designs)


def source(outcomes: Outcomes, of: archgym.Environment, env: archgym.Environment) -> HistorySource:
    baseline = of.baseline_metrics
    scored = transferred(outcomes.designs, outcomes.metrics, outcomes.status, baseline, env)
    return HistorySource("earlier", scored)


def opposite(told: Outcomes) -> NDArray[np.int64]:
    """An order that gives the best design what the worst one has, and so on."""
    ranked = told.reward.argsort(kind="stable")
    order = np.empty_like(ranked)
    order[ranked] = ranked[::-1]
    return order


def spoilt(told: Outcomes, order: NDArray[np.int64]) -> HistorySource:
    """A source each of whose designs has what another one was found to have."""
    metrics, status, baseline = told.metrics[order], told.status[order], Bowl().baseline_metrics
    return HistorySource("spoilt", transferred(told.designs, metrics, status, baseline, Bowl()))


def evaluations(env: archgym.Environment, agent: str, history: History | None, seed: int) -> int:
    """Until the best design, or one more than the budget."""
    result = make_agent(agent, env.design_space, seed=seed).search(env, 60, history=history)
    assert result.best is not None
    return result.best_at if result.best.metrics["time_ns"] == 10.0 else 61


@pytest.mark.parametrize("agent", ["auto", "gp", pytest.param("bayesian", marks=pytest.mark.full)])
def test_a_neighbouring_problem_shortens_the_search(agent: str) -> None:
    """The lowest point is one step aside, and none of the earlier designs is there."""
    before = Bowl(centre=(3, 5, 2, 6))
    history = History((source(searched(before), before, Bowl()),))
    cold = [evaluations(Bowl(), agent, None, seed) for seed in (1, 2, 3)]
    warm = [evaluations(Bowl(), agent, history, seed) for seed in (1, 2, 3)]
    assert sum(warm) < 0.8 * sum(cold), (warm, cold)


def test_what_is_predicted_is_not_only_what_was_found() -> None:
    """The first designs are good ones, but models go on to designs that nobody has evaluated."""
    before = Bowl()
    outcomes = searched(before, 120)
    history = History((source(outcomes, before, Bowl()),))
    assert outcomes.metrics[:, 0].min() > 10.0
    assert evaluations(Bowl(), "auto", history, 1) <= 20


def test_how_well_history_foresees_what_is_found() -> None:
    """A right one fully, on any scale; a reversed one not at all; none before ten designs."""
    told, here = searched(Bowl()), Bowl()
    right = transferred(told.designs, 3.0 * told.metrics, told.status, here.baseline_metrics, here)
    shares = {}
    for name, one in [
        ("right", HistorySource("right", right)),
        ("reversed", spoilt(told, opposite(told))),
    ]:
        agent = GaussianProcessSearch(SPACE, ("minimize",), seed=1)
        assert agent.agreement == 0.0
        agent.recall(History((one,)))
        found = []
        for part in (searched(here, 9, seed=1), searched(here, 12, seed=2)):
            agent.tell(part.designs, part)
            found.append(agent.agreement)
        shares[name] = found
    assert shares == {"right": [0.0, 1.0], "reversed": [0.0, 0.0]}


def proposed_first(agent: str, history: History | None, n: int) -> list[dict[str, object]]:
    """The first designs that a search evaluates."""
    env, seen = Bowl(), list[dict[str, object]]()
    env.on_evaluated = lambda outcomes: seen.extend(dict(one) for one in outcomes.designs)
    make_agent(agent, env.design_space, seed=1).search(env, n, history=history)
    return seen[:n]


def centred(centre: tuple[int, int, int, int]) -> HistorySource:
    """A source that knows random designs and the best one of a bowl."""
    before = Bowl(centre=centre)
    best = before.design_space.designs(
        [{**{f"x{i}": c for i, c in enumerate(centre)}, "kind": "b"}]
    )
    drawn = before.design_space.sample(80, np.random.default_rng(0))
    return source(before.evaluate_batch(best.concatenate(drawn)), before, Bowl())


@pytest.mark.parametrize("agent", ["auto", "gp"])
def test_the_best_designs_of_sources_are_combined(agent: str) -> None:
    """Each source is wrong in another coordinate, so two of three are right in each."""
    centres = [(9, 5, 2, 7), (3, 0, 2, 7), (3, 5, 8, 7)]
    first = proposed_first(agent, History(tuple(map(centred, centres))), 5)
    found = [tuple(design[f"x{i}"] for i in range(4)) for design in first]
    assert set(centres) <= set(found)
    assert (3, 5, 2, 7) in found


@pytest.mark.parametrize("agent", ["auto", "gp", "bayesian"])
@pytest.mark.parametrize("n_sources", [1, 2, 6])
def test_the_first_designs_are_distinct_and_legal(agent: str, n_sources: int) -> None:
    centres = [(one, 5, 2, 9 - one) for one in range(n_sources)]
    env, history = Bowl(), History(tuple(map(centred, centres)))
    first = make_agent(agent, env.design_space, seed=1).recall(history)
    assert 1 <= len(first) <= 5
    assert len(set(first.keys())) == len(first)
    assert env.design_space.legal(first).all()


@pytest.mark.parametrize("spoil", ["shuffled", "reversed"])
def test_misleading_history_does_not_hide_the_best_design(spoil: str) -> None:
    before = Bowl()
    told = source(searched(before, 150), before, Bowl()).outcomes
    order = np.random.default_rng(1).permutation(len(told))
    history = History((spoilt(told, order if spoil == "shuffled" else opposite(told)),))
    cold = [evaluations(Bowl(), "auto", None, seed) for seed in (1, 2, 3)]
    warm = [evaluations(Bowl(), "auto", history, seed) for seed in (1, 2, 3)]
    assert np.median(warm) <= 60
    assert np.median(warm) <= 2.5 * np.median(cold), (warm, cold)


@pytest.mark.parametrize("agent", ["auto", "gp"])
def test_a_source_that_contradicts_itself_is_left_out(agent: str) -> None:
    """Of designs with the metrics of others nothing follows; few designs are not judged."""
    before, env = Bowl(), Bowl()
    right = source(searched(before, 60), before, env)
    order = np.random.default_rng(1).permutation(len(right.outcomes))
    wrong = HistorySource("exchanged", spoilt(right.outcomes, order).outcomes)

    def suggested(*sources: HistorySource) -> list[int]:
        return make_agent(agent, env.design_space, seed=1).recall(History(sources)).keys()

    searcher = make_agent(agent, env.design_space, seed=1)
    searcher.recall(History((right, wrong)))
    assert searcher.ignored_sources == (1,)
    assert suggested(wrong) == []
    assert suggested(right) == suggested(right, wrong) != []
    few = source(searched(before, 15), before, env)
    order = np.random.default_rng(1).permutation(len(few.outcomes))
    assert suggested(HistorySource("few", spoilt(few.outcomes, order).outcomes)) != []
    assert proposed_first(agent, History((wrong,)), 20) == proposed_first(agent, None, 20)


@pytest.mark.parametrize("agent", ["auto", "gp"])
def test_one_poor_design_is_enough_to_go_on_without_history(agent: str) -> None:
    """Of what an opposed source suggests, only the first design is evaluated."""
    before = Bowl()
    told = source(searched(before, 150), before, Bowl()).outcomes
    env, history = Bowl(), History((spoilt(told, opposite(told)),))
    suggested = make_agent(agent, env.design_space, seed=1).recall(history)
    assert len(suggested) > 1
    evaluated = env.design_space.designs(proposed_first(agent, history, 30)).keys()
    assert evaluated[0] == suggested.keys()[0]
    assert not set(evaluated[1:]) & set(suggested.keys())


def test_what_is_found_soon_says_as_much_as_history() -> None:
    """From the tenth design on, a model that ignores a right history has as many turns."""
    before, env = Bowl(), Bowl()
    history = History((source(searched(before, 60), before, env),))
    agent = Auto(env.design_space, ("minimize",), 1)
    first = agent.recall(history)
    assert agent.odds == {"gp": 1, "second gp": 0, "third gp": 0, "local": 0, "ga": 0}
    told = env.evaluate_batch(first)
    agent.tell(told.designs, told)
    for _ in range(10 - len(first)):
        told = env.evaluate_batch(agent.ask(1))
        agent.tell(told.designs, told)
    odds = agent.odds
    assert odds["gp"] == odds["second gp"] > 0.3
    assert sum(odds.values()) == pytest.approx(1)


@pytest.mark.parametrize("agent", ["auto", "gp"])
def test_a_harder_problem_does_not_discredit_its_history(agent: str) -> None:
    """All designs are slower than any known one, and the best are still the best."""

    class Harder(Bowl):
        def simulate(self, design):  # type: ignore[no-untyped-def]
            slow = super().simulate(design)["time_ns"]  # type: ignore[no-untyped-call]
            return {"time_ns": slow if design == self.baseline else 50.0 * slow}

    env, before, seen = Harder(), Bowl(), list[int]()
    outcomes = searched(before, 150)
    history = History((source(outcomes, before, env),))
    env.on_evaluated = lambda outcomes: seen.extend(outcomes.designs.keys())
    searcher = make_agent(agent, env.design_space, seed=1)
    suggested = make_agent(agent, env.design_space, seed=1).recall(history).keys()
    searcher.search(env, 6, history=history)
    assert set(suggested) <= set(seen)


@pytest.mark.parametrize("agent", agent_names())
def test_every_agent_takes_history(agent: str) -> None:
    before, env = Bowl(centre=(3, 5, 2, 6)), Bowl()
    history = History((source(searched(before), before, env),))
    best = history.start(1)
    searcher = make_agent(agent, env.design_space, seed=1)
    seen: list[Outcomes] = []
    env.on_evaluated = seen.append
    searcher.search(env, 20, history=history)
    keys = [key for part in seen for key in list(part.designs.keys())]
    assert best.keys()[0] in keys[:12], "the best earlier design is not among the first"


def test_the_same_history_and_seed_give_the_same_search() -> None:
    before = Bowl(centre=(3, 5, 2, 6))
    history = History((source(searched(before), before, Bowl()),))

    def proposals() -> list[int]:
        env, seen = Bowl(), list[int]()
        env.on_evaluated = lambda outcomes: seen.extend(outcomes.designs.keys())
        make_agent("auto", env.design_space, seed=5).search(env, 40, history=history)
        return seen

    assert proposals() == proposals()


def test_sources_that_say_nothing_are_left_out() -> None:
    env = Bowl()
    outcomes = searched(env, 3)
    history = History((HistorySource("few", outcomes),))
    assert len(make_agent("gp", env.design_space, seed=1).recall(history)) == 0
    assert make_agent("auto", env.design_space, seed=1).search(env, 15, history=history).best


def test_metrics_are_scaled_by_the_baselines() -> None:
    """A limit transfers too: half of the baseline's time was half, and is half."""
    slow = Bowl()
    env = Bowl(objective={"minimize": "time_ns", "limits": ["time_ns <= 60"]})
    outcomes = searched(slow, 40)
    tenfold = transferred(
        outcomes.designs, 10 * outcomes.metrics, outcomes.status, 10 * slow.baseline_metrics, env
    )
    now = env.evaluate_batch(outcomes.designs)
    np.testing.assert_allclose(tenfold.metrics, now.metrics)
    np.testing.assert_array_equal(tenfold.feasible, now.feasible)
    np.testing.assert_allclose(tenfold.costs, now.costs, atol=1e-12)
