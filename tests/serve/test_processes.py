"""The command itself: signals, standard streams, and programs in C++ at the other end."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from archgym.data import Dataset
from tests.serve.conftest import Json, Program

ROOT = Path(__file__).parent.parent.parent
LANGUAGES = ROOT / "examples" / "languages"
COMMAND = [sys.executable, "-m", "archgym", "serve"]
pytestmark = pytest.mark.full

LOUD = '''
import os, subprocess, time
import archgym
from archgym.space import DesignSpace, Integer

print("imported")

class Loud(archgym.Environment):
    """Prints."""
    design_space = DesignSpace([Integer("x", 0, 99)])
    metrics = (archgym.Metric("time_ns", "ns"),)
    default_objective = "minimize time_ns"
    baseline = {"x": 9}
    simulates_alone = True

    def simulate(self, design):
        print("simulates", design)
        os.write(1, b"raw output\\n")
        subprocess.run(["echo", "a child"])
        assert not os.read(0, 1)
        if design["x"] == 50:
            time.sleep(60)
        if design["x"] == 13:
            raise ValueError("thirteen")
        return {"time_ns": 1.0 + design["x"]}
'''


@pytest.fixture
def loud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "loud.py").write_text(LOUD)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(tmp_path)]))
    return "loud:Loud"


class Server:
    """A process that serves."""

    def __init__(self, *arguments: str) -> None:
        requests, ours = os.pipe()
        answers, theirs = os.pipe()
        self.process = subprocess.Popen(
            [*COMMAND, *arguments], stdin=requests, stdout=theirs, stderr=subprocess.PIPE, text=True
        )
        os.close(requests)
        os.close(theirs)
        self.program = Program(answers, ours)

    def end(self) -> tuple[int, str]:
        """The exit code, and what was written to stderr."""
        _, errors = self.process.communicate(timeout=60)
        return self.process.returncode, errors


def _evaluate(program: Program, x: int) -> Json:
    return program.call(id=x, op="evaluate", design={"x": x})


def test_standard_output_has_the_protocol_only(loud: str) -> None:
    server = Server(loud, "--record", "d")
    assert _evaluate(server.program, 1)["outcome"]["metrics"] == {"time_ns": 2.0}
    thirteen = _evaluate(server.program, 13)["outcome"]
    assert thirteen["status"] == "failed"
    assert "thirteen" in thirteen["reason"]
    assert server.program.rest() == []
    code, errors = server.end()
    assert code == 0
    assert "raw output" in errors
    assert "a child" in errors


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("workers", [[], ["--workers", "2"]], ids=["here", "workers"])
def test_a_signal_loses_nothing_that_is_finished(
    loud: str, number: signal.Signals, workers: list[str]
) -> None:
    server = Server(loud, "--record", "d", *workers)
    for x in range(3):
        _evaluate(server.program, x)
    server.program.send({"id": 50, "op": "evaluate", "design": {"x": 50}})
    if workers:  # is answered while another one is simulated
        assert server.program.call(id="s", op="status")["id"] == "s"
    server.process.send_signal(number)
    assert server.program.rest() == []
    code, errors = server.end()
    assert "Traceback" not in errors
    dataset = Dataset("d")
    assert [row["param.x"] for row in dataset.evaluations().to_pylist()] == [0, 1, 2]
    if number is signal.SIGKILL:
        assert code == -signal.SIGKILL
    else:
        assert code == 128 + number
        assert not list(Path("d/journal").iterdir())


def test_a_program_that_dies_ends_the_server(loud: str) -> None:
    server = Server(loud, "--record", "d", "--workers", "2")
    _evaluate(server.program, 1)
    server.program.send({"id": 50, "op": "evaluate", "design": {"x": 50}})
    server.program.leave()
    assert server.end()[0] == 0
    assert Dataset("d").info()["evaluations"] == 1


def test_exit_codes_of_programs_that_it_starts(loud: str) -> None:
    def run(*program: str) -> subprocess.CompletedProcess[str]:
        command = [*COMMAND, loud, "--", *program]
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    assert run("true").returncode == 0
    assert run(sys.executable, "-c", "raise SystemExit(7)").returncode == 7
    missing = run("./no-such-program")
    assert missing.returncode == 2
    assert "no-such-program" in missing.stderr
    assert "Traceback" not in missing.stderr


def _compiled(name: str, folder: Path) -> str:
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler is installed")
    flags = ["-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror"]
    program = str(folder / name)
    source = str(LANGUAGES / f"{name}.cpp")
    subprocess.run([compiler, *flags, "-o", program, source], check=True, timeout=120)
    return program


def _serve(*arguments: str | Path) -> str:
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    return done.stderr


def test_an_optimiser_in_cpp_searches_dram(tmp_path: Path) -> None:
    program = _compiled("search", tmp_path)
    settings = ["--budget", "40", "--agent", "es", "--seed", "7", "--label", "train"]
    record = ["--record", str(tmp_path / "d")]
    said = _serve("DRAM-v0", "--workload", "stream", *settings, *record, "--", program, "7")
    dataset = Dataset(tmp_path / "d")
    (trial,) = dataset.trials().to_pylist()
    assert (trial["agent"], trial["seed"], trial["budget"]) == ("es", 7, 40)
    assert trial["state"] == "finished"
    info = dataset.info()
    assert info["simulated"] == 40
    rows = dataset.evaluations().to_pylist()
    rewards = [row["reward"] for row in rows]
    assert max(rewards) > 0.5  # better than the baseline
    best = json.loads(said[said.index("best: ") + 6 :].splitlines()[0])
    assert best == {
        name.removeprefix("metric."): value
        for name, value in max(rows, key=lambda row: row["reward"]).items()
        if name.startswith("metric.")
    }


def test_a_simulator_in_cpp_is_searched(tmp_path: Path) -> None:
    program = _compiled("simulator", tmp_path)
    search = ["--simulator", "client:queue-1.0", "--agent", "ga", "--budget", "60"]
    said = _serve(LANGUAGES / "queue.yaml", *search, "--record", tmp_path / "d", "--", program)
    dataset = Dataset(tmp_path / "d")
    assert dataset.info()["simulated"] == 60
    assert dataset.trials()["state"].to_pylist() == ["finished"]
    feasible = [row for row in dataset.evaluations().to_pylist() if row["feasible"]]
    assert feasible
    best = json.loads(said[said.index("best: ") + 6 :].splitlines()[0])
    assert best["area_um2"] == min(row["metric.area_um2"] for row in feasible)


def test_the_guide_shows_the_examples() -> None:
    guide = (ROOT / "docs" / "guides" / "other_languages.md").read_text("utf-8")
    for name in ("search.cpp", "queue.yaml"):
        assert (LANGUAGES / name).read_text("utf-8") in guide
