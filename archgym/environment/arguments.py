"""The constructor arguments of environments, and a check that settings name those that matter.

Results are shared between environments with equal settings: through the simulation cache, in
datasets, and in what a proxy learns. An argument that changes metrics and is not among the
settings would make that sharing silently wrong.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from archgym.environment.provenance import PROVENANCE
from archgym.errors import InvalidValueError
from archgym.problem.design_problem import DesignProblem
from archgym.space import DesignSpace


def constructor_arguments(environment: type[DesignProblem]) -> dict[str, inspect.Parameter]:
    """Keyword arguments that an environment takes, its base classes' included."""
    found: dict[str, inspect.Parameter] = {}
    for cls in environment.__mro__:
        if "__init__" not in vars(cls):
            continue
        parameters = list(inspect.signature(vars(cls)["__init__"]).parameters.values())[1:]
        for parameter in parameters:
            if parameter.kind in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD):
                found.setdefault(parameter.name, parameter)
        if all(p.kind is not p.VAR_KEYWORD for p in parameters):
            break
    return found


def own_arguments(
    environment: type[DesignProblem], base: type[DesignProblem]
) -> dict[str, inspect.Parameter]:
    """Arguments that the base class does not take, and on which metrics may depend.

    One that the environment itself takes under a name such as ``seed`` is among them, although
    the base class has one of that name for something else.
    """
    inherited = {*constructor_arguments(base)} - (_declared(environment, base) & {*PROVENANCE})
    left_out = {*inherited, *environment.incidental_arguments}
    taken = constructor_arguments(environment).items()
    return {name: parameter for name, parameter in taken if name not in left_out}


def given_arguments(
    environment: type[DesignProblem],
    base: type[DesignProblem],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> dict[str, Any]:
    """The given values of :func:`own_arguments`, with which an environment is made.

    Args:
        environment: its class.
        base: whose arguments every environment takes.
        args: positional arguments of its constructor.
        kwargs: its keyword arguments.
    """
    given = {**dict(zip(constructor_arguments(environment), args, strict=False)), **kwargs}
    own = own_arguments(environment, base)
    return {name: value for name, value in given.items() if name in own}


def narrowed(
    space: DesignSpace,
    fixed: Mapping[str, Any] | None,
    exclude: Mapping[str, Sequence[Any]] | None,
    include: Sequence[str],
) -> DesignSpace:
    """The design space that is searched; see :class:`archgym.Environment` for the arguments.

    Raises:
        UnknownNameError: if a parameter does not exist.
        DesignError, InvalidValueError: if a value is not possible.
    """
    if isinstance(include, str) or not isinstance(include, Sequence):
        raise InvalidValueError(f"include must be a list of parameters, not {include!r:.80}")
    if include:
        space = space.release(include)
    if exclude is not None:
        space = space.exclude(exclude)
    if fixed is not None and not isinstance(fixed, Mapping):
        raise InvalidValueError(
            f"fixed must be a mapping of parameters to values, not {fixed!r:.80}"
        )
    return space.fix(fixed) if fixed else space


def search_arguments(
    space: DesignSpace, fixed: Mapping[str, Any], offered: DesignSpace
) -> dict[str, Any]:
    """Arguments ``fixed``, ``exclude`` and ``include`` that make one space of another.

    Args:
        space: the wanted one; what it holds fixed does not count.
        fixed: parameters that the wanted one holds at a value.
        offered: the one that an environment offers.

    Returns:
        Those of the arguments that are needed.
    """
    released = [name for name in offered.fixed if name not in fixed]
    released += [
        name
        for name, values in offered.excluded.items()
        if name not in released and any(v not in space.excluded.get(name, ()) for v in values)
    ]
    exclude: dict[str, list[Any]] = {}
    for name, values in space.excluded.items():
        already = () if name in released else offered.excluded.get(name, ())
        if more := [value for value in values if value not in already]:
            exclude[name] = more
    given = {
        name: value
        for name, value in fixed.items()
        if name not in offered.fixed or offered.fixed[name] != value
    }
    found = {"fixed": given, "exclude": exclude, "include": released}
    return {name: value for name, value in found.items() if value}


def check_settings(environment: DesignProblem, given: Mapping[str, Any]) -> None:
    """Refuses an environment whose settings do not name one of its own arguments.

    Args:
        environment: with its settings.
        given: :func:`given_arguments`. One at its default need not be among the settings, nor
            an empty one where the default is empty too.

    Raises:
        InvalidValueError: if one has another value, and is neither in ``settings`` nor in
            ``incidental_arguments``.
    """
    if not given:
        return
    cls = type(environment)
    defaults, settings = constructor_arguments(cls), environment.settings
    for name, value in given.items():
        if name not in settings and not _same(value, defaults[name].default):
            raise unnamed_argument(cls, name, f"with {name}={value!r:.80}")


def unnamed_argument(environment: type[DesignProblem], name: str, which: str) -> InvalidValueError:
    """The error for an argument that settings do not name; its message says what to do.

    Args:
        environment: its class.
        name: of the argument.
        which: results would be taken for others, as in ``with voltage=0.8``.
    """
    return InvalidValueError(
        f"{environment.__name__}: results {which} would be taken for results without it, because "
        f"its settings do not name {name!r}: return it from the property settings, as in "
        f"{{{name!r}: self.{name}}}; or, if no metric depends on it, write "
        f"incidental_arguments = ({name!r},) in the class"
    )


def _declared(environment: type[DesignProblem], base: type[DesignProblem]) -> set[str]:
    """Names of the arguments in the constructors of the classes below the base class."""
    found: set[str] = set()
    for cls in environment.__mro__[: environment.__mro__.index(base)]:
        if "__init__" in vars(cls):
            found |= {*inspect.signature(vars(cls)["__init__"]).parameters}
    return found


def _same(value: Any, default: Any) -> bool:
    if value is default or (_is_empty(value) and _is_empty(default)):
        return True
    try:
        return type(value) is type(default) and bool(value == default)
    except (TypeError, ValueError):  # such as arrays
        return False


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str | tuple | list | dict | set) and not value)
