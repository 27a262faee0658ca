"""The command line on declared environments."""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Called, call  # noqa: F401 - a fixture
from tests.declared.conftest import Write

Call = Callable[..., Called]


def test_evaluate_keeps_the_folder_and_says_what_was_run(
    write: Write,
    call: Call,  # noqa: F811
) -> None:
    write()
    found = call("evaluate", "queue.yaml", "depth=8", "--keep", "--json").json
    assert found["environment"] == "queue.yaml"
    assert found["metrics"]["area_um2"] == 80
    (folder,) = map(Path, found["kept"])
    assert (folder / "design.txt").read_text() == "8 1 80 2\n"
    said = (folder / "commands.txt").read_text()
    assert "# stage run: exit code 0, " in said
    assert said.rstrip().endswith("design.txt")
    assert (folder / "run.stdout").read_text().startswith("wait = ")
    assert (folder / "run.stderr").read_text() == ""
    assert "commands.txt in a folder says" in call("evaluate", "queue.yaml", "--keep").out


def test_a_design_is_shown_without_a_baseline(
    write: Write,
    call: Call,  # noqa: F811
    tmp_path: Path,
) -> None:
    write(("{ printf", "$1 == 4 { exit 3 } { printf"))
    given = ("evaluate", "queue.yaml", "depth=8", "--keep")
    found = call(*given, "--json")
    assert found.code == 0
    assert found.json["metrics"]["area_um2"] == 80
    assert found.json["reward"] is None
    assert set(found.json["baseline_metrics"].values()) == {None}
    assert "baseline design cannot be simulated" in found.json["baseline_reason"]
    for key, text in (("kept", "8 1 80 2\n"), ("kept_of_baseline", "4 1 40 2\n")):
        (folder,) = map(Path, found.json[key])
        assert (folder / "design.txt").read_text() == text
    shown = " ".join(call(*given).out.split())
    assert "kept of this design: /" in shown
    assert "kept of the baseline design: /" in shown
    assert "nothing to compare with: the baseline design cannot be simulated: stage run" in shown
    unrecorded = call(*given, "--record", tmp_path / "data")
    assert unrecorded.code == 1
    assert "not recorded in" in unrecorded.out
    both_fail = call("evaluate", "queue.yaml", "width=2")
    assert both_fail.code == 1
    assert "status failed" in both_fail.out


def test_keep_is_for_declared_environments(call: Call) -> None:  # noqa: F811
    assert "--keep is for" in call("evaluate", "Conformance-v0", "--keep").err


def test_show_and_schema(write: Write, call: Call) -> None:  # noqa: F811
    write()
    shown = call("show", "queue.yaml").out
    assert "A queue, simulated by awk." in shown
    assert "policy == fifo" in shown
    schema = call("schema", "environment").json
    assert "metrics" in schema["required"]
    assert "stages" in schema["properties"]
    assert "environments" in call("schema").json["required"]
    assert "Did you mean 'environment'" in call("schema", "enviroment").err


def test_check_ends_well_or_says_why(write: Write, call: Call) -> None:  # noqa: F811
    write()
    found = {
        one["name"]: one for one in call("check", "queue.yaml", "--only", "metrics", "--json").json
    }
    assert found["metrics"]["passed"]
    write(("key: wait", "key: waits"))
    failed = call("check", "queue.yaml", "--only", "metrics")
    assert failed.code == 1
    assert "Did you mean 'wait'" in failed.out


def test_mistakes_are_one_line_and_exit_code_2(write: Write, call: Call) -> None:  # noqa: F811
    write(("unit: ns", "units: ns"))
    found = call("evaluate", "queue.yaml")
    assert found.code == 2
    assert "queue.yaml, line 23: metrics.wait_ns.units: unknown key" in found.err
    assert "Traceback" not in found.err
    assert "no such file" in call("evaluate", "quee.yaml").err.lower()


@pytest.mark.full
def test_an_experiment_names_the_file(write: Write, call: Call, tmp_path: Path) -> None:  # noqa: F811
    write()
    (tmp_path / "search.yaml").write_text(
        "name: search\nbudget: 6\nenvironments: [{id: queue.yaml}]\nagents: [{name: random}]\n"
        "simulation: {workers: 2, cache: cache.sqlite}\n"
    )
    assert call("run", "search.yaml", "--local", "-q").code == 0
    results = json.loads((tmp_path / "runs/search/results.json").read_text())
    assert "queue" in json.dumps(results)
    assert call("report", "runs/search").code == 0
    assert call("dataset", "validate", "runs/search").code == 0
    replayed = call("dataset", "validate", "runs/search", "--replay")
    assert "--environment queue.yaml" in " ".join(replayed.out.split())
    assert "no row could be evaluated again" in replayed.err
    assert "replay      nothing" in replayed.out
    mine = call("dataset", "validate", "runs/search", "--replay", "--environment", "queue.yaml")
    assert mine.code == 0, mine.out + mine.err


@pytest.mark.full
def test_an_edit_that_changes_no_metric_is_accepted(
    write: Write,
    call: Call,  # noqa: F811
    tmp_path: Path,
) -> None:
    write()
    (tmp_path / "search.yaml").write_text(
        "name: search\nbudget: 4\nenvironments: [{id: queue.yaml}]\nagents: [{name: random}]\n"
    )
    run = ("run", "search.yaml", "--local", "-q")
    assert call(*run).code == 0
    path = write(("'{ printf", "'{ ; printf"))
    os.utime(path, (time.time() + 60,) * 2)
    refused = call(*run, "--resume", "--set", "budget=6").err
    assert "these changed since: queue.yaml" in refused
    command = shlex.split(refused.partition("as before, archgym ")[2].partition(" shows it")[0])
    accepted = call(*command)
    assert accepted.code == 0, accepted.out + accepted.err
    assert "accepted in place of" in accepted.out
    assert call(*run, "--resume", "--set", "budget=6").code == 0
    assert call("dataset", "validate", "runs/search").code == 0
