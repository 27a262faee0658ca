"""User-defined layers, as mappings: from a workload, a JSON file or an experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from archgym.envs.accelerator.workload.layer import Layer, Network
from archgym.errors import InvalidValueError, UnknownNameError

__all__ = ["network_of", "read_layer"]

_PAST = ("past_rows", "past_columns")
_WINDOW = (
    *("K", "C", "R", "S", "P", "Q", "Y", "X", "padding", "stride", "groups", "batch"),
    *_PAST,
)
_MAY_BE_ZERO = ("padding", *_PAST)
_FIELDS = {
    "conv": _WINDOW,
    "depthwise": tuple(name for name in _WINDOW if name != "groups"),
    "gemm": ("M", "N", "K", "groups", "batch"),
}
_COMMON = ("name", "kind", "count")
_LARGEST = 1 << 31
"""Largest size and count."""


def network_of(name: str, rows: Any, where: str = "layers") -> Network:
    """The network of some layers; equal ones are merged.

    Args:
        name: of the network.
        rows: a mapping for each layer, see :func:`read_layer`.
        where: what messages call the list.

    Raises:
        InvalidValueError, UnknownNameError: for a layer that cannot be read.
    """
    if not isinstance(rows, Sequence) or isinstance(rows, str) or not rows:
        raise InvalidValueError(f"{where} must be a list of at least one layer, not {rows!r:.80}")
    merged: dict[tuple[object, ...], tuple[Layer, int]] = {}
    for number, row in enumerate(rows):
        layer, count = read_layer(row, f"{where}[{number}]")
        key = layer.key
        first, so_far = merged.get(key, (layer, 0))
        merged[key] = (first, so_far + count)
    layers, counts = zip(*merged.values(), strict=True)
    return Network(name, layers, counts)


def read_layer(row: Any, where: str = "layer") -> tuple[Layer, int]:
    """One layer and how often it occurs.

    >>> read_layer({"K": 64, "C": 3, "R": 7, "S": 7, "Y": 224, "X": 224, "padding": 3, "stride": 2})
    ... # doctest: +ELLIPSIS
    (Layer(name='conv_K64_C3_R7_S7_P112_Q112', kind='conv', ...), 1)

    Args:
        row: ``kind`` is ``conv`` (the default), ``depthwise`` or ``gemm``, or left out for a gemm
            that has ``M``. A convolution has ``K`` (output channels; of a depthwise one as many
            as ``C`` by default), ``C``, ``R``, ``S`` and outputs ``P``, ``Q`` or else inputs
            ``Y``, ``X`` with ``padding`` on each side; ``stride``, ``groups`` and ``batch`` are 1
            by default, ``past_rows`` and ``past_columns`` 0. A gemm is ``M`` x ``K`` times
            ``K`` x ``N``, ``groups`` of them. Any has a ``name`` and a ``count``.
        where: what messages call it.

    Raises:
        InvalidValueError, UnknownNameError: for a field that is missing, unknown or not possible.
    """
    if not isinstance(row, Mapping):
        raise InvalidValueError(f"{where} must be a mapping of its sizes, not {row!r:.80}")
    kind = row.get("kind", "gemm" if "M" in row else "conv")
    if str(kind) not in _FIELDS:
        raise UnknownNameError("kind of layer", f"{kind!s:.80}", _FIELDS, where)
    for name, value in row.items():
        if name not in (*_FIELDS[kind], *_COMMON):
            raise UnknownNameError(f"field of a {kind} layer", name, _FIELDS[kind] + _COMMON, where)
        whole = isinstance(value, int) and not isinstance(value, bool)
        least = int(name not in _MAY_BE_ZERO)
        if name not in ("name", "kind") and not (whole and least <= value <= _LARGEST):
            raise InvalidValueError(
                f"{where}: {name} is {value!r:.80}; it must be a whole number of at least {least}"
                + (f", at most {_LARGEST:,}" if whole and value > _LARGEST else "")
            )
    sizes = {name: value for name, value in row.items() if name not in _COMMON}
    made = _gemm(sizes, where) if kind == "gemm" else _window(kind, sizes, where)
    label = "gemm" if kind == "gemm" else kind
    shown = ("K", "C", "P") if kind == "gemm" else ("K", "C", "R", "S", "P", "Q")
    made["name"] = str(row.get("name", "_".join([label, *(f"{n}{made[n]}" for n in shown)])))
    try:
        return Layer(kind=kind, **made), row.get("count", 1)
    except InvalidValueError as error:
        raise InvalidValueError(f"{where}: {error}") from None


def _gemm(sizes: Mapping[str, int], where: str) -> dict[str, Any]:
    m, n, k = (_needed(sizes, name, where) for name in ("M", "N", "K"))
    groups = sizes.get("groups", 1)
    return {
        "K": n * groups,
        "C": k * groups,
        "P": m,
        "groups": groups,
        "batch": sizes.get("batch", 1),
    }


def _window(kind: str, sizes: Mapping[str, int], where: str) -> dict[str, Any]:
    made: dict[str, Any] = {name: _needed(sizes, name, where) for name in ("C", "R", "S")}
    made |= {name: sizes.get(name, 1) for name in ("stride", "groups", "batch")}
    made |= {name: sizes[name] for name in _PAST if name in sizes}
    if kind == "depthwise":
        made |= {"groups": made["C"], "K": sizes.get("K", made["C"])}
    else:
        made["K"] = _needed(sizes, "K", where)
    padding = sizes.get("padding", 0)
    for output, window, given in (("P", "R", "Y"), ("Q", "S", "X")):
        if (output in sizes) == (given in sizes):
            raise InvalidValueError(
                f"{where}: give either {output} (outputs) or {given} (inputs), and not both"
            )
        if output in sizes:
            if "padding" in sizes and "Y" not in sizes and "X" not in sizes:
                raise InvalidValueError(f"{where}: padding goes with inputs Y, X, not with P, Q")
            made[output] = sizes[output]
            continue
        extent = sizes[given] + 2 * padding
        if extent < made[window]:
            raise InvalidValueError(
                f"{where}: {window} is {made[window]}; with padding there are {extent} inputs"
            )
        made[output] = (extent - made[window]) // made["stride"] + 1
    return made


def _needed(sizes: Mapping[str, int], name: str, where: str) -> int:
    if name not in sizes:
        raise InvalidValueError(
            f"{where}: {name} is missing; it has {', '.join(sizes) or 'nothing'}"
        )
    return sizes[name]
