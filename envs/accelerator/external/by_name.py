"""External models as simulators of the accelerator environment, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from archgym.envs.accelerator.external.maestro import MaestroSimulator
from archgym.envs.accelerator.external.program import AcceleratorProgram
from archgym.envs.accelerator.external.scalesim import ScaleSimSimulator
from archgym.envs.accelerator.external.timeloop import TimeloopSimulator
from archgym.envs.accelerator.external.zigzag import ZigZagSimulator

__all__ = ["DEFAULTS", "DESCRIPTIONS", "PROGRAMS"]

PROGRAMS: Final[Mapping[str, type[AcceleratorProgram]]] = {
    "scalesim": ScaleSimSimulator,
    "zigzag": ZigZagSimulator,
    "maestro": MaestroSimulator,
    "timeloop": TimeloopSimulator,
}
"""The class of each simulator."""

DESCRIPTIONS: Final[Mapping[str, str]] = {
    "scalesim": "SCALE-Sim 3 (extra scalesim): systolic arrays.",
    "zigzag": "ZigZag (extra zigzag): best temporal mappings.",
    "maestro": "MAESTRO, installed by the user: spatial arrays.",
    "timeloop": "Timeloop, installed by the user: row-stationary arrays.",
}
"""A line on each simulator."""

DEFAULTS: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "scalesim": ("minimize latency_ns", {"dataflow": "systolic_ws"}),
    "maestro": ("minimize latency_ns", {}),
    "timeloop": ("minimize edp_js", {"dataflow": "eyeriss_rs"}),
}
"""Default objective, and changes to the baseline design, of the simulators that do not give every
metric or do not cover every design of the embedded model."""
