from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from archgym.envs.dram.validation import reference as dram_reference

TABLE = Path(dram_reference.__file__).parent / "tables" / "dramsys51.csv"


@pytest.fixture
def few(tmp_path: Path) -> Path:
    """The first rows of the shipped table, as a table of one's own."""
    path = tmp_path / "few.csv"
    path.write_text("\n".join(TABLE.read_text().splitlines()[:41]) + "\n")
    return path


def changed(path: Path, line: int, old: str, new: str) -> Path:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert old in lines[line - 1]
    lines[line - 1] = lines[line - 1].replace(old, new, 1)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_the_shipped_figures_agree(call: Any) -> None:
    data = call("validate", "DRAM-v0", "--json").json
    assert data["environment"] == "DRAM-v0"
    first = data["references"][0]
    assert first["title"] == "DRAMSys5.1"
    assert "v5.1" in first["provenance"]["simulator"]
    summaries = {summary["metric"]: summary for summary in first["summaries"]}
    assert summaries["time_ns"]["median"]["spearman"] >= 0.97
    assert summaries["time_ns"]["worst"]["spearman"] >= 0.90
    assert {"read_latency_mean_ns", "energy_pj", "power_mw"} <= set(summaries)


def test_a_table_says_how_its_columns_are_read(call: Any, few: Path) -> None:
    called = call("validate", "DRAM-v0", "--reference", few)
    assert called.code == 0, called.err
    assert f"DRAMSys5.1: 40 rows ({few})" in called.out
    assert "PagePolicy -> page_policy" in called.out
    assert "energy_total_pJ -> energy_pj" in called.out
    assert "ignored: " in called.out
    assert "Spearman" in called.out
    assert "DDR3-1600 stream_read" in called.out


def test_verbose_shows_all_statistics_and_the_worst_rows(call: Any, few: Path) -> None:
    shown = call("validate", "DRAM-v0", "--reference", few, "--verbose").out
    for heading in ("Kendall", "bias", "top 5%", "worst rows in time_ns"):
        assert heading in shown


def test_a_narrow_terminal_breaks_cases_and_keeps_numbers_whole(
    call: Any, few: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = call("validate", "DRAM-v0", "--reference", few).out
    monkeypatch.setenv("COLUMNS", "68")
    narrow = call("validate", "DRAM-v0", "--reference", few).out
    assert narrow != wide
    assert narrow.count("%") == wide.count("%")


def test_settings_change_the_environment(call: Any, few: Path) -> None:
    def worst(*more: str) -> float:
        data = call("validate", "DRAM-v0", "--reference", few, "--json", *more).json
        (summary,) = [s for s in data["references"][0]["summaries"] if s["metric"] == "time_ns"]
        return float(summary["worst"]["max_error"])

    assert worst("--set", "controller.think_delay_fw_cycles=9") > worst()


def test_spread_chooses_the_cases_that_count(call: Any, few: Path) -> None:
    data = call("validate", "DRAM-v0", "--reference", few, "--json", "--spread", "1e9").json
    summary = data["references"][0]["summaries"][0]
    assert (summary["varying"], summary["steady"]) == (0, 4)
    assert summary["median"]["spearman"] is None


def test_a_wrong_cell_is_one_clear_message(call: Any, few: Path) -> None:
    called = call("validate", "DRAM-v0", "--reference", changed(few, 3, "FrFcfs", "FrFcsf"))
    assert called.code == 2
    assert "few.csv" in called.err
    assert "Traceback" not in called.err
    for part in ("line 3, column 'Scheduler'", "'FrFcsf'", "Did you mean 'FrFcfs'"):
        assert part in called.err


def test_a_row_without_its_trace_is_skipped(call: Any, few: Path) -> None:
    table = changed(few, 3, "random_rw70", "random_rw7")
    called = call("validate", "DRAM-v0", "--reference", table)
    assert called.code == 0
    shown = " ".join(called.out.split())
    assert "skipped: 1 row (line 3): column 'trace'" in shown
    assert "Did you mean 'random_rw70'" in shown


def test_a_missing_column_is_named(call: Any, few: Path) -> None:
    called = call("validate", "DRAM-v0", "--reference", changed(few, 1, "Arbiter", "Arbitre"))
    assert called.code == 2
    assert "few.csv: the header lacks column 'Arbiter'" in called.err


def test_a_table_with_nothing_to_compare_says_why(call: Any, tmp_path: Path) -> None:
    head, row, *_ = TABLE.read_text().splitlines()
    table = tmp_path / "hung.csv"
    table.write_text(f"{head}\n{row.replace(',ok,', ',hang,')}\n")
    called = call("validate", "DRAM-v0", "--reference", table)
    assert called.code == 2
    assert "no row can be compared with DRAMSys5.1: status 'hang'" in called.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["LLMDevice-v0", "--set", "budget=3"], "argument budget is 3"),
        (["DRAM-v1"], "Did you mean 'DRAM-v0'?"),
        (["Conformance-v0"], "has no reference figures"),
        (["DRAM-v0", "--reference", "none.csv"], "none.csv: cannot read the table"),
        (["DRAM-v0", "--reference", "a.csv", "--simulator", "x"], "exclude each other"),
        (["DRAM-v0", "--traces", "."], "--traces goes with --reference"),
        (["DRAM-v0", "--memory", "DDR3-1600"], "--memory goes with --reference or --simulator"),
        (["DRAM-v0", "--workload", "stream"], "--workload goes with --simulator"),
        (["DRAM-v0", "--simulator", "dramsis"], "unknown simulator 'dramsis'"),
        (["DRAM-v0", "--set", "memroy=x"], "Did you mean 'memory'?"),
    ],
)
def test_wrong_arguments(call: Any, arguments: list[str], message: str) -> None:
    called = call("validate", *arguments)
    assert called.code == 2
    assert message in called.err
    assert "Traceback" not in called.err
