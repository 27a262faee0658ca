"""A run on this machine is reached from this machine only."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

LISTENERS = """
import os, pathlib
from archgym.experiment.run.ray_cluster import connected

def inodes(pids):
    for pid in pids:
        try:
            for link in pathlib.Path("/proc", pid, "fd").iterdir():
                if os.readlink(link).startswith("socket:["):
                    yield os.readlink(link)[8:-1]
        except OSError:
            pass

before = {p for p in os.listdir("/proc") if p.isdigit()} - {str(os.getpid())}
with connected("", 1):
    assert os.getcwd() == HERE
    mine = set(inodes({p for p in os.listdir("/proc") if p.isdigit()} - before))
    for name in ("tcp", "tcp6"):
        for line in pathlib.Path("/proc/net", name).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in mine:
                print(fields[1].partition(":")[0])
assert "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER" not in os.environ
"""
LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}


@pytest.mark.full
@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="needs Linux")
def test_ray_listens_on_the_loopback_address_only(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LISTENERS.replace("HERE", repr(str(tmp_path)))],
        cwd=tmp_path,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = done.stdout.split()
    assert len(found) >= 3
    assert set(found) <= LOOPBACK
