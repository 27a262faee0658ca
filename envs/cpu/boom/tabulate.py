"""The table ``boom-contest`` from the contest's file.

``python -m archgym.envs.cpu.boom.tabulate contest.csv OUT.parquet``; the file is
``iccad_contest/contest-dataset/contest.csv`` of the Python package ``iccad-contest`` 0.1.3.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from archgym.envs.cpu.boom.environment import BoomContest, components_of
from archgym.errors import InvalidValueError
from archgym.problem import Status
from archgym.simulators.tabular.table import Header, Table

__all__ = ["tabulated"]

_COMPONENTS, _METRICS = 29, 4
_SIMULATOR = {"name": "iccad-contest", "version": "0.1.3, dummy data set"}


def tabulated(path: Path) -> Table:
    """The table of the contest's file.

    Args:
        path: text with a row a design: 29 numbers of its components, instructions in a cycle, W,
            um2, and the time of the design flow.

    Raises:
        InvalidValueError: if the file is of another form, or does not hold exactly the designs.
    """
    try:
        rows = np.loadtxt(path, dtype=np.float64, ndmin=2)
    except (OSError, ValueError) as error:
        raise InvalidValueError(f"cannot read {path}: {error}") from error
    if rows.shape[1] != _COMPONENTS + _METRICS or not np.isfinite(rows).all():
        raise InvalidValueError(
            f"{path} has rows of {rows.shape[1]} numbers, not of {_COMPONENTS + _METRICS} finite "
            "ones"
        )
    env = BoomContest()
    count = int(env.design_space.canonical_cardinality)
    known = {
        tuple(row[:_COMPONENTS].astype(int).tolist()): row[_COMPONENTS:].tolist() for row in rows
    }
    designs = [components_of(design) for design in env.design_space.unrank(np.arange(count))]
    if len(rows) != count or set(designs) != set(known):
        raise InvalidValueError(f"{path} does not hold the {count:,} designs of the contest")
    described = replace(env.description, simulator=_SIMULATOR, metrics_given=env.metrics_given)
    values = np.array([known[design] for design in designs])
    failure = np.zeros(count, dtype=np.int32)
    return Table.of(Header.of(described, {}), values, failure, {(int(Status.OK), ""): 0})


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    tabulated(arguments.file).save(arguments.out)


if __name__ == "__main__":
    main()
