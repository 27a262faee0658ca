"""The form in which metrics are learned: as they are, their logarithm, or relative."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from archgym.errors import InvalidValueError, check_choice
from archgym.proxy.models.base import Array

FORMS = ("auto", "linear", "log", "relative")


@dataclass(frozen=True)
class TargetScale:
    """Metrics as numbers around 0 with standard deviation 1, and back.

    Attributes:
        form: ``linear``, ``log`` or ``relative`` (logarithm of the ratio to the baseline design
            on the same workload), one a target.
        centre: mean of each target in that form, shape (n_targets,).
        spread: standard deviation, 1 for a constant, shape (n_targets,).
    """

    form: tuple[str, ...]
    centre: Array
    spread: Array

    @staticmethod
    def of(form: str, targets: Array, baseline: Array) -> TargetScale:
        """The scale of some data.

        ``auto`` is ``relative`` where targets and baseline are above zero, else ``linear``.

        Args:
            form: one of :data:`FORMS`.
            targets: shape (n, n_targets).
            baseline: of the same rows, the baseline design's; shape (n, n_targets).

        Raises:
            UnknownNameError: if there is no such form.
            InvalidValueError: if a form needs positive values and some are not.
        """
        check_choice("form of targets", form, FORMS)
        positive = (targets > 0).all(axis=0)
        related = positive & (baseline > 0).all(axis=0)  # NaN, where not known, is not
        if form == "auto":
            forms = np.where(related, "relative", np.where(positive, "log", "linear")).tolist()
        else:
            possible = {"linear": positive | True, "log": positive, "relative": related}[form]
            if not possible.all():
                raise InvalidValueError(
                    f"form {form!r} needs values above zero"
                    + (", also of the baseline design" if form == "relative" else "")
                )
            forms = [form] * targets.shape[1]
        bare = TargetScale(tuple(forms), np.zeros(len(forms)), np.ones(len(forms)))
        values = bare.forward(targets, baseline)
        spread = values.std(axis=0)
        steady = spread <= 1e-12 * np.maximum(1.0, np.abs(values).max(axis=0))
        return TargetScale(bare.form, values.mean(axis=0), np.where(steady, 1.0, spread))

    def forward(self, targets: Array, baseline: Array) -> Array:
        """Metrics in the form in which they are learned, shape (n, n_targets)."""
        values = np.array(targets, dtype=np.float64)
        for column, form in enumerate(self.form):
            if form == "relative":
                values[:, column] /= baseline[:, column]
            if form != "linear":
                values[:, column] = np.log(values[:, column])
        return (values - self.centre) / self.spread

    def backward(self, values: Array, baseline: Array) -> Array:
        """The inverse of :meth:`forward`."""
        metrics = values * self.spread + self.centre
        for column, form in enumerate(self.form):
            if form != "linear":
                # What a model extrapolates to must stay a finite number.
                metrics[:, column] = np.exp(np.clip(metrics[:, column], -700.0, 700.0))
            if form == "relative":
                metrics[:, column] *= baseline[:, column]
        return metrics

    def select(self, columns: list[int]) -> TargetScale:
        """That of some of the targets."""
        form = tuple(self.form[column] for column in columns)
        return TargetScale(form, self.centre[columns], self.spread[columns])

    def to_json(self) -> dict[str, Any]:
        """Plain values; the inverse of :meth:`from_json`."""
        arrays = {"centre": self.centre.tolist(), "spread": self.spread.tolist()}
        return {"form": list(self.form), **arrays}

    @staticmethod
    def from_json(data: dict[str, Any]) -> TargetScale:
        """The inverse of :meth:`to_json`."""
        for form in data["form"]:
            check_choice("form of targets", form, FORMS[1:])
        arrays = (np.array(data[name], dtype=np.float64) for name in ("centre", "spread"))
        return TargetScale(tuple(data["form"]), *arrays)
