"""The files around real programs: each is short, and runs where its program is installed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import archgym

EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "simulators"
FILES = sorted(EXAMPLES.glob("*.yaml"))
PROGRAMS = {
    "booksim": ("booksim",),
    "cachegrind": ("valgrind", "gcc"),
    "fpga": ("yosys", "nextpnr-ice40"),
    "gcc": ("gcc",),
    "icarus": ("iverilog",),
    "ngspice": ("ngspice",),
}
BETTER: dict[str, tuple[dict[str, Any], str]] = {
    "booksim": ({"topology": "torus"}, "hops_count"),
    "cachegrind": ({"l1_kb": 16, "ll_kb": 256}, "l1_misses_count"),
    "fpga": ({"bits": 4}, "cells_count"),
    "gcc": ({"level": 3, "vectors": "unlimited", "fast": True}, ""),
    "icarus": ({"width": 64}, "cycles_count"),
    "ngspice": ({"i_out": 50.0}, "power_uw"),
}
"""A change that makes a metric smaller; what is measured is not compared."""


def test_every_file_is_known() -> None:
    assert {path.stem for path in FILES} == set(PROGRAMS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_is_short_and_can_be_read(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= 50
    cls = archgym.registry.environment_class(str(path))  # runs nothing
    assert cls.__doc__
    assert cls.spaces()["default"].names


@pytest.mark.parametrize(
    "path",
    [pytest.param(p, marks=[pytest.mark.full] if p.stem != "fpga" else [pytest.mark.nightly])
     for p in FILES],
    ids=lambda path: path.stem,
)  # fmt: skip
def test_a_file_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = [name for name in PROGRAMS[path.stem] if shutil.which(name) is None]
    if missing:
        pytest.skip(f"{' and '.join(missing)} is not installed")
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
