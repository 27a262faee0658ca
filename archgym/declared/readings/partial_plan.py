"""How metrics are read: at the end of a run, and while it goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from archgym.declared.load import Source
from archgym.declared.readings.extract import compiled
from archgym.declared.schema import MetricEntry
from archgym.errors import InvalidValueError, check_choice
from archgym.space import Expression
from archgym.space.expression import Literal

__all__ = ["Partial", "Reading", "planned"]


@dataclass(frozen=True)
class Reading:
    """How one metric is read.

    Attributes:
        name: of the metric.
        entry: as declared.
        kind: one of :data:`archgym.declared.schema.READINGS`.
        what: the pattern, key, path, column, stage or expression.
        stage: whose output it is.
        factor: by which the number is multiplied.
    """

    name: str
    entry: MetricEntry
    kind: str
    what: Any
    stage: str
    factor: float


@dataclass(frozen=True)
class Partial:
    """How a run is looked at while it goes on.

    Attributes:
        stage: that is looked at.
        source: ``stdout``, ``stderr`` or the path of a file.
        pattern: finds in a line how far the run is.
        counts: whether each line that matches is one step.
        whole: what the number is at the end.
        at: shares of the run at which metrics are looked at, ascending.
        readings: of metrics that can be known before the end.
    """

    stage: str
    source: str
    pattern: Any
    counts: bool
    whole: Expression | Literal
    at: tuple[float, ...]
    readings: tuple[Reading, ...]


def own_patterns(source: Source, readings: Sequence[Reading]) -> dict[str, Any]:
    """The compiled patterns of the metrics that ``partial`` reads in another way than at the end.

    Args:
        source: the declaration, with ``partial``.
        readings: of all metrics at the end.

    Raises:
        InvalidValueError, UnknownNameError: for what is not possible, with its line.
    """
    assert source.declaration.partial is not None
    patterns = {}
    for name, text in source.declaration.partial.metrics.items():
        with source.at("partial", "metrics", name):
            check_choice("metric", name, [one.name for one in readings])
            patterns[name] = compiled(text)
    return patterns


def planned(
    source: Source,
    readings: Sequence[Reading],
    patterns: Mapping[str, Any],
    whole: Expression | Literal,
) -> Partial:
    """How runs of a declaration that has ``partial`` are looked at while they go on.

    Args:
        source: the declaration.
        readings: of all metrics at the end.
        patterns: as :func:`own_patterns` gives them.
        whole: the formula ``of``.

    Raises:
        InvalidValueError, UnknownNameError: for what is not possible.
    """
    entry, stages = source.declaration.partial, source.declaration.stages
    assert entry is not None
    if (entry.regex is None) == (entry.counts is None):
        raise InvalidValueError("it has exactly one of the keys regex and counts")
    stage = entry.stage if entry.stage is not None else list(stages)[-1]
    check_choice("stage", stage, stages)
    if stages[stage].uses is not None:
        raise InvalidValueError(f"stage {stage!r} has 'uses': it does not run each time")
    if sorted(set(entry.at)) != entry.at:
        raise InvalidValueError(f"at is {entry.at}, but its shares ascend, each once")
    if isinstance(entry.of, (int, float)) and entry.of <= 0:
        raise InvalidValueError(f"of cannot be {entry.of:g}: allowed is more than 0")
    before = list(stages)[: list(stages).index(stage)]
    found: list[Reading] = []
    for one in readings:
        needed = {reading.name for reading in readings} & set(_names_of(one))
        if one.name in patterns:
            own = MetricEntry(regex=entry.metrics[one.name], stage=stage)
            found.append(Reading(one.name, own, "regex", patterns[one.name], stage, 1.0))
        elif one.kind == "formula":
            found += [one] if needed <= {reading.name for reading in found} else []
        elif one.stage in before or (
            one.kind in ("regex", "key") and (one.stage, one.entry.source) == (stage, entry.source)
        ):
            found.append(one)
    if not any(one.stage == stage and one.kind != "formula" for one in found):
        raise InvalidValueError(
            f"no metric is read from {entry.source} of stage {stage!r} by regex or key, so there "
            "is nothing to look at while it runs: give metrics"
        )
    return Partial(
        stage,
        entry.source,
        compiled(entry.regex or entry.counts or ""),
        entry.counts is not None,
        whole,
        tuple(entry.at),
        tuple(found),
    )


def _names_of(reading: Reading) -> tuple[str, ...]:
    """Names that a formula has."""
    return tuple(getattr(reading.what, "names", ())) if reading.kind == "formula" else ()
