"""From data to a proxy: record designs, load them as arrays, train a model, search on it, verify.

Run it with ``python examples/data_to_proxy.py``. It takes about 20 seconds on two cores.
A proxy is a model that predicts the metrics of a simulator and can take its place.
"""

import archgym
from archgym.proxy import Settings, load_proxy, read_training_data, save_proxy, train
from archgym.proxy.quality.evaluation import evaluate
from archgym.proxy.search import search_and_verify

# The toy environment Conformance-v0 stands for a simulator that is slow. Its space is finite.
problem = {"name": "Conformance-v0", "space": "finite", "objective": "minimize energy_pj"}

# 1. Record. Random designs represent the space; those of a search represent its good part.
env = archgym.make(**problem, record="training-data")
archgym.make_agent("random", env.design_space, seed=0).search(env, budget=300)
archgym.make_agent("ga", env.design_space, seed=0).search(env, budget=100)
env.close()

# 2. Load the data as arrays, for a library of your choice. No design is in both parts.
data = archgym.data.load("training-data", "status == ok")
parts = data.split("design", {"train": 0.8, "test": 0.2}, seed=0).parts
examples = parts["train"].examples(["energy_pj"])
print(f"features {examples.features.shape}, targets {examples.targets.shape}")
print(f"target in {examples.target_units[0]}; first features: {examples.feature_names[:3]}")

# 3. Train a proxy and save it. The file holds arrays and JSON, nothing that is executed.
training = read_training_data(parts["train"], ["energy_pj"])
save_proxy(train(training, Settings(models=("boosting",), seed=0)), "energy.npz")

# 4. Compare predictions with the designs that were held out. The intervals are calibrated: one
#    with coverage 0.9 is meant to hold the true value of nine designs in ten.
proxy = load_proxy("energy.npz")
(accuracy,), _ = evaluate(proxy, read_training_data(parts["test"], ["energy_pj"]), coverage=0.9)
print(f"unseen designs: {accuracy.scores.n}")
print(f"root mean squared error by the mean: {accuracy.scores.relative_rmse:.1%}")
print(f"true values within the 90 % intervals: {accuracy.scores.coverage:.0%}")

# 5. Search on the proxy with many designs, and simulate the five most promising ones.
real = archgym.make(**problem)
learned = archgym.make(**problem, simulator="proxy:energy.npz")
found = search_and_verify(learned, real, agent="ga", budget=1_000, verify=5, seed=0)
print(f"searched {found.proposals:,} designs on the proxy, simulated {len(found.outcomes)}:")
for predicted, simulated in zip(found.predicted, found.outcomes, strict=True):
    before, after = (one.metrics["energy_pj"] for one in (predicted, simulated))
    print(f"  predicted {before:.2f} pJ, simulated {after:.2f} pJ")
baseline = real.evaluate(real.baseline_design)
print(f"baseline {baseline.metrics['energy_pj']:.2f} pJ")
print(f"best     {found.best.metrics['energy_pj']:.2f} pJ: {found.best.design}")
