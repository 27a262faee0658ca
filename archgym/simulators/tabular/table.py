"""The outcomes of a whole design space, and the file that holds them.

The file is Parquet with one row. Its schema's metadata hold, under ``archgym.table``, a JSON
object that describes what was tabulated (:class:`Header`, and the metrics of each block). Its
columns are lists:

=====================  ===========================================================================
``block.K.index``      int32, a design: its row in the block; designs are in the order of
                       :meth:`archgym.space.DesignSpace.enumerate`
``metric.NAME``        float64, a row of the block that holds the metric
``failure.index``      int32, a design: 0 if it could be simulated, else which failure
``failure.status``     int8, a failure: its :class:`archgym.problem.status.Status`
``failure.reason``     text, a failure
=====================  ===========================================================================
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from archgym.errors import ArchgymError, DatasetError
from archgym.problem import Metric, Status
from archgym.problem.description import ProblemDescription
from archgym.reading.files import opened
from archgym.reading.parquet import read_whole
from archgym.reading.versions import version_of
from archgym.simulators.tabular.blocks import Block, make_blocks
from archgym.space import DesignSpace

FORMAT = 1
"""Version of the layout."""
_KEY = b"archgym.table"
_LEVEL = 19  # zstd: small files are worth the seconds, and reading does not slow down
_ENCODINGS = {
    "int32": ("BYTE_STREAM_SPLIT", "DELTA_BINARY_PACKED", "PLAIN"),
    "double": ("BYTE_STREAM_SPLIT", "RLE_DICTIONARY", "PLAIN"),
}


@dataclass(frozen=True)
class Header:
    """Description of a table: the environment, its design space, workload and simulator.

    Attributes:
        environment: registered name, or ``module:Class``.
        arguments: the environment's own constructor arguments, as they were given.
        settings: the same as the environment states them.
        space: the design space, with what was fixed.
        workload: what the environment was given.
        workload_name: what tables call it.
        workload_sha256: hash of its content.
        simulator: name and version.
        metrics: those that are in the table.
        archgym: version of archgym that made it.
    """

    environment: str
    arguments: dict[str, Any]
    settings: dict[str, Any]
    space: DesignSpace
    workload: Any
    workload_name: str
    workload_sha256: str
    simulator: dict[str, str]
    metrics: tuple[Metric, ...]
    archgym: str

    @staticmethod
    def of(problem: ProblemDescription, arguments: Mapping[str, Any]) -> Header:
        """The header of a table of an environment's design space.

        Args:
            problem: the environment.
            arguments: the environment's own constructor arguments, as they were given.
        """
        workload = problem.workload
        return Header(
            environment=problem.environment,
            arguments=dict(arguments),
            settings=dict(problem.settings),
            space=problem.space,
            workload=str(workload) if isinstance(workload, Path) else workload,
            workload_name=problem.workload_name,
            workload_sha256=problem.workload_sha256,
            simulator=dict(problem.simulator),
            metrics=tuple(m for m in problem.metrics if m.name in problem.metrics_given),
            archgym=version_of("archgym"),
        )

    def to_json(self) -> dict[str, Any]:
        """A JSON object from which :meth:`from_json` makes the same."""
        data = {field.name: getattr(self, field.name) for field in fields(self)}
        metrics = [metric.to_json() for metric in self.metrics]
        return {**data, "space": self.space.to_json(), "metrics": metrics}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Header:
        """The inverse of :meth:`to_json`.

        Raises:
            ArchgymError, KeyError, TypeError: if the data are of another form.
        """
        values = {field.name: data[field.name] for field in fields(Header)}
        values["space"] = DesignSpace.from_json(data["space"])
        values["metrics"] = tuple(Metric.from_json(metric) for metric in data["metrics"])
        return Header(**values)


@dataclass(frozen=True, eq=False)
class Table:
    """Outcomes of every canonical design of a finite space.

    Attributes:
        header: what was tabulated.
        blocks: the metrics; see :mod:`archgym.simulators.tabular.blocks`.
        failure: 0 for a design that could be simulated, else which of ``failures`` it met,
            int32, shape (n_designs,).
        failures: code of the status and reason of each failure; the first is ``(0, "")``.
    """

    header: Header
    blocks: tuple[Block, ...]
    failure: NDArray[np.int32]
    failures: tuple[tuple[int, str], ...]

    @staticmethod
    def of(
        header: Header,
        values: NDArray[np.float64],
        failure: NDArray[np.int32],
        failures: Iterable[tuple[int, str]],
    ) -> Table:
        """A table from the values of each design.

        Args:
            header: what was tabulated.
            values: NaN where there are none, shape (n_designs, n_metrics).
            failure: as :attr:`failure`.
            failures: as :attr:`failures`.
        """
        names = [metric.name for metric in header.metrics]
        return Table(header, tuple(make_blocks(names, values)), failure, tuple(failures))

    def __len__(self) -> int:
        return len(self.failure)

    def count_failures(self) -> dict[str, int]:
        """Designs of each status but ``ok``, by status."""
        counts: dict[str, int] = {}
        numbers = np.bincount(self.failure, minlength=len(self.failures)).tolist()
        for (status, _), number in zip(self.failures, numbers, strict=True):
            if status:
                counts[Status(status).label] = counts.get(Status(status).label, 0) + number
        return counts

    @property
    def metric_names(self) -> tuple[str, ...]:
        """Names of the metrics in it."""
        return tuple(metric.name for metric in self.header.metrics)

    def values(self, positions: NDArray[np.int64], names: Iterable[str]) -> NDArray[np.float64]:
        """Metrics of the designs at some positions, NaN where there are none, shape (n, n_names).

        A name that is not in the table gives a column of NaN.
        """
        names = tuple(names)
        values = np.full((len(positions), len(names)), np.nan)
        for block in self.blocks:
            rows = block.index[positions]
            for column, name in enumerate(block.names):
                if name in names:
                    values[:, names.index(name)] = block.values[rows, column]
        return values

    # -- the file --------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Writes the file, by write and rename; equal tables give equal files.

        Raises:
            DatasetError: if it cannot be written.
        """
        write_and_rename(Path(path), self._file())

    def _file(self) -> bytes:
        columns: dict[str, pa.Array] = {}
        for number, block in enumerate(self.blocks):
            columns[f"block.{number}.index"] = pa.array(block.index, pa.int32())
            for name, column in zip(block.names, block.values.T, strict=True):
                columns[f"metric.{name}"] = pa.array(np.ascontiguousarray(column), pa.float64())
        columns["failure.index"] = pa.array(self.failure, pa.int32())
        columns["failure.status"] = pa.array([status for status, _ in self.failures], pa.int8())
        columns["failure.reason"] = pa.array([reason for _, reason in self.failures], pa.string())
        encodings = {name: _smallest(name, column) for name, column in columns.items()}
        meta = {
            "format": FORMAT,
            "designs": len(self),
            "blocks": [list(block.names) for block in self.blocks],
            **self.header.to_json(),
        }
        return _parquet(columns, encodings, {_KEY: json.dumps(meta, ensure_ascii=False).encode()})

    @staticmethod
    def load(path: str | Path) -> Table:
        """Reads a file.

        Raises:
            DatasetError: if it is not there, holds no table, or is damaged.
        """
        meta, header = _read_meta(path)
        try:
            read = read_whole(Path(path))
            columns = {name: read[name].combine_chunks().flatten() for name in read.column_names}
            blocks = []
            for number, names in enumerate(meta["blocks"]):
                values = [columns[f"metric.{name}"].to_numpy() for name in names]
                index = columns[f"block.{number}.index"].to_numpy()
                blocks.append(Block(tuple(names), index, np.stack(values, axis=1)))
            status, reason = (columns[f"failure.{of}"].to_pylist() for of in ("status", "reason"))
            failures = tuple(zip(status, reason, strict=True))
            table = Table(header, tuple(blocks), columns["failure.index"].to_numpy(), failures)
        except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
            raise DatasetError(f"{path} is damaged: {error}") from error
        problem = table._problem(meta["designs"])
        if problem:
            raise DatasetError(f"{path} is damaged: {problem}")
        return table

    def _problem(self, designs: int) -> str:
        """The first contradiction in the table; empty if there is none."""
        held = [name for block in self.blocks for name in block.names]
        if sorted(held) != sorted(self.metric_names):
            return f"its blocks hold {', '.join(held)}, not {', '.join(self.metric_names)}"
        ends = [("failure", self.failure, len(self.failures))]
        ends += [(f"block.{n}", b.index, len(b.values)) for n, b in enumerate(self.blocks)]
        for name, index, end in ends:
            if len(index) != designs:
                return f"{name}.index has {len(index)} entries for {designs} designs"
            if len(index) and not 0 <= index.min() <= index.max() < end:
                return f"{name}.index goes beyond its {end} rows"
        if any(not 0 <= status < len(Status) for status, _ in self.failures):
            return "failure.status holds an unknown status"
        if designs != self.header.space.canonical_cardinality:
            return f"its space has {self.header.space.canonical_cardinality} designs, not {designs}"
        return ""

    @cached_property
    def fingerprint(self) -> str:
        """Twelve hexadecimal digits that change with anything that the table holds."""
        digest = hashlib.sha256(json.dumps(self.header.to_json(), sort_keys=True).encode())
        for block in self.blocks:
            digest.update(block.index.tobytes() + block.values.tobytes())
        digest.update(self.failure.tobytes() + repr(self.failures).encode())
        return digest.hexdigest()[:12]


def write_and_rename(path: Path, data: bytes) -> None:
    """Writes a file in one step: whatever happens, it is whole or not there.

    Raises:
        DatasetError: if it cannot be written.
    """
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        except OSError:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise DatasetError(f"cannot write {path}: {error.strerror}") from error


def read_header(path: str | Path) -> Header:
    """The header of a table's file; reads only its metadata.

    Raises:
        DatasetError: if it is not there or holds no table.
    """
    return _read_meta(path)[1]


def _read_meta(path: str | Path) -> tuple[dict[str, Any], Header]:
    try:
        opened(Path(path)).close()  # raises for a pipe, which would be waited for
        meta = (pq.read_schema(path).metadata or {}).get(_KEY)
    except FileNotFoundError:
        raise DatasetError(f"there is no table {path}") from None
    except (OSError, pa.ArrowException) as error:
        raise DatasetError(f"cannot read table {path}: {error}") from error
    if meta is None:
        raise DatasetError(f"{path} is not a table of archgym: it lacks {_KEY.decode()!r}")
    try:
        data = json.loads(meta)
        if data["format"] != FORMAT:
            raise DatasetError(
                f"{path} has format {data['format']!r}; this version of archgym reads {FORMAT}"
            )
        return data, Header.from_json(data)
    except DatasetError:
        raise
    except (
        *(ArchgymError, ValueError, KeyError, TypeError),
        *(AttributeError, RecursionError, ArithmeticError),
    ) as error:
        raise DatasetError(f"{path} is damaged: {type(error).__name__}: {error}") from error


def _smallest(name: str, column: pa.Array) -> str | None:
    """The encoding in which a column takes fewest bytes; ``None`` for the default one."""
    offered = _ENCODINGS.get(str(column.type), ())
    sizes = {encoding: len(_parquet({name: column}, {name: encoding})) for encoding in offered}
    return min(sizes, key=lambda encoding: sizes[encoding], default=None)


def _parquet(
    columns: Mapping[str, pa.Array],
    encodings: Mapping[str, str | None],
    metadata: Mapping[bytes, bytes] | None = None,
) -> bytes:
    """A file with one row, in which each column is a list."""
    lists = {
        name: pa.ListArray.from_arrays(pa.array([0, len(column)], pa.int32()), column)
        for name, column in columns.items()
    }
    chosen = {f"{name}.list.element": encoding for name, encoding in encodings.items()}
    buffer = io.BytesIO()
    pq.write_table(
        pa.table(lists).replace_schema_metadata(metadata),
        buffer,
        compression="zstd",
        compression_level=_LEVEL,
        use_dictionary=[path for path, encoding in chosen.items() if encoding == "RLE_DICTIONARY"],
        column_encoding={
            path: encoding
            for path, encoding in chosen.items()
            if encoding not in (None, "RLE_DICTIONARY")
        },
        write_statistics=False,
        write_page_checksum=True,
        data_page_size=1 << 30,
        dictionary_pagesize_limit=1 << 30,
    )
    return buffer.getvalue()
