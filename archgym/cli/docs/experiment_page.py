"""The reference of the experiment file, from its schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from archgym.cli.docs.markdown import literal, markdown_cell, page_of

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
    return page_of(
        "experiment_page.md",
        {"type": _type, "default_cell": lambda value: markdown_cell(_default(value))},
        models=[("An experiment", schema), *_models(schema)],
        shipped={name: load_experiment(name) for name in shipped_experiments()},
    )


def _models(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Title and schema of each part of an experiment."""
    for key, value in schema["properties"].items():
        many = value.get("type") == "array"
        forms = value.get("anyOf", []) or [value.get("items", {}) if many else value]
        target = next((form["$ref"] for form in forms if "$ref" in form), "")
        if target:
            name = target.rpartition("/")[2]
            place = "an item of" if many else "the mapping"
            yield f"{name}, {place} `{key}`", schema["$defs"][name]


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


def _default(default: Any) -> str:
    return "" if default in (None, "", [], {}) else literal(default)
