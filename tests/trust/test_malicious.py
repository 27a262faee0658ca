"""Folders that somebody made to do harm, and every command that takes a folder on each of them."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from archgym.cli.output import printable
from archgym.data.journal import with_checksum
from tests.cli.conftest import Called
from tests.trust.received import called, received_run
from tests.trust.test_recorded import with_trial
from tests.trust.test_shown import ESCAPES

NAME = "datasets/Conformance-v0"
SECRET = "TOP-SECRET-LINE"
COMMANDS = [
    ["best", "."],
    ["status", "."],
    ["worker", ".", "--max-wait", "0", "-q"],
    ["report", "."],
    ["report", ".", "--compare", ".", "--tables", "OUT/tables", "--out", "OUT/r.html"],
    ["dataset", "info", "."],
    ["dataset", "validate", ".", "--replay", "2"],
    ["dataset", "repair", "."],
    ["dataset", "merge", ".", ".", "OUT/merged"],
    ["dataset", "filter", ".", "OUT/new", "--agent", "ga"],
    ["dataset", "sample", ".", "OUT/some", "--rows", "3"],
    ["dataset", "split", ".", "OUT/parts"],
    ["dataset", "export", ".", "OUT/rows.csv"],
    ["dataset", "export", ".", "OUT/card.md"],
    ["proxy", "train", ".", "--model", "forest", "--out", "OUT/proxy"],
    ["proxy", "evaluate", ".", "."],
    ["proxy", "compare", ".", "--model", "forest"],
    ["proxy", "study", ".", "--model", "forest", "--sizes", "10", "--repetitions", "1"],
    ["proxy", "search", "proxy.npz", "--budget", "20", "--verify", "2", "--record", NAME],
    [
        *("proxy", "collect", "Conformance-v0", "--set", "space=finite", "--target", "energy_pj"),
        *("--budget", "6", "--rounds", "1", "-q", "--record", NAME),
    ],
    ["evaluate", "Conformance-v0", "--set", "space=finite", "--simulator", "proxy:proxy.npz"],
    ["run", "experiment.yaml", "--local", "--resume", "--out", ".", "-q"],
    [
        *("run", "quickstart", "--local", "--history", ".", "--out", "OUT/learned"),
        *("--set", "environments=[{id: Conformance-v0, space: finite}]", "--set", "seeds=1"),
        *("--set", "agents=[{name: random}]", "--set", "budget=8"),
    ],
    ["evaluate", "Conformance-v0", "--set", "space=finite", "--record", NAME],
    ["evaluate", "Conformance-v0", "--simulator", "proxy:."],
    ["evaluate", "Conformance-v0", "--simulator", f"tabular:{NAME}"],
]
"""In the folder; OUT is an empty one beside it."""


class Runs:
    """Leaves a file when it is unpickled."""

    def __init__(self, target: Path) -> None:
        self._target = str(target)

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.mkdir, (self._target,))


def link(name: str, run: Path, outside: Path) -> None:
    path = run / name
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    path.symlink_to(outside / "secret")


def pipe(name: str, run: Path, outside: Path) -> None:
    (run / name).unlink(missing_ok=True)
    os.mkfifo(run / name)


def a_socket(run: Path, outside: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        before = Path.cwd()
        os.chdir(run)
        made.bind("live.sock")
        os.chdir(before)


def json_file(name: str, change: Callable[[Any, Path], object], run: Path, outside: Path) -> None:
    """Changes a JSON file, and leaves out its checksum."""
    path = run / name
    data = json.loads(path.read_text())
    change(data, outside)
    if isinstance(data, dict):
        data.pop("checksum", None)
    (run / "checksums.json").unlink(missing_ok=True)
    path.write_text(json.dumps(data))


def trial(column: str, value: str, run: Path, outside: Path) -> None:
    """Another value in the table of trials, with OUTSIDE for the path of a folder."""
    with_trial(run / NAME, **{column: value.replace("OUTSIDE", str(outside))})


def footer(key: bytes, value: str, run: Path, outside: Path) -> None:
    """Another note in the files of a dataset."""
    for path in (run / NAME).glob("*/*.parquet"):
        table = pq.read_table(path)
        known = {**(table.schema.metadata or {}), key: value.encode()}
        pq.write_table(table.replace_schema_metadata(known), path)


def proxy(change: Callable[[dict[str, Any], Path], object], run: Path, outside: Path) -> None:
    """Changes the arrays of a proxy."""
    path = run / "proxy.npz"
    with np.load(path) as read:
        arrays = dict(read)
    change(arrays, outside)
    np.savez(path, **arrays)


def header(arrays: dict[str, Any], outside: Path, **changes: str) -> None:
    """Other places and names in what a proxy says of itself."""
    data = json.loads(arrays["header"].tobytes())
    for key, value in changes.items():
        data["origin"][key] = value.replace("OUTSIDE", str(outside))
    arrays["header"] = np.frombuffer(json.dumps(data).encode(), dtype=np.uint8)


def text(name: str, content: str, run: Path, outside: Path) -> None:
    path = run / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content.replace("OUTSIDE", str(outside)))


def pickled(name: str, run: Path, outside: Path) -> None:
    (run / name).write_bytes(pickle.dumps(Runs(outside / "ran")))


MODULE = "from pathlib import Path\nPath('OUTSIDE/ran').mkdir(exist_ok=True)\n"


def modules(run: Path, outside: Path) -> None:
    for name in ("pyarrow", "numpy", "json", "sitecustomize", "conftest", "evil", "archgym"):
        text(f"{name}.py", MODULE, run, outside)


def names_module(run: Path, outside: Path) -> None:
    modules(run, outside)
    trial("environment", "evil:Evil", run, outside)


DECLARED = """
name: Evil
parameters: {level: {values: [1, 2], baseline: 1}}
stages: {run: {run: [mkdir, OUTSIDE/ran]}}
metrics: {size: {unit: count, seconds: run, read_unit: s}}
objective: {minimize: size}
"""


def simulator_file(run: Path, outside: Path) -> None:
    """An environment that runs a program, named wherever an environment is named."""
    text("evil.yaml", DECLARED, run, outside)
    text("datasets/evil.yaml", DECLARED, run, outside)
    trial("environment", "evil.yaml", run, outside)
    proxy(lambda arrays, outside: header(arrays, outside, environment="evil.yaml"), run, outside)


FIRST = '[{{"trial_id": "{}", "state": "running", "in_flight": []}}]'
FOLDERS: dict[str, Callable[[Path, Path], object]] = {
    **{
        f"a link in the place of {name}": partial(link, name)
        for name in ("trials.json", "experiment.yaml", "results.json", "log", "results", NAME)
    },
    "a link beside": partial(link, f"{NAME}/evaluations/more.parquet"),
    "a link as the lock": partial(link, ".lock"),
    "a link to itself": lambda run, outside: (run / "loop").symlink_to(run),
    "a link to a device": lambda run, outside: (run / "zero.json").symlink_to("/dev/zero"),
    **{
        f"a pipe in the place of {name}": partial(pipe, name)
        for name in ("trials.json", "results.json", f"{NAME}/dataset.json")
    },
    "a pipe beside": partial(pipe, f"{NAME}/journal.jsonl"),
    "a socket": a_socket,
    "modules": modules,
    "an environment that is a module": names_module,
    "a tag in the experiment": partial(
        text, "experiment.yaml", "!!python/object/apply:os.mkdir ['OUTSIDE/ran']\n"
    ),
    "an experiment of a module": partial(
        text,
        "experiment.yaml",
        "name: x\nbudget: 3\nenvironments: [{id: 'os:getcwd'}]\nagents: [{name: random}]\n",
    ),
    "a pickle as the proxy": partial(pickled, "proxy.npz"),
    "a pickle in the proxy": partial(
        proxy,
        lambda arrays, outside: arrays.update(
            header=np.array([Runs(outside / "ran")], dtype=object)
        ),
    ),
    "a proxy of a module": partial(
        proxy, lambda arrays, outside: header(arrays, outside, environment="evil:Evil")
    ),
    "a proxy of an outside file": partial(
        proxy, lambda arrays, outside: header(arrays, outside, environment="OUTSIDE/evil.yaml")
    ),
    "a simulator file": simulator_file,
    "a pickle as evaluations": partial(pickled, f"{NAME}/evaluations/more.parquet"),
    "a trial outside": partial(trial, "trial_id", "../../../../outside/pwned"),
    "settings that record": partial(trial, "settings", '{"record": "OUTSIDE/rows"}'),
    "settings that run": partial(
        trial, "settings", '{"simulator_options": {"program": "OUTSIDE/run.sh"}}'
    ),
    "a workload outside": partial(trial, "workload_spec", '"OUTSIDE/secret"'),
    "an environment of a path": partial(trial, "environment", "OUTSIDE/secret"),
    "an environment that is deleted": partial(trial, "environment", "shutil:rmtree"),
    "a dataset outside": partial(
        json_file,
        "trials.json",
        lambda data, outside: [one.update(dataset="../../outside") for one in data],
    ),
    "an error file outside": partial(
        json_file,
        "trials.json",
        lambda data, outside: [one.update(trial_id=f"{outside}/secret") for one in data],
    ),
    "arguments that record": partial(
        json_file,
        "trials.json",
        lambda data, outside: [one["arguments"].update(record=f"{outside}/x") for one in data],
    ),
    "journals outside": partial(footer, b"archgym.journals", '["../../../../outside/secret"]'),
    "parts outside": partial(
        footer,
        b"archgym.parts",
        '{"../../../../outside/secret": {"rows": 1, "sha256": "", "journals": []}}',
    ),
    "attempts outside": partial(footer, b"archgym.attempts", '{"../../../../outside/secret": ""}'),
    "checksums outside": partial(
        text, "checksums.json", '{"files": {"../outside/secret": "x"}, "checksum": "x"}'
    ),
    "names that steer a terminal": partial(trial, "agent", ESCAPES),
    "workloads that steer a terminal": partial(trial, "workload", ESCAPES),
    "live files that steer a terminal": partial(
        text, "live/run.1.json", FIRST.format("\\u001b[2J")
    ),
    "logs that steer a terminal": partial(
        text,
        "log/x.jsonl",
        with_checksum(
            {
                **{"trial_id": "Conformance-v0.random.s0", "state": "failed", "error": ESCAPES},
                **{"wall_s": 1, "cpu_s": 1, "t": 1},
            },
            0,
        )[0].decode(),
    ),
    "units that steer a terminal": partial(
        json_file,
        f"{NAME}/dataset.json",
        lambda data, outside: data["metrics"][0].update(unit=ESCAPES, doc=ESCAPES),
    ),
    "formulas": partial(trial, "agent", "=cmd|' /C calc'!A0"),
    "a page that runs": partial(trial, "agent", "<script>alert(1)</script>"),
    "a queue outside": partial(
        text, "queues/q/queue.json", '{"format": 1, "folder": "OUTSIDE", "state": "running"}'
    ),
    "JSON without an end": partial(text, "results.json", "[" * 100_000),
}


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = received_run(tmp_path_factory.mktemp("malicious") / "run")
    train = ("proxy", "train", folder, "--model", "forest", "--out", folder / "proxy.npz", "-q")
    assert called(train, folder).code == 0
    return folder


def harmless(
    name: str,
    command: list[str],
    run: Path,
    place: Path,
    call: Callable[..., Called],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is run, written, deleted or shown from outside, and nothing steers a terminal."""
    outside, copy = place / "outside", place / "sent" / "run"
    outside.mkdir(parents=True)
    (outside / "secret").write_text(SECRET)
    (outside / "run.sh").write_text(f"#!/bin/sh\nmkdir {outside}/ran\n")
    (outside / "run.sh").chmod(0o755)
    shutil.copytree(run, copy)
    FOLDERS[name](copy, outside)
    (place / "out").mkdir()
    before, where = contents(outside), sorted(path.name for path in place.iterdir())
    with monkeypatch.context() as patch:
        patch.chdir(copy)
        ended = call(*(word.replace("OUT", str(place / "out")) for word in command))
    assert ended.code in (0, 1, 2), ended.err
    assert "Traceback" not in ended.err
    assert ended.code != 2 or "Usage" in ended.err or len(ended.err.splitlines()) <= 5, ended.err
    assert contents(outside) == before
    assert not (outside / "ran").exists()
    assert sorted(path.name for path in place.iterdir()) == where
    assert SECRET not in ended.out + ended.err
    for shown in (ended.out, ended.err):
        assert printable(shown) == shown
    for path in place.glob("out/**/*.csv"):
        assert not any(line.startswith(("=", "+")) for line in path.read_text().splitlines())
    for path in (*place.glob("out/*.html"), *copy.glob("*.html")):
        assert "<script>alert(1)" not in path.read_text()
    shutil.rmtree(place)


def test_there_are_enough_folders() -> None:
    assert len(FOLDERS) >= 30


@pytest.mark.parametrize("name", list(FOLDERS)[::8])
def test_a_malicious_folder_does_no_harm(
    name: str,
    run: Path,
    tmp_path: Path,
    call: Callable[..., Called],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for command in (COMMANDS[0], COMMANDS[6], COMMANDS[18]):
        harmless(name, command, run, tmp_path / "place", call, monkeypatch)


@pytest.mark.full
@pytest.mark.nightly
@pytest.mark.parametrize("name", FOLDERS)
def test_no_command_on_a_malicious_folder_does_harm(
    name: str,
    run: Path,
    tmp_path: Path,
    call: Callable[..., Called],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for command in COMMANDS:
        harmless(name, command, run, tmp_path / "place", call, monkeypatch)
