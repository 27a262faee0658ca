from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from archgym.envs.dram.environment import DramEnvironment
from archgym.envs.dram.validation.reference import read_reference, shipped_references
from archgym.errors import InvalidValueError, TraceError, UnknownNameError
from archgym.problem.reference import Reference
from archgym.validation.validate import validate

METRICS = [metric.name for metric in DramEnvironment.metrics]
HEADER = (
    "simulator,standard,device,trace,status,PagePolicy,Scheduler,SchedulerBuffer,"
    "RequestBufferSize,CmdMux,RespQueue,RefreshPolicy,RefreshMaxPostponed,RefreshMaxPulledin,"
    "PowerDownPolicy,Arbiter,MaxActiveTransactions,mapping,time_ns,tCK_ns,"
    "avg_read_latency_from_arrival_ns,energy_total_pJ,n_act"
)
ROW: dict[str, Any] = {
    **dict.fromkeys(HEADER.split(","), ""),
    **{"simulator": "DRAMSys5.1", "standard": "DDR3-1600", "trace": "short", "status": "ok"},
    **{"PagePolicy": "Open", "Scheduler": "FrFcfs", "SchedulerBuffer": "Bankwise"},
    **{"RequestBufferSize": "8", "CmdMux": "Oldest", "RespQueue": "Fifo"},
    **{"RefreshPolicy": "AllBank", "RefreshMaxPostponed": "0", "RefreshMaxPulledin": "0"},
    **{"PowerDownPolicy": "NoPowerDown", "Arbiter": "Simple", "MaxActiveTransactions": "128"},
    **{"mapping": "rbc", "time_ns": "500", "tCK_ns": "1.25", "energy_total_pJ": "1e6"},
}
TRACE = "".join(f"{10 * i} {'RW'[i % 3 == 2]} {0x1040 * i:#x}\n" for i in range(30))


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    folder = tmp_path / "traces"
    folder.mkdir()
    (folder / "short.trace").write_text(TRACE)
    return folder


def written(folder: Path, *rows: dict[str, Any], header: str = HEADER) -> Path:
    columns = header.split(",")
    lines = [header, *(",".join(str({**ROW, **row}.get(c, "")) for c in columns) for row in rows)]
    path = folder / "table.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def read(folder: Path, *rows: dict[str, Any], **options: Any) -> Reference:
    (reference,) = read_reference(
        written(folder, *rows), METRICS, traces=folder / "traces", **options
    )
    return reference


@pytest.fixture(scope="module")
def shipped() -> list[Reference]:
    return shipped_references(METRICS)


def test_the_shipped_figures_name_their_provenance(shipped: list[Reference]) -> None:
    assert {r.title for r in shipped} == {"DRAMSys5.1", "DRAMSys4.0", "Ramulator2.1", "DRAMsim3"}
    assert sum(len(reference.rows) for reference in shipped) > 900
    for reference in shipped:
        assert {"simulator", "how", "devices", "traces"} <= set(reference.provenance)


def test_we_rank_designs_as_the_shipped_dramsys_figures_do(shipped: list[Reference]) -> None:
    for reference in shipped:
        if reference.title.startswith("DRAMSys"):
            found = validate(reference, DramEnvironment)
            assert not found.failed
            for metric in ("time_ns", "energy_pj"):
                summary = found.summary(metric)
                assert summary.median["spearman"] >= 0.97, (reference.source, metric)
                assert summary.worst["spearman"] >= 0.90
                assert summary.median["mean_error"] <= 0.03
                assert summary.worst["regret"] <= 0.01


def test_a_row_becomes_a_design_and_the_arguments_of_its_environment(
    tmp_path: Path, traces: Path
) -> None:
    reference = read(tmp_path, {"PagePolicy": "ClosedAdaptive", "mapping": "brc"})
    (row,) = reference.rows
    assert row.case == "DDR3-1600 short"
    assert row.line == 2
    assert row.design["page_policy"] == "closed_adaptive"
    assert row.design["address_mapping"] == "brc"
    assert row.metrics == {"time_ns": 500.0, "energy_pj": 1e6}
    arguments = reference.settings[row.setting]
    assert arguments["memory"] == "DDR3-1600"
    assert arguments["controller"] == {"timing_rules": "dramsys51"}
    env = DramEnvironment(**arguments)
    assert len(env.trace) == 30
    assert env.evaluate(row.design).status == "ok"


def test_every_column_is_accounted_for(tmp_path: Path, traces: Path) -> None:
    reference = read(tmp_path, {})
    uses = {use.column: use for use in reference.columns}
    assert list(uses) == HEADER.split(",")
    assert uses["Scheduler"][1:3] == ("parameter", "scheduler")
    assert uses["energy_total_pJ"][1:3] == ("metric", "energy_pj")
    assert (uses["n_act"].use, uses["n_act"].note != "") == ("ignored", True)


def test_unknown_columns_are_ignored_and_said_to_be(tmp_path: Path, traces: Path) -> None:
    table = written(tmp_path, {}, header=HEADER + ",colour")
    (reference,) = read_reference(table, METRICS, traces=traces)
    assert reference.columns[-1] == ("colour", "ignored", "", "not known")


def test_rows_that_cannot_be_compared_are_skipped_with_the_reason(
    tmp_path: Path, traces: Path
) -> None:
    reference = read(
        tmp_path,
        {},
        {"status": "hang", "time_ns": ""},
        {"RefreshPolicy": "Per2Bank"},
        {"standard": "LPDDR9-9600"},
        {"CmdMux": "Strict"},
        {"mapping": "bgi"},
        {"tCK_ns": "0.833"},
        {"RefreshPolicy": "PerBank"},
    )
    assert len(reference.rows) == 1
    reasons = dict(reference.skipped)
    assert reasons[3] == "status 'hang'"
    assert reasons[4] == "RefreshPolicy Per2Bank is not modelled"
    assert "no memory 'LPDDR9-9600' ships" in reasons[5]
    assert "needs scheduler 'fifo'" in reasons[6]
    assert reasons[7] == "DDR3-1600 has no address_mapping 'bgi'"
    assert reasons[8] == "ran at tCK 0.833 ns, memory DDR3-1600 has 1.25"
    assert reasons[9] == "DDR3-1600 has no refresh_policy 'per_bank'"


def test_addresses_beyond_the_memory_are_folded_as_dramsys_does(
    tmp_path: Path, traces: Path
) -> None:
    (traces / "far.trace").write_text("0 R 0x0\n5 R 0xffffffff00\n")
    reference = read(tmp_path, {"trace": "far"})
    env = DramEnvironment(**reference.settings[reference.rows[0].setting])
    assert env.trace.address.tolist() == [0, 0xFFFFFFFF00 % 2**30]


def test_an_empty_figure_is_not_compared(tmp_path: Path, traces: Path) -> None:
    reference = read(
        tmp_path, {"energy_total_pJ": "", "avg_read_latency_from_arrival_ns": "0.0"}, {}
    )
    assert [set(row.metrics) for row in reference.rows] == [{"time_ns"}, {"time_ns", "energy_pj"}]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"Scheduler": "FrFcsf"}, r"line 3, column 'Scheduler'.*'FrFcsf'.*Did you mean 'FrFcfs'"),
        ({"mapping": "rcbx"}, r"line 3, column 'mapping'.*'rcbx'.*Did you mean"),
        ({"RequestBufferSize": "8.5"}, r"line 3, column 'RequestBufferSize'.*'8\.5'.*whole number"),
        ({"RequestBufferSize": ""}, r"line 3, column 'RequestBufferSize'.*must not be empty"),
        ({"time_ns": "fast"}, r"line 3, column 'time_ns'.*'fast'.*number of at least 0, or empty"),
        ({"time_ns": "nan"}, r"line 3, column 'time_ns'.*'nan'"),
        ({"energy_total_pJ": "-1"}, r"line 3, column 'energy_total_pJ'.*'-1'"),
    ],
)
def test_a_cell_that_is_not_possible_is_named(
    tmp_path: Path, traces: Path, changes: dict[str, str], message: str
) -> None:
    with pytest.raises((InvalidValueError, UnknownNameError), match=message):
        read(tmp_path, {}, changes)


def test_a_bad_trace_leaves_the_other_rows_of_a_table(tmp_path: Path, traces: Path) -> None:
    (traces / "broken.stl").write_text("0: read 0x0\n1: raed 0x40\n")
    rows = [{"trace": name} for name in ("short", "shrot", "../traces/short", "broken")]
    reference = read(tmp_path, *rows)
    assert [row.line for row in reference.rows] == [2, 5]
    (mistyped, outside) = reference.skipped
    assert mistyped.line == 3
    assert re.search(r"column 'trace', folder .*'shrot'. Did you mean 'short'", mistyped.reason)
    assert outside.line == 4
    assert "unknown trace" in outside.reason
    found = validate(reference, DramEnvironment)
    ((line, reason),) = found.failed
    assert line == 5
    assert "broken.stl, line 2: '1: raed 0x40' is not a stl request" in reason
    assert [one.n for one in found.agreements] == [1, 1]


def test_a_table_of_bad_traces_only_is_an_error(tmp_path: Path, traces: Path) -> None:
    (traces / "broken.stl").write_text("0: raed 0x0\n")
    with pytest.raises(TraceError, match=r"broken\.stl, line 1"):
        validate(read(tmp_path, {"trace": "broken"}), DramEnvironment)
    with pytest.raises(InvalidValueError, match=r"no row can be compared.*Did you mean 'short'"):
        validate(read(tmp_path, {"trace": "shrot"}), DramEnvironment)


def test_a_parquet_table_reads_as_the_csv_file(tmp_path: Path, traces: Path) -> None:
    table = written(tmp_path, {}, {"energy_total_pJ": "", "RequestBufferSize": "4"})
    packed = tmp_path / "table.parquet"
    read_csv = pyarrow.csv.read_csv(table)
    pq.write_table(read_csv, packed)
    (one,), (other,) = (read_reference(t, METRICS, traces=traces) for t in (table, packed))
    assert other.rows == one.rows
    assert other.settings == one.settings
    packed.write_bytes(b"PAR1")
    with pytest.raises(InvalidValueError, match=r"table\.parquet: cannot read the table"):
        read_reference(packed, METRICS, traces=traces)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no rows"),
        (HEADER + "\n", "has no rows below its header, "),
        (HEADER.replace("Scheduler,", "Schedular,") + "\n" + "a," * 22 + "a", "'Scheduler'; a tab"),
        (HEADER + "\n1,2,3\n", "line 2: 3 values for the 23 columns"),
        (HEADER + ",time_ns\n" + "a," * 23 + "a", "names column 'time_ns' twice"),
        ("trace,page,refresh,mapping,queue\na,b,c,d,e\n", "no column with figures"),
        ("x,y\n1,2\n", "the header lacks column"),
        ('a,b\n"1,2\n', "line 2"),
    ],
)
def test_a_file_that_is_no_such_table_is_refused(
    tmp_path: Path, traces: Path, text: str, message: str
) -> None:
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(InvalidValueError, match=message) as caught:
        read_reference(path, METRICS, traces=traces)
    assert "table.csv" in str(caught.value)


def test_a_table_that_is_not_there_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match=r"none\.csv: cannot read"):
        read_reference(tmp_path / "none.csv", METRICS)
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidValueError, match=r"binary\.csv: cannot read"):
        read_reference(tmp_path / "binary.csv", METRICS)


def test_gzipped_tables_and_traces_read_the_same(tmp_path: Path, traces: Path) -> None:
    table = written(tmp_path, {})
    packed = tmp_path / "table.csv.gz"
    packed.write_bytes(gzip.compress(table.read_bytes()))
    (traces / "short.trace.gz").write_bytes(gzip.compress((traces / "short.trace").read_bytes()))
    (traces / "short.trace").unlink()
    (reference,) = read_reference(packed, METRICS, traces=traces)
    (arguments,) = reference.settings
    assert arguments["workload"]["file"].endswith("short.trace.gz")
    assert len(DramEnvironment(**arguments).trace) == 30


def test_an_stl_trace_counts_nanoseconds_as_the_player_did(tmp_path: Path, traces: Path) -> None:
    (traces / "short.trace").unlink()
    (traces / "short.stl").write_text("0: read 0x0\n40: write 0x40\n")
    (arguments,) = read(tmp_path, {}).settings
    assert DramEnvironment(**arguments).trace.arrival_ps.tolist() == [0, 40_000]


def test_archgyms_form_counts_clocks_and_has_its_own_front_end(
    tmp_path: Path, traces: Path
) -> None:
    (traces / "short.stl").write_text("0: read 0x0\n40: write 0x40\n")
    knobs = [*HEADER.split(",")[5:9], *HEADER.split(",")[10:14], *HEADER.split(",")[15:17]]
    header = ",".join(["trace", *knobs, "total_time_ns"])
    row = {"trace": "short.stl", "total_time_ns": "75", "RequestBufferSize": "5"}
    (reference,) = read_reference(written(tmp_path, row, header=header), METRICS, traces=traces)
    assert (reference.title, reference.rows[0].case) == ("DRAMSys4.0", "short")
    arguments = reference.settings[0]
    assert arguments["memory"] == "DDR3-1600"
    assert arguments["controller"]["think_delay_fw_cycles"] == 0
    env = DramEnvironment(**arguments)
    assert env.trace.arrival_ps.tolist() == [0, 50_000]
    assert env.evaluate(reference.rows[0].design).status == "ok"  # 5 is not in the default space


def test_a_table_of_several_simulators_gives_one_reference_each(
    tmp_path: Path, traces: Path
) -> None:
    header = "simulator,page,refresh,mapping,queue,trace,status,time_ns"
    rows = [
        {"simulator": name, "page": "open", "refresh": "allbank", "mapping": "row-bank-col"}
        | {"queue": 8}
        for name in ("Ramulator2.1", "DRAMSys5.1")
    ]
    found = read_reference(written(tmp_path, *rows, header=header), METRICS, traces=traces)
    assert [reference.title for reference in found] == ["Ramulator2.1", "DRAMSys5.1"]
    assert [len(reference.rows) for reference in found] == [1, 1]
    assert "timing_rules" not in found[0].settings[0]["controller"]
    assert found[1].settings[0]["controller"]["timing_rules"] == "dramsys51"


def test_memory_gives_the_device_of_rows_whose_device_does_not_ship(
    tmp_path: Path, traces: Path
) -> None:
    rows = [{"standard": "DDR3-1600"}, {"standard": "DDR9", "tCK_ns": "0.833"}]
    reference = read(tmp_path, *rows, memory="DDR4-2400")
    used = [reference.settings[row.setting]["memory"] for row in reference.rows]
    assert used == ["DDR3-1600", "DDR4-2400"]
    assert [row.case for row in reference.rows] == ["DDR3-1600 short", "DDR9 short"]


def test_memory_is_the_device_of_all_rows_of_a_single_one(tmp_path: Path, traces: Path) -> None:
    reference = read(tmp_path, {"standard": "DDR3-1600", "tCK_ns": ""}, memory="DDR4-2400")
    assert reference.settings[0]["memory"] == "DDR4-2400"
    with pytest.raises(UnknownNameError, match="Did you mean 'DDR4-2400'"):
        read(tmp_path, {}, memory="DDR4-240")


def test_traces_must_be_a_folder(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="is no folder with traces"):
        read(tmp_path, {})
