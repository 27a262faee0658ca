"""A proxy of many workloads in place of a folder, as history of searches on another workload."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from pathlib import Path

from archgym.environment.environment import Environment
from archgym.errors import DatasetError, ExperimentError, InvalidValueError
from archgym.history.account import SourceAccount
from archgym.history.earlier import Earlier

__all__ = ["check_proxy", "is_proxy", "predicted"]

Found = tuple[list[Earlier], tuple[SourceAccount, ...]]


def is_proxy(path: str) -> bool:
    """Whether a path is that of a file; anything else is a folder, or not there."""
    return Path(path).expanduser().is_file()


def check_proxy(path: str, environment: Environment, *, leased: bool) -> None:
    """Makes sure that a proxy can say how to begin a search in an environment.

    Args:
        path: of its file.
        environment: that is searched.
        leased: whether other machines simulate the baseline design, when the run has begun.

    Raises:
        DatasetError: if there is no such proxy, or it is of no use.
        ExperimentError: if workers simulate the baseline design too late.
    """
    from archgym.proxy.files import load_proxy  # heavy, and needed for a proxy only
    from archgym.proxy.zero_shot import check_zero_shot

    file = Path(path).expanduser()
    if not zipfile.is_zipfile(file):
        raise DatasetError(
            f"{path} is a file, but no proxy: history is the folder of a run or a dataset, or the "
            "file of a proxy of many workloads; a table such as CSV or Parquet is none"
        )
    proxy = load_proxy(file)
    if leased:
        raise ExperimentError(
            f"{path} is a proxy, which needs the metrics of the baseline design before workers "
            "simulate it: give a folder, or simulate in processes of this machine"
        )
    try:
        check_zero_shot(proxy, environment)
    except InvalidValueError as why:
        raise DatasetError(f"{path} cannot be history of {environment.name}: {why}") from why


def predicted(paths: Iterable[str], environment: Environment) -> Found:
    """What proxies expect of the best designs, as if it had been evaluated.

    Raises:
        DatasetError: if there is no such proxy, or it cannot be read.
        InvalidValueError: if it is of no use.
    """
    from archgym.proxy.zero_shot import proxy_source

    found, accounts = [], []
    for path in paths:
        source = proxy_source(Path(path).expanduser(), environment)
        outcomes, n = source.outcomes, len(source)
        baseline = environment.baseline_metrics
        found.append(
            Earlier(
                source.name,
                outcomes.designs.codes,
                outcomes.metrics,
                outcomes.status,
                baseline,
                same=False,
                ordered=True,
            )
        )
        differs = ("predicted, not simulated",)
        accounts.append(SourceAccount(source.name, (path,), n, n, differences=differs))
    return found, tuple(accounts)
