"""Speed of LLMTraining-v0: plans a CPU second of one thread, with and without the event graph.

Run as ``python -m benchmarks.llm_speed``. Random plans of each workload; calculon's figure on the
machine where it was measured (92 plans a second) is in docs/guides/llm.md.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import archgym
from archgym.envs.llm.cost.evaluate import evaluate_plans
from archgym.envs.llm.data.as_records import model_record, system_record
from archgym.envs.llm.environment import LLMTraining
from archgym.envs.llm.training.plan import plan_records


def rates(workload: str, n: int) -> tuple[float, float, float]:
    """Plans a CPU second: formula, event graph, and the whole environment."""
    env = archgym.make("LLMTraining-v0", workload=workload)
    assert isinstance(env, LLMTraining)
    designs = env.design_space.sample(n, np.random.default_rng(0))
    loaded = env.loaded
    plans = plan_records(designs, loaded.gpus, loaded.batch)
    model = model_record(loaded.model)
    system = system_record(loaded.cluster, loaded.stack, loaded.gpus)
    evaluate_plans(model, plans[:2], system)  # compiles
    found = []
    for closed in (True, False):
        start = time.process_time()
        evaluate_plans(model, plans, system, closed=closed)
        found.append(n / (time.process_time() - start))
    start = time.process_time()
    env.evaluate_batch(designs)
    return found[0], found[1], n / (time.process_time() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plans", type=int, default=5000)
    parser.add_argument(
        "--workloads",
        nargs="+",
        default=["gpt_1.7b_a100_32", "gpt_18.4b_a100_256", "gpt_175b_a100_512", "gpt_1t_a100_3072"],
    )
    arguments = parser.parse_args()
    print("| workload | formula, plans/s | event graph, plans/s | environment, plans/s |")
    print("|---|---|---|---|")
    for workload in arguments.workloads:
        closed, graph, whole = rates(workload, arguments.plans)
        print(f"| {workload} | {closed:,.0f} | {graph:,.0f} | {whole:,.0f} |")


if __name__ == "__main__":
    main()
