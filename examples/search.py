"""Search: find a DRAM controller for a program, faster than the baseline, below a power limit.

Run it with ``python examples/search.py``. It takes about 10 seconds on one core; on a machine
where archgym has never run, add half a minute for the compilation of the simulator.
"""

import archgym

# The environment: the controller's design space, the simulator, a workload and an objective.
# "fft" is a memory trace that was recorded from a program of fast Fourier transforms.
env = archgym.make(
    "DRAM-v0",
    workload={"recorded": "fft", "requests": 5_000},
    objective={"minimize": "read_latency_mean_ns", "limits": ["power_mw <= 1400"]},
    record="search-data",  # every design that is evaluated becomes a row of this dataset
)

# The baseline design is the reference to improve on.
baseline = env.evaluate(env.baseline_design)
print("baseline:")
print(f"  mean read latency {baseline.metrics['read_latency_mean_ns']:.1f} ns")
print(f"  power             {baseline.metrics['power_mw']:.0f} mW")
print(f"  within the limit: {'yes' if baseline.feasible else 'no: ' + baseline.reason}")

# Agent "auto" is a portfolio of search algorithms that has nothing to tune. The budget counts
# distinct legal designs that are simulated; duplicates and illegal designs cost nothing.
agent = archgym.make_agent("auto", env.design_space, seed=0)
result = agent.search(env, budget=60)
env.close()

best = result.best
print(f"best of {result.simulations} designs, found after {result.best_at}:")
print(f"  mean read latency {best.metrics['read_latency_mean_ns']:.1f} ns")
print(f"  power             {best.metrics['power_mw']:.0f} mW")
print(f"  within the limit: {'yes' if best.feasible else 'no: ' + best.reason}")

print("changed from the baseline:")
for name, value in best.design.items():
    before = baseline.design.get(name, "(inactive)")
    if value != before:
        print(f"  {name}: {before} -> {value}")

# The recorded dataset still has every design. These are the five best that keep the limit.
data = archgym.data.load("search-data", "feasible == true")
metrics = ["metric.read_latency_mean_ns", "metric.power_mw"]
frame = data.pandas([*metrics, "param.scheduler", "param.page_policy", "param.address_mapping"])
print(f"five best of {len(frame)} feasible designs:")
print(frame.sort_values(metrics[0]).head(5).to_string(index=False))
