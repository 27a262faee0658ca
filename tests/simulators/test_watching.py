"""Programs end with the process that started them, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from archgym.simulators import watching
from archgym.simulators.external import run_program
from tests.simulators.test_external import alive

CALLER = """
import os, sys, threading
from pathlib import Path
from archgym.simulators.external import run_program

def run(name):
    text = f"sleep 60 & echo $! > {name}.new; mv {name}.new {name}; wait"
    run_program(["sh", "-c", text], Path(sys.argv[1]), time_limit_s=50)

run_program(["true"], Path(sys.argv[1]), time_limit_s=50)
threads = [threading.Thread(target=run, args=(name,)) for name in ("one", "two")]
if sys.argv[2] == "forked" and (child := os.fork()):
    Path(sys.argv[1], "forked").write_text(str(child))
    os.waitpid(child, 0)
    sys.exit()
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def children_of_programs(folder: Path) -> list[int]:
    """The processes that the two programs started, once they are there."""
    for _ in range(300):
        if (folder / "one").exists() and (folder / "two").exists():
            break
        time.sleep(0.1)
    return [int((folder / name).read_text("ascii")) for name in ("one", "two")]


def ended(running: list[int]) -> None:
    """Waits for the end of processes."""
    for _ in range(100):
        if not any(map(alive, running)):
            return
        time.sleep(0.1)
    raise AssertionError(f"{running} run on")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_programs_end_with_their_caller(tmp_path: Path, how: signal.Signals) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", CALLER, str(tmp_path), ""], stderr=subprocess.DEVNULL
    )
    running = children_of_programs(tmp_path)
    assert all(map(alive, running))
    process.send_signal(how)
    process.wait(30)
    ended(running)


def test_programs_of_a_forked_process_end_with_it(tmp_path: Path) -> None:
    parent = subprocess.Popen([sys.executable, "-c", CALLER, str(tmp_path), "forked"])
    running = children_of_programs(tmp_path)
    os.kill(int((tmp_path / "forked").read_text("ascii")), signal.SIGKILL)
    ended(running)
    assert parent.wait(30) == 0


def test_a_watcher_that_was_killed_is_begun_again(tmp_path: Path) -> None:
    run_program(["true"], tmp_path, time_limit_s=20)
    (watcher,) = watching._watchers
    watcher.process.kill()
    watcher.process.wait()
    run_program(["true"], tmp_path, time_limit_s=20)
    assert watching._watchers[0].process.poll() is None


def test_what_watches_has_no_variables_of_its_caller(tmp_path: Path) -> None:
    caller = """
import os, sys
from pathlib import Path
from archgym.simulators import watching
from archgym.simulators.external import run_program

run_program(["true"], Path(sys.argv[1]), time_limit_s=50)
(watcher,) = watching._watchers
for pid in (os.getpid(), watcher.process.pid):
    print(b"A_SECRET" in Path("/proc", str(pid), "environ").read_bytes())
"""
    done = subprocess.run(
        [sys.executable, "-c", caller, str(tmp_path)],
        env={**os.environ, "A_SECRET": "x"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == "True\nFalse\n", done.stderr
