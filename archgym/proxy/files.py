"""Proxies in files: arrays and JSON in one ``.npz`` file, of which nothing is ever executed."""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import io
import json
import os
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from archgym.errors import ArchgymError, DatasetError
from archgym.problem.metrics import Metric
from archgym.proxy.calibration import Calibration
from archgym.proxy.inputs import Inputs
from archgym.proxy.known_workloads import FeatureScale, KnownWorkloads
from archgym.proxy.models import family
from archgym.proxy.models.base import prefixed, under
from archgym.proxy.provenance import Origin
from archgym.proxy.proxy import Part, Proxy
from archgym.proxy.ranges import Ranges
from archgym.proxy.targets import TargetScale
from archgym.reading.files import read_arrays, read_bytes
from archgym.space import DesignSpace

FORMAT = 2
"""Version of the layout."""
_HEADER = "header"
_KNOWN = ("values", "codes", "metrics")
_PLAIN = ("workloads", "targets", "workload_names")
_LIMIT_BYTES: Final = 1 << 32
"""4 GiB, packed and unpacked: the largest forests have some hundred MB."""


def save_proxy(proxy: Proxy, path: str | Path) -> Proxy:
    """Writes a proxy to a file, by write and rename.

    Returns:
        The proxy, with the fingerprint of its file.

    Raises:
        DatasetError: if it cannot be written.
    """
    path = Path(path)
    arrays: dict[str, NDArray[Any]] = {"trained_on": proxy.trained_on}
    parts = []
    for number, part in enumerate(proxy.parts):
        arrays |= prefixed(f"{number}/", part.model.arrays())
        arrays[f"{number}/workload_values"] = part.workload_values
        parts.append(
            {
                "kind": part.model.kind,
                **{name: getattr(part, name) for name in _PLAIN},
                "scale": part.scale.to_json(),
                "calibrations": [one.to_json() for one in part.calibrations],
            }
        )
    header = {
        "format": FORMAT,
        "archgym": version("archgym"),
        "design_space": {**proxy.space.to_json(), "fixed": {}},
        "metrics": [metric.to_json() for metric in proxy.metrics],
        "origin": proxy.origin.to_json(),
        "ranges": proxy.ranges.to_json(),
        "report": proxy.report,
        "parts": parts,
    }
    if proxy.known is not None:
        header["known"] = proxy.known.scale.to_json()
        arrays |= {f"known/{name}": getattr(proxy.known, name) for name in _KNOWN}
    text = json.dumps(header, ensure_ascii=False).encode()
    arrays[_HEADER] = np.frombuffer(text, dtype=np.uint8)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_bytes(buffer.getvalue())
        os.replace(unfinished, path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise DatasetError(f"cannot write {path}: {error.strerror or error}") from error
    fingerprint = hashlib.sha256(buffer.getvalue()).hexdigest()
    return dataclasses.replace(proxy, fingerprint=fingerprint)


def check_target(path: str | Path) -> None:
    """Makes sure that a proxy can be written to a place, before hours of training.

    Raises:
        DatasetError: if it cannot.
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            pass
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    except OSError as error:
        raise DatasetError(f"cannot write {path}: {error.strerror or error}") from error


def load_proxy(path: str | Path) -> Proxy:
    """Reads a proxy; the file is data and is checked as such.

    Raises:
        DatasetError: if there is none, or it is damaged or of another version.
    """
    path = Path(path)
    try:
        content = read_bytes(path, _LIMIT_BYTES)
    except OSError as error:
        raise DatasetError(f"cannot read {path}: {error.strerror or error}") from error
    try:
        arrays = read_arrays(content, _LIMIT_BYTES)
        header = json.loads(arrays.pop(_HEADER).tobytes())
        if header.get("format") != FORMAT:
            raise DatasetError(
                f"{path} has format {header.get('format')!r}; this version reads {FORMAT}"
            )
        fingerprint = hashlib.sha256(content).hexdigest()
        return dataclasses.replace(_read(header, arrays), fingerprint=fingerprint)
    except DatasetError:
        raise
    except (
        *(ArchgymError, LookupError, TypeError, ValueError, AttributeError),
        *(OSError, RecursionError, ArithmeticError),
    ) as error:
        what = f"{type(error).__name__}: {error}"
        raise DatasetError(f"{path} is not a proxy, or damaged: {what}") from error


def _read(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Proxy:
    space = DesignSpace.from_json(header["design_space"])
    origin = Origin.from_json(header["origin"])
    space.fix(origin.fixed)  # refuses what is no value of a parameter
    n_inputs = len(Inputs(space).names)
    parts = []
    for number, data in enumerate(header["parts"]):
        own = under(f"{number}/", arrays)
        names, targets = tuple(data["workload_names"]), tuple(data["targets"])
        values = own["workload_values"].astype(np.float32)
        workloads = tuple(int(w) for w in data["workloads"])
        if values.shape != (len(workloads), len(names)):
            raise ValueError("features of workloads do not fit")
        if not all(0 <= w < len(origin.workloads) for w in workloads):
            raise ValueError("there is no such workload")
        scale = TargetScale.from_json(data["scale"])
        # Older files have one calibration for all workloads.
        stored = data.get("calibrations") or [data["calibration"]] * len(workloads)
        if len(stored) != len(workloads):
            raise ValueError("calibrations do not fit the workloads")
        calibrations = tuple(map(Calibration.from_json, stored))
        widths = {len(scale.form), scale.centre.size, scale.spread.size}
        widths |= {n for one in calibrations for n in (one.floor.size, one.factors.shape[1])}
        if widths != {len(targets)}:
            raise ValueError("scale and calibration do not fit the targets")
        model = family(data["kind"]).of(own, n_inputs + len(names), len(targets))
        parts.append(Part(workloads, targets, model, scale, calibrations, names, values))
    metrics = tuple(Metric.from_json(one) for one in header["metrics"])
    if not all(0 <= t < len(metrics) for part in parts for t in part.targets):
        raise ValueError("there is no such metric")
    return Proxy(
        space=space,
        metrics=metrics,
        origin=origin,
        parts=tuple(parts),
        ranges=Ranges.from_json(space, header["ranges"]),
        trained_on=arrays["trained_on"].astype(np.uint64),
        report=dict(header["report"]),
        known=_read_known(header, under("known/", arrays), space, origin, metrics),
    )


def _read_known(
    header: dict[str, Any],
    arrays: dict[str, NDArray[Any]],
    space: DesignSpace,
    origin: Origin,
    metrics: tuple[Metric, ...],
) -> KnownWorkloads | None:
    if "known" not in header:
        return None
    scale = FeatureScale.from_json(header["known"])
    values, codes, table = (arrays[name] for name in _KNOWN)
    n, designs = len(origin.workloads), len(codes)
    shapes = [(n, len(scale.names)), (designs, len(space.parameters)), (n, designs, len(metrics))]
    if [values.shape, codes.shape, table.shape] != shapes or not np.isfinite(values).all():
        raise ValueError("the known workloads do not fit")
    sizes = np.array([parameter.size for parameter in space.parameters])
    if not np.issubdtype(codes.dtype, np.integer) or ((codes < -1) | (codes >= sizes)).any():
        raise ValueError("there is no such design")
    types = (np.float32, np.int64, np.float64)
    return KnownWorkloads(
        scale, *(one.astype(t) for one, t in zip((values, codes, table), types, strict=True))
    )
