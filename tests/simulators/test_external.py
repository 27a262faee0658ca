"""Programs of others: found, bounded in time and output, and each failure kept to its design."""

from __future__ import annotations

import os
import stat
import sys
import textwrap
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from archgym.errors import (
    InvalidValueError,
    MissingDependencyError,
    NotCoveredError,
    SimulationError,
)
from archgym.simulators.external import (
    find_program,
    private_folder,
    run_program,
    simulate_in_parallel,
)
from archgym.space import Designs, DesignSpace, Integer


def script(folder: Path, body: str, name: str = "program") -> Path:
    """An executable that runs some Python."""
    path = folder / name
    path.write_text(f"#!{sys.executable}\n{textwrap.dedent(body)}", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie that nobody has waited for does not)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state not in ("Z", "X")


def test_output_and_exit(tmp_path: Path) -> None:
    program = script(
        tmp_path,
        """
        import os, sys
        print(os.getcwd(), sys.argv[1:], sys.stdin.read() == "", os.environ["EXTRA"])
        print("a note", file=sys.stderr)
        """,
    )
    with private_folder() as folder:
        output = run_program(
            [program, "a b; rm -rf *", "$HOME"],
            folder,
            time_limit_s=20,
            environment={"EXTRA": "set"},
        )
        assert output.stdout.split()[0] == str(folder.resolve())
    assert "['a b; rm -rf *', '$HOME'] True set" in output.stdout
    assert output.stderr == "a note\n"
    assert not folder.exists()


def test_bytes_that_are_not_text_do_not_stop_it(tmp_path: Path) -> None:
    program = script(tmp_path, r"import os; os.write(1, b'\xff\xfe total 5 ns\n')")
    output = run_program([program], tmp_path, time_limit_s=20)
    assert output.stdout.endswith(" total 5 ns\n")


def test_large_output_of_both_kinds_comes_whole(tmp_path: Path) -> None:
    program = script(
        tmp_path,
        """
        import sys
        for i in range(3000):
            print("x" * 99)
            print("y" * 99, file=sys.stderr)
        """,
    )
    output = run_program([program], tmp_path, time_limit_s=20)
    assert (len(output.stdout), len(output.stderr)) == (300_000, 300_000)


def test_exit_code_and_last_lines_are_the_reason(tmp_path: Path) -> None:
    program = script(
        tmp_path,
        """
        import sys
        for i in range(50):
            print(f"line {i}", file=sys.stderr)
        sys.exit(3)
        """,
    )
    with pytest.raises(SimulationError, match=r"exit code 3: .*line 49$") as raised:
        run_program([program], tmp_path, time_limit_s=20)
    assert "line 10" not in str(raised.value)


def test_signal_is_named(tmp_path: Path) -> None:
    program = script(tmp_path, "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    with pytest.raises(SimulationError, match="SIGSEGV: it printed nothing"):
        run_program([program], tmp_path, time_limit_s=20)


def test_time_limit_ends_the_program_and_its_children(tmp_path: Path) -> None:
    program = script(
        tmp_path,
        """
        import os, pathlib, signal, subprocess, sys, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        pathlib.Path("pids").write_text(f"{os.getpid()} {child.pid}")
        time.sleep(60)
        """,
    )
    start = time.monotonic()
    with pytest.raises(TimeoutError, match=r"program did not finish within 1\.5 s"):
        run_program([program], tmp_path, time_limit_s=1.5)
    assert time.monotonic() - start < 20
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    for _ in range(100):  # SIGKILL takes effect a little after it is sent
        if not any(map(alive, pids)):
            break
        time.sleep(0.05)
    assert not any(map(alive, pids))


def test_a_child_that_stays_behind_is_ended_not_waited_for(tmp_path: Path) -> None:
    program = script(
        tmp_path,
        """
        import pathlib, subprocess, sys
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        pathlib.Path("pid").write_text(str(child.pid))
        print("done")
        """,
    )
    output = run_program([program], tmp_path, time_limit_s=50)
    assert output.stdout == "done\n"
    assert output.seconds < 20
    pid = int((tmp_path / "pid").read_text())
    for _ in range(100):
        if not alive(pid):
            break
        time.sleep(0.05)
    assert not alive(pid)


def test_endless_output_is_stopped(tmp_path: Path) -> None:
    program = script(tmp_path, "while True: print('again and again')")
    with pytest.raises(SimulationError, match=r"printed more than 100000 bytes: .*again"):
        run_program([program], tmp_path, time_limit_s=50, output_limit_bytes=100_000)


@pytest.mark.skipif(sys.platform != "linux", reason="needs prlimit")
def test_endless_file_is_stopped(tmp_path: Path) -> None:
    program = script(
        tmp_path,
        """
        import time
        time.sleep(0.5)  # the limit is set from outside, just after the start
        with open("big", "wb") as file:
            while True:
                file.write(bytes(65536))
        """,
    )
    with pytest.raises(SimulationError):
        run_program([program], tmp_path, time_limit_s=50, file_limit_bytes=10**6)
    assert (tmp_path / "big").stat().st_size <= 10**6


@pytest.mark.parametrize("limit", [0, -1, float("nan"), float("inf")])
def test_bad_time_limit(tmp_path: Path, limit: float) -> None:
    with pytest.raises(InvalidValueError, match="time_limit_s"):
        run_program(["true"], tmp_path, time_limit_s=limit)


def test_program_that_cannot_be_started(tmp_path: Path) -> None:
    with pytest.raises(MissingDependencyError, match="nosuch cannot be started: No such file"):
        run_program([tmp_path / "nosuch"], tmp_path, time_limit_s=1)
    text = tmp_path / "text"
    text.write_text("no program")
    with pytest.raises(MissingDependencyError, match="Permission denied"):
        run_program([text], tmp_path, time_limit_s=1)


def test_find_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = script(tmp_path, "", "thesim")
    other = tmp_path / "elsewhere"
    other.mkdir()
    mine = script(other, "", "mysim")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.delenv("THESIM", raising=False)
    assert find_program("thesim", "THESIM") == program
    monkeypatch.setenv("THESIM", str(mine))
    assert find_program("thesim", "THESIM") == mine
    monkeypatch.setenv("THESIM", str(tmp_path))
    with pytest.raises(MissingDependencyError, match=r"THESIM is '.*', which is no executable"):
        find_program("thesim", "THESIM")
    monkeypatch.delenv("THESIM")
    with pytest.raises(MissingDependencyError, match=r"nosim is not on PATH. Get it. .* NOSIM"):
        find_program("nosim", "NOSIM", "Get it.")
    with pytest.raises(MissingDependencyError, match=r"make it\. Put"):
        find_program("nosim", "NOSIM", "make it")


SPACE = DesignSpace([Integer("delay", 0, 30)])


class Sleeper:
    """Fails in every way that a simulator can, depending on the design."""

    def __init__(self, program: Path) -> None:
        self.program = program
        self.most_at_once = 0
        self._running = 0
        self._lock = threading.Lock()

    def simulate_one(self, design: Mapping[str, object]) -> dict[str, float]:
        delay = design["delay"]
        assert isinstance(delay, int)
        with self._lock:
            self._running += 1
            self.most_at_once = max(self.most_at_once, self._running)
        try:
            with private_folder() as folder:
                output = run_program([self.program, str(delay)], folder, time_limit_s=3)
        finally:
            with self._lock:
                self._running -= 1
        if delay == 7:
            raise NotCoveredError("no sevens")
        return {"time_ns": float(output.stdout)}


def designs(*delays: int) -> Designs:
    return SPACE.designs([{"delay": delay} for delay in delays])


@pytest.fixture
def sleeper(tmp_path: Path) -> Sleeper:
    body = """
        import sys, time
        delay = int(sys.argv[1])
        if delay == 5:
            sys.exit("five is broken")
        time.sleep(60 if delay == 9 else 0.02 * delay)
        print("nonsense" if delay == 8 else delay)
    """
    return Sleeper(script(tmp_path, body))


@pytest.mark.full
def test_parallel_gives_what_one_by_one_gives(sleeper: Sleeper) -> None:
    batch = designs(12, 5, 0, 9, 7, 1, 8, 2)
    one_by_one = simulate_in_parallel(sleeper, batch, threads=1)
    assert sleeper.most_at_once == 1
    parallel = simulate_in_parallel(sleeper, batch, threads=4)
    assert sleeper.most_at_once > 1
    for (a, _), (b, _) in zip(one_by_one, parallel, strict=True):
        assert type(a) is type(b)
        assert str(a) == str(b)
    results = [result for result, _ in parallel]
    assert results[0] == {"time_ns": 12.0}
    assert isinstance(results[1], SimulationError)
    assert "five is broken" in str(results[1])
    assert isinstance(results[3], TimeoutError)
    assert isinstance(results[4], NotCoveredError)
    assert "could not convert" in str(results[6])
    seconds = [s for _, s in parallel]
    assert seconds[3] >= 3 > seconds[5]


def test_what_is_wrong_with_all_ends_the_batch(tmp_path: Path) -> None:
    with pytest.raises(MissingDependencyError, match="cannot be started"):
        simulate_in_parallel(Sleeper(tmp_path / "nosuch"), designs(1, 2, 3, 4), threads=2)


def test_no_designs(sleeper: Sleeper) -> None:
    assert simulate_in_parallel(sleeper, designs()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="needs prlimit")
def test_program_whose_caller_is_killed_does_not_run_for_ever(tmp_path: Path) -> None:
    program = script(
        tmp_path,
        """
        import os, resource, time
        while resource.getrlimit(resource.RLIMIT_CPU)[0] == resource.RLIM_INFINITY:
            time.sleep(0.01)  # the limit is set from outside, just after the start
        print(resource.getrlimit(resource.RLIMIT_CPU)[0])
        """,
    )
    output = run_program([program], tmp_path, time_limit_s=30)
    assert int(output.stdout) >= 31


def test_endless_output_does_not_fill_the_memory(tmp_path: Path) -> None:
    """However fast it is printed: a gigabyte a second is not read for the time of one look."""
    script = """
import resource, sys
from pathlib import Path
from archgym.errors import SimulationError
from archgym.simulators.external import run_program

def peak_kb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

before = peak_kb()
try:
    run_program(["cat", "/dev/zero"], Path(sys.argv[1]), time_limit_s=50, output_limit_bytes=10**6)
except SimulationError as error:
    assert "printed more than 1000000 bytes" in str(error), error
    print(peak_kb() - before)
"""
    output = run_program([sys.executable, "-c", script, tmp_path], tmp_path, time_limit_s=50)
    assert int(output.stdout) < 16_000, "kB by which the process grew"
