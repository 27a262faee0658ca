"""What every registered agent must do, on every family of environments; and the table itself."""

from __future__ import annotations

import inspect
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
import pytest
from pydantic import Field

import archgym
from archgym import agent
from archgym.agent import Agent
from archgym.agents.common.unseen import Unseen
from archgym.check import CheckResult, check
from archgym.check.agents import FAMILIES, agent_check_names, check_agent, trajectories
from archgym.check.agents.agent_under_test import evaluations_of, subject_of
from archgym.check.result import chosen_names
from archgym.environment.environment import Environment
from archgym.errors import AgentUnsuitableError, InvalidValueError, UnknownNameError
from archgym.evaluation.outcome import Outcomes
from archgym.registry import agent_class, agent_names
from archgym.space import Designs, UnitCubeEncoding

AGENTS = agent_names()
SLOW_AGENTS = {
    "a2c",
    "active",
    "bayesian",
    "botorch",
    "dqn",
    "hyperband",
    "maskable_ppo",
    "optuna",
    "sac",
}
LATER_FAMILIES = {"cpu", "fpga", "gpu", "llm", "llm device", "llm serving", "soc"}
SLOW_FAMILIES = {"accelerator", "dram", "nas", "tpe"}
EVERYWHERE = {"auto", "ga", "local", "random"}
"""Agents that meet every family in the short tests."""
BOTORCH_CHECKS = {"search mixed", "resume mixed", "search limits", "seeds", "tell", "in flight"}
"""Those that ``botorch``, the slowest by far, meets before the nightly tests."""
CHECKS = [name for name in agent_check_names() if name != "processes"]
# So that learning takes place, but little of it, within the few designs that a check evaluates.
QUICK = {
    "rollout": 8,
    "n_envs": 2,
    "n_epochs": 1,
    "epochs": 1,
    "learning_starts": 4,
    "trees": 10,
    "candidates": 100,
}
QUICK_LEARNERS = {**QUICK, "batch_size": 8}


def quick(name: str) -> dict[str, Any]:
    fields = agent_class(name).Hyperparameters.model_fields
    values = QUICK_LEARNERS if "learning_rate" in fields else QUICK
    return {field: value for field, value in values.items() if field in fields}


def conformance_cases() -> Iterator[Any]:
    """Each check of each agent; most agents meet most environments in the tests of `full`."""
    for check_name, name in itertools.product(CHECKS, AGENTS):
        family = check_name.partition(" ")[2]
        again = check_name.startswith("resume ") and family in SLOW_FAMILIES
        long = check_name == "direction" and name in {"auto", "gp"}
        later = name in SLOW_AGENTS or long or (again and name not in EVERYWHERE)
        marks = [pytest.mark.full] if later else []
        if (
            (family in LATER_FAMILIES and name not in EVERYWHERE)
            or (family in SLOW_FAMILIES and name in SLOW_AGENTS)
            or (name == "botorch" and check_name not in BOTORCH_CHECKS)
        ):
            marks = [pytest.mark.nightly]
        yield pytest.param(check_name, name, marks=marks)


@pytest.mark.parametrize(("check_name", "name"), [*conformance_cases()])
def test_registered_agent_conforms(name: str, check_name: str) -> None:
    (result,) = check_agent(name, only=[check_name], **quick(name))
    assert result.passed, result.detail
    assert result.detail


@pytest.mark.parametrize("name", AGENTS)
def test_agent_is_registered_under_its_name(name: str) -> None:
    assert agent_class(name).name == name


def in_another_process(code: str, given: Any) -> Any:
    """What a program prints as JSON last, of what it is given, with other hashes of strings."""
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(given)],
        env={**os.environ, "PYTHONHASHSEED": "77"},
        capture_output=True,
        text=True,
        check=True,
        timeout=500,
    )
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.full
def test_trajectories_are_equal_in_another_process() -> None:
    """Each agent on one family, others in turn; the full test has all families for each."""
    code = (
        "import json, sys\n"
        "from archgym.check.agents import FAMILIES\n"
        "from archgym.check.agents.agent_under_test import evaluations_of, subject_of\n"
        "print(json.dumps([evaluations_of(subject_of(name, values), FAMILIES[family], seed=5)\n"
        "                  for name, values, family in json.loads(sys.argv[1])]))\n"
    )
    given, here = [], []
    for number, name in enumerate(AGENTS):
        for family in [(number + step) % len(FAMILIES) for step in range(len(FAMILIES))]:
            try:
                here.append(evaluations_of(subject_of(name, quick(name)), FAMILIES[family], seed=5))
            except AgentUnsuitableError:
                continue
            given.append((name, quick(name), family))
            break
    assert [name for name, _, _ in given] == list(AGENTS)
    there = in_another_process(code, given)
    for case, one, other in zip(given, json.loads(json.dumps(here)), there, strict=True):
        assert one == other, case


@pytest.mark.nightly
def test_all_trajectories_are_equal_in_another_process() -> None:
    code = (
        "import json, sys\n"
        "from archgym.check.agents import trajectories\n"
        "given = json.loads(sys.argv[1])\n"
        "print(json.dumps({name: trajectories(name, values) for name, values in given.items()}))\n"
    )
    given = {name: quick(name) for name in AGENTS}
    there = in_another_process(code, given)
    for name in AGENTS:
        assert there[name] == json.loads(json.dumps(trajectories(name, given[name]))), name


def test_every_registered_environment_is_in_the_table() -> None:
    # In another process: tests before this one may have registered some of their own.
    code = "import json, archgym.registry as r; print(json.dumps(list(r.environment_names())))"
    ours = {name for name in in_another_process(code, {}) if name.endswith("-v0")}
    assert ours == {family.environment for family in FAMILIES}


# -- the table itself --------------------------------------------------------------------------


class Plain(agent.Sampler):
    """A random search with nothing wrong; the agents below are it with one fault each."""

    name: ClassVar[str] = "plain"

    class Hyperparameters(agent.Hyperparameters):
        size: int = Field(1, ge=1, le=64, description="designs at once")

    def setup(self) -> None:
        self.unseen = Unseen(self.space, self.rng)

    def ask(self, n: int) -> Designs:
        return self.unseen.take(n)

    def tell(self, designs: Designs, outcomes: Outcomes) -> None:
        self.unseen.add(designs)


class Repeats(Plain):
    def ask(self, n: int) -> Designs:
        return self.space.sample(n, self.rng)


class Stingy(Plain):
    def ask(self, n: int) -> Designs:
        return super().ask(-(-n // 2))


class Nothing(Plain):
    def ask(self, n: int) -> Any:
        return None


class Global(Plain):
    def setup(self) -> None:
        seed = int(np.random.randint(1 << 30))  # noqa: NPY002
        self.unseen = Unseen(self.space, np.random.default_rng(seed))


class Deaf(Plain):
    def setup(self) -> None:
        self.unseen = Unseen(self.space, np.random.default_rng(0))


class Lazy(Plain):
    def ask(self, n: int) -> Designs:
        return super().ask(n) if len(self.unseen) < 20 else self.space.designs(())


class Lawless(Plain):
    def ask(self, n: int) -> Designs:
        encoding = UnitCubeEncoding(self.space)
        return encoding.decode(self.rng.random((n, len(encoding.free))))


class Forgetful(Plain):
    def tell(self, designs: Designs, outcomes: Outcomes) -> None:
        pass


class Fragile(Plain):
    def tell(self, designs: Designs, outcomes: Outcomes) -> None:
        super().tell(designs, outcomes)
        if not np.isfinite(outcomes.objectives).all():
            raise ZeroDivisionError


class Narrow(Plain):
    def ask(self, n: int) -> Designs:
        def low(n: int, failures: int) -> Designs:
            codes = self.space.sample(8 * n, self.rng).codes.copy()
            codes[:, 0] = 0
            return Designs(self.space, codes)

        return self.unseen.take(n, low)


class Listing(Plain):
    """Proposes mappings instead of designs, as the guide allows."""

    def ask(self, n: int) -> Any:
        return list(self.unseen.take(n))


class Backwards(Plain):
    """Takes a small reward for a good one: it stays near the worst design."""

    def setup(self) -> None:
        super().setup()
        self.worst: Any = None
        self.least = np.inf

    def ask(self, n: int) -> Designs:
        if self.worst is None:
            return super().ask(n)
        return self.unseen.take(n, lambda n, failures: self.space.neighbours(self.worst))

    def tell(self, designs: Designs, outcomes: Outcomes) -> None:
        super().tell(designs, outcomes)
        for design, reward in zip(designs, outcomes.reward, strict=True):
            if -1 < reward < self.least:
                self.worst, self.least = design, reward


class Mistaken(Plain):
    def tell(self, designs: Designs, outcomes: Outcomes) -> None:
        self.seen: dict[str, int] = {}
        self.seen["nothing"] += 1


class Slack(Plain):
    class Hyperparameters(agent.Hyperparameters):
        size: int = 1


class Picky(Plain):
    def setup(self) -> None:
        raise AgentUnsuitableError("this agent suits nothing that there is")


class SingleGoal(Plain):
    def setup(self) -> None:
        if len(self.directions) > 1:
            raise AgentUnsuitableError("this agent searches one goal only")
        super().setup()


class Resumes(Plain):
    starts: ClassVar[list[int]] = []

    def setup(self) -> None:
        self.starts.append(1)
        self.unseen = Unseen(self.space, np.random.default_rng(len(self.starts)))


class Drives(Agent):
    """Drives the environment itself, with repeats."""

    name: ClassVar[str] = "drives"

    def run(self, env: Environment, initial: Designs) -> None:
        while True:
            if len(initial):
                env.evaluate_batch(initial)
            initial = self.space.sample(4, self.rng)


def failed(target: type[Agent], only: Sequence[str] = CHECKS) -> set[str]:
    return {result.name for result in check_agent(target, only=only) if not result.passed}


@pytest.mark.parametrize("good", [Plain, SingleGoal, Drives])
def test_good_agents_pass(good: type[Agent]) -> None:
    assert failed(good) == set()


@pytest.mark.parametrize(
    ("bad", "found_by"),
    [
        (Stingy, "ask"),
        (Repeats, "small space"),
        (Repeats, "exhausted space"),
        (Global, "seeds"),
        (Deaf, "seeds"),
        (Lazy, "search mixed"),
        (Lazy, "search dram"),
        (Forgetful, "warm start"),
        (Forgetful, "exhausted space"),
        (Fragile, "all fail"),
        (Fragile, "some fail"),
        (Narrow, "every value"),
        (Slack, "hyperparameters"),
        (Backwards, "direction"),
        (Picky, "suitable"),
        (Resumes, "resume mixed"),
    ],
)
def test_faults_are_found(bad: type[Agent], found_by: str) -> None:
    assert failed(bad, [found_by]) == {found_by}


def test_mappings_are_checked_as_designs_are() -> None:
    assert failed(Listing, ["ask", "tell", "exhausted space", "direction", "in flight"]) == set()


def test_an_error_of_the_agent_is_told_with_its_place() -> None:
    (result,) = check_agent(Mistaken, only=["seeds"])
    line = inspect.getsourcelines(Mistaken.tell)[1] + 2
    assert result.detail == f"KeyError: 'nothing' (test_conformance.py:{line}, in tell)"


@pytest.mark.parametrize(("bad", "required"), [(Lawless, False), (Lazy, True)])
def test_what_costs_no_budget_is_not_required(bad: type[Agent], required: bool) -> None:
    (result,) = check_agent(bad, only=["search mixed"])
    assert not result.passed
    assert result.required is required


def test_refusals_are_told_apart() -> None:
    (result,) = check_agent(SingleGoal, only=["search two goals"])
    assert result.passed
    assert result.detail == "refused: this agent searches one goal only"


@pytest.mark.full
def test_processes_of_one_agent_are_compared() -> None:
    (result,) = check_agent("archgym.agents.random:RandomSearch", only=["processes"])
    assert result.passed
    assert result.detail == f"{len(FAMILIES)} environments"


def test_unknown_checks_and_agents() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'seeds'"):
        check_agent("random", only=["seed"])
    (result,) = check_agent("rndom")
    assert (result.name, result.passed) == ("can be loaded", False)
    assert "Did you mean 'random'" in result.detail


def test_the_first_words_of_checks_choose_all_of_them() -> None:
    names = ["search finite", "search dram", "seeds", "small space"]
    assert chosen_names(["search", "seeds"], names, "agents") == names[:3]
    assert chosen_names(["search dram"], names, "agents") == ["search dram"]
    with pytest.raises(UnknownNameError, match="sear"):
        chosen_names(["sear"], names, "agents")


def test_results_are_handed_on_as_they_come() -> None:
    seen: list[CheckResult] = []
    assert check("random", only=["seeds", "prefix"], on_result=seen.append) == seen
    assert [result.name for result in seen] == ["prefix", "seeds"], "the order of the table"


def test_an_agent_that_returns_no_designs_is_told_so() -> None:
    env = archgym.make("Conformance-v0")
    agent = Nothing(env.design_space)
    with pytest.raises(InvalidValueError, match="ask returned NoneType, not designs"):
        agent.search(env, 5)
    wrong: Any = env
    with pytest.raises(InvalidValueError, match="such as env"):
        Nothing(wrong)


def test_check_takes_agents_and_environments() -> None:
    names = [result.name for result in check("random", only=["seeds"])]
    assert names == ["seeds"]
    path = "archgym.agents.random:RandomSearch"
    assert [result.name for result in check(path, only=["seeds"])] == ["seeds"]
    assert "gymnasium" in [result.name for result in check("Conformance-v0")]
    with pytest.raises(UnknownNameError, match="Did you mean 'random'"):
        check("randm")


def test_a_name_that_search_assigns_is_not_free_for_others() -> None:
    class Drawer(agent.Sampler):
        """Draws designs, and keeps something of its own under a name that is taken."""

        name = "drawer"

        def setup(self) -> None:
            self.spread = np.full(3, 0.3)  # type: ignore[assignment]

        def ask(self, n: int) -> Designs:
            return self.space.sample(n, self.rng)

        def tell(self, designs: Designs, outcomes: Outcomes) -> None:
            pass

    env = archgym.make("Conformance-v0")
    with pytest.raises(InvalidValueError, match=r"'drawer': search sets self\.spread"):
        Drawer(env.design_space).search(env, budget=3)
