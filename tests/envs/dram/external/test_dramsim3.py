"""DRAMsim3 as the DRAM environment's simulator: recorded output, failures, the real program."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import archgym
from archgym.envs.dram.device.data_sheets import load_device
from archgym.envs.dram.device.memory import Memory, load_memory
from archgym.envs.dram.external import dramsim3
from archgym.envs.dram.external.dramsim3 import DramSim3Simulator
from archgym.envs.dram.traces.trace import Trace
from archgym.errors import (
    InvalidValueError,
    MissingDependencyError,
    NotCoveredError,
    SimulationError,
)
from archgym.simulators.external import find_program
from tests.envs.dram.external.external_runs import DESIGN3, RECORDED, TRACE, script

RUN: dict[str, Any] = json.loads((RECORDED / "dramsim3.json").read_text(encoding="utf-8"))
METRICS = tuple(RUN["metrics"])
RECORDED_EPOCHS = 20
FAKE = f"""
    import json, pathlib, sys, time
    here = pathlib.Path(__file__).parent
    run = json.loads(pathlib.Path({str(RECORDED / "dramsim3.json")!r}).read_text())
    config, trace = pathlib.Path("memory.ini"), pathlib.Path("requests.trace")
    count = here / "runs"
    number = int(count.read_text()) + 1 if count.exists() else 1
    count.write_text(str(number))
    (here / "seen.json").write_text(json.dumps(
        [sys.argv[1:], config.read_text().splitlines(), trace.read_text().splitlines()]))
    epochs = run["epochs"]
    exec((here / "mode").read_text())
    pathlib.Path("outepoch.json").write_text(json.dumps(epochs))
"""


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that writes what was recorded, after running the Python in ``mode``."""
    monkeypatch.setattr(dramsim3, "EPOCHS", RECORDED_EPOCHS)
    (tmp_path / "mode").write_text("")
    return script(tmp_path / "dramsim3main", FAKE)


def simulator(program: Path, trace: Trace = TRACE, **options: Any) -> DramSim3Simulator:
    return DramSim3Simulator(
        load_memory("DDR4-2400"), trace, metric_names=METRICS, program=program, **options
    )


def test_recorded_run_gives_its_figures(fake: Path) -> None:
    assert simulator(fake).simulate_one(DESIGN3) == pytest.approx(RUN["metrics"])
    seen = json.loads((fake.parent / "seen.json").read_text())
    assert seen == [RUN["command"], RUN["ini"], RUN["trace"]]


def test_energy_is_in_picojoules_not_in_volts_milliamperes_cycles(fake: Path) -> None:
    served = [epoch["num_reads_done"] + epoch["num_writes_done"] for epoch in RUN["epochs"]]
    last = max(i for i, count in enumerate(served) if count)
    printed = sum(epoch["total_energy"] for epoch in RUN["epochs"][: last + 1])
    energy = simulator(fake).simulate_one(DESIGN3)["energy_pj"]
    assert energy == pytest.approx(printed * 0.833)


def test_unfinished_run_is_repeated_for_longer(fake: Path) -> None:
    (fake.parent / "mode").write_text(
        "if number == 1:\n    for epoch in epochs[1:]: epoch['num_reads_done'] = 0"
    )
    assert simulator(fake).simulate_one(DESIGN3) == pytest.approx(RUN["metrics"], rel=2.0)
    assert (fake.parent / "runs").read_text() == "2"
    command = json.loads((fake.parent / "seen.json").read_text())[0]
    assert int(command[2]) >= 2 * int(RUN["command"][2])


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("epochs = []", "no epochs"),
        ("epochs = {'0': 1}", "statistics of DRAMsim3 cannot be read"),
        ("del epochs[3]['total_energy']", "KeyError: 'total_energy'"),
        ("epochs[0]['total_energy'] = 'much'", "could not convert"),
        ("epochs[0]['total_energy'] = float('nan')", "not finite"),
        ("sys.exit(0)", "FileNotFoundError"),
        ("sys.exit('Unkwown protocol')", "exit code 1: Unkwown protocol"),
        ("for e in epochs: e['num_reads_done'] = 0", "stopped serving requests after 16 of 48"),
    ],
)
def test_what_goes_wrong_is_the_reason(fake: Path, mode: str, reason: str) -> None:
    (fake.parent / "mode").write_text(mode)
    with pytest.raises(SimulationError, match=reason):
        simulator(fake).simulate_one(DESIGN3)


def test_hang_is_ended(fake: Path) -> None:
    (fake.parent / "mode").write_text("time.sleep(60)")
    with pytest.raises(TimeoutError, match="DRAMsim3 did not finish within 1 s"):
        simulator(fake, time_limit_s=1).simulate_one(DESIGN3)


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ({"page_policy": "open_adaptive"}, "page_policy 'open_adaptive', only 'open', 'closed'"),
        ({"scheduler": "fifo"}, "scheduler 'fifo'"),
        ({"arbiter": "reorder"}, "arbiter 'reorder'"),
        ({"resp_queue": "reorder"}, "resp_queue"),
        ({"refresh_policy": "all_bank", "refresh_max_postponed": 1}, "refreshes at once"),
        ({"address_mapping": "rbc_xor"}, "cannot express address mapping 'rbc_xor'"),
        ({"power_down_policy": "staggered"}, "power_down_policy"),
        ({"write_policy": "completed"}, "write_policy 'completed', only 'posted'"),
        ({"think_delay_bw_cycles": 2}, "no setting for think_delay_bw_cycles"),
    ],
)
def test_what_it_cannot_express_is_refused(
    fake: Path, setting: dict[str, Any], reason: str
) -> None:
    with pytest.raises(NotCoveredError, match=reason):
        simulator(fake).simulate_one({**DESIGN3, **setting})
    assert not (fake.parent / "runs").exists()


@pytest.mark.parametrize(
    ("memory", "mapping", "fields"),
    [
        ({"device": "DDR4-2400"}, "rbc", "ro ba bg co"),
        ({"device": "DDR4-2400"}, "brc", "ba bg ro co"),
        ({"device": "DDR4-2400"}, "rcb", "ro co ba bg"),
        ({"device": "DDR4-2400"}, "bgi", "ro ba co bg"),
        ({"device": "DDR3-1600"}, "rcb", "ro co ba"),
        ({"device": "DDR4-2400", "ranks": 2, "channels": 2}, "rbc", "ro ra ba bg co ch"),
    ],
)
def test_mapping_in_twelve_characters(
    fake: Path, memory: dict[str, Any], mapping: str, fields: str
) -> None:
    (fake.parent / "mode").write_text(
        f"epochs = [epoch for epoch in epochs for _ in range({memory.get('channels', 1)})]"
    )
    DramSim3Simulator(
        load_memory(memory), TRACE, metric_names=METRICS, program=fake, time_limit_s=20
    ).simulate_one({**DESIGN3, "address_mapping": mapping})
    ini = json.loads((fake.parent / "seen.json").read_text())[1]
    (line,) = [line for line in ini if line.startswith("address_mapping")]
    written = line.split()[-1]
    pairs = [written[i : i + 2] for i in range(0, 12, 2)]
    assert sorted(pairs) == ["ba", "bg", "ch", "co", "ra", "ro"]
    assert [pair for pair in pairs if pair in fields.split()] == fields.split()


def test_memory_that_it_does_not_have(fake: Path) -> None:
    device = dataclasses.replace(load_device("DDR4-2400"), name="no-such-part", standard="DDR5")
    with pytest.raises(InvalidValueError, match=r"no-such-part.*DDR3 and DDR4"):
        DramSim3Simulator(Memory(device), TRACE, program=fake)


def test_environment_says_what_to_fix(fake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCHGYM_DRAMSIM3", str(fake))
    arguments: dict[str, Any] = {
        "simulator": "dramsim3",
        "workload": {"generator": "stream", "requests": 48},
        "objective": "minimize energy_pj",
    }
    with pytest.raises(SimulationError, match=r"baseline .*(refresh_max_postponed|write_policy)"):
        archgym.make("DRAM-v0", **arguments).reset()
    # The recorded run had 32 reads and 16 writes, this one has reads only.
    (fake.parent / "mode").write_text(
        "for epoch in epochs: epoch['num_reads_done'] += epoch['num_writes_done']"
    )
    fixed = {"refresh_max_postponed": 0, "refresh_max_pulledin": 0, "write_policy": "posted"}
    env = archgym.make("DRAM-v0", fixed=fixed, **arguments)
    assert env.evaluate(env.baseline_design).metrics["read_latency_mean_ns"] is None
    with pytest.raises(InvalidValueError, match="does not give metric 'read_latency_mean_ns'"):
        archgym.make("DRAM-v0", **{**arguments, "objective": "minimize read_latency_mean_ns"})


def test_missing_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("ARCHGYM_DRAMSIM3", raising=False)
    with pytest.raises(MissingDependencyError, match=r"dramsim3main is not on PATH"):
        archgym.make("DRAM-v0", simulator="dramsim3")


# -- with the program itself -----------------------------------------------------------------------


@pytest.fixture
def program() -> Path:
    try:
        return find_program("dramsim3main", "ARCHGYM_DRAMSIM3")
    except MissingDependencyError as error:
        pytest.skip(str(error))


def test_the_program_still_gives_what_was_recorded(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dramsim3, "EPOCHS", RECORDED_EPOCHS)
    assert simulator(program).simulate_one(DESIGN3) == pytest.approx(RUN["metrics"])


def test_one_read_takes_activate_read_and_burst(program: Path) -> None:
    memory = load_memory("DDR4-2400")
    one = Trace("one", np.array([0]), np.array([0]), np.array([0]))
    d = memory.device
    result = simulator(program, one).simulate_one({**DESIGN3, "address_mapping": "rbc"})
    # It takes the request a clock before it acts on it.
    cycles = 1 + d.t_rcd_cycles + d.rl_cycles + d.burst_cycles
    assert result["read_latency_accepted_mean_ns"] == pytest.approx(
        cycles * d.t_ck_ps * 1e-3, abs=2 * d.t_ck_ps * 1e-3
    )


def test_livelock_is_a_failure(program: Path) -> None:
    # Writes fill the buffer; one of them waits for a read of its line, which waits for them.
    rng = np.random.default_rng(1)
    n = 6000
    row = np.minimum(rng.zipf(1.3, n), 64) * 40503 % 2**12
    trace = Trace(
        "zipf",
        np.cumsum(rng.integers(0, 4000, n)),
        row * 8192 + rng.integers(0, 4, n) * 64,
        (rng.random(n) < 0.5).astype(np.uint8),
    )
    design = {**DESIGN3, "scheduler_buffer": "read_write", "request_buffer_size": 2}
    with pytest.raises(SimulationError, match="livelock"):
        simulator(program, trace).simulate_one({**design, "page_policy": "closed"})
