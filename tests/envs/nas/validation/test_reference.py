"""The published solutions of NASAIC against our figures."""

from __future__ import annotations

from pathlib import Path

import pytest

import archgym
from archgym.envs.nas.environment import NASEnvironment
from archgym.errors import InvalidValueError
from archgym.validation.validate import validate

HEAD = "workload,dataflow_1,pes_1,bandwidth_gbps_1,dataflow_2,pes_2,bandwidth_gbps_2,area_um2\n"


def test_areas_of_the_six_published_solutions_are_within_eight_percent() -> None:
    (reference,) = NASEnvironment.references()
    assert len(reference.rows) == 6
    assert "source" in reference.provenance
    found = validate(reference, lambda **settings: archgym.make("NAS-v0", **settings))
    (agreement,) = found.agreements
    assert agreement.metric == "area_um2"
    assert agreement.max_error < 0.08
    assert agreement.spearman == 1


def test_a_table_of_ones_own_may_have_more_or_fewer_sub_accelerators(tmp_path: Path) -> None:
    table = tmp_path / "own.csv"
    table.write_text(HEAD + "W3,rs,64,8,,,,3e6\nW1,nvdla_ws,64,8,shi,32,8,1e6\n")
    (reference,) = NASEnvironment.references(table)
    assert [row.design["sub_accelerators"] for row in reference.rows] == [1, 2]
    assert reference.rows[1].design["sub_1_dataflow"] == "nvdla_ws"
    uses = {use.column: use.use for use in reference.columns}
    assert uses["area_um2"] == "metric"
    assert uses["pes_2"] == "parameter"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("W9,rs,64,8,,,,3e6", "line 2, column 'workload'"),
        ("W1,tpu,64,8,,,,3e6", "column 'dataflow_1'"),
        ("W1,rs,64.5,8,,,,3e6", "column 'pes_1'"),
        ("W1,rs,4096,8,rs,64,8,3e6", "line 2: .*4160"),
        ("W1,rs,64,8,,,,", "area_um2"),
    ],
)
def test_bad_rows_are_refused_with_their_place(tmp_path: Path, row: str, message: str) -> None:
    table = tmp_path / "bad.csv"
    table.write_text(f"{HEAD}{row}\n")
    with pytest.raises(InvalidValueError, match=message):
        NASEnvironment.references(table)


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    table = tmp_path / "bad.csv"
    table.write_text("workload,pes_1\nW1,64\n")
    with pytest.raises(InvalidValueError, match="lacks column 'area_um2'"):
        NASEnvironment.references(table)
