"""archgym: design-space exploration for computer architecture.

>>> import archgym
>>> env = archgym.make("Conformance-v0")
>>> env.evaluate(env.baseline).status
'ok'
"""

import importlib

from archgym.environment.environment import Environment
from archgym.errors import ArchgymError, BudgetExhausted
from archgym.evaluation.outcome import Outcome, Outcomes
from archgym.evaluation.trial_info import TrialInfo
from archgym.problem import Fidelity, Metric, Objective
from archgym.reading import short_names as _short_names
from archgym.registry import make, make_agent, register, register_agent
from archgym.registry import register_with_gymnasium as _register_with_gymnasium

__all__ = [
    "ArchgymError",
    "BudgetExhausted",
    "Environment",
    "Fidelity",
    "Metric",
    "Objective",
    "Outcome",
    "Outcomes",
    "TrialInfo",
    "make",
    "make_agent",
    "register",
    "register_agent",
]

__version__ = "0.2.0"

_register_with_gymnasium()
_short_names.install()


def __getattr__(name: str) -> object:
    """Loads ``archgym.data`` and ``archgym.agent`` when they are first used: they are heavy."""
    if name in ("agent", "data"):
        return importlib.import_module(f"archgym.{name}")
    raise AttributeError(f"module 'archgym' has no attribute {name!r}")
