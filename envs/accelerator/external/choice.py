"""Other people's models as simulators of the accelerator environment, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from archgym.problem.simulator import Simulator

__all__ = ["SIMULATORS", "STARTS"]


def _external(module: str, name: str, doc: str) -> Callable[[Any], Simulator]:
    """A simulator that is imported when it is asked for."""

    def make(environment: Any) -> Simulator:
        from importlib import import_module

        cls = getattr(import_module(f"archgym.envs.accelerator.{module}"), name)
        simulator: Simulator = cls.of(environment)
        return simulator

    make.__doc__ = doc
    return make


SIMULATORS: Final[Mapping[str, Callable[[Any], Simulator]]] = {
    "scalesim": _external(
        "scalesim", "ScaleSimSimulator", "SCALE-Sim 3 (extra scalesim): systolic arrays."
    ),
    "zigzag": _external(
        "zigzag", "ZigZagSimulator", "ZigZag (extra zigzag): best temporal mappings."
    ),
    "maestro": _external(
        "maestro", "MaestroSimulator", "MAESTRO, a program of one's own: spatial arrays."
    ),
    "timeloop": _external(
        "timeloop", "TimeloopSimulator", "Timeloop, a program of one's own: row-stationary."
    ),
}
"""What makes each of them for an environment."""

STARTS: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "scalesim": ("minimize latency_ns", {"dataflow": "systolic_ws"}),
    "maestro": ("minimize latency_ns", {}),
    "timeloop": ("minimize edp_js", {"dataflow": "eyeriss_rs"}),
}
"""What is minimised and how the baseline differs with those that do not give or cover what the
embedded model does."""
