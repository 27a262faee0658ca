"""What is searched: metrics, objectives, fidelities, workloads, and what a subclass writes."""

from archgym.problem.design_problem import DesignProblem
from archgym.problem.fidelity import Fidelity
from archgym.problem.metrics import Metric
from archgym.problem.objective import Objective
from archgym.problem.status import Status

__all__ = ["DesignProblem", "Fidelity", "Metric", "Objective", "Status"]
