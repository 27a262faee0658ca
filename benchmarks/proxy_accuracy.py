"""Accuracy of proxies on random unseen designs, for any environment.

``python benchmarks/proxy_accuracy.py ENV --train N --test N [--target METRIC ...] [--workload NAME
...] [--model FAMILY ...] [--folds N]`` records random designs on each workload (drawn evenly from
the canonical legal designs, with seeds of their own), trains on the first, and prints the errors
and the coverage of the 90 % intervals on the second.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import archgym
from archgym.data import load
from archgym.proxy import Settings, read_training_data, train
from archgym.proxy.quality.evaluation import evaluate, measure_speed
from archgym.proxy.replaced_environment import make_original
from archgym.registry import make_agent


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("environment")
    parser.add_argument("--train", type=int, default=2000)
    parser.add_argument("--test", type=int, default=1000)
    parser.add_argument("--target", nargs="+")
    parser.add_argument("--workload", nargs="+", default=[""])
    parser.add_argument("--model", nargs="+", default=["boosting", "mlp", "blend"])
    parser.add_argument("--folds", type=int, default=10, help="of the validation")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for part, n, seed in (("train", given.train, 1), ("test", given.test, 90210)):
            for workload in given.workload:
                arguments = {"workload": workload} if workload else {}
                env = archgym.make(given.environment, record=Path(folder, part), **arguments)
                made = make_agent("random", env.design_space, seed=seed, batch_size=256)
                made.search(env, n)
                env.close()
        data = read_training_data(load(Path(folder, "train")), given.target)
        names = [metric.name for metric in data.metrics]
        test = read_training_data(load(Path(folder, "test")), names)
        began = time.process_time()
        proxy = train(data, Settings(tuple(given.model), folds=given.folds))
        print(f"trained on {len(data)} evaluations in {time.process_time() - began:.0f} CPU s")
        for one in evaluate(proxy, test)[0]:
            s = one.scores
            print(
                f"{one.workload:12} {one.metric:24} relative RMSE {s.relative_rmse:.3%} "
                f"RMS relative error {s.rms_relative_error:.3%} "
                f"R2 {s.r2:.5f} Spearman {s.spearman:.4f} in 90 %: {s.coverage:.1%}",
                flush=True,
            )
        speed = measure_speed(proxy, make_original(proxy.origin))
        print(
            f"simulator {speed.simulator:,.0f}/s, proxy {speed.proxy:,.0f} designs/s of "
            f"{speed.metrics} metrics: {speed.factor:,.0f} times"
        )


if __name__ == "__main__":
    main()
