"""An environment of your own: describe what may vary, simulate one design, check it, search it.

Run it with ``python examples/own_environment.py``. It takes about 10 seconds on one core.
The simulator is a formula here; it could call any function or start any program.
"""

from archgym import Environment, Metric, make_agent
from archgym.check import check_environment
from archgym.errors import SimulationError
from archgym.space import Categorical, DesignSpace, Integer, Ordinal, Rule, param


class Predictor(Environment):
    """A made-up branch predictor: a table of counters, indexed with or without a history."""

    # Parameters have a unit and a line of documentation. `history` acts with gshare only, so two
    # bimodal predictors that differ in `history` alone are one and the same design.
    design_space = DesignSpace(
        [
            Categorical("kind", ["bimodal", "gshare"], doc="how the table is indexed"),
            Ordinal("entries", [256, 512, 1024, 2048, 4096], doc="counters in the table"),
            Integer("bits", 1, 3, unit="bits", doc="width of a counter"),
            Integer(
                "history",
                2,
                12,
                unit="bits",
                doc="length of the branch history",
                when=param("kind") == "gshare",
            ),
        ],
        # A rule is known before the simulation. A design that breaks it is illegal.
        rules=[Rule("size", param("entries") * param("bits") <= 8192, "at most 1 KiB of counters")],
    )
    # A metric has a name that ends in its unit, the unit, a direction and a line of documentation.
    metrics = (
        Metric("miss_rate", "", "minimize", "share of branches predicted wrongly"),
        Metric("storage_bits", "bits", "minimize", "bits of state"),
    )
    default_objective = {"minimize": "miss_rate", "limits": ["storage_bits <= 4096"]}
    baseline = {"kind": "bimodal", "entries": 1024, "bits": 2}

    def simulate(self, design):
        """Returns the metrics of one design."""
        history = design.get("history", 0)  # an inactive parameter is left out of the design
        if 2**history > 2 * design["entries"]:
            raise SimulationError("the history is too long for the table")
        miss_rate = 0.04 + 40.0 / design["entries"] + 0.06 / (1 + history)
        if design["bits"] == 1:
            miss_rate += 0.02
        return {
            "miss_rate": miss_rate,
            "storage_bits": design["entries"] * design["bits"] + history,
        }


env = Predictor()
print(f"{env.design_space.canonical_cardinality} distinct legal designs")

# The same checks that every environment of archgym passes.
results = check_environment(Predictor)
failed = [result for result in results if not result.passed]
print(f"{len(results) - len(failed)} of {len(results)} checks passed")
for result in failed:
    print(f"  {result.name}: {result.detail}")

baseline = env.evaluate(env.baseline_design)
result = make_agent("ga", env.design_space, seed=0).search(env, budget=60)
print("baseline:", baseline.design, baseline.metrics)
print("best:    ", result.best.design, result.best.metrics)
