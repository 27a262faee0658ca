"""The chunks of an enumeration, in files until all are there, and the table made from them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from archgym.environment.environment import Environment
from archgym.errors import DatasetError
from archgym.reading.parquet import read_whole
from archgym.simulators.result import check_results, read_result
from archgym.simulators.tabular.simulator import TABLE_FILE
from archgym.simulators.tabular.table import Header, Table, write_and_rename


@dataclass(frozen=True)
class Chunks:
    """The designs of an enumeration, in chunks, and the folder that holds their results.

    Attributes:
        folder: of the enumeration.
        total: designs in all.
        size: designs a chunk.
    """

    folder: Path
    total: int
    size: int

    @property
    def missing(self) -> list[int]:
        """Indices of the chunks that are not simulated yet."""
        return [n for n in range(self._count) if not self.file(n).exists()]

    def file(self, number: int) -> Path:
        """File of the results of a chunk."""
        return self.folder / "chunks" / f"{number:06d}.parquet"

    def positions(self, number: int) -> range:
        """Positions of a chunk's designs in the enumeration of the space."""
        start = number * self.size
        return range(start, min(start + self.size, self.total))

    def simulate(self, number: int, environment: Environment) -> None:
        """Simulates a chunk and writes its results."""
        designs = environment.design_space.unrank(np.array(self.positions(number)))
        simulator, metrics = environment.simulator, environment.metrics
        given = [metric for metric in metrics if metric.name in simulator.metric_names]
        results = simulator.simulate(designs)
        check_results(results, simulator.name, len(designs))
        read = [read_result(result, metrics, simulator.metric_names) for result, _ in results]
        values = np.array([row for _, row, _ in read])[:, [metrics.index(m) for m in given]]
        columns: dict[str, Any] = {
            f"metric.{metric.name}": np.ascontiguousarray(column)
            for metric, column in zip(given, values.T, strict=True)
        }
        columns["status"] = pa.array([status for status, _, _ in read], pa.int8())
        columns["reason"] = pa.array([reason for *_, reason in read]).dictionary_encode()
        buffer = pa.BufferOutputStream()
        pq.write_table(pa.table(columns), buffer, compression="zstd")
        write_and_rename(self.file(number), buffer.getvalue().to_pybytes())

    def seal(self, header: Header) -> Table:
        """Makes the table from all chunks and writes it.

        Raises:
            DatasetError: if a chunk is damaged, or the table cannot be written.
        """
        values = np.empty((self.total, len(header.metrics)))
        failure = np.zeros(self.total, dtype=np.int32)
        failures = {(0, ""): 0}
        for number in range(self._count):
            positions = np.array(self.positions(number))
            read = self._read(number, header)
            for column, metric in enumerate(header.metrics):
                values[positions, column] = read[f"metric.{metric.name}"]
            status, reason = read["status"], read["reason"]
            for i in np.flatnonzero(status).tolist():
                met = (int(status[i]), reason[i])
                failure[positions[i]] = failures.setdefault(met, len(failures))
        table = Table.of(header, values, failure, failures)
        table.save(self.folder / TABLE_FILE)
        return table

    @property
    def _count(self) -> int:
        return math.ceil(self.total / self.size)

    def _read(self, number: int, header: Header) -> Mapping[str, NDArray[Any]]:
        path = self.file(number)
        try:
            table = read_whole(path)
            names = [*(f"metric.{metric.name}" for metric in header.metrics), "status", "reason"]
            return {name: table[name].to_numpy() for name in names}
        except (OSError, ValueError, KeyError, pa.ArrowException) as error:
            raise DatasetError(f"{path} is damaged, remove it and go on: {error}") from error
