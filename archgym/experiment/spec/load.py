"""Reading an experiment: the YAML, the shipped ones by name, and ``--set key=value``."""

from __future__ import annotations

import copy
import os
import shlex
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from archgym.errors import ExperimentError, InvalidValueError, UnknownNameError
from archgym.experiment.spec.from_mapping import read_experiment
from archgym.experiment.spec.schema import Experiment
from archgym.reading import plain_yaml as bounded_yaml
from archgym.reading.files import meant_file, read_text
from archgym.reading.written_yaml import WrittenLoader
from archgym.registry import is_environment_file

__all__ = [
    "experiment_yaml",
    "load_experiment",
    "parse_value",
    "shipped_experiments",
    "with_settings",
]

_ENDINGS = (".yaml", ".yml")


def load_experiment(source: str | Path, settings: Iterable[str] = ()) -> Experiment:
    """The experiment in a file, or the shipped one of that name.

    Args:
        source: path of a YAML file, or a bare name such as ``quickstart``.
        settings: changes of the form ``key=value``, see :func:`with_settings`.

    Raises:
        ExperimentError: if the file cannot be read or is not YAML.
        UnknownNameError, InvalidValueError: if it is not a valid experiment.
    """
    name, text = _source(source)
    data = _found_beside(parse_value(text, name), Path(source).parent)
    if isinstance(data, dict) and {"parameters", "metrics"} <= data.keys():
        raise InvalidValueError(
            f"{name} declares an environment, and an experiment names it: write another file with "
            f"environments: [{{id: {name}}}], agents and budget, and run that"
        )
    try:
        return read_experiment(with_settings(data, settings))
    except (UnknownNameError, InvalidValueError) as error:
        error.args = (f"{name}: {error}",)
        raise


def shipped_experiments() -> list[str]:
    """Names of the experiments that come with archgym."""
    folder = resources.files("archgym").joinpath("experiments")
    if not folder.is_dir():
        return []
    files = [entry.name for entry in folder.iterdir() if entry.name.endswith(".yaml")]
    return sorted(name.removesuffix(".yaml") for name in files)


def experiment_yaml(experiment: Experiment) -> str:
    """A text from which :func:`load_experiment` reads the same experiment."""
    return yaml.dump(experiment.to_json(), Dumper=_Dumper, sort_keys=False, allow_unicode=True)


def with_settings(data: Any, settings: Iterable[str]) -> Any:
    """A copy of an experiment's mapping with some values replaced.

    Args:
        data: the mapping.
        settings: texts ``path=value`` with a dotted path, such as ``budget=50`` or
            ``environments.0.workload=zipf``; ``+`` adds to a list, as in
            ``agents.+={name: ga}``. Values are read as YAML.

    Raises:
        InvalidValueError: if a text has another form or a path leads nowhere.
    """
    data = copy.deepcopy(data)
    for setting in settings:
        path, equals, text = setting.partition("=")
        if not equals or not path.strip():
            raise InvalidValueError(f"--set {setting!r} is not of the form key=value")
        _put(data, path.strip().split("."), parse_value(text, f"--set {setting}"), f"--set {path}")
    return data


def _found_beside(data: Any, folder: Path) -> Any:
    """The experiment with files of environments that lie beside it named from the working folder.

    A file that is not there is looked for from the working folder, as all other paths are.
    """
    entries = data.get("environments") if isinstance(data, dict) else None
    for entry in entries if isinstance(entries, list) else ():
        name = entry.get("id") if isinstance(entry, dict) else None
        if isinstance(name, str) and is_environment_file(name) and (folder / name).is_file():
            entry["id"] = _from_here(folder / name)
    return data


def _from_here(path: Path) -> str:
    """A path from the working folder if it is below that, else the absolute one."""
    absolute, here = Path(os.path.abspath(path)), Path.cwd()
    return str(absolute.relative_to(here) if absolute.is_relative_to(here) else absolute)


def _put(node: Any, path: list[str], value: Any, where: str) -> None:
    for depth, part in enumerate(path):
        last = depth == len(path) - 1
        if isinstance(node, list) and part == "+" and last:
            node.append(value)
        elif isinstance(node, list):
            if not part.isdigit() or int(part) >= len(node):
                raise InvalidValueError(
                    f"{where}: {part!r} is no position in {'.'.join(path[:depth])}: "
                    f"allowed is 0 to {len(node) - 1}, and + at the end to add one"
                )
            if last:
                node[int(part)] = value
            else:
                node = node[int(part)]
        elif isinstance(node, dict):
            if last:
                node[part] = value
            else:
                node = node.setdefault(part, {})
        else:
            before = ".".join(path[:depth]) or "the experiment"
            raise InvalidValueError(f"{where}: {before} is {node!r} and has no {part!r}")


def _source(source: str | Path) -> tuple[str, str]:
    """What to call the source, and its text."""
    path = Path(source)
    if (path / "trials.json").is_file():
        experiment = path / "experiment.yaml"
        command = shlex.join(["archgym", "run", str(experiment), "--out", str(path), "--resume"])
        raise ExperimentError(
            f"{path} is the folder of a run: its experiment is {experiment}, and {command} "
            "goes on with it"
        )
    if not path.is_file() and path.parent == Path(".") and path.suffix not in _ENDINGS:
        shipped = shipped_experiments()
        if str(source) not in shipped:
            raise UnknownNameError("experiment (and there is no such file)", str(source), shipped)
        file = resources.files("archgym").joinpath("experiments").joinpath(f"{source}.yaml")
        return str(source), file.read_text(encoding="utf-8")
    try:
        return str(source), read_text(path, bounded_yaml.YAML_LIMIT_BYTES)
    except OSError as error:
        near = "" if path.exists() else meant_file(path)
        raise ExperimentError(f"cannot read {path}: {error.strerror}{near}") from None
    except UnicodeDecodeError as error:
        raise ExperimentError(f"{path} is not a text file in UTF-8: {error.reason}") from None


def parse_value(text: str, name: str) -> Any:
    """What a text of YAML means.

    Args:
        text: the YAML.
        name: what to call it in messages.

    Raises:
        ExperimentError: if it is not YAML, with line and column.
    """
    try:
        return bounded_yaml.parse(text, WrittenLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = " ".join(part for part in (error.context, error.problem) if part)
        raise ExperimentError(f"{name}{place} is not YAML: {problem}") from None
    except yaml.YAMLError as error:
        raise ExperimentError(f"{name} is not YAML: {error}") from None


class _Dumper(yaml.SafeDumper):
    """Quotes what :class:`WrittenLoader` would not read as a text."""


_Dumper.yaml_implicit_resolvers = WrittenLoader.yaml_implicit_resolvers
