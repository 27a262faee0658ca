"""Settings of training: families that compete, scope of a model, form of the targets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from archgym.errors import InvalidValueError, check_choice, check_integer
from archgym.proxy.models import COMPETING, FAMILIES

AUTO = "auto"
_FEW = 2_500
"""Rows up to which all families compete; with more, forests and Gaussian processes fall behind."""
OPTIONS = {
    "trees": "forest, boosting: number of trees",
    "features": "forest: share of the features that a split sees",
    "leaves": "boosting: maximum number of leaves of a tree",
    "rate": "boosting, mlp, residual: learning rate",
    "members": "mlp, residual: networks in the ensemble",
    "width": "mlp, residual: units of a hidden layer",
    "layers": "residual: layers between the first and the last",
    "epochs": "mlp, residual: times that the data are seen",
    "decay": "mlp, residual: decay of the weights",
    "dropout": "residual: share of the units that are dropped at first",
    "device": "mlp, residual: where it is trained, cpu or cuda",
    "steps": "gp: steps of the search for length scales",
    "kept": "gp: maximum number of designs that it keeps",
}
"""Settings of the families."""
BY_FEATURES = "workload-features"
"""Scope of a model of all workloads that knows them by their features alone."""
_PER = (AUTO, "workload", "all", BY_FEATURES)


@dataclass(frozen=True)
class Settings:
    """How to train.

    Attributes:
        models: families that compete, or ``auto``.
        per: ``workload`` for a model a workload, ``all`` for one model of all workloads, whose
            features are among its inputs; ``workload-features`` for one that knows them by their
            features alone, so that it predicts workloads that it has not seen, which its
            validation leaves out one after another; ``auto`` is the first from 200 designs a
            workload, else the second.
        form: of the targets, see :data:`archgym.proxy.targets.FORMS`.
        seed: the only source of randomness.
        options: settings of the families, such as ``epochs``.
        folds: of the cross-validation, 2 or more; fewer are faster, and validate worse models.

    Raises:
        UnknownNameError: for a name that does not exist.
        InvalidValueError: for a number that is not possible.
    """

    models: tuple[str, ...] = (AUTO,)
    per: str = AUTO
    form: str = AUTO
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    folds: int = 10

    def __post_init__(self) -> None:
        check_choice("scope of models", self.per, _PER)
        object.__setattr__(self, "folds", check_integer("folds", self.folds, 2))
        for name in self.models:
            check_choice("family of models", name, [AUTO, *FAMILIES])
        for name, value in self.options.items():
            check_choice("setting of models", name, OPTIONS)
            if name != "device" and not (isinstance(value, int | float) and value > 0):
                raise InvalidValueError(f"setting {name} must be a number above 0, not {value!r}")

    def families(self, rows: int) -> list[str]:
        """The families that compete on so many rows."""
        if AUTO not in self.models:
            return list(dict.fromkeys(self.models))
        return [n for n in COMPETING if rows <= _FEW or n not in ("forest", "gp")]
