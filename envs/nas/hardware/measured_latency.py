"""The latency of backbones on measured devices: from their parts, or by the predictor."""

from __future__ import annotations

from typing import Final

from archgym.envs.nas.backbone.measured import DEVICES, part_times, sum_of_parts
from archgym.envs.nas.backbone.parts import IMAGENET, parts_of
from archgym.envs.nas.backbone.predictor import shipped_predictor
from archgym.envs.nas.families import Architecture, Task
from archgym.errors import InvalidValueError, UnknownNameError

__all__ = ["ESTIMATES", "MeasuredLatency"]

ESTIMATES: Final = {
    "predictor": "the sum of the parts, corrected by a model of whole networks",
    "parts": "the sum of the parts",
}
_US_PER_MS: Final = 1e3


class MeasuredLatency:
    """Latency of backbones on a device that was measured.

    >>> MeasuredLatency("h200_batch_1", "tables")
    Traceback (most recent call last):
    ...
    archgym.errors.UnknownNameError: estimate 'tables' is unknown; allowed are predictor, parts

    Args:
        device: one of :data:`archgym.envs.nas.backbone.measured.DEVICES`.
        estimate: one of :data:`ESTIMATES`.

    Raises:
        UnknownNameError: if there is no such device or estimate.
    """

    def __init__(self, device: str, estimate: str = "predictor") -> None:
        if device not in DEVICES:
            raise UnknownNameError("measured device", device, DEVICES)
        if estimate not in ESTIMATES:
            raise UnknownNameError("estimate", estimate, ESTIMATES)
        self._device = device
        self._estimate = estimate

    def check(self, task: Task) -> None:
        """Raises an error unless the task's networks are those that were measured.

        Raises:
            InvalidValueError: if they are others.
        """
        if task.options != IMAGENET:
            raise InvalidValueError(
                f"table {self._device!r} is of the backbones of task 'imagenet_backbone'; task "
                f"{task.name!r} has networks of family {task.family!r}"
            )

    def latency_ms(self, task: Task, architecture: Architecture) -> float:
        """Latency of one network, ms; of all pictures of the batch."""
        if self._estimate == "predictor":
            found = shipped_predictor(self._device).latency_us([architecture])
            return float(found[0]) / _US_PER_MS
        parts = parts_of(IMAGENET, architecture, task.outputs)
        return sum_of_parts(part_times(self._device), parts) / _US_PER_MS
