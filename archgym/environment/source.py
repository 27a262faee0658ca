"""A digest of the code that simulates: whether a simulator was edited since results were recorded.

A version that nobody raised says nothing of an edit. So the classes of an environment and of its
simulator are read with all that they name: functions, constants and classes of their module,
modules beside it, and files beside it whose names stand in them. Comments, documentation and
layout do not count, nor does what the classes do not use, nor the design space and the metrics,
which records hold themselves. Code that is installed as a package has
its version instead, and archgym's own environments raise theirs when metrics change.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import re
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

__all__ = ["source_sha256"]

_LIMIT_BYTES: Final = 1 << 26
"""Larger files beside the code are known by their size and date of change."""
_RECORDED: Final = frozenset(
    {"baseline", "default_objective", "design_space", "metrics", "version"}
)
_NAMES_FILE: Final = re.compile(r"(?=.{3,250}$)\w[\w ./+-]*\.\w+")
_STANDARD: Final = tuple(
    str(Path(sysconfig.get_path(name)).resolve()) + "/" for name in ("stdlib", "platstdlib")
)
_PACKAGES: Final = {"site-packages", "dist-packages"}
"""Folders of installed packages, in whatever environment."""


def source_sha256(*classes: type) -> str:
    """The digest of the code that classes consist of and name.

    Args:
        classes: such as those of an environment and its simulator.

    Returns:
        64 hexadecimal digits; empty where all of it is installed, or cannot be read (as what is
        typed at a prompt).
    """
    return _digest(classes)


@functools.lru_cache(maxsize=64)
def _digest(classes: tuple[Any, ...]) -> str:
    reader = _Reader()
    for cls in classes:
        for base in cls.__mro__:
            reader.add(base.__module__, base.__qualname__.partition(".")[0])
    return reader.digest()


class _Module:
    """A file of Python, as its statements by the names that they define."""

    def __init__(self, path: Path, name: str, root: Path) -> None:
        self.path, self.root = path, root
        self.package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        self.tree = _Bare().visit(ast.parse(path.read_bytes()))
        self.defines: dict[str, list[ast.stmt]] = {}
        for statement in self.tree.body:
            for defined in _defined(statement):
                self.defines.setdefault(defined, []).append(statement)


class _Reader:
    """Follows names from classes to all that they depend on."""

    def __init__(self) -> None:
        self._modules: dict[Path, _Module | None] = {}
        self._seen: set[tuple[Path, str]] = set()
        self._texts: dict[str, str] = {}
        self._left: list[tuple[Path, str, Path, str]] = []

    def add(self, module_name: str, name: str) -> None:
        """Takes in what a loaded module defines under a name."""
        module = sys.modules.get(module_name)
        file = getattr(module, "__file__", None)
        if file is None or module_name.partition(".")[0] == "archgym":
            return
        path = Path(file).resolve()
        if path.suffix != ".py" or _is_installed(path):
            return
        if module_name in ("__main__", "__mp_main__"):
            module_name = path.stem
        depth = module_name.count(".") + (path.name == "__init__.py")
        self._left.append((path, module_name, path.parents[depth], name))
        while self._left:
            self._take(*self._left.pop())

    def digest(self) -> str:
        if not self._texts:
            return ""
        lines = (f"{key} {text}" for key, text in sorted(self._texts.items()))
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    def _take(self, path: Path, module_name: str, root: Path, name: str) -> None:
        """Takes in one name of a file, or with ``*`` all of it, and what that names."""
        if (path, name) in self._seen:
            return
        self._seen.add((path, name))
        if path not in self._modules:
            try:
                self._modules[path] = _Module(path, module_name, root)
            except (OSError, SyntaxError, ValueError, RecursionError):
                self._modules[path] = None
        module = self._modules[path]
        if module is None:
            return
        statements = module.tree.body if name == "*" else module.defines.get(name, ())
        where = path.relative_to(root).as_posix()
        for number, statement in enumerate(statements):
            if isinstance(statement, ast.Import | ast.ImportFrom):
                self._follow(module, statement, name)
                continue
            if isinstance(statement, ast.ClassDef) and not statement.body:
                continue
            text = ast.unparse(statement)  # the same in all versions of Python, as dump() is not
            self._texts[f"{where} {name} {number}"] = hashlib.sha256(text.encode()).hexdigest()
            self._within(module, module_name, statement)

    def _within(self, module: _Module, module_name: str, tree: ast.AST) -> None:
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id in module.defines:
                self._left.append((module.path, module_name, module.root, node.id))
            elif isinstance(node, ast.Import | ast.ImportFrom):
                self._follow(module, node, "*")
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                self._file(module, node.value)

    def _follow(self, module: _Module, statement: ast.Import | ast.ImportFrom, name: str) -> None:
        """Goes on in the modules beside this one that it imports under a name."""
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                bound = alias.asname or alias.name.partition(".")[0]
                if name in ("*", bound):
                    self._import(module, alias.name, "*")
            return
        package = statement.module or ""
        if statement.level:
            parts = module.package.split(".") if module.package else []
            parts = parts[: len(parts) - statement.level + 1]
            package = ".".join([*parts, *([package] if package else [])])
        for alias in statement.names:
            if name in ("*", alias.asname or alias.name):
                below = f"{package}.{alias.name}".strip(".")
                if not self._import(module, below, "*"):
                    self._import(module, package, alias.name)

    def _import(self, module: _Module, dotted: str, name: str) -> bool:
        if dotted.partition(".")[0] == "archgym":
            return True
        place = module.root.joinpath(*dotted.split("."))
        for path in (place.with_name(f"{place.name}.py"), place / "__init__.py"):
            if dotted and path.is_file() and not _is_installed(path):
                self._left.append((path.resolve(), dotted, module.root, name))
                return True
        return False

    def _file(self, module: _Module, text: str) -> None:
        """Takes in a file beside a module that a text in it names."""
        if not _NAMES_FILE.fullmatch(text):
            return
        path = module.path.parent / text
        try:
            if not path.is_file() or path.suffix == ".py":
                return
            about = path.stat()
            if about.st_size > _LIMIT_BYTES:
                content = f"{about.st_size} {about.st_mtime_ns}"
            else:
                content = hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError:
            return
        self._texts[f"file {text}"] = content


class _Bare(ast.NodeTransformer):
    """Leaves out documentation, and what records of results say of themselves."""

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.body = [one for one in node.body if not set(_defined(one)) & _RECORDED]
        return self.generic_visit(node)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and _is_text(body[0]):
            node.body = body[1:]  # type: ignore[attr-defined]
        return super().generic_visit(node)


def _is_installed(path: Path) -> bool:
    return str(path).startswith(_STANDARD) or not _PACKAGES.isdisjoint(path.parts)


def _is_text(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _defined(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement defines."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name.partition(".")[0]
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif node is not statement and isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
