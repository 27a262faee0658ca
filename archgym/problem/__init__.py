"""The definition of a problem: metrics, objectives, fidelities, workloads and the base class."""

from archgym.problem.design_problem import DesignProblem
from archgym.problem.fidelity import Fidelity
from archgym.problem.metrics import Metric
from archgym.problem.objective import Objective
from archgym.problem.status import Status

__all__ = ["DesignProblem", "Fidelity", "Metric", "Objective", "Status"]
