"""How the shipped recorded workloads were made; ``python -m archgym.envs.dram.recipes sqlite``.

Each recipe generates its input from a seed in a temporary folder, runs a Debian program on it
under :func:`archgym.envs.dram.record.record`, and writes ``NAME.npz`` with its card ``NAME.json``.
The inputs are synthetic, so nobody else's rights rest on them.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from archgym.envs.dram.record import record, save_recording
from archgym.envs.dram.trace import Trace
from archgym.errors import TraceError, UnknownNameError

__all__ = ["RECIPES", "Recipe", "main", "make"]

_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "LC_ALL": "C",
    "PYTHONHASHSEED": "0",
    "HOME": "/nonexistent",
}
_LICENCE = "Apache-2.0, as archgym; the input is generated, the trace holds no program text or data"


@dataclass(frozen=True)
class Recipe:
    """A program on an input.

    Attributes:
        title: one line for listings.
        package: the Debian package of the program.
        command: program and arguments; paths are relative to the folder of the input.
        make_input: writes the input into a folder.
        input: what the input is, for the card.
        skip_instructions: the start of the program that only warms the caches.
        max_requests: length of the recording.
    """

    title: str
    package: str
    command: tuple[str, ...]
    make_input: Callable[[Path], None]
    input: str
    skip_instructions: int
    max_requests: int = 100_000


def make(name: str, *, timeout_s: float = 3600.0) -> tuple[Trace, dict[str, Any]]:
    """Generate the input of a recipe and record its program.

    Args:
        name: a key of :data:`RECIPES`.
        timeout_s: limit on the wall time of the recording, s.

    Returns:
        The trace and its card.

    Raises:
        UnknownNameError: for an unknown recipe.
        TraceError: if the program is not installed or fails.
    """
    if name not in RECIPES:
        raise UnknownNameError("recipe", name, RECIPES)
    recipe = RECIPES[name]
    if shutil.which(recipe.command[0]) is None:
        raise TraceError(
            f"recipe {name!r} needs the program {recipe.command[0]!r}: "
            f"apt-get install {recipe.package}"
        )
    with tempfile.TemporaryDirectory(prefix="archgym-recipe-") as folder:
        recipe.make_input(Path(folder))
        trace, card = record(
            recipe.command,
            skip_instructions=recipe.skip_instructions,
            max_requests=recipe.max_requests,
            timeout_s=timeout_s,
            name=name,
            folder=folder,
            environment=_ENVIRONMENT,
        )
    about = {
        "title": recipe.title,
        "program": f"{Path(recipe.command[0]).name}, Debian package {_version(recipe.package)}",
        "input": recipe.input,
        "environment": _ENVIRONMENT,
        "recipe": f"python -m archgym.envs.dram.recipes {name}",
        "licence": _LICENCE,
    }
    return trace, about | card


def main(arguments: list[str] | None = None) -> None:
    """Record the named recipes into a folder."""
    parser = argparse.ArgumentParser(prog="archgym.envs.dram.recipes", description=__doc__)
    parser.add_argument("names", nargs="+", help=f"of {', '.join(RECIPES)}")
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for the files")
    parser.add_argument("--timeout", type=float, default=3600.0, help="s of wall time for each")
    chosen = parser.parse_args(arguments)
    chosen.out.mkdir(parents=True, exist_ok=True)
    for name in chosen.names:
        trace, card = make(name, timeout_s=chosen.timeout)
        save_recording(trace, card, chosen.out / f"{name}.npz")


def _version(package: str) -> str:
    """``"sqlite3 3.40.1-2"`` from the package manager, or the name alone elsewhere."""
    query = ["dpkg-query", "--show", "--showformat=${Package} ${Version}", package]
    try:
        shown = subprocess.run(query, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return f"{package} (version unknown)"
    return shown.stdout.strip()


def _text(path: Path, words: int, seed: int) -> None:
    """Running text: words of a vocabulary of 30,000 with Zipf's frequencies, lines of 12 words."""
    draw = random.Random(seed)
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    vocabulary = [
        "".join(draw.choices(letters, range(26, 0, -1), k=draw.randint(2, 10)))
        for _ in range(30_000)
    ]
    weights = [1_000_000 // (rank + 1) for rank in range(len(vocabulary))]
    chosen = draw.choices(vocabulary, weights, k=words)
    lines = (" ".join(chosen[i : i + 12]) for i in range(0, words, 12))
    path.write_text("\n".join(lines) + "\n", encoding="ascii")


def _sqlite_input(folder: Path) -> None:
    """A shop: 150,000 customers, 20,000 products, 300,000 purchases."""
    draw = random.Random(1)
    with sqlite3.connect(folder / "shop.db") as shop:
        shop.executescript(
            "CREATE TABLE customer(id INTEGER PRIMARY KEY, region INTEGER, name TEXT);"
            "CREATE TABLE product(id INTEGER PRIMARY KEY, category INTEGER, price INTEGER);"
            "CREATE TABLE purchase(id INTEGER PRIMARY KEY, customer INTEGER, product INTEGER,"
            " amount INTEGER, note TEXT);"
        )
        shop.executemany(
            "INSERT INTO customer VALUES (?, ?, ?)",
            ((i, draw.randrange(50), f"customer {draw.getrandbits(64):x}") for i in range(150_000)),
        )
        shop.executemany(
            "INSERT INTO product VALUES (?, ?, ?)",
            ((i, draw.randrange(40), draw.randint(1, 999)) for i in range(20_000)),
        )
        shop.executemany(
            "INSERT INTO purchase VALUES (?, ?, ?, ?, ?)",
            (
                (
                    i,
                    draw.randrange(150_000),
                    draw.randrange(20_000),
                    draw.randint(1, 20),
                    f"{draw.getrandbits(128):x}",
                )
                for i in range(300_000)
            ),
        )
    shop.close()


_QUERY = (
    "PRAGMA mmap_size=268435456; PRAGMA temp_store=MEMORY; "
    "SELECT c.name, p.category, sum(o.amount * p.price) AS total FROM purchase o "
    "JOIN customer c ON c.id = o.customer JOIN product p ON p.id = o.product "
    "WHERE p.price > 100 GROUP BY c.id, p.category ORDER BY total DESC LIMIT 20;"
)

_JSON_PROGRAM = """\
import json
with open("records.json") as file:
    records = json.load(file)
groups = {}
for record in records:
    groups.setdefault(record["city"], []).append(record)
for members in groups.values():
    members.sort(key=lambda record: (record["score"], record["name"]))
ranking = sorted(records, key=lambda record: record["score"])
with open("ranking.json", "w") as file:
    json.dump(ranking[::10], file)
"""


def _json_input(folder: Path) -> None:
    """80,000 records."""
    draw = random.Random(2)
    records = [
        {
            "name": f"{draw.getrandbits(48):x}",
            "city": draw.randrange(500),
            "score": draw.randrange(1_000_000),
            "tags": [draw.randrange(100) for _ in range(4)],
        }
        for _ in range(80_000)
    ]
    (folder / "records.json").write_text(json.dumps(records), encoding="ascii")


RECIPES: dict[str, Recipe] = {
    "sqlite": Recipe(
        "SQLite: join, group by and order by over 300,000 rows",
        "sqlite3",
        ("sqlite3", "-batch", "-init", "/dev/null", "shop.db", _QUERY),
        _sqlite_input,
        "a database of 150,000 customers, 20,000 products and 300,000 purchases, Python's "
        "random.Random(1)",
        skip_instructions=20_000_000,
    ),
    "xz": Recipe(
        "xz: LZMA compression of 12 MB of text",
        "xz-utils",
        ("xz", "--keep", "--stdout", "--threads=1", "-6", "text"),
        lambda folder: _text(folder / "text", 2_000_000, 3),
        "2,000,000 words of running text with Zipf's frequencies, Python's random.Random(3)",
        skip_instructions=50_000_000,
    ),
    "zstd": Recipe(
        "zstd: fast compression of 25 MB of text",
        "zstd",
        ("zstd", "--single-thread", "--no-asyncio", "-q", "-3", "-c", "text"),
        lambda folder: _text(folder / "text", 4_000_000, 4),
        "4,000,000 words of running text with Zipf's frequencies, Python's random.Random(4)",
        skip_instructions=20_000_000,
    ),
    "sort": Recipe(
        "GNU sort: 166,667 lines of text",
        "coreutils",
        ("sort", "--parallel=1", "-S", "64M", "-o", "sorted", "text"),
        lambda folder: _text(folder / "text", 2_000_000, 5),
        "2,000,000 words of running text with Zipf's frequencies, Python's random.Random(5)",
        skip_instructions=200_000_000,
    ),
    "python_json": Recipe(
        "Python: parse, group and sort 80,000 JSON records",
        "python3.11-minimal",
        ("/usr/bin/python3", "-P", "-s", "-S", "-B", "-c", _JSON_PROGRAM),
        _json_input,
        "80,000 records of 4 fields, Python's random.Random(2)",
        skip_instructions=60_000_000,
    ),
}
"""Every recipe by name."""

if __name__ == "__main__":
    main()
