"""Forged and damaged JSON: every value of every file of a run replaced by something else."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

JSON_COLUMNS = (
    *("settings", "hyperparameters", "objective", "fixed", "workload_spec", "baseline"),
    *("fidelities", "baseline_design", "optimum", "versions", "history"),
)
"""Columns of the table of trials that hold JSON."""
_NESTED: Any = 0
for _ in range(150):
    _NESTED = [_NESTED]
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 7, 10**30, -(10**30), 1.5, 1e308, float("inf"), float("nan")),
    *("", "x", "../../x", "\x1b[2J", "\udcff", "9" * 400, "Conformance-v0", "module:Class"),
    *([], {}, [None], [[]], {"": None}, {"x": 1}, ["x"], [1e308], _NESTED),
)
"""What stands in the place of a value."""


class Forger:
    """Damages a run, another way each time.

    Args:
        seed: decides how.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def damage(self, run: Path) -> str:
        """Damages one file; says how."""
        files = sorted(path for path in run.rglob("*.json*") if path.stat().st_size)
        tables = sorted(run.glob("datasets/*/trials/*.parquet"))
        path = self.random.choice([*files, *tables])
        where = str(path.relative_to(run))
        if path.suffix != ".parquet" and self.random.random() < 0.15:
            return f"{where}: {self._damage_bytes(path)}"
        try:
            if path.suffix == ".parquet":
                return f"{where}: {self._damage_trials(path)}"
            if path.suffix == ".jsonl":
                return f"{where}: {self._damage_lines(path)}"
            text, how = self._altered(path.read_text())
        except (ValueError, pa.ArrowException):  # it is damaged already
            return f"{where}: damaged before"
        path.write_text(text, errors="surrogatepass")
        return f"{where}: {how}"

    def _damage_trials(self, path: Path) -> str:
        table = pq.read_table(path)
        name = self.random.choice(JSON_COLUMNS)
        rows = table[name].to_pylist()
        place = self.random.randrange(len(rows))
        if self.random.random() < 0.3 or rows[place] is None:
            rows[place] = self.random.choice([None, "", "x", "[", "{}", "[]", "null", "1", '"x"'])
            how = repr(rows[place])
        else:
            rows[place], how = self._altered(rows[place])
            rows[place] = rows[place].encode("utf-8", "replace").decode()
        column = pa.array(rows, pa.string())
        pq.write_table(table.set_column(table.column_names.index(name), name, column), path)
        return f"{name} of row {place}: {how}"

    def _damage_bytes(self, path: Path) -> str:
        content = bytearray(path.read_bytes())
        place = self.random.randrange(len(content))
        how = self.random.choice(["cut", "zero", "byte", "doubled", "empty", "bom"])
        if how == "cut":
            del content[place:]
        elif how == "zero":
            content[place : place + 40] = bytes(40)
        elif how == "byte":
            content[place] = self.random.choice([0xFF, 0, 0x22, 0x7B, content[place] ^ 1])
        elif how == "doubled":
            content *= 2
        elif how == "empty":
            content.clear()
        else:
            content[:0] = b"\xff\xfe"
        path.write_bytes(content)
        return f"{how} at {place}"

    def _damage_lines(self, path: Path) -> str:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        place = self.random.randrange(len(lines))
        how = self.random.choice(["gone", "twice", "moved", *["altered"] * 9])
        if how == "gone":
            del lines[place]
        elif how == "twice":
            lines.insert(place, lines[place])
        elif how == "moved":
            lines.insert(self.random.randrange(len(lines)), lines.pop(place))
        else:
            lines[place], how = self._altered(lines[place])
            lines[place] += "\n"
        path.write_text("".join(lines), encoding="utf-8", errors="surrogatepass")
        return f"line {place}: {how}"

    def _altered(self, text: str) -> tuple[str, str]:
        """JSON with one value replaced, left out or renamed."""
        data = json.loads(text)
        places = list(_places(data))
        place = self.random.choice(places)
        value = self.random.choice(VALUES)
        how = f"{place} is {value!r:.60}"
        if not place:
            return json.dumps(value), how
        data = copy.deepcopy(data)
        node = data
        for key in place[:-1]:
            node = node[key]
        chance = self.random.random()
        if chance < 0.2:
            del node[place[-1]]
            how = f"{place} left out"
        elif chance < 0.25 and isinstance(node, dict):
            node["renamed"] = node.pop(place[-1])
            how = f"{place} renamed"
        elif chance < 0.3 and isinstance(node, list):
            node.append(value)
            how = f"{place[:-1]} longer by {value!r:.60}"
        else:
            node[place[-1]] = value
        return json.dumps(data), how


def _places(data: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value in JSON."""
    yield above
    if isinstance(data, dict):
        for key, value in data.items():
            yield from _places(value, (*above, key))
    elif isinstance(data, list):
        for key, value in enumerate(data[:30]):
            yield from _places(value, (*above, key))
