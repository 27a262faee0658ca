"""Evaluations as T4 results, the schema of the autotuning community.

See https://github.com/odgaard/TuningSchema, branch T4; Kernel Tuner's tools read it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from archgym.data.problems import problems_of
from archgym.data.selection import Selection
from archgym.errors import InvalidValueError

SCHEMA_VERSION = "1.0.0"
_INVALIDITY = {
    "ok": "correct",
    "illegal": "constraints",
    "failed": "runtime",
    "timeout": "timeout",
    "stopped": "timeout",
}
_ROWS_AT_ONCE = 1000


def export_t4(selection: Selection, path: Path, *, indent: bool = False) -> int:
    """Writes one JSON file with a result for each row, times in milliseconds.

    A result has the design as its configuration (inactive parameters are left out), each metric
    with its unit as a measurement, the goals' metrics as objectives, as ``runtimes`` the time of
    the simulation and as ``search_algorithm`` that of the agent. Illegal designs have the
    invalidity ``constraints``, failed ones ``runtime``. Under ``metadata.archgym`` stand
    environment, workload, simulator, objective, metrics and design space, with which
    :func:`archgym.tuning.read_tuning` reads the file again.

    Args:
        selection: the rows, of one problem.
        path: the file.
        indent: whether the file is written for people to read.

    Returns:
        Number of results.

    Raises:
        InvalidValueError: if there are several problems, since the schema knows one.
    """
    problems = problems_of(selection)
    if len(problems) > 1:
        names = ", ".join(problem.name for problem in problems)
        raise InvalidValueError(f"T4 results are of one problem, these are of {names}: choose one")
    (problem,) = problems
    sidecar = selection.dataset.sidecar
    about = {
        "environment": problem.first["environment"],
        "workload": problem.first["workload"],
        "simulator": sidecar.simulator,
        "objective": problem.objective.to_json(),
        "agents": problem.agents,
        "design_space": sidecar.space.to_json(),
        "metrics": [metric.to_json() for metric in sidecar.metrics],
    }
    metadata = {"timeunit": "milliseconds", "archgym": about}
    step = 1 if indent else None
    sought = list(problem.objective.metric_names())
    written = 0
    with path.open("w", encoding="utf-8") as file:
        file.write(f'{{"schema_version": "{SCHEMA_VERSION}",\n')
        file.write(f'"metadata": {json.dumps(metadata, indent=step)},\n"results": [\n')
        for result in _results(selection, sought):
            file.write(",\n" * bool(written) + json.dumps(result, indent=step))
            written += 1
        file.write("\n]}\n")
    return written


def _results(selection: Selection, sought: list[str]) -> Iterator[dict[str, Any]]:
    sidecar = selection.dataset.sidecar
    for table in selection.blocks():
        for row in (row for some in table.to_batches(_ROWS_AT_ONCE) for row in some.to_pylist()):
            measured = [(m, row[f"metric.{m.name}"]) for m in sidecar.metrics]
            yield {
                "timestamp": row["timestamp"].isoformat(),
                "configuration": {
                    name: row[f"param.{name}"]
                    for name in sidecar.space.names
                    if row[f"param.{name}"] is not None
                },
                "objectives": sought,
                "times": {
                    "compilation_time": 0.0,
                    "runtimes": [1e3 * (row["simulation_s"] or 0.0)],
                    "framework": 0.0,
                    "search_algorithm": 1e3 * (row["agent_s"] or 0.0),
                    "validation": 0.0,
                },
                "invalidity": _INVALIDITY[row["status"]],
                "correctness": 1 if row["status"] == "ok" else 0,
                "measurements": [
                    {"name": metric.name, "value": value, "unit": metric.unit}
                    for metric, value in measured
                    if value is not None
                ],
            }
