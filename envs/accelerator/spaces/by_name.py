"""The spaces of the accelerator environment by name: design, hardware and baseline of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from archgym.envs.accelerator.cost.hardware import Hardware
from archgym.envs.accelerator.spaces import eyeriss as space_eyeriss
from archgym.envs.accelerator.spaces import mapping as space_mapping
from archgym.envs.accelerator.spaces import per_layer as space_per_layer
from archgym.envs.accelerator.spaces import template as space_template
from archgym.envs.accelerator.workload.layer import Network
from archgym.errors import InvalidValueError, UnknownNameError
from archgym.space import DesignSpace
from archgym.space.nearest import nearest_legal

__all__ = [
    "SPACES",
    "baseline_in",
    "check_budget",
    "check_hardware",
    "hardware_in",
    "space_name",
    "space_named",
]

SPACES: dict[str, str] = {
    "template": "dataflow, array, register files, buffer, links, format, technology",
    "mapping": "GAMMA's two-level mappings, and the hardware under them",
    "per_layer": "ConfuciuX's PEs and buffers of every layer, under a budget",
    "eyeriss": "exactly the knobs of ArchGym's Timeloop environment (ISCA 2023)",
}
_ARRAY_FROM = {
    "mapping": "pes and cluster_size",
    "per_layer": "pes_0, pes_1, ...",
    "eyeriss": "n_pes and mesh_x",
}
"""Parameters that a space's array follows from."""


def space_name(space: str | DesignSpace) -> str:
    """Which of `SPACES` the designs of a space are read by."""
    if isinstance(space, str):
        return "template" if space == "default" else space
    marks = {"outer_order": "mapping", "pes_0": "per_layer", "mesh_x": "eyeriss"}
    return next((name for mark, name in marks.items() if mark in space), "template")


def space_named(
    name: str, network: Network, budget: Mapping[str, Any], fixed: Mapping[str, Any]
) -> DesignSpace:
    """A space by name.

    Args:
        name: one of `SPACES`, or ``default``.
        network: what the designs run.
        budget: see :class:`archgym.envs.accelerator.environment.AcceleratorEnvironment`.
        fixed: fields of the hardware that are not searched.

    Raises:
        UnknownNameError: if there is none of that name.
    """
    if name in ("default", "template"):
        return space_template.template_space(budget, fixed)
    if name == "mapping":
        return space_mapping.mapping_space(network, fixed)
    if name == "per_layer":
        return space_per_layer.per_layer_space(network, budget, fixed)
    if name == "eyeriss":
        return space_eyeriss.eyeriss_space()
    raise UnknownNameError("space", name, SPACES)


def hardware_in(name: str, design: Mapping[str, Any], fixed: Mapping[str, Any]) -> Hardware:
    """The hardware that a design of a space describes.

    Raises:
        InvalidValueError: in space ``per_layer``, where every layer has its own.
    """
    if name == "per_layer":
        raise InvalidValueError(
            "space 'per_layer': every layer has its own hardware; there is no one piece"
        )
    build: Callable[..., Hardware] = {
        "mapping": space_mapping.hardware,
        "eyeriss": space_eyeriss.hardware,
    }.get(name, space_template.hardware)
    return build(design, **fixed)


def baseline_in(
    space: str | DesignSpace,
    network: Network,
    budget: Mapping[str, Any],
    fixed: Mapping[str, Any],
) -> dict[str, Any]:
    """The baseline design of a space, or the legal one nearest to it."""
    name = space_name(space)
    if name == "mapping":
        design = space_mapping.baseline(network)
    elif name == "per_layer":
        design = space_per_layer.baseline(network, budget, fixed)
    elif name == "eyeriss":
        design = space_eyeriss.BASELINE
    else:
        design = space_template.baseline(budget)
    if fixed and isinstance(space, str):
        return _near(space_named(space, network, budget, fixed), design)
    return design


def check_budget(name: str, budget: Mapping[str, Any]) -> None:
    """Refuses a budget in a space that has none.

    Raises:
        InvalidValueError: if there is one.
    """
    if budget and name in ("mapping", "eyeriss"):
        raise InvalidValueError(
            f"budget is for spaces 'template' and 'per_layer', not {name!r}; "
            "put limits on metrics in the objective"
        )


def check_hardware(name: str, fixed: Mapping[str, Any]) -> None:
    """Refuses an array beside the one that a space's own parameters describe.

    Raises:
        InvalidValueError: if fields of the hardware say one.
    """
    if name not in _ARRAY_FROM:
        return
    for field in ("dataflow", "rows", "columns", "spare_pes"):
        if field in fixed and (field, name) != ("dataflow", "eyeriss"):
            source = _ARRAY_FROM[name]
            if (field, name) == ("dataflow", "per_layer"):
                source = "the parameter dataflow"
            raise InvalidValueError(
                f"hardware: {field} follows from {source} in space {name!r}; "
                "hold parameters with fixed="
            )


def _near(space: DesignSpace, design: dict[str, Any]) -> dict[str, Any]:
    """The design, or the legal one nearest to it where there is one near."""
    codes = space.codes(design)
    if not space.illegal_reason(codes):
        return design
    near = nearest_legal(space, np.maximum(np.array(codes, dtype=np.int64), 0))
    return design if near is None else space.design(near)
