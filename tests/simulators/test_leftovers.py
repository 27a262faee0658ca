"""Programs start with limits, and what they leave behind is ended."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from archgym.errors import MissingDependencyError
from archgym.simulators.external import run_program
from archgym.simulators.launch import check_program, with_limits
from archgym.simulators.leftovers import VARIABLE, end_leftovers, new_mark, newest_pid

LINUX = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="it reads /proc")
TOOLS = pytest.mark.skipif(
    not (shutil.which("prlimit") and shutil.which("setpriv")), reason="it needs util-linux"
)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").split()[2] != "Z"


@LINUX
def test_a_process_that_left_its_group_is_found_by_its_mark(tmp_path: Path) -> None:
    mark, newest = new_mark(), newest_pid()
    script = (
        "import os, time\nif os.fork() == 0:\n os.setsid()\n"
        " open('pid', 'w').write(str(os.getpid()))\n time.sleep(60)"
    )
    command = [sys.executable, "-c", script]
    run_program(command, tmp_path, time_limit_s=20, environment={VARIABLE: mark})
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        time.sleep(0.01)
    pid = int((tmp_path / "pid").read_text())
    assert _alive(pid)
    assert end_leftovers(new_mark(), newest) == 0
    assert end_leftovers(mark, newest) == 1
    assert not _alive(pid)


@TOOLS
def test_limits_hold_from_the_first_instruction_on(tmp_path: Path) -> None:
    command = with_limits(
        ["sh", "-c", "ulimit -f; ulimit -v"], file_bytes=1 << 20, memory_bytes=1 << 30
    )
    assert run_program(command, tmp_path, time_limit_s=20).stdout.split() == ["2048", "1048576"]


@TOOLS
def test_a_program_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    command = with_limits(["sleep", "60"], file_bytes=1 << 20)
    code = (
        f"import subprocess, time\np = subprocess.Popen({command!r})\n"
        "print(p.pid, flush=True)\ntime.sleep(60)"
    )
    starter = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert starter.stdout is not None
    pid = int(starter.stdout.readline())
    time.sleep(0.3)  # until it has become the program
    assert _alive(pid)
    starter.send_signal(signal.SIGKILL)
    starter.wait()
    for _ in range(200):
        if not _alive(pid):
            break
        time.sleep(0.02)
    assert not _alive(pid)


def test_programs_that_cannot_be_started(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("no program")
    for program, message in (
        ("no-such-program", "on PATH"),
        ("./missing", "there is no program"),
        ("./plain", "chmod"),
    ):
        with pytest.raises(MissingDependencyError, match=message):
            check_program(program, tmp_path)
    check_program("sh", tmp_path)
