"""Designs per second of the agent ``ppo`` against Stable-Baselines3's own PPO.

Both learn with the same settings on the same environment, in turns in one process on one numeric
thread. Stable-Baselines3 gets the environment as it is (``n_envs`` of it in a ``DummyVecEnv``, and
one alone) with recording off; the agent runs with recording on and off. Bar: the agent, with
recording on, reaches at least 70 % of the faster of the two.

    python benchmarks/rl_throughput.py [--designs 4096] [--repeats 3] [--form stepwise]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import DummyVecEnv

import archgym
from archgym.errors import BudgetExhausted
from archgym.evaluation.outcome import Outcomes
from archgym.registry import make_agent
from archgym.views.stepwise import StepwiseView

BAR = 0.7
ENVIRONMENTS: dict[str, dict[str, Any]] = {
    "Conformance-v0": {"space": "finite"},
    "DRAM-v0": {
        "workload": {"recorded": "sort", "requests": 2000},
        "memory": "DDR3-1600",
        "space": "archgym",
    },
}


class Race:
    """One environment, run by both."""

    def __init__(self, name: str, designs: int, form: str, folder: Path) -> None:
        self.name, self.designs, self.form, self.folder = name, designs, form, folder
        self.space = self.make().design_space
        self.steps = len(self.space.free) if form == "stepwise" else 1
        self.agent = make_agent("ppo", self.space, form=form)

    def make(self, record: Path | None = None) -> archgym.Environment:
        return archgym.make(self.name, record=record, **ENVIRONMENTS[self.name])

    def ours(self, record: bool) -> float:
        """Designs a second of the agent."""
        folder = Path(tempfile.mkdtemp(dir=self.folder)) if record else None
        env = self.make(folder)

        def stop(outcomes: Outcomes) -> None:
            if env.evaluator.proposals >= self.designs:
                raise BudgetExhausted("as many as wanted")

        env.on_evaluated = stop
        agent = make_agent("ppo", self.space, form=self.form)
        start = time.perf_counter()
        agent.search(env, 10 * self.designs)
        spent = time.perf_counter() - start
        return env.evaluator.proposals / spent

    def theirs(self, n_envs: int) -> float:
        """Designs a second of Stable-Baselines3's PPO with the agent's settings."""
        envs: list[archgym.Environment] = []

        def one() -> Any:
            envs.append(self.make())
            return StepwiseView(envs[-1]) if self.form == "stepwise" else envs[-1]

        settings = self.agent.hyperparameters
        view = DummyVecEnv([one] * n_envs)
        model = PPO(
            "MlpPolicy",
            view,
            learning_rate=settings.learning_rate,
            n_steps=settings.rollout * self.steps // n_envs,
            batch_size=settings.batch_size * self.steps,
            n_epochs=settings.n_epochs,
            gamma=settings.gamma,
            ent_coef=settings.ent_coef,
            policy_kwargs={"net_arch": [settings.width] * settings.layers},
            device="cpu",
            seed=0,
        )
        model.set_logger(Logger(folder=None, output_formats=[]))  # else a folder is left
        start = time.perf_counter()
        model.learn(self.designs * self.steps)
        spent = time.perf_counter() - start
        return sum(env.evaluator.proposals for env in envs) / spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--designs", type=int, default=4096)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--form", choices=["design", "stepwise"], default="design")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(f"form {arguments.form}: best of {arguments.repeats} in designs/s, {arguments.designs}")
    for name in ENVIRONMENTS:
        with tempfile.TemporaryDirectory() as folder:
            race = Race(name, arguments.designs, arguments.form, Path(folder))
            n_envs = race.agent.hyperparameters.n_envs
            runs: dict[str, Callable[[], float]] = {
                "agent ppo, recording": lambda race=race: race.ours(True),  # type: ignore[misc]
                "agent ppo": lambda race=race: race.ours(False),  # type: ignore[misc]
                f"SB3, {n_envs} environments": lambda race=race, n=n_envs: race.theirs(n),  # type: ignore[misc]
                "SB3, one environment": lambda race=race: race.theirs(1),  # type: ignore[misc]
            }
            speeds = dict.fromkeys(runs, 0.0)
            for _ in range(arguments.repeats):
                for label, run in runs.items():
                    speeds[label] = max(speeds[label], run())
            fastest = max(speed for label, speed in speeds.items() if label.startswith("SB3"))
            print(f"\n{name}")
            for label, speed in speeds.items():
                print(f"  {label:24} {speed:8.0f}   {speed / fastest:5.2f} of the faster SB3")
            share = speeds["agent ppo, recording"] / fastest
            print(f"  bar {BAR}: {'kept' if share >= BAR else 'MISSED'}")


if __name__ == "__main__":
    main()
