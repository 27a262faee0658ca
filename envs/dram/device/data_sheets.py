"""Data sheets of DRAM devices: finds and reads the JSON files that describe a device."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import MISSING, fields
from functools import cache
from pathlib import Path
from typing import Any

from archgym.envs.dram.device.device import Device, Supply
from archgym.envs.dram.device.memspec import figures_of_memspec, find_memspec
from archgym.errors import InvalidValueError, UnknownNameError
from archgym.reading.files import meant_file, read_json

__all__ = ["device_names", "device_sources", "load_device"]

_FOLDER = Path(__file__).parent / "sheets"


def device_names() -> tuple[str, ...]:
    """Names of the devices that ship with the package, sorted."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.json")))


def device_sources(name: str) -> str:
    """Where the figures of a device that ships come from, in a sentence for each source."""
    document = read_json(_FOLDER / f"{name}.json")
    return "; ".join(dict.fromkeys(document["sources"].values()))


def load_device(name_or_path: str | os.PathLike[str]) -> Device:
    """Read a device by its name, or from a user's JSON file.

    The file has the form of the shipped ones (``organisation``, ``timing`` and ``power``, each
    figure a number or ``{"value": ..., "source": ...}``), or is a DRAMSys memspec; see
    :mod:`archgym.envs.dram.device.memspec`.

    Args:
        name_or_path: a name from :func:`device_names`, or the path of a ``.json`` file.

    Returns:
        The device; the same object for the same name.

    Raises:
        UnknownNameError: if it is neither a shipped name nor the path of a ``.json`` file.
        InvalidValueError: if the file does not exist or is not JSON, or a figure is missing,
            unknown or senseless.

    Example:
        >>> load_device("DDR3-1600").t_ck_ps
        1250
    """
    text = os.fspath(name_or_path)
    if text in device_names():
        return _shipped(text)
    path = Path(name_or_path)
    if path.suffix == ".json" and not path.is_file():
        raise InvalidValueError(f"there is no DRAM device file {text!r}{meant_file(path)}")
    if path.suffix != ".json":
        raise UnknownNameError("DRAM device", text, device_names())
    return _read(path)


@cache
def _shipped(name: str) -> Device:
    return _read(_FOLDER / f"{name}.json")


def _read(path: Path) -> Device:
    where = f"device file {path}"
    try:
        document = read_json(path)
    except (OSError, ValueError) as error:
        raise InvalidValueError(f"{where}: cannot be read as JSON ({error})") from error
    if not isinstance(document, dict):
        raise InvalidValueError(f"{where}: must hold a JSON object")
    memspec = find_memspec(document, where)
    values = figures_of_memspec(memspec, where) if memspec else _figures(document, where)
    known = {field.name: field for field in fields(Device)}
    for key in values:
        if key not in known:
            raise UnknownNameError("figure", key, known, where=where)
    missing = [k for k, field in known.items() if k not in values and field.default is MISSING]
    if missing:
        raise InvalidValueError(f"{where}: {', '.join(missing)} missing")
    for key in ("name", "standard", "part", "validation"):
        if not isinstance(values.get(key, ""), str):
            raise InvalidValueError(f"{where}: {key} must be a string")
    try:
        return Device(**values)
    except (InvalidValueError, UnknownNameError) as error:
        error.args = (f"{where}: {error}",)
        raise


def _figures(document: Mapping[str, Any], where: str) -> dict[str, Any]:
    values: dict[str, Any] = {
        key: document[key] for key in ("name", "standard", "part", "validation") if key in document
    }
    for section in ("organisation", "timing"):
        values.update(_section(document.get(section), section, where))
    power = document.get("power")
    if not isinstance(power, Mapping):
        raise InvalidValueError(
            f"{where}: power must be an object of supplies (empty where there is no power model)"
        )
    values["supplies"] = tuple(
        _supply(name, _section(entries, f"power.{name}", where), where)
        for name, entries in power.items()
    )
    return values


def _supply(name: str, figures: Mapping[str, Any], where: str) -> Supply:
    known = [field.name for field in fields(Supply)[1:]]
    for key in figures:
        if key not in known:
            raise UnknownNameError("current", key, known, where=f"{where}, supply {name}")
    if "voltage_v" not in figures:
        raise InvalidValueError(f"{where}: voltage_v of supply {name} missing")
    return Supply(name, **figures)


def _section(entries: Any, section: str, where: str) -> dict[str, Any]:
    if not isinstance(entries, Mapping):
        raise InvalidValueError(f"{where}: {section} must be an object of figures")
    return {
        key: entry.get("value") if isinstance(entry, Mapping) else entry
        for key, entry in entries.items()
    }
