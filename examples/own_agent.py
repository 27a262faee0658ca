"""A search algorithm of your own: ask and tell, a hyperparameter, checks, a comparison.

Run it with ``python examples/own_agent.py``. It takes about 10 seconds on one core.
"""

import numpy as np
from pydantic import Field

import archgym
from archgym.agent import Hyperparameters, Sampler
from archgym.agents.common.unseen import Unseen
from archgym.check import check_agent


class NearTheBest(Sampler):
    """Evaluates random designs first, then neighbours of the best design so far."""

    name = "near_the_best"

    class Hyperparameters(Hyperparameters):
        """A hyperparameter has a type, a default, bounds and a description."""

        start: int = Field(10, ge=1, le=10_000, description="random designs at the start")

    def setup(self):
        """Prepares the search; called once, at the end of the constructor."""
        self.unseen = Unseen(self.space, self.rng)  # proposes no design twice
        self.best, self.best_reward, self.evaluated = None, -np.inf, 0

    def ask(self, n):
        """Returns up to n designs to evaluate next."""
        if self.best is None or self.evaluated < self.hyperparameters.start:
            return self.unseen.take(n)
        return self.unseen.take(n, self.neighbours)

    def neighbours(self, n, failures):
        """Designs that differ from the best one in one parameter, in random order."""
        near = self.space.neighbours(self.best)
        return near[self.rng.permutation(len(near))]

    def tell(self, designs, outcomes):
        """Takes in the outcomes of designs. A larger reward is a better design."""
        self.unseen.add(designs)
        self.evaluated += len(designs)
        for design, reward in zip(designs, outcomes.reward, strict=True):
            if reward > self.best_reward:
                self.best, self.best_reward = design, reward


# Some of the checks that every agent of archgym passes; without `only`, all of them run.
results = check_agent(NearTheBest, only=["seeds", "tell", "small space", "exhausted space"])
for check in results:
    print(f"check {check.name}: {'passed' if check.passed else 'FAILED: ' + check.detail}")

# Registered, it has a name in experiments, in `archgym list` and in make_agent. The table holds
# every design of this space, so that the distance to the optimum (the regret) is known.
archgym.register_agent("near_the_best", NearTheBest)
env = archgym.make(
    "DRAM-v0", simulator="tabular:dram-archgym-sort", objective="minimize read_latency_mean_ns"
)
median = {}
for name in ("random", "near_the_best"):
    regrets = []
    for seed in range(5):
        agent = archgym.make_agent(name, env.design_space, seed=seed)
        regrets.append(agent.search(env, budget=150).regret)
    median[name] = float(np.median(regrets))
    shown = ", ".join(f"{regret:.2%}" for regret in regrets)
    print(f"{name}: above the optimum by {shown}; median {median[name]:.2%}")
print("better in the median:", min(median, key=median.get))
