"""The shipped tables of cachegrind and ChampSim, and our counts against them."""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

import archgym
from archgym.envs.cpu.environment import CPUEnvironment
from archgym.envs.cpu.hierarchy.cachegrind import Cachegrind
from archgym.envs.cpu.hierarchy.config import CacheLevel
from archgym.envs.cpu.traces.npz_format import read_npz
from archgym.envs.cpu.traces.preparation import references_of
from archgym.envs.cpu.traces.program import MODIFY, Program
from archgym.envs.cpu.traces.recording import record_program
from archgym.envs.cpu.validation.champsim_rows import NotComparable, stream_file
from archgym.envs.cpu.validation.reference import FOLDER, read_reference
from archgym.errors import InvalidValueError
from archgym.validation.validate import Validation, validate

needs_valgrind = pytest.mark.skipif(
    shutil.which("valgrind") is None, reason="valgrind is not installed (apt-get install valgrind)"
)
COUNTS = ("Ir", "I1mr", "ILmr", "Dr", "D1mr", "DLmr", "Dw", "D1mw", "DLmw")
# Valgrind appends LD_PRELOAD to the environment unless it is there. It is then the last string
# before the 16 random bytes that the kernel gives each process, and the loader's strcspn, which
# reads four bytes at a time, reads up to three of them as indices of a table: two accesses differ.
ENVIRONMENT = {"LD_PRELOAD": "", "PATH": "/usr/bin:/bin", "LC_ALL": "C"}
COMMAND = ["gzip", "-9", "-c", "-n", "text"]


def model(program: Program) -> Cachegrind:
    return Cachegrind(references_of(program), int((program.data_kind == MODIFY).sum()))


def compared(title: str) -> Validation:
    found = [r for r in CPUEnvironment.references() if r.title.startswith(title)]
    assert len(found) == 1
    assert found[0].provenance["simulator"].startswith(title.split()[0])
    return validate(found[0], lambda **settings: archgym.make("CPU-v0", **settings))


@pytest.mark.full
def test_every_count_of_cachegrind_is_exact() -> None:
    with (FOLDER / "cachegrind.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    programs = {name: model(read_npz(FOLDER / f"{name}.npz", name)) for name in ("gzip", "sort")}
    assert len(rows) == 50
    for row in rows:
        levels = [
            CacheLevel(int(row[f"{one}_size"]), int(row[f"{one}_ways"]), int(row[f"{one}_line"]))
            for one in ("I1", "D1", "LL")
        ]
        counts = asdict(programs[row["program"]].counts(*levels))
        assert counts == {name: int(row[name]) for name in COUNTS}


@pytest.mark.full
@needs_valgrind
@pytest.mark.parametrize(
    "sizes",
    [
        ((32768, 8, 64), (32768, 8, 64), (1 << 20, 16, 64)),
        ((2048, 1, 32), (4096, 4, 128), (65536, 2, 128)),
        ((512, 8, 64), (256, 2, 128), (8192, 2, 64)),
    ],
)
def test_cachegrind_run_beside_ours(
    tmp_path: Path, sizes: tuple[tuple[int, int, int], ...]
) -> None:
    (tmp_path / "text").write_text("of a few words and more words\n" * 40, "utf-8")
    levels = [CacheLevel(*one) for one in sizes]
    program, _ = record_program(COMMAND, folder=tmp_path, environment=ENVIRONMENT)
    assert asdict(model(program).counts(*levels)) == cachegrind(tmp_path, sizes)


def cachegrind(folder: Path, sizes: tuple[tuple[int, int, int], ...]) -> dict[str, int]:
    """What cachegrind counts for the command."""
    caches = [f"--{n}={s},{w},{b}" for n, (s, w, b) in zip(("I1", "D1", "LL"), sizes, strict=True)]
    subprocess.run(
        [
            *("valgrind", "--command-line-only=yes", "--vgdb=no", "--tool=cachegrind"),
            *("--cache-sim=yes", "--cachegrind-out-file=out", "--log-file=log"),
            *caches,
            *COMMAND,
        ],
        cwd=folder,
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        check=True,
        timeout=120,
    )
    text = (folder / "out").read_text("utf-8")
    names, values = (
        re.search(rf"^{word}: (.*)$", text, re.MULTILINE)[1].split()  # type: ignore[index]
        for word in ("events", "summary")
    )
    return {n: int(v) for n, v in zip(names, values, strict=True) if n in COUNTS}


@pytest.mark.full
def test_cachegrind_through_the_environment() -> None:
    found = compared("cachegrind")
    assert not found.failed
    for one in found.agreements:
        assert one.n == 25
        assert one.max_error < 1e-12


@pytest.mark.full
def test_champsim_without_prefetch() -> None:
    found = compared("ChampSim")
    assert not found.failed
    rows = found.reference.rows
    plain = np.array(
        [
            row.design["l1d_prefetcher"] == row.design["l2_prefetcher"] == "none"
            and all(row.design[f"{name}_replacement"] == "lru" for name in ("l1d", "l2", "llc"))
            for row in rows
        ]
    )
    assert plain.sum() >= 10
    for name in ("l1i_mpki", "l1d_mpki", "llc_mpki"):
        true = np.array([row.metrics[name] for row in rows])[plain]
        ours = found.ours[plain, found.metrics.index(name)]
        assert np.abs(ours / true - 1).max() < 0.012, name
    for one in found.agreements:
        assert one.mean_error < 0.06, (one.case, one.metric)
    for name in ("l1d_mpki", "l2_mpki"):
        assert found.summary(name).worst["spearman"] > 0.9


def test_a_table_of_no_known_form(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("program,cycles\ngzip,3\n", "utf-8")
    with pytest.raises(InvalidValueError, match="no known form"):
        read_reference(table, None)


def test_a_cell_that_is_no_number(tmp_path: Path) -> None:
    text = (FOLDER / "cachegrind.csv").read_text("utf-8").splitlines()
    table = tmp_path / "table.csv"
    table.write_text("\n".join([text[0], text[1].replace("32768", "many", 1)]), "utf-8")
    with pytest.raises(InvalidValueError, match=r"line 2, column 'I1_size'"):
        read_reference(table, None)


def test_rows_whose_program_is_missing_are_skipped(tmp_path: Path) -> None:
    (found,) = read_reference(FOLDER / "cachegrind.csv", tmp_path)
    assert not found.rows
    assert "has no instruction stream 'gzip'" in found.skipped[0].reason


def test_whole_programs_are_preferred_where_a_window_will_not_do(tmp_path: Path) -> None:
    for ending in (".win.champsimtrace.xz", ".champsimtrace.xz"):
        (tmp_path / f"gawk{ending}").write_bytes(b"")
    assert stream_file(tmp_path, "gawk").name == "gawk.win.champsimtrace.xz"
    assert stream_file(tmp_path, "gawk", whole=True).name == "gawk.champsimtrace.xz"
    (tmp_path / "gawk.champsimtrace.xz").unlink()
    with pytest.raises(NotComparable, match="gawk"):
        stream_file(tmp_path, "gawk", whole=True)
