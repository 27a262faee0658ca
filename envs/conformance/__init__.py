"""A small environment with every kind of parameter, a condition and a rule.

It costs nothing to simulate and behaves like a real one: designs can be illegal or fail, and
the metrics trade off. Tests and new agents are tried on it first.
"""

from archgym.envs.conformance.environment import ConformanceEnvironment

__all__ = ["ConformanceEnvironment"]
