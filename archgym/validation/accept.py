"""Lets results of an edited simulator join a dataset, after a replay found no difference."""

from __future__ import annotations

from dataclasses import replace

from archgym.data import Dataset
from archgym.errors import DatasetError
from archgym.validation.replay import Replayed

__all__ = ["accept_simulator"]


def accept_simulator(dataset: Dataset, found: Replayed) -> str:
    """Records the simulator that gave the same metrics as that of the dataset.

    Args:
        dataset: whose rows were replayed.
        found: the replay, in which no row differs.

    Returns:
        A line that says what was accepted.

    Raises:
        DatasetError: if rows differ or none was evaluated, if several programs simulate them, if
            it is another simulator, or the dataset cannot be written.
    """
    where, recorded = dataset.directory, dataset.sidecar
    if found.mismatches or not found.rows:
        raise DatasetError(f"{where}: the replay does not show that metrics are as before")
    if len(found.programs) != 1:
        raise DatasetError(f"{where}: its rows are simulated by several programs")
    (now,) = found.programs
    before = recorded.simulator
    if now.name != before["name"]:
        raise DatasetError(
            f"{where}: simulator {now.name!r} cannot be accepted for {before['name']!r}, only "
            "another version or source of the same one"
        )
    if (now.version, now.source_sha256) == (before["version"], recorded.source_sha256):
        return "nothing to accept: the simulator is the one that the dataset records"
    simulator = {"name": now.name, "version": now.version}
    accepted = replace(recorded, simulator=simulator, source_sha256=now.source_sha256)
    accepted.save(where, replace=True)
    if now.version != before["version"]:
        return f"version {now.version} accepted in place of {before['version']}"
    return f"source {now.source_sha256[:12] or 'of an installed package'} accepted"
