"""What learning brings on the full DRAM space: a learner's late proposals against random ones.

Each learner, and random search, makes 5,000 proposals on the problems ``dram-*`` of
:mod:`benchmarks.search_quality` (energy under a limit of latency). Compared are the mean reward of
the last 500 proposals, which counts goal and limits (the mean goal alone favours designs that break
the limits), whether they keep the limits, and the best design that does. Bars: the mean reward of
the last 500 is higher than random search's, by Wilcoxon's rank-sum test over the seeds, and the
best design is not significantly worse.

    python -m benchmarks.learning_quality [--agents ppo ippo] [--seeds 5] [--proposals 5000]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from archgym.errors import BudgetExhausted
from archgym.evaluation.outcome import Outcomes
from archgym.registry import make_agent
from benchmarks.search_quality.__main__ import FOLDER
from benchmarks.search_quality.problems import DRAM_LIMITS, problem, read_facts
from benchmarks.search_quality.statistics import rank_sum

LATE = 500


def search(name: str, workload: str, seed: int, proposals: int, folder: Path) -> tuple[float, ...]:
    """Mean reward of the last proposals, the share that keeps the limits, the best goal."""
    chosen = problem(f"dram-{workload}")
    env = chosen.make_environment(read_facts(chosen, folder))
    goals: list[float] = []
    rewards: list[float] = []
    kept: list[bool] = []

    def watch(outcomes: Outcomes) -> None:
        goals.extend(outcomes.objectives[:, 0].tolist())
        rewards.extend(outcomes.reward.tolist())
        kept.extend(outcomes.feasible.tolist())
        if len(goals) >= proposals:
            raise BudgetExhausted("as many as wanted")

    agent = make_agent(name, env.design_space, seed=seed)
    env.start_trial()
    env.on_evaluated = watch
    try:
        agent.run(env, env.design_space.designs(()))
    except BudgetExhausted:
        pass
    finally:
        env.close()
    values, good = np.array(goals[:proposals]), np.array(kept[:proposals])
    best = float(values[good].min()) if good.any() else float("inf")
    late = float(np.mean(rewards[:proposals][-LATE:]))
    return late, float(good[-LATE:].mean()), best


def main() -> None:
    """Prints a line for each problem and agent."""
    parser = argparse.ArgumentParser(description="Late proposals of learners against random ones.")
    parser.add_argument("--agents", nargs="+", default=["ppo", "ippo"])
    parser.add_argument("--workloads", nargs="+", default=list(DRAM_LIMITS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--proposals", type=int, default=5000)
    parser.add_argument("--facts", type=Path, default=FOLDER, help="folder of the problems' facts")
    options = parser.parse_args()
    print(
        f"{'problem':12} {'agent':12} {'late reward':>11} {'kept':>6} {'best':>9}"
        "   p(late)  p(best)"
    )
    for workload in options.workloads:
        found: dict[str, NDArray[np.float64]] = {}
        for agent in ("random", *options.agents):
            runs = [
                search(agent, workload, seed, options.proposals, options.facts)
                for seed in range(options.seeds)
            ]
            found[agent] = np.array(runs)
            line = found[agent]
            text = (
                f"{workload:12} {agent:12} {np.median(line[:, 0]):11.3f} "
                f"{line[:, 1].mean():6.1%} {np.median(line[:, 2]):9.3f}"
            )
            if agent != "random":
                late, best = (
                    rank_sum(line[:, i].tolist(), found["random"][:, i].tolist()) for i in (0, 2)
                )
                text += f"   {late:.4f}   {best:.4f}"
            print(text, flush=True)


if __name__ == "__main__":
    main()
