"""The files around real programs: each is short, and runs where its program is installed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import archgym
from tests.declared.conftest import EXAMPLES, copy_examples

FILES = sorted(EXAMPLES.glob("*.yaml"))
PROGRAMS = {
    "booksim": ("booksim",),
    "cachegrind": ("valgrind", "gcc"),
    "champsim": ("g++", "champsim/src/main.cc"),
    "fpga": ("yosys", "nextpnr-ice40"),
    "gcc": ("gcc",),
    "gem5": ("gcc", "gem5/build/X86/gem5.opt"),
    "icarus": ("iverilog",),
    "ngspice": ("ngspice",),
}
"""What must be on PATH, or beside the file where it is a path."""
BETTER: dict[str, tuple[dict[str, Any], str]] = {
    "booksim": ({"topology": "torus"}, "hops_count"),
    "cachegrind": ({"l1_kb": 16, "ll_kb": 256}, "l1_misses_count"),
    "champsim": ({"l1d_prefetcher": "ip_stride"}, "cycles_count"),
    "fpga": ({"bits": 4}, "cells_count"),
    "gcc": ({"level": 3, "vectors": "unlimited", "fast": True}, ""),
    "gem5": ({"l1d_kb": 128, "l2_kb": 1024}, "l1d_misses_share"),
    "icarus": ({"width": 64}, "cycles_count"),
    "ngspice": ({"i_out": 50.0}, "power_uw"),
}
"""A change that makes a metric smaller; what is measured is not compared."""

LONG = ("champsim", "fpga", "gem5")


def test_every_file_is_known() -> None:
    assert {path.stem for path in FILES} == set(PROGRAMS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_is_short_and_can_be_read(path: Path, tmp_path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= 50
    copy_examples(tmp_path)
    cls = archgym.registry.environment_class(str(tmp_path / path.name))  # runs nothing
    assert cls.__doc__
    assert cls.spaces()["default"].names


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(p, marks=[pytest.mark.full, *([pytest.mark.nightly] * (p.stem in LONG))])
        for p in FILES
    ],
    ids=lambda path: path.stem,
)
def test_a_file_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needed = PROGRAMS[path.stem]
    missing = [
        name
        for name in needed
        if not ((EXAMPLES / name).is_file() if "/" in name else shutil.which(name))
    ]
    if missing:
        pytest.skip(
            f"{' and '.join(missing)} is not installed, see docs/reference/simulator_files.md"
        )
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    env = archgym.make(str(path))
    changes, metric = BETTER[path.stem]
    baseline = env.evaluate(env.baseline_design)
    outcome = env.evaluate({**env.baseline_design, **changes})
    assert (baseline.status, outcome.status) == ("ok", "ok")
    before, after = (one.metrics.get(metric) for one in (baseline, outcome))
    assert (before is None or after is None) == (not metric)
    assert before is None or after is None or after < before
