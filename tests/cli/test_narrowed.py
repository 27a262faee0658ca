"""Options that narrow a design space: ``--exclude``, and what environments give."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from archgym.data import load

DESCRIBES = """
import json, sys
print(json.dumps({"id": 1, "op": "describe"}), flush=True)
for line in sys.stdin:
    if json.loads(line).get("id") == 1:
        open(sys.argv[1], "w").write(line)
        break
"""


def test_command_lines(call: Any) -> None:
    words = ("evaluate", "Conformance-v0", "--set", "space=finite")
    refused = call(*words, "--exclude", "ways=[4, 8]", "ways=8")
    assert refused.code != 0
    assert "excluded from the search" in " ".join(refused.err.split())
    newer = ("evaluate", "Accelerator-v0", "technology=cmos7", "--workload", "alexnet")
    other = call(*newer, "--json")
    assert other.json["status"] == "ok"
    assert other.json["design"]["technology"] == "cmos7"
    shown = " ".join(call("show", "Accelerator-v0").out.split())
    assert "given, not searched: technology=cmos28" in shown
    shown = " ".join(call("show", "DRAM-v0").out.split())
    assert "excluded: refresh_policy=none (offered with include: [refresh_policy])" in shown


def test_an_experiment_excludes_and_resumes(call: Any, tmp_path: Any) -> None:
    (tmp_path / "some.yaml").write_text(
        """
name: some
budget: 12
seeds: 1
environments: [{id: Conformance-v0, space: finite, exclude: {replacement: [lru]}}]
agents: [{name: random}]
"""
    )
    run = ("run", tmp_path / "some.yaml", "--local", "-q", "--out", tmp_path / "run")
    assert call(*run, "--exclude", "ways=1").code == 0
    found = load(tmp_path / "run")
    assert len(found) >= 12
    assert not {"lru"} & set(found.arrow(["param.replacement"])["param.replacement"].to_pylist())
    assert 1 not in found.arrow(["param.ways"])["param.ways"].to_pylist()
    again = call(*run, "--resume", "--set", "budget=20", "--exclude", "ways=1")
    assert again.code == 0, again.err
    assert len(load(tmp_path / "run")) >= 20
    checked = call("dataset", "validate", tmp_path / "run", "--replay")
    assert checked.code == 0, checked.out


def test_a_program_searches_the_space_that_the_options_leave(call: Any, tmp_path: Path) -> None:
    told = tmp_path / "told.json"
    program = ("--", sys.executable, "-c", DESCRIBES, told)
    words = ("serve", "Conformance-v0", "--set", "space=finite", "--exclude", "ways=[1, 2]")
    assert call(*words, *program).code == 0
    assert _told(told, "ways")["low"] == 3
    assert call("serve", "DRAM-v0", "--include", "refresh_policy", *program).code == 0
    assert "none" in _told(told, "refresh_policy")["values"]


def _told(file: Path, name: str) -> Any:
    parameters = json.loads(file.read_text(encoding="utf-8"))["problem"]["space"]["parameters"]
    (found,) = [one for one in parameters if one["name"] == name]
    return found
