"""A program that archgym starts for a session, from its begin to its end."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from archgym.errors import InvalidValueError
from archgym.serve import Settings, serve
from archgym.serve import program as started_programs
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


@pytest.mark.parametrize(
    ("field", "value"), [("agent", "a/b"), ("label", "a\nb"), ("hyperparameters", {"x": 1e999})]
)
def test_who_proposes_is_named_as_in_python(field: str, value: object) -> None:
    with pytest.raises(InvalidValueError, match=field):
        Settings("Conformance-v0", **{field: value}).check()  # type: ignore[arg-type]
