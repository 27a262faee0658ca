"""Evaluations as trials of Optuna studies, in a storage that its dashboard opens."""

from __future__ import annotations

import datetime
import inspect
import itertools
import json
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from archgym.data.problems import Problem, problems_of, scorer_of
from archgym.data.selection import Selection
from archgym.errors import DatasetError, MissingDependencyError
from archgym.problem.objective import Objective
from archgym.space import Parameter, Permutation

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
    trials = _trials(selection, problem)
    while some := list(itertools.islice(trials, _TRIALS_AT_ONCE)):
        _add(storage, made, some)


def _add(storage: Any, study: optuna.Study, trials: list[optuna.trial.FrozenTrial]) -> None:
    """Adds trials; into SQLite many at once, for which Optuna itself has no function.

    ``add_trials`` takes some 50 statements a trial there, and minutes for ten thousand.
    """
    import optuna

    if not isinstance(storage, optuna.storages.RDBStorage):
        study.add_trials(trials)
        return
    with storage.scoped_session() as session:
        models = optuna.storages._rdb.models
        first = session.query(models.TrialModel).filter_by(study_id=study._study_id).count()
        for number, trial in enumerate(trials, start=first):
            session.add(_row(trial, study_id=study._study_id, number=number))
        session.commit()


def _row(trial: optuna.trial.FrozenTrial, **fields: int) -> Any:
    """A trial as a row of Optuna's table, with those of its parameters, values and attributes."""
    from optuna.distributions import distribution_to_json
    from optuna.storages._rdb import models

    stored = map(models.TrialValueModel.value_to_stored_repr, trial.values or ())
    return models.TrialModel(
        **fields,
        state=trial.state,
        datetime_start=trial.datetime_start,
        datetime_complete=trial.datetime_complete,
        params=[
            models.TrialParamModel(
                param_name=name,
                param_value=distribution.to_internal_repr(trial.params[name]),
                distribution_json=distribution_to_json(distribution),
            )
            for name, distribution in trial.distributions.items()
        ],
        values=[
            models.TrialValueModel(objective=objective, value=value, value_type=kind)
            for objective, (value, kind) in enumerate(stored)
        ],
        user_attributes=_attributes(models.TrialUserAttributeModel, trial.user_attrs),
        system_attributes=_attributes(models.TrialSystemAttributeModel, trial.system_attrs),
    )


def _attributes(model: Any, values: dict[str, Any]) -> list[Any]:
    return [model(key=key, value_json=json.dumps(value)) for key, value in values.items()]


def _trials(selection: Selection, problem: Problem) -> Iterator[optuna.trial.FrozenTrial]:
    """A trial for each row of a problem."""
    from optuna.trial import TrialState, create_trial

    sidecar, goals = selection.dataset.sidecar, problem.objective.goals
    scorer = scorer_of(problem.first, sidecar.metrics)
    space = sidecar.space.fix(problem.fixed)
    free = [space.parameters[position] for position in space.free]
    distributions = _distributions(free)
    for table in selection.of_trials(problem.trial_ids).blocks():
        for row in (row for some in table.to_batches(_TRIALS_AT_ONCE) for row in some.to_pylist()):
            metrics = {m.name: row[f"metric.{m.name}"] for m in sidecar.metrics}
            params = _params(free, row)
            ok = row["status"] == "ok"
            kwargs: dict[str, Any] = {}
            if ok:
                values = [math.nan if v is None else v for v in metrics.values()]
                minimised = scorer.score(values)[0]
                kwargs["values"] = [
                    -value if goal.kind == "maximize" else value
                    for goal, value in zip(goals, minimised, strict=True)
                ]
                kwargs |= _constraints(problem.objective, metrics)
            trial = create_trial(
                state=TrialState.COMPLETE if ok else TrialState.FAIL,
                params=params,
                distributions={name: distributions[name] for name in params},
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


def _constraints(objective: Objective, metrics: dict[str, float | None]) -> dict[str, Any]:
    from optuna.trial import create_trial

    excess = {
        str(limit): value - limit.value if limit.op == "<=" else limit.value - value
        for limit in objective.limits
        if (value := metrics[limit.metric]) is not None
    }
    if not excess:
        return {}
    if "constraints" in inspect.signature(create_trial).parameters:  # Optuna 5
        return {"constraints": excess}
    return {"system_attrs": {"constraints": list(excess.values())}}


def _params(parameters: Sequence[Parameter], row: Mapping[str, Any]) -> dict[str, Any]:
    """Values of the active parameters of a row; of permutations the position of each item."""
    found: dict[str, Any] = {}
    for p in parameters:
        value = row[f"param.{p.name}"]
        if isinstance(p, Permutation) and value is not None:
            positions = p.positions(np.array([p.code(value)]))[0]
            found |= dict(zip(p.axes, positions.tolist(), strict=True))
        elif value is not None:
            found[p.name] = value
    return found


def _distributions(
    parameters: Sequence[Parameter],
) -> dict[str, optuna.distributions.BaseDistribution]:
    """Distribution of each parameter, with its own values, as people read them.

    A permutation has one for the position of each item.
    """
    from optuna import distributions

    found: dict[str, optuna.distributions.BaseDistribution] = {}
    for p in parameters:
        if isinstance(p, Permutation):
            positions = distributions.IntDistribution(0, len(p.items) - 1)
            found.update(dict.fromkeys(p.axes, positions))
            continue
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
