"""The page of an environment."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from archgym.cli.describe import BETTER, count_text, environment_json, paragraphs, shortened
from archgym.cli.docs.markdown import page_of

__all__ = ["agreement_of", "environment_page"]

_LONGEST_RULE = 400


def environment_page(name: str, cls: type[Any], agreement: Mapping[str, Any] | None = None) -> str:
    """The page of an environment, in Markdown.

    Args:
        name: under which it is made.
        cls: its class.
        agreement: how far it agrees with reference figures, from :func:`agreement_of`.
    """
    data = environment_json(name, cls)
    lists = {
        "What metrics do not show": data["caveats"],
        "What is modelled": list(cls.modelled),
        "What is not modelled": data["not_modelled"],
    }
    filters: dict[str, Callable[..., str]] = {
        "count": lambda number: count_text(number, "more than can be counted"),
        "shortened": lambda rule: shortened(rule, _LONGEST_RULE),
        "design": lambda values: " ".join(f"`{key}={value}`" for key, value in values.items()),
        "figure": lambda value, form: "-" if value is None else format(value, form),
    }
    own = {"name": name, "description": paragraphs(cls.__doc__), "spaces": _spaces(data["spaces"])}
    return page_of(
        "environment_page.md",
        filters,
        **{**data, **own},
        better=BETTER,
        lists=lists,
        sources=cls.sources(),
        agreement=agreement,
    )


def agreement_of(name: str, version: str, validation: Mapping[str, Any]) -> dict[str, Any]:
    """What a page keeps of ``archgym validate NAME --json``.

    Args:
        name: of the environment.
        version: of its simulator.
        validation: what the command printed.
    """
    return {
        "environment": name,
        "version": version,
        "archgym": validation["archgym"],
        "references": [
            {
                "title": one["title"],
                "rows": one["rows"],
                "metrics": [
                    {
                        "metric": s["metric"],
                        "cases": s["varying"],
                        **{
                            f"{which}_{name}": _rounded(s[which][name])
                            for which in ("median", "worst")
                            for name in ("spearman", "mean_error")
                        },
                    }
                    for s in one["summaries"]
                    if s["varying"]
                ],
            }
            for one in validation["references"]
        ],
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(f"{value:.4f}")


def _spaces(spaces: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The design spaces; of a later one only what no earlier one has."""
    seen: list[Any] = []
    for label, space in spaces.items():
        new = [one for one in space["parameters"] if one not in seen]
        rules = [rule for rule in space["rules"] if rule not in seen]
        known = len(space["parameters"]) - len(new)
        yield label, {**space, "new": new, "known": known, "rules": rules}
        seen += [*new, *rules]
