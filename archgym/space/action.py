"""How an action stands for a design."""

from __future__ import annotations

from archgym.errors import UnknownNameError, check_integer
from archgym.space import BoxEncoding, DesignSpace, Encoding, FlatEncoding, MultiDiscreteEncoding

_ACTIONS = ("auto", "multi_discrete", "box", "discrete")


def action_encoding(space: DesignSpace, action: str, levels: int | None) -> Encoding:
    """The encoding of a form of action.

    Args:
        space: as it is searched.
        action: ``multi_discrete``, ``box``, ``discrete`` (one number a design), or ``auto``:
            ``multi_discrete`` if all parameters are finite, else ``box``.
        levels: number of values at which a discrete view sees real parameters.

    Raises:
        UnknownNameError: for another form.
        InvalidValueError: for one that the space does not have, or a number of levels below 2.
    """
    if levels is not None:
        levels = check_integer("levels", levels, 2)
    if action not in _ACTIONS:
        raise UnknownNameError("action form", action, _ACTIONS)
    if action == "auto":
        real = any(space.parameters[i].continuous for i in space.free)
        action = "box" if real and levels is None else "multi_discrete"
    if action == "box":
        return BoxEncoding(space)
    if action == "discrete":
        return FlatEncoding(space, levels)
    return MultiDiscreteEncoding(space, levels)
