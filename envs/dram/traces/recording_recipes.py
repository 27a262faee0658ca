"""Recipes of the shipped recorded workloads; ``archgym trace recipe sqlite`` records one again.

Each recipe generates its input from a seed in a temporary folder (see
:mod:`archgym.envs.dram.traces.recording_inputs`), runs a Debian program on it under
:func:`archgym.envs.dram.traces.recording.record`, and writes ``NAME.npz`` with its card
``NAME.json``.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from archgym.envs.dram.traces import recording_inputs as inputs
from archgym.envs.dram.traces.recording import record
from archgym.envs.dram.traces.trace import Trace
from archgym.errors import TraceError, UnknownNameError

__all__ = ["RECIPES", "Recipe", "make", "run_recipe"]

Recorded = TypeVar("Recorded")

ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "LC_ALL": "C",
    "PYTHONHASHSEED": "0",
    "HOME": "/nonexistent",
}
LICENCE = "Apache-2.0, as archgym; the input is generated, the trace holds no program text or data"


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
        requests_under_way: of :func:`archgym.envs.dram.traces.recording.record`, for vector code.
        environment: variables beyond those that every recipe sets.
        needs: more packages whose version shapes the trace.
    """

    title: str
    package: str
    command: tuple[str, ...]
    make_input: Callable[[Path], None]
    input: str
    skip_instructions: int
    max_requests: int = 100_000
    requests_under_way: int | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    needs: tuple[str, ...] = ()


def make(
    name: str,
    *,
    timeout_s: float = 3600.0,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Trace, dict[str, Any]]:
    """Generate the input of a recipe and record its program.

    Args:
        name: a key of :data:`RECIPES`.
        timeout_s: limit on the wall time of the recording, s.
        progress: as in :func:`archgym.envs.dram.traces.recording.record`.

    Returns:
        The trace and its card.

    Raises:
        UnknownNameError: for an unknown recipe.
        TraceError: if the program is not installed or fails.
    """
    if name not in RECIPES:
        raise UnknownNameError("recipe", name, RECIPES)
    recipe = RECIPES[name]
    return run_recipe(
        name,
        recipe,
        record,
        f"archgym trace recipe {name}",
        requests_under_way=recipe.requests_under_way,
        skip_instructions=recipe.skip_instructions,
        max_requests=recipe.max_requests,
        timeout_s=timeout_s,
        progress=progress,
    )


def run_recipe(
    name: str,
    recipe: Recipe,
    record: Callable[..., tuple[Recorded, dict[str, Any]]],
    again: str,
    **settings: Any,
) -> tuple[Recorded, dict[str, Any]]:
    """Generates the input of a recipe, records its program on it, and describes both.

    Args:
        name: of the recipe and of what is recorded.
        recipe: the program and its input.
        record: records a command, with ``name``, ``folder``, ``environment`` and the settings;
            gives what was recorded and its card.
        again: the command that does this again, for the card.
        **settings: of the recording.

    Raises:
        TraceError: if the program is not installed or fails.
    """
    if shutil.which(recipe.command[0]) is None:
        raise TraceError(
            f"recipe {name!r} needs the program {recipe.command[0]!r}: "
            f"apt-get install {recipe.package}"
        )
    environment = {**ENVIRONMENT, **recipe.environment}
    with tempfile.TemporaryDirectory(prefix="archgym-recipe-") as folder:
        recipe.make_input(Path(folder))
        recorded, card = record(
            recipe.command, name=name, folder=folder, environment=environment, **settings
        )
    about = {
        "title": recipe.title,
        "program": f"{Path(recipe.command[0]).name}, {versions(recipe)}",
        "input": recipe.input,
        "environment": environment,
        "recipe": again,
        "licence": LICENCE,
    }
    return recorded, about | card


def versions(recipe: Recipe) -> str:
    """The packages of a recipe: ``"Debian package sqlite3 3.40.1-2"``, or several."""
    packages = (recipe.package, *recipe.needs)
    word = "package" if len(packages) == 1 else "packages"
    return f"Debian {word} {', '.join(_version(package) for package in packages)}"


def _version(package: str) -> str:
    """``"sqlite3 3.40.1-2"`` from the package manager, or the name alone elsewhere."""
    query = ["dpkg-query", "--show", "--showformat=${Package} ${Version}", package]
    try:
        shown = subprocess.run(query, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return f"{package} (version unknown)"
    return shown.stdout.strip()


_PYTHON = ("/usr/bin/python3", "-P", "-s", "-B", "-c")
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OPENBLAS_CORETYPE": "Haswell"}

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


_MATMUL_PROGRAM = """\
import numpy
a, b = numpy.load("a.npy"), numpy.load("b.npy")
c = a @ b
"""

_DIJKSTRA_PROGRAM = """\
import numpy
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra
weight, target, start = (numpy.load(f"{n}.npy") for n in ("weight", "target", "start"))
graph = csr_matrix((weight, target, start))
distance = dijkstra(graph, indices=[0])
"""

_FFT_PROGRAM = """\
import numpy
from scipy.fft import fft2
spectrum = fft2(numpy.load("signal.npy"), overwrite_x=True)
"""


RECIPES: dict[str, Recipe] = {
    "sqlite": Recipe(
        "SQLite: join, group by and order by over 300,000 rows",
        "sqlite3",
        ("sqlite3", "-batch", "-init", "/dev/null", "shop.db", _QUERY),
        inputs.shop,
        "a database of 150,000 customers, 20,000 products and 300,000 purchases, Python's "
        "random.Random(1)",
        skip_instructions=20_000_000,
    ),
    "xz": Recipe(
        "xz: LZMA compression of 12 MB of text",
        "xz-utils",
        ("xz", "--keep", "--stdout", "--threads=1", "-6", "text"),
        lambda folder: inputs.text(folder / "text", 2_000_000, 3),
        "2,000,000 words of running text with Zipf's frequencies, Python's random.Random(3)",
        skip_instructions=50_000_000,
    ),
    "zstd": Recipe(
        "zstd: fast compression of 25 MB of text",
        "zstd",
        ("zstd", "--single-thread", "--no-asyncio", "-q", "-3", "-c", "text"),
        lambda folder: inputs.text(folder / "text", 4_000_000, 4),
        "4,000,000 words of running text with Zipf's frequencies, Python's random.Random(4)",
        skip_instructions=20_000_000,
    ),
    "sort": Recipe(
        "GNU sort: 166,667 lines of text",
        "coreutils",
        ("sort", "--parallel=1", "-S", "64M", "-o", "sorted", "text"),
        lambda folder: inputs.text(folder / "text", 2_000_000, 5),
        "2,000,000 words of running text with Zipf's frequencies, Python's random.Random(5)",
        skip_instructions=200_000_000,
    ),
    "python_json": Recipe(
        "Python: parse, group and sort 80,000 JSON records",
        "python3.11-minimal",
        ("/usr/bin/python3", "-P", "-s", "-S", "-B", "-c", _JSON_PROGRAM),
        inputs.records,
        "80,000 records of 4 fields, Python's random.Random(2)",
        skip_instructions=60_000_000,
    ),
    "matmul": Recipe(
        "NumPy and OpenBLAS: product of two matrices of 1500 x 1500",
        "python3-numpy",
        (*_PYTHON, _MATMUL_PROGRAM),
        lambda folder: inputs.matrices(folder, 1500, 6),
        "two matrices of 64-bit numbers, 18 MB each, NumPy's RandomState(6)",
        skip_instructions=330_000_000,
        max_requests=300_000,
        requests_under_way=12,
        environment=_ONE_THREAD,
        needs=("libopenblas0-pthread",),
    ),
    "dijkstra": Recipe(
        "SciPy: shortest paths in a graph of 200,000 vertices and 1,600,000 arcs",
        "python3-scipy",
        (*_PYTHON, _DIJKSTRA_PROGRAM),
        lambda folder: inputs.graph(folder, 200_000, 8, 8),
        "a directed graph in compressed rows, few vertices the end of many arcs, NumPy's "
        "RandomState(8)",
        skip_instructions=480_000_000,
        max_requests=300_000,
        environment=_ONE_THREAD,
    ),
    "jpeg": Recipe(
        "libjpeg-turbo: decoding of a progressive picture of 3 megapixels",
        "libjpeg-turbo-progs",
        ("djpeg", "-outfile", "photo.ppm", "photo.jpg"),
        lambda folder: inputs.photograph(folder, 2048, 1536, 7),
        "a picture of 2048 x 1536 with detail at every scale and grain, NumPy's RandomState(7), "
        "encoded by cjpeg -quality 85 -progressive",
        skip_instructions=130_000_000,
        max_requests=300_000,
        needs=("libjpeg62-turbo",),
    ),
    "tkrzw": Recipe(
        "Tkrzw: random writes to a key-value store in memory",
        "tkrzw-utils",
        (
            *("tkrzw_dbm_perf", "sequence", "--dbm", "tiny", "--threads", "1", "--set_only"),
            *("--random_key", "--random_seed", "0", "--iter", "500000", "--size", "64"),
        ),
        lambda folder: None,
        "none: the program draws 500,000 keys from as many, with its seed 0; values of 64 bytes, "
        "1,048,583 buckets",
        skip_instructions=100_000_000,
        max_requests=300_000,
    ),
    "fft": Recipe(
        "SciPy: Fourier transform of 1024 x 1024 complex numbers",
        "python3-scipy",
        (*_PYTHON, _FFT_PROGRAM),
        lambda folder: inputs.signal(folder, 1024, 9),
        "a square of 1024 x 1024 complex numbers, 17 MB, NumPy's RandomState(9)",
        skip_instructions=480_000_000,
        max_requests=300_000,
        requests_under_way=12,
        environment=_ONE_THREAD,
    ),
}
"""Every recipe by name."""
