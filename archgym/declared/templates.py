"""Templates: texts with ``{{ name }}``, filled in by Jinja in its sandbox, strictly.

A name that is not known is an error when the declaration is read. Booleans are written ``true``
and ``false``, as most input files have them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import Any, Final

import jinja2
import jinja2.meta
import jinja2.sandbox

from archgym.errors import InvalidValueError, SimulationError, UnknownNameError
from archgym.reading.texts import text_of

__all__ = ["Template"]

_ALONE: Final = re.compile(r"\{\{((?:(?!\}\}|\{\{).)*)\}\}", re.DOTALL)


def _written(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


@cache
def _engine() -> jinja2.sandbox.SandboxedEnvironment:
    engine = jinja2.sandbox.ImmutableSandboxedEnvironment(
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_written,
        autoescape=False,
    )
    engine.globals.pop("lipsum", None)
    return engine


class Template:
    """A text with names to fill in.

    >>> Template("-size={{ kb * 1024 }}", {"kb"}).fill({"kb": 4})
    '-size=4096'

    Args:
        text: the text.
        names: that it may have.
        where: what messages call the names' owner, such as ``stage compile``.

    Attributes:
        text: as given.
        names: those of ``names`` that it has.

    Raises:
        InvalidValueError: if it is no template.
        UnknownNameError: if it has another name, with the nearest spelling.
    """

    def __init__(self, text: str, names: Collection[str], where: str = "") -> None:
        self.text = text
        self.names: frozenset[str] = frozenset()
        self._compiled: jinja2.Template | None = None
        if "{" not in text:
            return
        try:
            tree = _engine().parse(text)
            used = jinja2.meta.find_undeclared_variables(tree) - set(_engine().globals)
            self._compiled = _engine().from_string(text)
        except jinja2.TemplateError as error:
            line = getattr(error, "lineno", None)
            place = f", line {line} of the template" if line and "\n" in text else ""
            raise InvalidValueError(
                f"{_short(text)} is no template{place}: {error.message}"
            ) from None
        except RecursionError:
            raise InvalidValueError(f"{_short(text)} is nested too deeply") from None
        for name in sorted(used):
            if name not in names:
                raise UnknownNameError("name", name, names, _place(text, name, where))
        self.names = frozenset(used)

    def fill(self, values: Mapping[str, Any]) -> str:
        """The text with values in it.

        Raises:
            SimulationError: if a value is not there or the text cannot be made.
        """
        compiled = self._compiled
        if compiled is None:
            return self.text
        return str(self._evaluated(lambda: compiled.render(values), values))

    def value(self, values: Mapping[str, Any]) -> Any:
        """The text with values in it; of ``{{ expression }}`` alone the value, with its type.

        >>> Template("{{ kb * 1024 }}", {"kb"}).value({"kb": 4})
        4096

        Raises:
            SimulationError: as :meth:`fill`.
        """
        alone = _ALONE.fullmatch(self.text.strip())
        if alone is None:
            return self.fill(values)
        compute = _engine().compile_expression(alone[1], undefined_to_none=False)

        def computed() -> Any:
            found = compute(**values)
            return str(found) if isinstance(found, jinja2.Undefined) else found

        return self._evaluated(computed, values)

    def _evaluated(self, compute: Callable[[], Any], values: Mapping[str, Any]) -> Any:
        try:
            return compute()
        except jinja2.UndefinedError as error:
            missing = sorted(name for name in self.names if name not in values)
            hint = (
                f": {' and '.join(missing)} does not act in this design; write "
                f"{{% if {missing[0]} is defined %}}, or give it when_inactive"
                if missing
                else ""
            )
            raise SimulationError(f"{_short(self.text)}: {error}{hint}") from None
        except Exception as error:  # whatever an expression in a template does
            raise SimulationError(
                f"{_short(self.text)} cannot be filled in: {type(error).__name__}: {text_of(error)}"
            ) from None


def _place(text: str, name: str, owner: str) -> str:
    """Where a name stands in a template."""
    lines = text.strip("\n").splitlines()
    found = [n for n, line in enumerate(lines) if re.search(rf"\b{re.escape(name)}\b", line)]
    line = lines[found[0]] if found else text
    number = f"line {found[0] + 1} of the text, " if found and len(lines) > 1 else ""
    return f"in {number}{_short(line)}{f', {owner}' if owner else ''}"


def _short(text: str) -> str:
    line = text.strip().splitlines()[0] if text.strip() else text
    return repr(line if len(line) <= 60 else f"{line[:60]}...")
