from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import archgym
from archgym.enumeration import enumerate_space
from archgym.errors import ArchgymError, DatasetError, InvalidValueError, SimulationError
from archgym.simulators.tabular import Table
from archgym.space import Designs
from tests.helpers import Batched, Grumpy

FINITE = {"space": "finite"}


@pytest.fixture(autouse=True)
def _known() -> None:
    """Tests are imported by path, so their classes are registered, not named by module."""
    archgym.register("GrumpyForTables-v0", Grumpy)
    archgym.register("BatchedForTables-v0", Batched)


def table_file(folder: Path) -> bytes:
    return (folder / "table.parquet").read_bytes()


def test_every_failure_is_kept_as_it_is(tmp_path: Path) -> None:
    table = enumerate_space("GrumpyForTables-v0", {}, tmp_path, workers=1, chunk=10)
    env = Grumpy()
    (designs,) = env.design_space.enumerate()
    assert len(table) == len(designs) == env.design_space.canonical_cardinality
    outcomes = env.evaluate_batch(designs)
    statuses = [table.failures[number] for number in table.failure.tolist()]
    assert statuses == list(zip(outcomes.status.tolist(), outcomes.reason, strict=True))
    assert {status for status, _ in statuses} == {0, 1, 2, 3}
    found = table.values(np.arange(len(table)), table.metric_names)
    assert found.tobytes() == outcomes.metrics.tobytes()
    served = archgym.make("GrumpyForTables-v0", simulator=f"tabular:{tmp_path}")
    again = served.evaluate_batch(designs)
    assert again.reason == outcomes.reason
    assert again.status.tolist() == outcomes.status.tolist()


def test_chunks_and_processes_change_nothing(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    one = enumerate_space("Conformance-v0", FINITE, tmp_path / "a", workers=1)
    two = enumerate_space(
        "Conformance-v0",
        FINITE,
        tmp_path / "b",
        workers=2,
        chunk=700,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert table_file(tmp_path / "a") == table_file(tmp_path / "b")
    assert one.fingerprint == two.fingerprint
    assert [total for _, total in seen] == [2484] * 5
    assert [done for done, _ in seen][::4] == [0, 2484]
    assert sorted(os.listdir(tmp_path / "b")) == [".lock", "enumeration.json", "table.parquet"]


def test_the_simulator_gets_whole_chunks_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches: list[Designs] = []
    simulate = Batched.simulate_batch

    def watched(self: Batched, designs: Designs) -> Any:
        batches.append(designs)
        return simulate(self, designs)

    monkeypatch.setattr(Batched, "simulate_batch", watched)
    enumerate_space("BatchedForTables-v0", {}, tmp_path, workers=1, chunk=50)
    (everything,) = Batched.design_space.enumerate()
    assert [len(batch) for batch in batches] == [1, 50, 22]  # the baseline first
    assert np.concatenate([b.codes for b in batches[1:]]).tolist() == everything.codes.tolist()


def test_it_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    simulate = Batched.simulate_batch

    def failing(self: Batched, designs: Designs) -> Any:
        nonlocal calls
        calls += len(designs)
        if calls > 45:
            raise ArchgymError("the licence server is away")
        return simulate(self, designs)

    enumerate_space("BatchedForTables-v0", {}, tmp_path / "whole", workers=1)
    with monkeypatch.context() as patched:
        patched.setattr(Batched, "simulate_batch", failing)
        with pytest.raises(ArchgymError, match="licence"):
            enumerate_space("BatchedForTables-v0", {}, tmp_path / "two", workers=1, chunk=20)
    seen: list[int] = []
    enumerate_space(
        "BatchedForTables-v0", {}, tmp_path / "two", workers=1, progress=lambda d, _: seen.append(d)
    )
    assert seen == [40, 60, 72]
    assert table_file(tmp_path / "two") == table_file(tmp_path / "whole")
    # What is finished is not simulated again.
    monkeypatch.setattr(Batched, "simulate_batch", lambda self, d: simulate(self, d[:1]))
    done = enumerate_space("BatchedForTables-v0", {}, tmp_path / "two", workers=1)
    assert done.fingerprint == Table.load(tmp_path / "whole" / "table.parquet").fingerprint


SLOW = """
import time
from archgym.envs.conformance import ConformanceEnvironment

class Slow(ConformanceEnvironment):
    def simulate(self, design):
        time.sleep(0.0005)
        return super().simulate(design)
"""


@pytest.mark.nightly
def test_a_killed_enumeration_loses_at_most_a_chunk(tmp_path: Path) -> None:
    (tmp_path / "slow_cache.py").write_text(SLOW)
    command = [sys.executable, "-m", "archgym", "enumerate", "slow_cache:Slow"]
    command += ["--space", "finite", "--chunk", "150", "--workers", "2", "--quiet", "--out"]
    killed = subprocess.Popen([*command, "killed"], cwd=tmp_path, start_new_session=True)
    chunks = tmp_path / "killed" / "chunks"
    end = time.monotonic() + 60
    while len(list(chunks.glob("0*.parquet"))) < 3:
        assert time.monotonic() < end
        assert killed.poll() is None
        time.sleep(0.005)
    killed.send_signal(signal.SIGKILL)  # its workers end by themselves
    killed.wait()
    assert not (tmp_path / "killed" / "table.parquet").exists()
    held = {path.name: path.stat().st_mtime_ns for path in chunks.glob("0*.parquet")}
    assert len(held) >= 3
    (chunks / ".000009.parquet-half").write_bytes(b"half a file")  # a writer killed on its way
    for folder in ("killed", "whole"):
        subprocess.run([*command, folder], cwd=tmp_path, check=True, timeout=120)
    assert table_file(tmp_path / "killed") == table_file(tmp_path / "whole")
    with pytest.raises(ProcessLookupError):
        os.killpg(killed.pid, 0)


CRASHING = """
import os
from archgym.envs.conformance import ConformanceEnvironment

class Crashing(ConformanceEnvironment):
    def simulate(self, design):
        if design["size_kb"] == 64:
            os._exit(7)
        return super().simulate(design)
"""


def test_a_worker_that_dies_is_an_error_that_says_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "crashing_cache.py").write_text(CRASHING)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SimulationError, match=r"exit code 7 in designs \d+ to \d+"):
        enumerate_space("crashing_cache:Crashing", FINITE, tmp_path / "out", workers=2, chunk=200)
    assert not (tmp_path / "out" / "table.parquet").exists()


@pytest.mark.parametrize(
    ("arguments", "keywords", "message"),
    [
        ({"space": "default"}, {}, "'voltage' is real: fix it"),
        (FINITE, {"chunk": 0}, "chunk must be at least 1, not 0"),
        (FINITE, {"workers": -1}, "workers must be at least 1, not -1"),
        ({**FINITE, "record": "data"}, {}, "record: an enumeration makes a table"),
        ({"simulator": "tabular:x"}, {}, "enumerated already"),
    ],
)
def test_what_cannot_be_enumerated(
    tmp_path: Path, arguments: dict[str, Any], keywords: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidValueError, match=message):
        enumerate_space("Conformance-v0", arguments, tmp_path / "out", **keywords)


def test_a_real_parameter_that_is_fixed_is_no_obstacle(tmp_path: Path) -> None:
    fixed = {"voltage": 0.75, "replacement": "lru", "ways": 2}
    enumerate_space("Conformance-v0", {"fixed": fixed}, tmp_path, workers=1)
    table = archgym.make("Conformance-v0", simulator=f"tabular:{tmp_path}")
    env = archgym.make("Conformance-v0", fixed=fixed)
    (designs,) = env.design_space.enumerate()
    assert table.evaluate_batch(designs).metrics.tobytes() == (
        env.evaluate_batch(designs).metrics.tobytes()
    )


def test_folders_that_hold_something_else(tmp_path: Path) -> None:
    def begin(folder: str, **arguments: Any) -> None:
        enumerate_space("Conformance-v0", {**FINITE, **arguments}, tmp_path / folder, workers=1)

    begin("ways", fixed={"ways": 3})
    with pytest.raises(InvalidValueError, match="another enumeration, which differs in space"):
        begin("ways", fixed={"ways": 4})
    plan = tmp_path / "ways" / "enumeration.json"
    data = json.loads(plan.read_text())
    plan.write_text(json.dumps({**data, "simulator": {"name": "embedded", "version": "0"}}))
    with pytest.raises(InvalidValueError, match=r"simulator \(.*'0'.* there, .*'1'.* here\)"):
        begin("ways", fixed={"ways": 3})
    plan.write_text("{")
    with pytest.raises(DatasetError, match="cannot read"):
        begin("ways", fixed={"ways": 3})
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("")
    with pytest.raises(InvalidValueError, match=r"holds 'thesis\.txt' and no enumeration"):
        begin("other")
    with pytest.raises(DatasetError, match="cannot write"):
        begin("other/thesis.txt")


def test_chunks_stay_as_they_were_begun(tmp_path: Path) -> None:
    enumerate_space("Conformance-v0", FINITE, tmp_path, workers=1, chunk=800)
    with pytest.raises(InvalidValueError, match="chunks of 800 designs, not 900"):
        enumerate_space("Conformance-v0", FINITE, tmp_path, workers=1, chunk=900)
