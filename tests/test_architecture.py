"""The structure of the code: no circle of imports, few files a folder, a small root."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDERS = {"archgym": "archgym", "envs": "archgym.envs", "agents": "archgym.agents"}
MAX_FILES = 20
MAX_LINES = 400
ROOT_MODULES = {"__init__", "__main__", "agent", "errors", "registry"}


def code_files() -> dict[str, Path]:
    """Every module of the package; a package's own module is ``NAME.__init__``."""
    found = {}
    for folder, prefix in FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            if folder != "archgym" or parts[0] not in ("envs", "agents"):
                found[".".join([prefix, *parts])] = path
    return found


def imported(tree: ast.AST, module: str, files: Mapping[str, Path]) -> Iterator[tuple[str, int]]:
    """Modules that a module imports: at its top, in functions, or for types only."""

    def resolved(name: str) -> str | None:
        return next((n for n in (name, f"{name}.__init__") if n in files), None)

    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{module} has a relative import, line {node.lineno}"
            names = [
                f"{node.module}.{alias.name}" if resolved(f"{node.module}.{alias.name}") else
                str(node.module)
                for alias in node.names
            ]  # fmt: skip
        else:
            continue
        for name in names:
            if name.split(".")[0] == "archgym":
                target = resolved(name)
                assert target is not None, f"{module} imports {name}, which is not there"
                if target != module:
                    yield target, node.lineno


def circles(graph: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Strongly connected components of more than one node (Tarjan, SIAM J. Comput. 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in graph.get(node, ()):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for node in graph:
        if node not in index:
            visit(node)
    return found


def test_circles_are_found() -> None:
    assert circles({"a": ["b"], "b": ["c"], "c": ["b"], "d": ["a"]}) == [["b", "c"]]
    assert circles({"a": ["b", "c"], "b": ["c"]}) == []


def test_no_circle_of_imports_at_any_level() -> None:
    files = code_files()
    edges = {
        module: list(imported(ast.parse(path.read_text("utf-8")), module, files))
        for module, path in files.items()
    }
    packages = {
        module.rsplit(".", i)[0] for module in files for i in range(1, module.count(".") + 1)
    }
    found = []
    for package in sorted(packages):
        depth = package.count(".") + 2
        graph: dict[str, set[str]] = defaultdict(set)
        lines: dict[tuple[str, str], str] = {}
        for module in files:
            if not module.startswith(f"{package}."):
                continue
            child = ".".join(module.split(".")[:depth])
            for target, line in edges[module]:
                other = ".".join(target.split(".")[:depth])
                if target.startswith(f"{package}.") and other != child:
                    graph[child].add(other)
                    lines.setdefault((child, other), f"{files[module]}:{line}")
        for circle in circles(graph):
            found += [lines[a, b] for a in circle for b in circle if (a, b) in lines]
    assert not found, "circles of imports:\n" + "\n".join(found)


def test_the_table_of_packages_is_complete() -> None:
    text = (ROOT / "docs/architecture.md").read_text("utf-8").split("## Packages")[1]
    rows = dict(re.findall(r"^\| `archgym\.(\w+)` \| (.*) \|$", text.split("\n## ")[0], re.M))
    packages = {path.name for path in folders_of(ROOT / "archgym")}
    modules = {path.stem for path in (ROOT / "archgym").glob("[a-z]*.py")}
    missing = (packages | modules) - rows.keys()
    assert not missing, f"docs/architecture.md, 'Packages', has no row of {sorted(missing)}"
    assert not rows.keys() - packages - modules, "docs/architecture.md has rows of what is gone"
    for name in ("agents", "envs", "experiment"):
        named = set(re.findall(r"`(\w+)/`", rows[name]))
        there = {path.name for path in folders_of(ROOT / "archgym" / name)}
        assert named == there, f"docs/architecture.md names other folders of archgym.{name}"


def folders_of(package: Path) -> list[Path]:
    """Packages within a package."""
    return [path.parent for path in package.glob("*/__init__.py")]


def test_no_folder_of_code_is_crowded() -> None:
    folders = Counter(path.parent for path in code_files().values())
    crowded = {str(folder.relative_to(ROOT)): n for folder, n in folders.items() if n > MAX_FILES}
    assert crowded == {}, "put some modules into a package: CONTRIBUTING.md, Style"


def test_no_module_is_too_long() -> None:
    lines = {str(p): len(p.read_text("utf-8").splitlines()) for p in code_files().values()}
    long = {path: n for path, n in lines.items() if n > MAX_LINES}
    assert long == {}, "split them by what they are about: CONTRIBUTING.md, Style"


def test_the_root_of_the_framework_holds_its_entrance_only() -> None:
    found = {path.stem for path in (ROOT / "archgym").glob("*.py")}
    assert found == ROOT_MODULES, "put new modules into a package of docs/architecture.md"
