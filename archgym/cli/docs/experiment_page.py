"""The reference of the experiment file, from its schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from archgym.cli.docs.markdown import code, join, literal, note, table, text

__all__ = ["experiment_page"]

_TYPES = {
    "array": "list",
    "boolean": "true or false",
    "integer": "integer",
    "null": "null",
    "number": "number",
    "object": "mapping",
    "string": "text",
}


def experiment_page() -> str:
    """The keys of an experiment file and the experiments that ship, in Markdown."""
    from archgym.experiment.spec.load import load_experiment, shipped_experiments
    from archgym.experiment.spec.schema import Experiment

    schema = Experiment.model_json_schema()
    shipped = {name: load_experiment(name) for name in shipped_experiments()}
    parts = [
        "# The experiment file",
        note("archgym docs experiment"),
        "An experiment is a YAML file: environments x agents x hyperparameters x seeds, with one "
        "budget for all. Keys that are not here are refused, with the nearest that is. "
        "`archgym schema` prints the same as a JSON Schema, which an editor takes.",
        "A file names code: `module:Class` is imported, and `arguments` may name programs. Run "
        "those of others only if you would run a script of theirs.",
    ]
    for title, model in (("An experiment", schema), *_models(schema)):
        parts += [f"## {title}", _keys(model)]
    parts += [
        "## Experiments that ship",
        table(
            ("name", "what it is for", "budget", "seeds"),
            (
                (f"`{name}`", text(e.description), f"{e.budget:,}", str(len(e.seed_list)))
                for name, e in shipped.items()
            ),
        ),
        code("bash", "archgym run quickstart"),
    ]
    return join(parts)


def _models(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Title and schema of each part of an experiment."""
    for key, value in schema["properties"].items():
        many = value.get("type") == "array"
        target = (value.get("items", {}) if many else value).get("$ref", "")
        if target:
            name = target.rpartition("/")[2]
            place = "an item of" if many else "the mapping"
            yield f"{name}, {place} `{key}`", schema["$defs"][name]


def _keys(model: dict[str, Any]) -> str:
    needed = model.get("required", [])
    return table(
        ("key", "value", "default", "what it is"),
        (
            (
                f"`{key}`",
                _type(value),
                "**required**" if key in needed else _default(value),
                text(value.get("description", "")),
            )
            for key, value in model["properties"].items()
        ),
    )


def _type(value: dict[str, Any]) -> str:
    if "$ref" in value:
        return f"mapping, see {value['$ref'].rpartition('/')[2]}"
    if "anyOf" in value:
        kinds = [_type(option) for option in value["anyOf"] if option.get("type") != "null"]
        return " or ".join(dict.fromkeys(kinds))
    kind = _TYPES.get(str(value.get("type", "")), "anything")
    if kind == "list" and value.get("items"):
        kind += f" of {_plural(_type(value['items']))}"
    least = [
        f"{word} {value[key]:g}"
        for key, word in (("minimum", "at least"), ("exclusiveMinimum", "above"))
        if key in value
    ]
    return ", ".join([kind, *least])


def _plural(kind: str) -> str:
    head, _, rest = kind.partition(",")
    return f"{head}s,{rest}" if rest else f"{head}s"


def _default(value: dict[str, Any]) -> str:
    default = value.get("default")
    return "" if default in (None, "", [], {}) else literal(default)
