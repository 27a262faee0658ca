"""Metrics: the named outputs of a simulator, each with a unit and a direction."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from archgym.errors import InvalidValueError, UnknownNameError

Direction = Literal["minimize", "maximize"]

_SUFFIXES = {
    "": ("rate", "share", "count"),
    "B": ("b", "bytes"),
    "bit": ("bit", "bits"),
    "GB/s": ("gb_per_s",),
    "µm²": ("um2",),
    "mm²": ("mm2",),
}
"""How units are spelled at the end of a name, where it is not the unit in lower case."""


_NOTHING = 1e-12  # a ratio below stands for 0, as what rounding leaves of a difference does
_DIMENSIONLESS = re.compile(
    r"(?:.*_)?(?:ipc|cpi|[a-z]*pki|speedup|slowdown|accuracy|perplexity)", re.IGNORECASE
)
"""Names that the field has for numbers without a unit: instructions per cycle, misses per thousand
instructions (``l2_mpki``) and the like."""
_PRODUCTS = re.compile(r"(?:.*_)?(?:edp|ed2p|edap)", re.IGNORECASE)
"""Names of products, of energy and time and perhaps area, whose unit says the rest."""
_PRODUCT_UNIT = re.compile(r"[fpnuµm]?J[^s\n]*s.*")


@dataclass(frozen=True)
class Metric:
    """One output of a simulator.

    >>> Metric("read_latency_mean_ns", "ns", "minimize", "mean time from arrival to data").name
    'read_latency_mean_ns'

    Attributes:
        name: ends in its unit (``energy_pj``); dimensionless ones in ``_rate``, ``_share`` or
            ``_count``, or in a name that the field has for them: ``ipc``, ``cpi``, ``mpki`` and
            other numbers per thousand instructions, ``speedup``, ``slowdown``, ``accuracy``,
            ``perplexity``. ``edp``, ``ed2p`` and ``edap`` have a unit such as ``Js``.
        unit: the unit (``"pJ"``), empty for dimensionless.
        direction: which way is better.
        doc: one line on what exactly is measured.
        signed: whether values below zero are possible; otherwise one is a failed simulation.

    Raises:
        InvalidValueError: if the name does not end in the unit, or the direction is unknown.
    """

    name: str
    unit: str
    direction: Direction = "minimize"
    doc: str = ""
    signed: bool = False

    def __post_init__(self) -> None:
        for field, text in (("name", self.name), ("unit", self.unit), ("doc", self.doc)):
            if not isinstance(text, str):
                raise InvalidValueError(
                    f"metric {self.name!r:.80}: {field} must be a text, not {text!r:.80}"
                )
        if self.direction not in ("minimize", "maximize"):
            raise InvalidValueError(
                f"metric {self.name!r}: direction is 'minimize' or 'maximize', "
                f"not {self.direction!r}"
            )
        if _PRODUCTS.fullmatch(self.name):
            if _PRODUCT_UNIT.fullmatch(self.unit):
                return
            raise InvalidValueError(
                f"metric {self.name!r} is a product of energy and time, and has a unit such as "
                f"'Js' or 'pJ ns', not {self.unit!r}"
            )
        if not self.unit and _DIMENSIONLESS.fullmatch(self.name):
            return
        endings = _SUFFIXES.get(self.unit, (self.unit.lower().replace("/", "_per_"),))
        if not any(self.name == end or self.name.endswith(f"_{end}") for end in endings):
            wanted = " or ".join(f"'_{end}'" for end in endings)
            others = (
                ""
                if self.unit
                else ", or in ipc, cpi, mpki, speedup, slowdown, accuracy or perplexity; a metric "
                "with another ending has a unit"
            )
            raise InvalidValueError(
                f"metric {self.name!r} with unit {self.unit!r} must end in {wanted}{others}"
            )

    @property
    def sign(self) -> int:
        """1 if smaller is better, -1 if larger is."""
        return 1 if self.direction == "minimize" else -1

    def to_json(self) -> dict[str, Any]:
        """A JSON object with the fields."""
        return dict(vars(self))

    @staticmethod
    def from_json(data: dict[str, Any]) -> Metric:
        """The inverse of :meth:`to_json`.

        Raises:
            InvalidValueError: if a field has another type, or the metric is not possible.
        """
        for field, kind in (("name", str), ("unit", str), ("doc", str), ("signed", bool)):
            value = data.get(field, kind())
            if not isinstance(value, kind):
                allowed = "a text" if kind is str else "true or false"
                raise InvalidValueError(
                    f"metric {data.get('name')!r:.80}: {field} cannot be {value!r:.80}: "
                    f"allowed is {allowed}"
                )
        return Metric(**data)


def check_metrics(metrics: object, owner: str) -> None:
    """Refuses what a class cannot have as its metrics.

    Args:
        metrics: of the class.
        owner: its name, for the message.

    Raises:
        InvalidValueError: unless it is a tuple or list of metrics with different names.
    """
    listed = isinstance(metrics, tuple | list) and all(isinstance(m, Metric) for m in metrics)
    if not listed or not metrics:
        raise InvalidValueError(f"{owner} must set metrics to a tuple of Metric, not {metrics!r}")
    assert isinstance(metrics, tuple | list)
    names = [metric.name for metric in metrics]
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise InvalidValueError(f"metrics named twice: {', '.join(twice)}")


def metric_named(name: str, metrics: Iterable[Metric], where: str = "") -> Metric:
    """The metric of that name.

    Raises:
        UnknownNameError: with the nearest spelling, if there is none.
    """
    by_name = {metric.name: metric for metric in metrics}
    if name not in by_name:
        raise UnknownNameError("metric", name, by_name, where)
    return by_name[name]


def change_text(value: float | None, base: float | None, digits: int = 1) -> str:
    """How a value differs from another, as people read it; empty where a ratio is meaningless.

    >>> change_text(1.2, 1.0), change_text(5.0, 0.001), change_text(1.0, None)
    ('+20.0%', 'x5,000', '')
    >>> change_text(0.002, 1.0), change_text(0.0, 1.0), change_text(1.1e-16, 0.07)
    ('x0.002', '-100.0%', '-100.0%')

    Args:
        value: of a design; ``None`` if it is not known.
        base: what it is compared with, such as the baseline's.
        digits: of the percentage; from ten times up and a hundredth down it is a factor.
    """
    if value is None or not base or value / base < 0:
        return ""
    ratio = value / base
    if ratio > _NOTHING and not 0.01 <= ratio < 10:
        return f"x{ratio:,.0f}" if ratio >= 1000 else f"x{ratio:.3g}"
    return f"{ratio - 1:+.{digits}%}"
