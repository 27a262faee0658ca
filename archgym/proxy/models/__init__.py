"""Families of models, by name; imported when they are first used."""

from __future__ import annotations

import importlib

from archgym.errors import check_choice
from archgym.proxy.models.base import Array, Features, Model, Options

__all__ = ["COMPETING", "FAMILIES", "Array", "Features", "Model", "Options", "family"]

FAMILIES = {
    "forest": "archgym.proxy.models.trees:Forest",
    "boosting": "archgym.proxy.models.trees:Boosting",
    "gp": "archgym.proxy.models.processes:Process",
    "mlp": "archgym.proxy.models.networks:Networks",
    "blend": "archgym.proxy.models.blend:Blend",
    "residual": "archgym.proxy.models.residual:ResidualNetworks",
}
COMPETING = tuple(kind for kind in FAMILIES if kind != "residual")
"""Those that are trained where none is named: the others take minutes."""


def family(kind: str) -> type[Model]:
    """The class of a family.

    Raises:
        UnknownNameError: if there is none of that name.
    """
    check_choice("family of models", kind, FAMILIES)
    module, _, name = FAMILIES[kind].partition(":")
    found: type[Model] = getattr(importlib.import_module(module), name)
    return found
