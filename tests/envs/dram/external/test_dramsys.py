"""DRAMSys as the DRAM environment's simulator: recorded output, failures, and the real program."""

from __future__ import annotations

import dataclasses
import json
import math
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import archgym
from archgym.envs.dram.controller.config import ControllerConfig
from archgym.envs.dram.device.address_mapping import address_mapping
from archgym.envs.dram.device.data_sheets import load_device
from archgym.envs.dram.device.memory import Memory, load_memory
from archgym.envs.dram.environment import DramEnvironment
from archgym.envs.dram.external.dramsys import DramSysSimulator
from archgym.envs.dram.external.dramsys_config import configuration, controller_settings, stl_trace
from archgym.envs.dram.external.dramsys_output import read_database, read_printed
from archgym.envs.dram.traces.trace import Trace
from archgym.errors import (
    InvalidValueError,
    MissingDependencyError,
    NotCoveredError,
    SimulationError,
    UnknownNameError,
)
from archgym.simulators.external import find_program
from tests.envs.dram.external.external_runs import DESIGN, RECORDED, TRACE, script

RUN: dict[str, Any] = json.loads((RECORDED / "dramsys51.json").read_text(encoding="utf-8"))
PRINTED = (RECORDED / "dramsys51.out").read_text(encoding="utf-8")
METRICS = tuple(RUN["metrics"])
FAKE = f"""
    import json, pathlib, shutil, sqlite3, sys, time
    here = pathlib.Path(__file__).parent
    mode = (here / "mode").read_text()
    config, folder = json.load(open(sys.argv[1])), pathlib.Path(sys.argv[2])
    trace = (folder / "traces" / config["simulation"]["tracesetup"][0]["name"]).read_text()
    (here / "seen.json").write_text(json.dumps([config, trace.splitlines()]))
    printed = pathlib.Path({str(RECORDED / "dramsys51.out")!r}).read_text()
    sql = pathlib.Path({str(RECORDED / "dramsys51.sql")!r}).read_text()
    exec(mode)
    print(printed)
    if config["simulation"]["simconfig"]["DatabaseRecording"] and sql:
        connection = sqlite3.connect({RUN["database"]!r})
        connection.executescript("BEGIN;" + sql + ";COMMIT;")
"""


class Fake:
    """A program that prints what was recorded; ``mode`` is Python that it runs before."""

    def __init__(self, folder: Path) -> None:
        self.program = script(folder / "DRAMSys", FAKE)
        self.folder = folder
        self.mode("")

    def mode(self, code: str) -> None:
        (self.folder / "mode").write_text(code, encoding="utf-8")

    def seen(self) -> tuple[dict[str, Any], list[str]]:
        config, trace = json.loads((self.folder / "seen.json").read_text(encoding="utf-8"))
        return config, trace


@pytest.fixture
def fake(tmp_path: Path) -> Fake:
    return Fake(tmp_path)


def simulator(program: Path, **options: Any) -> DramSysSimulator:
    return DramSysSimulator(
        load_memory("DDR4-2400"), TRACE, metric_names=METRICS, program=program, **options
    )


def test_recorded_run_gives_its_figures(fake: Fake) -> None:
    result = simulator(fake.program).simulate_one(DESIGN)
    assert result == pytest.approx(RUN["metrics"])
    config, trace = fake.seen()
    assert trace == RUN["trace"]
    assert config == RUN["configuration"]


def test_first_read_takes_activate_read_and_burst() -> None:
    memory = load_memory("DDR4-2400")
    d = memory.device
    database = sqlite3.connect(":memory:")
    database.executescript((RECORDED / "dramsys51.sql").read_text(encoding="utf-8"))
    (begin,) = database.execute(
        "SELECT PhaseBegin FROM Phases WHERE PhaseName = 'RESP' AND Transact = 1"
    ).fetchone()
    cycles = 1 + d.t_rcd_cycles + d.rl_cycles + d.burst_cycles
    assert begin == cycles * d.t_ck_ps


def test_without_the_database_only_what_is_printed(fake: Fake) -> None:
    fast = simulator(fake.program, latencies=False)
    result = fast.simulate_one(DESIGN)
    assert fake.seen()[0]["simulation"]["simconfig"]["DatabaseRecording"] is False
    assert set(result) == set(fast.metric_names)
    assert not any("latency" in name or name == "row_hit_rate" for name in result)
    assert result["energy_pj"] == pytest.approx(710961.0)
    none = simulator(fake.program, latencies=False, energy=False)
    assert none.metric_names == ("time_ns", "bandwidth_gb_per_s", "buffer_bits")


@pytest.mark.parametrize(
    ("lines", "time_ns", "energy_pj"),
    [
        ("Total Time: 430895 ns\nTotal Energy: 12 pJ\n", 430895, 12),
        ("Total Time:  288003750 ps\nTotal Energy: 2 uJ\n", 288003.75, 2e6),
        ("Total Time: 3 us\nTotal Energy: 1.5e-06 J\n", 3e3, 1.5e6),
        ("Total Time: 1 s\nTotal Energy: 7 mJ\n", 1e9, 7e9),
        # Two channels, the second without a request: the later end, and the sum of the energies.
        (
            "Total Time: 5 ns\nTotal Energy: 1 nJ\nAverage Power: 9 mW\n"
            "Total Time: 4 ns\nTotal Energy: 2 pJ\nAverage Power: -nan mW\n",
            5,
            1002,
        ),
    ],
)
def test_units_are_read(lines: str, time_ns: float, energy_pj: float) -> None:
    printed = read_printed(f"controller0  {lines}", power=True)
    assert printed.time_ns == pytest.approx(time_ns)
    assert printed.energy_pj == pytest.approx(energy_pj)
    assert math.isnan(printed.peak_gbit_per_s)


def test_what_4_0_prints_is_read() -> None:
    text = (
        "DRAMSys.dram0  Total Energy:   \t93455824.00 \tpJ\n"
        "DRAMSys.dram0  Average Power:  \t1246.30 \tmW\n"
        "DRAMSys.controller0  Total Time:     \t74986250 ps\n"
    )
    printed = read_printed(text, power=True)
    assert (printed.time_ns, printed.energy_pj) == (74986.25, 93455824.0)


BROKEN = [
    ("printed = ''", "no 'Total Time' line"),
    ("printed = printed.replace('497301 ps', '497301 fortnights')", "'fortnights' is none of fs"),
    ("printed = printed.replace('497301 ps', '497301')", "unit '' is none of"),
    ("printed = printed.replace('497301 ps', 'soon')", "'soon' is not a number"),
    ("printed = printed.replace('497301 ps', 'nan ps')", "not a finite number"),
    ("printed = printed.replace('497301 ps', '0 s')", "total time of 0 ns"),
    ("printed = printed.replace('Total Energy', 'Energy')", "no 'Total Energy' line"),
    ("printed = printed.replace('153.66', '0.153')", "peak of 0.153 Gb/s, it has 153.661"),
    ("printed = chr(0x1F600) * 1000", "no 'Total Time' line"),
    ("sql = ''", "wrote 0 databases"),
    ("sql = 'CREATE TABLE Phases(ID)'", "no such table: Transactions"),
    ("sql = sql.replace('PhaseBegin', 'Begin')", "no such column"),
    ("sql += 'DELETE FROM Transactions WHERE ID = 5;'", "holds 47 requests .* the trace 48"),
    ("sql += 'UPDATE Phases SET PhaseBegin = 1 WHERE PhaseName = \"RESP\";'", "before its"),
    ("sql += 'UPDATE Phases SET PhaseBegin = \"x\";'", "database of DRAMSys cannot be read"),
    (f"sql = ''; open({RUN['database']!r}, 'w').write('no database' * 500)", "not a database"),
    ("sys.exit('Error: F1000 bad memory')", "exit code 1: Error: F1000 bad memory"),
    ("import os; os.abort()", "SIGABRT"),
]


@pytest.mark.parametrize(("code", "reason"), BROKEN)
def test_what_goes_wrong_is_the_reason(fake: Fake, code: str, reason: str) -> None:
    fake.mode(code)
    with pytest.raises(SimulationError, match=reason):
        simulator(fake.program).simulate_one(DESIGN)


def test_hang_is_ended(fake: Fake) -> None:
    fake.mode("time.sleep(60)")
    with pytest.raises(TimeoutError, match="DRAMSys did not finish within 1 s"):
        simulator(fake.program, time_limit_s=1).simulate_one(DESIGN)


def test_program_without_drampower_says_how_to_go_on(fake: Fake) -> None:
    fake.mode(
        "sys.exit('Error: SimConfig: Power analysis is only supported with included DRAMPower "
        "library!')"
    )
    with pytest.raises(MissingDependencyError, match=r"without DRAMPower.*'energy': False"):
        simulator(fake.program).simulate_one(DESIGN)


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ({"page_policy": "timeout"}, "no page_policy 'timeout'"),
        ({"write_policy": "posted"}, "no setting for write_policy"),
        ({"end_response_delay_cycles": 0}, "end_response_delay_cycles"),
    ],
)
def test_what_it_cannot_express_is_refused(setting: dict[str, Any], reason: str) -> None:
    with pytest.raises(NotCoveredError, match=reason):
        controller_settings(ControllerConfig(**setting))


def test_read_write_buffers_get_their_sizes() -> None:
    config = ControllerConfig(scheduler_buffer="read_write", request_buffer_size=3)
    settings = controller_settings(config)
    assert settings["RequestBufferSizeRead"] == settings["RequestBufferSizeWrite"] == 3


def test_channels_and_ranks_are_described() -> None:
    memory = load_memory({"device": "DDR3-1600", "channels": 2, "ranks": 2})
    document = configuration(
        memory,
        address_mapping("rbc_xor", memory),
        ControllerConfig(),
        player_mhz=1000,
        power=True,
        database=False,
    )["simulation"]
    assert document["memspec"]["memarchitecturespec"]["nbrOfRanks"] == 2
    assert document["memspec"]["memarchitecturespec"]["nbrOfChannels"] == 2
    entries = [entry for bits in document["addressmapping"].values() for entry in bits]
    bits = [entry[0] if isinstance(entry, list) else entry for entry in entries]
    assert sorted(bits) == list(range(memory.address_bits))


def test_trace_folds_addresses_and_keeps_picoseconds() -> None:
    trace = Trace("t", np.array([0, 1500]), np.array([2**32 + 70, 64]), np.array([0, 1]))
    assert stl_trace(trace, 2**32, 64) == (b"0: read 0x40\n1500: write 0x40\n", 1_000_000)
    trace = Trace("t", np.array([0, 2000]), np.array([0, 64]), np.array([0, 1]))
    assert stl_trace(trace, 2**32, 64) == (b"0: read 0x0\n2: write 0x40\n", 1000)


def test_no_energy_for_several_ranks(fake: Fake) -> None:
    memory = load_memory({"device": "DDR4-2400", "ranks": 2})
    found = DramSysSimulator(memory, TRACE, metric_names=METRICS, program=fake.program)
    assert "energy_pj" not in found.metric_names
    with pytest.raises(InvalidValueError, match=r"no power model .* 2 ranks"):
        DramSysSimulator(memory, TRACE, program=fake.program, energy=True)


def test_memory_that_it_does_not_have(fake: Fake) -> None:
    device = dataclasses.replace(load_device("DDR4-2400"), name="no-such-part", standard="DDR5")
    with pytest.raises(InvalidValueError, match=r"no-such-part.*DRAMSys.*only DDR3"):
        DramSysSimulator(Memory(device), TRACE, program=fake.program)


def _database(folder: Path, response_ps: list[int]) -> Path:
    """One that says that each request was taken at once and could leave at the given time."""
    path = folder / "x_ch0.tdb"
    database = sqlite3.connect(path)
    sql = (RECORDED / "dramsys51.sql").read_text(encoding="utf-8")
    tables = [line for line in sql.splitlines() if line.startswith("CREATE TABLE")]
    database.executescript("".join(tables))
    for i, at in enumerate(response_ps, 1):
        database.execute("INSERT INTO Transactions VALUES (?, ?, 0, 64, 0, 0, 0, 'R')", (i, i))
        for name, begin in (("REQ", 0), ("RESP", at)):
            database.execute(
                "INSERT INTO Phases (PhaseName, PhaseBegin, PhaseEnd, Transact) "
                "VALUES (?, ?, 0, ?)",
                (name, begin, i),
            )
    database.commit()
    database.close()
    return path


@pytest.mark.parametrize(
    ("arbiter", "done"),
    [
        ("simple", [90, 40, 45, 120]),
        # One at a time: the one at 45 finds the arbiter busy and leaves two clocks after 40.
        ("fifo", [90, 40, 60, 120]),
        # In order: all wait for the first; then one each two clocks.
        ("reorder", [90, 110, 130, 150]),
    ],
)
def test_arbiter_delays_what_the_database_does_not_show(
    tmp_path: Path, arbiter: str, done: list[int]
) -> None:
    path = _database(tmp_path, [90, 40, 45, 120])
    none = np.zeros(4, np.int64)
    found = read_database([path], none, none, ControllerConfig(arbiter=arbiter), 10)
    assert found.done_ps.tolist() == done
    assert found.hits == 0


# -- in the environment ----------------------------------------------------------------------------


@pytest.fixture
def trace_file(tmp_path: Path) -> str:
    lines = [
        f"{time // 1000}: {'write' if write else 'read'} {address:#x}\n"
        for time, address, write in zip(
            TRACE.arrival_ps.tolist(),
            TRACE.address.tolist(),
            TRACE.is_write.tolist(),
            strict=True,
        )
    ]
    path = tmp_path / "recorded.stl"
    path.write_text("".join(lines), encoding="ascii")
    return str(path)


def environment(trace_file: str, **options: Any) -> DramEnvironment:
    env = archgym.make(
        "DRAM-v0",
        memory="DDR4-2400",
        workload={"file": trace_file, "clock_mhz": 1000},
        simulator="dramsys",
        **options,
    )
    assert isinstance(env, DramEnvironment)
    return env


def test_failures_become_outcomes(
    fake: Fake, trace_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARCHGYM_DRAMSYS", str(fake.program))
    env = environment(trace_file, simulator_options={"time_limit_s": 1.5, "threads": 2})
    good = env.evaluate(env.baseline)
    assert good.status == "ok"
    assert good.metrics["time_ns"] == pytest.approx(497.301)
    design = dict(env.baseline)
    for size, (mode, status, reason) in enumerate(
        [
            ("printed = ''", "failed", "Total Time"),
            ("sys.exit(4)", "failed", "exit code 4"),
            ("time.sleep(60)", "timeout", "within 1.5 s"),
        ],
        1,
    ):
        fake.mode(mode)
        outcome = env.evaluate({**design, "request_buffer_size": size})
        assert (outcome.status, reason in outcome.reason) == (status, True), outcome.reason
        assert all(value is None for value in outcome.metrics.values())
        assert outcome.reward < good.reward


def test_objective_on_what_is_switched_off_is_refused(
    fake: Fake, trace_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARCHGYM_DRAMSYS", str(fake.program))
    options = {"latencies": False}
    with pytest.raises(InvalidValueError, match="does not give metric 'read_latency_mean_ns'"):
        environment(trace_file, simulator_options=options)
    env = environment(trace_file, simulator_options=options, objective="minimize time_ns")
    assert env.evaluate(env.baseline).metrics["read_latency_mean_ns"] is None
    assert env.trial_settings["simulator_options"] == options


def test_bad_options(fake: Fake, trace_file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCHGYM_DRAMSYS", str(fake.program))
    with pytest.raises(UnknownNameError, match="Did you mean 'time_limit_s'"):
        environment(trace_file, simulator_options={"time_limit": 3})
    with pytest.raises(InvalidValueError, match="time_limit_s is 0"):
        environment(trace_file, simulator_options={"time_limit_s": 0})
    with pytest.raises(InvalidValueError, match="simulator_options are for"):
        archgym.make("DRAM-v0", simulator_options={"threads": 1})


def test_missing_program(trace_file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("ARCHGYM_DRAMSYS", raising=False)
    with pytest.raises(MissingDependencyError, match=r"DRAMSys is not on PATH.*ARCHGYM_DRAMSYS"):
        environment(trace_file)


# -- with the program itself -----------------------------------------------------------------------


@pytest.fixture
def program() -> Path:
    try:
        return find_program("DRAMSys", "ARCHGYM_DRAMSYS")
    except MissingDependencyError as error:
        pytest.skip(str(error))


def test_the_program_still_gives_what_was_recorded(program: Path) -> None:
    assert simulator(program).simulate_one(DESIGN) == pytest.approx(RUN["metrics"])


@pytest.mark.parametrize("memory", ["DDR3-1600", "DDR4-2400"])
def test_it_agrees_with_the_embedded_simulator(program: Path, memory: str) -> None:
    arguments: dict[str, Any] = {
        "memory": memory,
        "workload": {"generator": "random", "requests": 600, "read_share": 0.7},
        "space": "archgym",
        "controller": {"timing_rules": "dramsys51"},
    }
    embedded = archgym.make("DRAM-v0", **arguments)
    external = archgym.make("DRAM-v0", simulator="dramsys", **arguments)
    assert isinstance(external.simulator, DramSysSimulator)
    designs = embedded.design_space.sample(12, np.random.default_rng(4))
    ours, theirs = embedded.evaluate_batch(designs), external.evaluate_batch(designs)
    assert (theirs.status == 0).all()
    columns = [embedded.metrics.index(m) for m in embedded.metrics if m.name in METRICS]
    assert ours.metrics[:, columns] == pytest.approx(theirs.metrics[:, columns], rel=0.02)
    external.simulator.threads = 1
    external.start_trial()
    again = external.evaluate_batch(designs)
    np.testing.assert_array_equal(again.metrics, theirs.metrics)
