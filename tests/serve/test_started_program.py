"""A program that archgym starts for a session, from its begin to its end."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from archgym.errors import InvalidValueError
from archgym.serve import Settings, serve
from archgym.serve import program as started_programs
from archgym.serve.lines import LINE_LIMIT_BYTES, bounded_lines
from archgym.serve.program import program_streams

ENDS_AND_WRITES = """
import json, sys, time
print(json.dumps({"op": "end"}), flush=True)
sys.stdin.readline()
time.sleep(1)
open(sys.argv[1], "w").write("results")
sys.exit(3)
"""


def test_a_program_has_the_time_that_it_needs_after_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(started_programs, "_GRACE_S", 0.1)
    command = [sys.executable, "-c", ENDS_AND_WRITES, str(tmp_path / "results.txt")]
    with program_streams(command) as started:
        serve(Settings("Conformance-v0"), started.requests, started.answers)
    assert (tmp_path / "results.txt").read_text() == "results"
    assert started.code == 3


LEAVES_A_CHILD = """
import json, subprocess, sys
wait = "import sys, time; time.sleep(8); open(sys.argv[1], 'w')"
child = subprocess.Popen([sys.executable, "-c", wait, sys.argv[1]])
open(sys.argv[2], "w").write(str(child.pid))
for number in range(40):
    print(json.dumps({"id": number, "op": "baseline"}))
"""


def test_a_child_that_holds_the_output_does_not_hold_the_session(tmp_path: Path) -> None:
    child_ended, child = tmp_path / "ended", tmp_path / "child"
    command = [sys.executable, "-c", LEAVES_A_CHILD, str(child_ended), str(child)]
    with program_streams(command) as started:
        lines = list(bounded_lines(started.requests, LINE_LIMIT_BYTES))
    still_there = not child_ended.exists()
    os.kill(int(child.read_text()), signal.SIGKILL)
    assert still_there
    assert [json.loads(line)["id"] for line in lines] == list(range(40))
    assert started.code == 0


@pytest.mark.parametrize(
    ("field", "value"), [("agent", "a/b"), ("label", "a\nb"), ("hyperparameters", {"x": 1e999})]
)
def test_who_proposes_is_named_as_in_python(field: str, value: object) -> None:
    with pytest.raises(InvalidValueError, match=field):
        Settings("Conformance-v0", **{field: value}).check()  # type: ignore[arg-type]
