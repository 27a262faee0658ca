"""Trains proxies: cross-validation by design, a family of models for each metric, calibration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.errors import InvalidValueError
from archgym.proxy.calibration import Calibration
from archgym.proxy.inputs import Inputs, workload_inputs
from archgym.proxy.known_workloads import KnownWorkloads, described
from archgym.proxy.models import Array, Features, family
from archgym.proxy.models.blend import Blend
from archgym.proxy.proxy import Part, Proxy
from archgym.proxy.ranges import Ranges
from archgym.proxy.scores import score
from archgym.proxy.targets import TargetScale
from archgym.proxy.training.data import TrainingData
from archgym.proxy.training.settings import AUTO, BY_FEATURES, Settings

Folds = tuple[NDArray[np.int64], NDArray[np.bool_]]
"""The fold of each row, and which rows are held out at all, each (n,)."""
Progress = Callable[[str], None]
"""Called with what is trained next."""

MIN_ROWS = 20
"""Minimum number of designs on a workload."""
_ROWS_IN_FOLDS = 15_000
"""Rows, roughly, on which models are trained in cross-validation: many rows need fewer folds."""
_ENOUGH_DRAWN = 100
"""Minimum number of random designs for which they alone validate and calibrate."""
_ENOUGH_HELD = 50
"""Minimum number of held-out designs on a workload that calibrate its intervals alone."""
_WORKLOAD_FOLDS = 4
"""Folds of workloads in the validation of a model that knows them by features."""
_MIN_KNOWN = 3
"""Minimum number of workloads of such a model."""
_OWN_MODEL = 200
"""Minimum number of designs on a workload for a separate model by default."""


def train(
    data: TrainingData, settings: Settings | None = None, progress: Progress | None = None
) -> Proxy:
    """A proxy of the data.

    For each workload (or all of them together) the families compete in cross-validation in which
    no design is on both sides, metric by metric; the one with the least root mean squared error,
    in the unit of the metric, is trained again on all rows. Its errors on the designs that it had
    not seen calibrate the intervals. Where enough designs were drawn at random (by agent
    ``random``), only their errors count: designs that a search or
    :func:`archgym.proxy.training.active_collection.collect` chose are not like designs that will
    be asked for.

    Args:
        data: designs with their metrics.
        settings: how to train; all defaults without it.
        progress: called before each model with the workloads, family and fold that come next.

    Raises:
        InvalidValueError: if a workload has fewer than :data:`MIN_ROWS` designs.
    """
    settings = settings or Settings()
    known = _known(data) if settings.per == BY_FEATURES else None
    parts: list[Part] = []
    report: list[dict[str, Any]] = []
    for workloads, targets in _scopes(data, settings.per):
        rows = np.flatnonzero(np.isin(data.workload, workloads))
        own, some = _train_scope(
            *(data.take(rows), workloads, targets, settings, known, progress or (lambda t: None))
        )
        parts += own
        report += some
    return Proxy(
        space=data.space,
        metrics=data.metrics,
        origin=data.origin,
        parts=tuple(parts),
        ranges=Ranges.of(data.space, data.codes),
        trained_on=np.unique(data.groups),
        report={
            "rows": len(data),
            "seed": settings.seed,
            "form": settings.form,
            "validation": report,
        },
        known=known,
    )


def _scopes(data: TrainingData, per: str) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Workloads and targets that share models: all rows have a value of each target."""
    n = len(data.origin.workloads)
    sizes = np.bincount(data.workload, minlength=n)
    if per == AUTO:
        per = "workload" if n == 1 or sizes.min() >= _OWN_MODEL else "all"
    missing = np.isnan(data.targets)
    scopes: dict[tuple[int, ...], list[int]] = {}
    for target in range(len(data.metrics)):
        workloads = [w for w in range(n) if not missing[data.workload == w, target].any()]
        for scope in [(w,) for w in workloads] if per == "workload" else [tuple(workloads)]:
            if scope:
                scopes.setdefault(scope, []).append(target)
    for scope in scopes:
        size = sizes[list(scope)].sum()
        if size < MIN_ROWS:
            name = data.origin.workloads[scope[0]].name
            raise InvalidValueError(
                f"workload {name!r} has {size} designs: {MIN_ROWS} are needed at least"
            )
    return [(scope, tuple(targets)) for scope, targets in scopes.items()]


def _train_scope(
    data: TrainingData,
    workloads: tuple[int, ...],
    targets: tuple[int, ...],
    settings: Settings,
    known: KnownWorkloads | None,
    progress: Progress,
) -> tuple[list[Part], list[dict[str, Any]]]:
    scope = ", ".join(data.origin.workloads[w].name for w in workloads)
    scope = f"{scope}: {len(data):,} designs" if scope else f"{len(data):,} designs"
    if known is None:
        names, values = _workload_features(data, workloads)
    else:
        names, values = list(known.scale.names), known.values[list(workloads)]
    places = np.searchsorted(workloads, data.workload)
    x = np.hstack([Inputs(data.space)(data.codes), values[places]])
    y = data.targets[:, list(targets)]
    baseline = data.baseline[:, list(targets)]
    scale = TargetScale.of(settings.form, y, baseline)
    z = scale.forward(y, baseline)
    folds = _folds(data, settings) if known is None else _workload_folds(data, settings)
    held = folds[1]

    def validated(kind: str) -> tuple[Array, Array]:
        return _cross_validate(
            kind, x, z, folds, settings, lambda fold: progress(f"{scope}, {kind}, {fold}")
        )

    kinds = settings.families(len(data))
    found = {kind: validated(kind) for kind in kinds if kind != "blend"}
    if "blend" in kinds:
        members = [found.get(kind) or validated(kind) for kind in ("boosting", "mlp")]
        found["blend"] = Blend.combine(*members)
    maximize = [data.metrics[number].direction == "maximize" for number in targets]
    scores = {
        kind: [
            score(true, predicted, maximize=goal)
            for true, predicted, goal in zip(
                *(y[held].T, scale.backward(mean, baseline[held]).T, maximize), strict=True
            )
        ]
        for kind, (mean, _) in found.items()
    }
    best = [min(scores, key=lambda kind: scores[kind][t].rmse) for t in range(len(targets))]
    parts = []
    for kind in dict.fromkeys(best):
        columns = [target for target, name in enumerate(best) if name == kind]
        mean, spread = (one[:, columns] for one in found[kind])
        metrics = ", ".join(data.metrics[targets[column]].name for column in columns)
        progress(f"{scope}, {kind}, on all of them for {metrics}")
        parts.append(
            Part(
                workloads=workloads,
                targets=tuple(targets[column] for column in columns),
                model=family(kind).fit(x, z[:, columns], settings.seed, settings.options),
                scale=scale.select(columns),
                calibrations=_calibrations(
                    z[held][:, columns] - mean, spread, data.workload[held], workloads
                ),
                workload_names=tuple(names),
                workload_values=values,
            )
        )
    report = [
        {
            "workloads": [data.origin.workloads[w].name for w in workloads],
            "metric": data.metrics[number].name,
            "rows": len(data),
            "validated_on": int(held.sum()),
            "chosen": best[target],
            "scores": {kind: one[target].to_json() for kind, one in scores.items()},
        }
        for target, number in enumerate(targets)
    ]
    return parts, report


def _calibrations(
    residuals: Array, spread: Array, workload: NDArray[np.int64], workloads: Sequence[int]
) -> tuple[Calibration, ...]:
    """Intervals for each workload, by its own errors where there are enough of them."""
    of_each = [workload == one for one in workloads]
    chosen = [own if own.sum() >= _ENOUGH_HELD else np.ones_like(own) for own in of_each]
    return tuple(Calibration.of(residuals[rows], spread[rows]) for rows in chosen)


def _folds(data: TrainingData, settings: Settings) -> Folds:
    """The folds of the data.

    All rows of a design share a fold. With enough designs drawn at random, only they are held out.
    """
    trained = int(np.clip(_ROWS_IN_FOLDS // len(data), 1, settings.folds))
    if data.drawn.sum() < _ENOUGH_DRAWN:
        folds = data.folds(settings.folds, settings.seed)
        return folds, folds < trained
    share = float(data.drawn.mean())
    folds = data.folds(max(trained, round(settings.folds * share)), settings.seed)
    folds[~np.isin(data.groups, data.groups[data.drawn])] = -1
    return folds, data.drawn & (folds < trained)


def _workload_folds(data: TrainingData, settings: Settings) -> Folds:
    """Folds by workload, so that what is validated is of workloads that no model has seen."""
    seen = np.unique(data.workload)
    order = np.random.default_rng(settings.seed).permutation(len(seen))
    fold_of = np.zeros(int(seen.max()) + 1, dtype=np.int64)
    fold_of[seen] = order % min(_WORKLOAD_FOLDS, settings.folds, len(seen))
    return fold_of[data.workload], np.ones(len(data), dtype=np.bool_)


def _known(data: TrainingData) -> KnownWorkloads:
    """The workloads by their features.

    Raises:
        InvalidValueError: if there are too few, or one has none.
    """
    workloads = data.origin.workloads
    if len(workloads) < _MIN_KNOWN:
        raise InvalidValueError(
            f"the data have {len(workloads)} workloads; {BY_FEATURES!r} needs {_MIN_KNOWN} or more"
        )
    for one in workloads:
        if not one.features:
            raise InvalidValueError(
                f"workload {one.name!r} has no features: {data.origin.environment} must give them "
                "(workload_features)"
            )
    features = [described(one.features, one.baseline) for one in workloads]
    return KnownWorkloads.of(features, data.workload, data.codes, data.targets, data.groups)


def _workload_features(
    data: TrainingData, workloads: tuple[int, ...]
) -> tuple[list[str], Features]:
    """Features of workloads, and where these do not tell them apart, one for each of them."""
    if len(workloads) == 1:
        return [], np.empty((1, 0), dtype=np.float32)
    described = [
        {**one.features, **{f"baseline {name}": value for name, value in one.baseline.items()}}
        for one in (data.origin.workloads[w] for w in workloads)
    ]
    names, values = workload_inputs(described)
    if values.size:
        spread = values.std(axis=0)
        values = (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    own = np.eye(len(workloads), dtype=np.float32)
    names += [f"workload={data.origin.workloads[w].name}" for w in workloads]
    return names, np.hstack([values, own]).astype(np.float32)


def _cross_validate(
    kind: str, x: Features, z: Array, folds: Folds, settings: Settings, progress: Progress
) -> tuple[Array, Array]:
    """Mean and spread of each held row from models that have not seen its design."""
    of_row, held = folds
    mean, spread = np.empty_like(z), np.empty_like(z)
    numbers = np.unique(of_row[held]).tolist()
    for count, fold in enumerate(numbers, start=1):
        progress(f"validation {count} of {len(numbers)}")
        out = of_row == fold
        if out.all():
            raise InvalidValueError("all rows are of one design: there is nothing to validate on")
        model = family(kind).fit(x[~out], z[~out], settings.seed, settings.options)
        mean[out], spread[out] = model.predict(x[out])
    return mean[held], spread[held]
