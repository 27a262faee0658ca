"""Evaluations as trials of Optuna studies, in a storage that its dashboard opens."""

from __future__ import annotations

import datetime
import inspect
import json
import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from archgym.data.designs import design_columns
from archgym.data.problems import Problem, problems_of, scorer_of
from archgym.data.selection import Selection
from archgym.errors import DatasetError, MissingDependencyError
from archgym.problem.objective import Objective
from archgym.space import DesignSpace

if TYPE_CHECKING:
    import optuna

_TRIALS_AT_ONCE = 1000
_ATTRIBUTES = ("trial_id", "step", "agent", "seed", "reward", "status", "reason", "feasible")


def export_optuna(selection: Selection, path: Path, *, study: str = "") -> int:
    """Writes a storage with a study for each problem (environment, workload, objective).

    A trial is one simulated design: parameters with their distributions (inactive ones are left
    out), values of the goals in their natural direction, limits as constraints (feasible at or
    below 0, in the metric's unit), and as user attributes every metric, agent, seed, step, reward,
    status and reason. Illegal, failed and timed out designs are failed trials; evaluations from
    memory, and those at less than the full fidelity, are left out.

    Args:
        selection: the rows.
        path: ``.log`` for Optuna's journal, else SQLite:
            ``optuna-dashboard sqlite:///study.db``.
        study: name before that of each problem.

    Returns:
        Number of trials written.

    Raises:
        MissingDependencyError: if Optuna is not installed.
        DatasetError: if no row is a full simulation.
    """
    try:
        import optuna
    except ImportError:
        raise MissingDependencyError(
            "this export needs Optuna: pip install 'archgym[optuna]'"
        ) from None
    fresh = selection.where(["cached == false", "fidelity == 1"])
    if not len(fresh):
        raise DatasetError("no row is a full simulation: nothing to export")
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        storage = _storage(path)
        for problem in problems_of(fresh):
            _write_study(storage, fresh, problem, f"{study} {problem.name}".strip())
        if hasattr(storage, "engine"):
            storage.engine.dispose()
    finally:
        optuna.logging.set_verbosity(level)
    return len(fresh)


def _storage(path: Path) -> Any:
    import optuna

    if path.name.endswith(".log") or ".log." in path.name:
        from optuna.storages.journal import JournalFileBackend

        return optuna.storages.JournalStorage(JournalFileBackend(str(path)))
    from sqlalchemy import event

    storage = optuna.storages.RDBStorage(f"sqlite:///{path}")
    storage.engine.dispose()
    # The file only takes its name when it is whole, so it need not be synced at every trial.
    event.listen(storage.engine, "connect", lambda link, _: link.execute("PRAGMA synchronous=OFF"))
    event.listen(storage.engine, "connect", lambda link, _: link.execute("PRAGMA journal_mode=OFF"))
    return storage


def _write_study(storage: Any, selection: Selection, problem: Problem, name: str) -> None:
    import optuna

    objective, sidecar = problem.objective, selection.dataset.sidecar
    made = optuna.create_study(
        storage=storage,
        study_name=name,
        directions=["maximize" if g.kind == "maximize" else "minimize" for g in objective.goals],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        made.set_metric_names(list(objective.names))
    for key, value in {
        "environment": problem.first["environment"],
        "settings": json.loads(problem.first["settings"]),
        "workload": problem.first["workload"],
        "workload_sha256": problem.first["workload_sha256"],
        "fixed": problem.fixed,
        "objective": objective.to_json(),
        "simulator": sidecar.simulator,
        "units": {metric.name: metric.unit for metric in sidecar.metrics},
    }.items():
        made.set_user_attr(key, value)
    writer = _Trials(selection, problem)
    for table in selection.of_trials(problem.trial_ids).blocks():
        for start in range(0, table.num_rows, _TRIALS_AT_ONCE):
            _add(made, list(writer.trials(table.slice(start, _TRIALS_AT_ONCE))))


def _add(study: optuna.Study, trials: list[optuna.trial.FrozenTrial]) -> None:
    """Adds trials; into SQLite many at once, for which Optuna itself has no function.

    ``add_trials`` takes some 50 statements a trial there, a hundred times as long.
    """
    import optuna

    storage = study._storage
    if isinstance(storage, optuna.storages._CachedStorage):
        storage = storage._backend
    if not isinstance(storage, optuna.storages.RDBStorage):
        study.add_trials(trials)
        return
    from optuna.storages._rdb import models

    with storage.scoped_session() as session:
        first = session.query(models.TrialModel).filter_by(study_id=study._study_id).count()
        rows = [
            models.TrialModel(
                study_id=study._study_id,
                number=number,
                state=trial.state,
                datetime_start=trial.datetime_start,
                datetime_complete=trial.datetime_complete,
            )
            for number, trial in enumerate(trials, start=first)
        ]
        session.add_all(rows)
        session.flush()
        ids = [row.trial_id for row in rows]
        for model, fields in _details(models, trials, ids):
            if fields:
                session.execute(model.__table__.insert(), fields)
        session.commit()


def _details(
    models: Any, trials: list[optuna.trial.FrozenTrial], ids: list[int]
) -> list[tuple[Any, list[dict[str, Any]]]]:
    """Rows of Optuna's tables of parameters, values and attributes."""
    from optuna.distributions import distribution_to_json

    numbered = list(zip(ids, trials, strict=True))
    distributions = {name: d for trial in trials for name, d in trial.distributions.items()}
    texts = {name: distribution_to_json(d) for name, d in distributions.items()}
    params = [
        {
            "trial_id": trial_id,
            "param_name": name,
            "param_value": trial.distributions[name].to_internal_repr(value),
            "distribution_json": texts[name],
        }
        for trial_id, trial in numbered
        for name, value in trial.params.items()
    ]
    values = []
    for trial_id, trial in numbered:
        for objective, value in enumerate(trial.values or ()):
            stored, kind = models.TrialValueModel.value_to_stored_repr(value)
            field = {"trial_id": trial_id, "objective": objective, "value": stored}
            values.append({**field, "value_type": kind})

    def attributes(field: str) -> list[dict[str, Any]]:
        return [
            {"trial_id": trial_id, "key": key, "value_json": json.dumps(value)}
            for trial_id, trial in numbered
            for key, value in getattr(trial, field).items()
        ]

    return [
        (models.TrialParamModel, params),
        (models.TrialValueModel, values),
        (models.TrialUserAttributeModel, attributes("user_attrs")),
        (models.TrialSystemAttributeModel, attributes("system_attrs")),
    ]


class _Trials:
    """Turns rows of one problem into trials."""

    def __init__(self, selection: Selection, problem: Problem) -> None:
        from optuna.trial import create_trial

        sidecar = selection.dataset.sidecar
        self._space: DesignSpace = sidecar.space
        self._metrics = sidecar.metrics
        self._objective: Objective = problem.objective
        self._scorer = scorer_of(problem.first, self._metrics)
        self._distributions = _distributions(self._space.fix(problem.fixed))
        self._names_constraints = "constraints" in inspect.signature(create_trial).parameters

    def trials(self, table: pa.Table) -> Iterator[optuna.trial.FrozenTrial]:
        """A trial a row."""
        from optuna.trial import TrialState, create_trial

        columns = design_columns(self._space)
        for row in table.to_pylist():
            metrics = {m.name: row[f"metric.{m.name}"] for m in self._metrics}
            params = {
                name: row[column]
                for name, column in zip(self._space.names, columns, strict=True)
                if row[column] is not None and name in self._distributions
            }
            ok = row["status"] == "ok"
            kwargs: dict[str, Any] = {}
            if ok:
                values = [math.nan if v is None else v for v in metrics.values()]
                minimised = self._scorer.score(values)[0]
                kwargs["values"] = [
                    -value if goal.kind == "maximize" else value
                    for goal, value in zip(self._objective.goals, minimised, strict=True)
                ]
                kwargs.update(self._constraints(metrics))
            trial = create_trial(
                state=TrialState.COMPLETE if ok else TrialState.FAIL,
                params=params,
                distributions={name: self._distributions[name] for name in params},
                user_attrs={
                    **{name: row[name] for name in _ATTRIBUTES},
                    **{name: value for name, value in metrics.items() if value is not None},
                },
                **kwargs,
            )
            ended = row["timestamp"].astimezone().replace(tzinfo=None)
            spent = (row["simulation_s"] or 0.0) + (row["agent_s"] or 0.0)
            trial.datetime_start = ended - datetime.timedelta(seconds=spent)
            trial.datetime_complete = ended
            yield trial

    def _constraints(self, metrics: dict[str, float | None]) -> dict[str, Any]:
        excess = {
            str(limit): value - limit.value if limit.op == "<=" else limit.value - value
            for limit in self._objective.limits
            if (value := metrics[limit.metric]) is not None
        }
        if not excess:
            return {}
        if self._names_constraints:  # Optuna 5
            return {"constraints": excess}
        return {"system_attrs": {"constraints": list(excess.values())}}


def _distributions(space: DesignSpace) -> dict[str, optuna.distributions.BaseDistribution]:
    """Distribution of each free parameter, with its own values, as people read them."""
    from optuna import distributions

    found: dict[str, optuna.distributions.BaseDistribution] = {}
    for p in (space.parameters[position] for position in space.free):
        low, high = p.value(0), p.value(p.size - 1)
        if p.continuous:
            log = bool(getattr(p, "log", False))
            found[p.name] = distributions.FloatDistribution(low, high, log=log)
        elif p.kind == "integer":
            step = p.value(1) - low
            found[p.name] = distributions.IntDistribution(low, high, step=step)
        else:
            values = [p.value(code) for code in range(p.size)]
            found[p.name] = distributions.CategoricalDistribution(values)
    return found
