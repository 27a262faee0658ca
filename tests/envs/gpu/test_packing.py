from __future__ import annotations

from pathlib import Path

from archgym.envs.gpu.measuring.packing import added, packed_rows, write
from archgym.reading.parquet import read_rows

_DESIGNS = """shape,design,status,reason,error,shared,registers,spills
norm_4096,2 512 4 1,ok,,0.0003,16,40,0
norm_4096,8 8192 16 3,failed,shared memory,,,,
"""
_TIMES = """shape,design,pass,time_us,fastest_us,launches,clock_mhz,temperature_c,moment_s
norm_4096,2 512 4 1,1,70.5,70,8,1980,40,1
norm_4096,2 512 4 1,2,71.5,70,8,1965,41,9
norm_4096,torch,1,95.5,95,8,1980,40,1
"""
_POWERS = """shape,design,power_w,time_us,clock_mhz,temperature_c,moment_s
norm_4096,2 512 4 1,600.5,68.5,1950,50,20
norm_4096,torch,nan,90.0,1950,50,21
"""


def test_a_campaign_becomes_a_row_for_each_design(tmp_path: Path) -> None:
    for name, text in (("designs", _DESIGNS), ("times", _TIMES), ("power", _POWERS)):
        (tmp_path / f"{name}.csv").write_text(text)
    write(packed_rows(tmp_path, 3), tmp_path / "out.parquet")
    torch, good, failed = read_rows(tmp_path / "out.parquet")
    assert (torch["warps"], torch["time_1_us"], torch["power_w"]) == (None, 95.5, None)
    assert (good["run"], good["block_rows"], good["block_m"], good["status"]) == (3, 2, None, "ok")
    assert (good["time_1_us"], good["time_2_us"], good["time_3_us"]) == (70.5, 71.5, None)
    assert (good["clock_mhz"], good["temperature_c"]) == (1965, 41)
    assert (good["power_w"], good["busy_time_us"]) == (600.5, 68.5)
    assert (failed["status"], failed["reason"], failed["registers"]) == (
        "failed",
        "shared memory",
        None,
    )


def test_rows_from_before_the_copy_engine_are_of_products_that_threads_load(
    tmp_path: Path,
) -> None:
    designs = _DESIGNS + "square_512,64 64 64 4 3 8 1 0,ok,,0.0003,16,40,0\n"
    (tmp_path / "designs.csv").write_text(designs)
    now = packed_rows(tmp_path, 2)
    before = [{name: v for name, v in row.items() if name != "copy_engine"} for row in now]
    read = added(before, [], run=3, held_out=None)
    assert read == now
    assert [list(row) for row in read] == [list(row) for row in now]
    assert {row["shape"]: row["copy_engine"] for row in read} == {
        "square_512": 0,
        "norm_4096": None,
    }


def test_a_later_campaign_is_added_by_the_shapes_that_judge_or_that_are_fitted(
    tmp_path: Path,
) -> None:
    designs = _DESIGNS + "norm_768,2 1024 4 1,failed,shared memory,,,,\n"
    (tmp_path / "designs.csv").write_text(designs)
    earlier = packed_rows(tmp_path, 1)
    fitted, judging = (
        added(earlier, [tmp_path], run=6, held_out=held_out) for held_out in (False, True)
    )
    assert [(row["run"], row["shape"]) for row in fitted[3:]] == [(6, "norm_4096")] * 2
    assert [(row["run"], row["shape"]) for row in judging[3:]] == [(6, "norm_768")]
