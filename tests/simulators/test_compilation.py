from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from numba.core.codegen import CPUCodeLibrary

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

def make_late(sources):
    def late(x):
        return twice(x) + 0 * sources
    return late

assert kernel.entry(make_late)(2) == 4  # made after the first one was compiled
"""

INSTALLED = """
import sys
from pathlib import Path
import numba
from archgym.simulators import shipped

shipped.FOLDER = Path("wheel").absolute()
shipped.processor_features = lambda: set() if sys.argv[1] == "none" else set(shipped.FEATURES)
if sys.argv[1] == "other_numba":
    numba.__version__ = "0.0.1"
import toy
"""


@pytest.mark.parametrize("options", ["{}", "{}, entries_only=True"])
def test_compiling_is_said_once_and_not_when_it_is_kept(tmp_path: Path, options: str) -> None:
    toy = TOY.replace("{})", f"{options})")
    (tmp_path / "toy.py").write_text(toy)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def run() -> tuple[str, str]:
        command = [sys.executable, "toy.py"]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout, done.stderr

    said = "toy: compiling, once on this machine (one to three minutes) ...\n"
    assert run() == ("6 6 6.0\n", said)
    assert run() == ("6 6 6.0\n", "")
    (tmp_path / "toy.py").write_text(toy.replace("2 * x", "x + x"))
    assert run() == ("6 6 6.0\n", said), "what it calls has changed"


def test_what_can_be_kept_nowhere_is_compiled_in_every_process(tmp_path: Path) -> None:
    (tmp_path / "toy.py").write_text(TOY)
    (tmp_path / "installed.py").write_text(INSTALLED)
    for blocked in ("__pycache__", "home"):  # files in the places of folders: root writes anywhere
        (tmp_path / blocked).touch()
    nowhere = {"HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": str(tmp_path / "home")}
    wheel = tmp_path / "wheel" / "x86-64-v3"
    wheel.mkdir(parents=True)

    def run(program: str, **variables: str) -> str:
        environment = {name: text for name, text in os.environ.items() if name != "NUMBA_CACHE_DIR"}
        done = subprocess.run(
            [sys.executable, *program.split()],
            cwd=tmp_path,
            env=environment | nowhere | variables,
            capture_output=True,
            text=True,
        )
        assert (done.stdout, done.returncode) == ("6 6 6.0\n", 0), done.stderr
        return done.stderr

    for _ in range(2):
        said = run("toy.py")
        assert said.startswith("toy: compiling, in every process (one to three minutes): ")
        assert said.count("\n") == 1
        assert "NUMBA_CACHE_DIR=FOLDER" in said
    portable = {"NUMBA_CPU_NAME": "x86-64-v3", "NUMBA_CPU_FEATURES": ""}
    run("installed.py features", ARCHGYM_COMPILE_INTO=str(wheel), **portable)
    assert run("installed.py features") == "", "the wheel has it"


@pytest.mark.skipif(sys.platform == "win32", reason="limits of a process are POSIX")
def test_a_full_disk_does_not_stop_what_is_compiled(tmp_path: Path) -> None:
    (tmp_path / "toy.py").write_text(TOY)
    folder = tmp_path / "cache"
    limited = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048)); import toy"
    done = subprocess.run(
        [sys.executable, "-c", limited],
        cwd=tmp_path,
        env={**os.environ, "NUMBA_CACHE_DIR": str(folder)},
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.returncode) == ("6 6 6.0\n", 0), done.stderr
    _, said = done.stderr.splitlines()
    assert said.startswith(f"compiled code cannot be kept in {folder}")
    assert said.endswith(": File too large")


def test_numba_still_optimises_where_entries_only_leaves_it_out() -> None:
    assert callable(CPUCodeLibrary._optimize_final_module)


def test_a_wheel_brings_compiled_code_for_processors_that_can_run_it(tmp_path: Path) -> None:
    (tmp_path / "toy.py").write_text(TOY)
    (tmp_path / "installed.py").write_text(INSTALLED)
    wheel = tmp_path / "wheel" / "x86-64-v3"
    wheel.mkdir(parents=True)

    def run(program: str, number: int, **variables: str) -> str:
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / f"cache{number}")}
        done = subprocess.run(
            [sys.executable, *program.split()],
            cwd=tmp_path,
            env=environment | variables,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == "6 6 6.0\n"
        return done.stderr

    portable = {"NUMBA_CPU_NAME": "x86-64-v3", "NUMBA_CPU_FEATURES": ""}
    said = "toy: compiling, once on this machine (one to three minutes) ...\n"
    assert run("installed.py features", 1, ARCHGYM_COMPILE_INTO=str(wheel), **portable) == said
    kept = sorted(path.name for path in wheel.iterdir())
    assert run("installed.py features", 2) == "", "the wheel has it"
    assert run("installed.py none", 3) == said, "an older processor compiles for itself"
    assert run("installed.py other_numba", 4) == said, "so does another version of numba"
    assert run("toy.py", 5) == said, "this copy of archgym has no compiled code"
    (tmp_path / "toy.py").write_text(TOY.replace("2 * x", "x + x"))
    assert run("installed.py features", 6) == said, "the source was edited"
    assert sorted(path.name for path in wheel.iterdir()) == kept, "the wheel is not written to"
