"""A searcher that hears of what others found only where that does not lead it astray."""

from __future__ import annotations

import pytest

import archgym
from archgym import agent
from archgym.agents.common.uninfluenced import Uninfluenced
from archgym.evaluation.outcome import Outcomes
from archgym.space import Designs, DesignSpace, Integer

SPACE = DesignSpace([Integer("x", 1, 40, doc="a number")])


class Line(archgym.Environment):
    """The larger, the slower."""

    version = "1"
    design_space = SPACE
    metrics = (archgym.Metric("time_ns", "ns", doc="how long it takes"),)
    baseline = {"x": 20}  # noqa: RUF012
    default_objective = "minimize time_ns"

    def simulate(self, design):  # type: ignore[no-untyped-def]
        return {"time_ns": float(design["x"])}


class Recorder(agent.Sampler):
    """Asks for given designs, and keeps what it is told."""

    name = "recorder"

    def setup(self) -> None:
        self.plan: list[int] = []
        self.heard: list[int] = []

    def ask(self, n: int) -> Designs:
        return self.space.designs([{"x": self.plan.pop(0)} for _ in self.plan[:n]])

    def tell(self, designs: Designs, outcomes: Outcomes) -> None:
        self.heard += [int(design["x"]) for design in designs]


def outcomes(*xs: int) -> Outcomes:
    return Line().evaluate_batch(SPACE.designs([{"x": x} for x in xs]))


@pytest.fixture
def recorder() -> Recorder:
    return Recorder(SPACE, ("minimize",), 0)


def test_it_never_hears_of_what_is_better_than_its_own(recorder: Recorder) -> None:
    apart = Uninfluenced(recorder, 1)
    apart.tell(outcomes(30, 5, 35), {0}, others_led=False)
    assert recorder.heard == [30, 35]
    apart.tell(outcomes(10), {0}, others_led=False)
    apart.tell(outcomes(12), set(), others_led=False)
    assert recorder.heard == [30, 35, 10, 12]
    apart.tell(outcomes(4), {0}, others_led=False)
    assert recorder.heard == [30, 35, 10, 12, 4, 5], "5 is no better than its own now"


def test_it_begins_with_designs_of_its_own(recorder: Recorder) -> None:
    apart = Uninfluenced(recorder, 2)
    apart.tell(outcomes(20, 30), {0}, others_led=False)
    assert recorder.heard == [20]
    apart.tell(outcomes(21), {0}, others_led=False)
    assert recorder.heard == [20, 21, 30]


def test_it_hears_of_no_others_while_these_are_led(recorder: Recorder) -> None:
    apart = Uninfluenced(recorder, 1)
    apart.tell(outcomes(20, 30), {0}, others_led=True)
    assert recorder.heard == [20]
    apart.tell(outcomes(25), set(), others_led=False)
    assert sorted(recorder.heard) == [20, 25, 30]


def test_what_it_proposes_itself_it_hears_of(recorder: Recorder) -> None:
    apart = Uninfluenced(recorder, 1)
    apart.tell(outcomes(20, 5), {0}, others_led=True)
    recorder.plan = [5, 20, 7]
    assert [dict(design) for design in apart.ask()] == [{"x": 7}]
    assert recorder.heard == [20, 5, 20]
    assert len(apart.ask()) == 0
