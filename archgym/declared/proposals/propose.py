"""Proposes a declaration from the folder of one finished run: a reading for each number in it."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from archgym.declared.kept import COMMANDS, kept_run
from archgym.declared.units import known_unit
from archgym.errors import InvalidValueError, check_received
from archgym.reading.files import read_bytes

__all__ = ["Proposal", "proposals", "proposed_declaration"]

_MAX_FILES: Final = 200
_READ_LIMIT_BYTES: Final = 1 << 22
_MAX_SHOWN: Final = 40
_MAX_LISTED: Final = 200
_SEPARATORS: Final = (",", ";", "\t")
_PRINTED: Final = ("stdout", "stderr")
_NUMBER: Final = r"[-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_KEYED: Final = re.compile(
    rf"^\s*(?P<key>[A-Za-z_][^=:\n]{{0,60}}?)\s*[=:]\s*(?P<value>{_NUMBER})\s*(?P<unit>[^\s,;()]*)"
)
_PATH_KEYED: Final = re.compile(
    rf"^\s*(?P<key>\S*/[^=:\n]{{0,200}}?)\s*[=:]\s*(?P<value>{_NUMBER})\s*(?P<unit>[^\s,;()]*)"
)
_WORDED: Final = re.compile(
    rf"^[^A-Za-z]*(?P<words>[A-Za-z].{{0,60}}?[A-Za-z)\]:=])\s+(?P<value>{_NUMBER})(?![\w.])"
    r"\s*(?P<unit>[^\s,;()]*)"
)


@dataclass(frozen=True)
class Proposal:
    """A number that was found, and how to read it.

    Attributes:
        name: of the metric.
        unit: that was recognised; empty if none.
        reading: keys of the metric's entry.
        value: the number, as it stands there.
    """

    name: str
    unit: str
    reading: dict[str, Any]
    value: str


def proposals(folder: Path) -> list[Proposal]:
    """Readings for the numbers in the files of a folder, in the order of the files.

    Args:
        folder: of one run, with what the program printed in files such as ``stdout``. Of a folder
            that archgym has kept, what it wrote itself is left out.

    Raises:
        InvalidValueError: if it is no folder, or has no file with numbers.
    """
    if not folder.is_dir():
        raise InvalidValueError(f"{folder} is no folder of a finished run")
    check_received(folder, InvalidValueError)
    found: dict[str, Proposal] = {}
    kept = kept_run(folder)
    own = set() if kept is None else {folder / path for path in (*kept.files, COMMANDS)}
    files = (path for path in folder.rglob("*") if path.is_file() and path not in own)
    for path in sorted(files, key=_printed_first)[:_MAX_FILES]:
        try:
            text = read_bytes(path, _READ_LIMIT_BYTES).decode("utf-8")
        except (OSError, UnicodeDecodeError):
            continue  # binary, or too large to be a summary
        where = _source(path.relative_to(folder), () if kept is None else kept.stages)
        for one in _of_file(text, path.suffix.lower(), where):
            found.setdefault(one.name, one)
    if not found:
        raise InvalidValueError(f"no file in {folder} has a number after a name or a word")
    return list(found.values())


def file_size(name: str, size: int) -> Proposal:
    """A reading of the size of a file that a run writes."""
    return _proposal(f"{Path(name).name} size", "B", {"file_size": name}, {}, str(size))


def proposed_declaration(name: str, found: list[Proposal], stages: Sequence[str] = ()) -> str:
    """The text of a declaration with the proposed metrics, to be completed by hand.

    Args:
        name: what it is called.
        found: the proposals, of which the first is the objective.
        stages: names of the stages; ``run`` if there are none.
    """
    commands = "".join(
        f'  {stage}:\n    run: [your-program, "--knob={{{{ knob }}}}"]\n    time_limit_s: 3600\n'
        for stage in stages or ("run",)
    )
    head = (
        f"# Proposed from a finished run. Replace the parameters and the command by yours, delete\n"
        f"# the metrics that you do not need, then: archgym check {name}.yaml\n"
        f"description: {name}\n"
        "parameters:\n"
        "  knob: {integer: [1, 16], baseline: 4, doc: replace this}\n"
        "# Where knobs are in a configuration file, files has entries such as\n"
        "#   {path: sim.ini, edit: sim.ini, set: {core.width: '{{ knob }}'}}\n"
        "files: []\n"
        f"stages:\n{commands}"
        f"objective: minimize {found[0].name}\n"
        "metrics:\n"
    )
    lines = []
    for number, one in enumerate(found[:_MAX_LISTED]):
        entry = {**one.reading, **({"unit": one.unit} if one.unit else {})}
        text = yaml.safe_dump(
            entry, default_flow_style=True, width=10_000, sort_keys=False, allow_unicode=True
        ).strip()
        mark = "  " if number < _MAX_SHOWN else "  # "
        lines.append(f"{mark}{one.name}: {text}  # {one.value}")
    if len(found) > _MAX_LISTED:
        lines.append(f"  # and {len(found) - _MAX_LISTED:,} numbers more")
    return head + "\n".join(lines) + "\n"


def _source(path: Path, stages: Sequence[str]) -> dict[str, str]:
    """Keys of a reading that say where it looks: nothing for the output of the last stage."""
    if path.stem in _PRINTED:
        return {} if path.stem == "stdout" else {"from": path.stem}
    stage, ending = path.stem.removeprefix("archgym."), path.suffix.removeprefix(".")
    if stage not in stages or ending not in _PRINTED or len(path.parts) > 1:
        return {"from": str(path)}
    others = {} if stage == stages[-1] else {"stage": stage}
    return {**others, **({} if ending == "stdout" else {"from": ending})}


def _printed_first(path: Path) -> tuple[bool, Path]:
    """What programs print is a summary more often than other files are."""
    return path.stem not in _PRINTED and path.suffix.removeprefix(".") not in _PRINTED, path


def _of_file(text: str, ending: str, where: Mapping[str, str]) -> Iterator[Proposal]:
    if ending == ".json":
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            return
        for path, value in _leaves(data):
            yield _proposal(path, "", {"json": path}, where, str(value))
        return
    if ending in (".csv", ".tsv"):
        yield from _of_csv(text, where)
        return
    for line in text.splitlines():
        keyed = _KEYED.match(line) or _PATH_KEYED.match(line)
        if keyed and "/" in keyed["key"]:
            yield _after_path(keyed, where)
        elif keyed:
            key = " ".join(keyed["key"].split())
            yield _proposal(key, keyed["unit"], {"key": key}, where, keyed["value"])
        elif worded := _WORDED.match(line):
            words = re.sub(r"(\\ )+|\s+", r"\\s+", re.escape(worded["words"].strip()))
            pattern = rf"{words}\s+([-+\d.,eE]+)"
            yield _proposal(
                worded["words"], worded["unit"], {"regex": pattern}, where, worded["value"]
            )


def _after_path(found: re.Match[str], where: Mapping[str, str]) -> Proposal:
    """A number after words with the path of a file, which is another one in the next run."""
    words = found["key"].split()
    parts = [r"\S*/\S*" if "/" in word else re.escape(word) for word in words]
    pattern = r"\s+".join(parts) + r"\s*[=:]\s*([-+\d.,eE]+)"
    key = " ".join(word for word in words if "/" not in word)
    return _proposal(key, found["unit"], {"regex": pattern}, where, found["value"])


def _of_csv(content: str, where: Mapping[str, str]) -> Iterator[Proposal]:
    heading = content.lstrip("\n").partition("\n")[0]
    separator = max(_SEPARATORS, key=heading.count)
    try:
        lines = io.StringIO(content.lstrip("\n"))
        rows = list(csv.DictReader(lines, delimiter=separator, skipinitialspace=True))
    except csv.Error:
        return
    for column, value in (rows[-1] if rows else {}).items():
        text = value.strip() if isinstance(column, str) and isinstance(value, str) else ""
        if re.fullmatch(_NUMBER, text):
            other = {} if separator == "," else {"separator": separator}
            yield _proposal(column, "", {"csv": column.strip(), **other}, where, text)


def _leaves(data: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Numbers of JSON with their paths; of a list the first element only."""
    if isinstance(data, dict):
        for key, value in data.items():
            if re.fullmatch(r"[^.\[\]]+", str(key)):
                yield from _leaves(value, f"{path}.{key}" if path else str(key))
    elif isinstance(data, list) and data:
        yield from _leaves(data[0], f"{path}[0]")
    elif isinstance(data, int | float) and not isinstance(data, bool) and path:
        yield path, data


def _proposal(
    key: str, unit: str, reading: dict[str, Any], where: Mapping[str, str], value: str
) -> Proposal:
    if unit == "%":
        reading, key, unit = {**reading, "read_unit": "%"}, f"{key or 'value'} share", ""
    unit = unit if known_unit(unit) else ""
    base = re.sub(r"\W+|_+", "_", key).strip("_").lower() or "value"
    base = f"n_{base}" if base[0].isdigit() else base
    ending = unit.lower().replace("/", "_per_").replace("µ", "u").replace("²", "2")
    ending = ending if re.fullmatch(r"\w+", ending) else "count"
    name = base if base == ending or base.endswith(f"_{ending}") else f"{base}_{ending}"
    if not unit:
        name = base if re.search(r"_(rate|share|count)$", base) else f"{base}_count"
    signed = {"signed": True} if value.startswith("-") else {}
    return Proposal(name, unit, {**where, **reading, **signed}, value)
