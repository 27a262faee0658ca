"""Simulators that exit, hang, fork, print and kill themselves cost their own designs only."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import psutil
import pytest

from archgym.data import Dataset, validate
from archgym.experiment import environment_with_workers
from archgym.registry import make_agent
from tests.trust.misbehaving import ACTS

SHORT = ("exits at once", "hangs", "prints megabytes")
ACTS_TO_TEST = [
    name if name in SHORT else pytest.param(name, marks=pytest.mark.nightly) for name in ACTS
]


def test_there_are_enough_of_them() -> None:
    assert len(ACTS) >= 20


def _of_this_test() -> list[psutil.Process]:
    """Processes that simulate for this test, those that have lost their parent too."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if any("simulate.worker_process" in word for word in process.cmdline()):
                test = process.environ().get("PYTEST_CURRENT_TEST")
                found += [process] if test == os.environ["PYTEST_CURRENT_TEST"] else []
    return found


@pytest.mark.parametrize("act", ACTS_TO_TEST)
def test_in_processes_that_simulate(act: str, tmp_path: Path) -> None:
    settings = {"workers": 2, "time_limit_s": 3, "retries": 0}
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    fixed = {"y": 1, "mode": "plain"}  # five designs: one of each x
    with environment_with_workers(
        "tests.trust.misbehaving:Misbehaving", settings, record=tmp_path, act=act, fixed=fixed
    ) as env:
        result = make_agent("random", env.design_space, seed=0).search(env, budget=5)
    assert result.simulations == 5
    dataset = Dataset(tmp_path)
    dataset.seal()
    rows = dataset.evaluations(["param.x", "status", "reason", "cached"]).to_pylist()
    status = {row["param.x"]: row["status"] for row in rows if not row["cached"]}
    assert {x: status[x] for x in (0, 1, 2, 4)} == dict.fromkeys((0, 1, 2, 4), "ok")
    assert status[3] in ("ok", "failed", "timeout")
    assert all(row["reason"] for row in rows if row["status"] != "ok")
    assert all(check.passed for check in validate(dataset))
    left = [c for c in psutil.Process().children(recursive=True) if c.pid not in before]
    if act != "leaves a child":  # which sleeps for a minute, as its simulator wants
        left += _of_this_test()
    _, alive = psutil.wait_procs(left, timeout=10)
    assert not [child for child in alive if child.status() != psutil.STATUS_ZOMBIE]
