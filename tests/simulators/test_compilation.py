from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TOY = """
from pathlib import Path
from archgym.simulators.compilation import Kernel

kernel = Kernel("toy", [Path(__file__)], {})

@kernel.compiled
def twice(x):
    return 2 * x

def make(sources):
    def run(x):
        return twice(x) + 0 * sources
    return run

run = kernel.entry(make)
print(run(3), run(3), run(3.0))
"""


def test_compiling_is_said_once_and_not_when_it_is_kept(tmp_path: Path) -> None:
    (tmp_path / "toy.py").write_text(TOY)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def run() -> tuple[str, str]:
        command = [sys.executable, "toy.py"]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout, done.stderr

    said = "toy: compiling, once on this machine (up to a minute) ...\n"
    assert run() == ("6 6 6.0\n", said)
    assert run() == ("6 6 6.0\n", "")
    (tmp_path / "toy.py").write_text(TOY.replace("2 * x", "x + x"))
    assert run() == ("6 6 6.0\n", said), "what it calls has changed"
