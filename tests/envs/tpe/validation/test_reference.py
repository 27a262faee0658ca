"""Reference tables: what their rows become, agreement with those that ship, bad input."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import archgym
from archgym.envs.tpe.environment import TensorEngine
from archgym.envs.tpe.microarchitecture.pe import PE
from archgym.envs.tpe.space.design_space import array_of
from archgym.envs.tpe.validation.reference import read_reference
from archgym.errors import InvalidValueError, UnknownNameError
from archgym.validation.validate import Validation, validate

HEADER = (
    "design_id,arch,encoding,encoder_location,width_a,width_b,acc_width,tree,final_adder,lanes,"
    "liberty,abc_target_ps,area_um2,min_period_ns"
)
NANGATE = "NangateOpenCellLibrary typical 1.1V 25C"
BOOTH = "radix-4 Booth (MBE)"


@pytest.fixture
def table(tmp_path: Path) -> Callable[..., Path]:
    def write(*rows: str, header: str = HEADER) -> Path:
        file = tmp_path / "table.csv"
        file.write_text("\n".join([header, *rows]) + "\n")
        return file

    return write


def make(**arguments: Any) -> archgym.Environment:
    return archgym.make("TPE-v0", **arguments)


def pe_of(file: Path) -> PE:
    ((row,),) = [reference.rows for reference in read_reference(file)]
    return array_of(row.design).pe


@pytest.mark.parametrize(
    ("row", "pe"),
    [
        (f"a,trad,{BOOTH},in PE,8,8,32,dadda,auto,1", PE(8, 8, 32)),
        (
            f"b,fused,{BOOTH},in PE,8,8,32,dadda,ks,1",
            PE(8, 8, 32, accumulator="merged", final_adder="kogge_stone"),
        ),
        (
            f"c,csacc,{BOOTH},in PE,8,8,32,42,none,1",
            PE(8, 8, 32, accumulator="carry_save", final_adder_place="simd", compressor="4to2"),
        ),
        (
            "d,trad,radix-2 Baugh-Wooley,n/a,4,8,24,linear,ripple,1",
            PE(4, 8, 24, encoding="radix2", compressor="linear", final_adder="ripple"),
        ),
        (f"e,pipe,{BOOTH},in PE,8,8,32,dadda,auto,1", PE(8, 8, 32, pipeline_depth=2)),
        (
            f"f,group,{BOOTH},outside (digits are inputs),8,8,26,dadda,none,4",
            PE(
                8,
                8,
                26,
                encoder_place="edge",
                bit_weights="temporal_dense",
                shift_place="simd",
                accumulator="carry_save",
                final_adder_place="simd",
                lanes=4,
            ),
        ),
        (
            f"g,bwred,{BOOTH},outside (digits are inputs),8,8,14,dadda,none,4",
            PE(
                8,
                8,
                14,
                encoder_place="edge",
                shift_place="simd",
                accumulator="carry_save",
                final_adder_place="simd",
                reduction=4,
            ),
        ),
    ],
)
def test_rows_become_processing_elements(row: str, pe: PE, table: Callable[..., Path]) -> None:
    file = table(f"{row},{NANGATE},50,1000,1.5")
    assert pe_of(file) == pe
    (reference,) = read_reference(file)
    assert reference.rows[0].metrics == {"area_um2": 1000.0, "min_period_ns": 1.5}
    assert reference.rows[0].case.startswith("nangate45")
    found = validate(reference, make)
    assert not found.failed
    assert np.isfinite(found.ours).all()


@pytest.fixture(scope="module")
def shipped() -> list[Validation]:
    return [validate(reference, make) for reference in TensorEngine.references()]


def test_agreement_with_the_figures_that_ship(shipped: list[Validation]) -> None:
    (found,) = shipped
    assert not found.reference.skipped
    assert not found.failed
    assert len(found.reference.rows) == 129
    assert found.reference.provenance["synthesis"]
    for one in found.agreements:
        limits = {"area_um2": (0.05, 0.97), "min_period_ns": (0.08, 0.93)}[one.metric]
        assert one.mean_error < limits[0], one
        assert one.spearman > limits[1], one
    assert {one.case for one in found.agreements} == {
        "nangate45, PE alone",
        "nangate45_relaxed, PE alone",
        "sg13g2, PE alone",
    }


def test_every_column_is_accounted_for(shipped: list[Validation]) -> None:
    uses = {use.column: use for use in shipped[0].reference.columns}
    assert uses["acc_width"].use == "parameter"
    assert uses["acc_width"].name == "accumulator_width"
    assert uses["area_um2"].use == "metric"
    assert uses["liberty"].use == "case"
    assert all(use.note != "not known" for use in uses.values())


def test_widths_beyond_the_space_are_evaluated_all_the_same(table: Callable[..., Path]) -> None:
    file = table(f"a,csacc,{BOOTH},in PE,6,10,29,dadda,none,1,{NANGATE},50,900,0.7")
    (reference,) = read_reference(file)
    assert reference.rows[0].design["accumulator_width"] == 29
    assert not validate(reference, make).failed


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        (f"behav,tool default,n/a,8,8,32,tool,auto,1,{NANGATE},50", "'behav'"),
        (f"trad,{BOOTH},in PE,8,8,32,dadda,auto,1,IHP sg13g2_stdcell,100000", "relaxed"),
        (f"trad,{BOOTH},in PE,8,8,32,dadda,auto,1,{NANGATE},5000", "relaxed"),
        (f"trad,{BOOTH},in PE,8,8,32,dadda,auto,1,ACME 3nm,50", "ACME 3nm"),
    ],
)
def test_rows_that_cannot_be_compared(cells: str, reason: str, table: Callable[..., Path]) -> None:
    (reference,) = read_reference(table(f"a,{cells},1000,1.5"))
    assert not reference.rows
    assert reason in reference.skipped[0].reason
    assert reference.skipped[0].line == 2


def test_relaxed_rows_have_a_library_of_their_own(table: Callable[..., Path]) -> None:
    rows = [
        f"a,trad,{BOOTH},in PE,8,8,32,dadda,auto,1,{NANGATE},{ps},1000,1.5" for ps in (50, 100000)
    ]
    (reference,) = read_reference(table(*rows))
    names = [reference.settings[row.setting]["technology"] for row in reference.rows]
    assert names == ["nangate45", "nangate45_relaxed"]
    found = validate(reference, make)
    area = found.ours[:, found.metrics.index("area_um2")]
    assert area[1] < area[0]


def test_another_library_is_named_by_the_caller(table: Callable[..., Path]) -> None:
    file = table(f"a,trad,{BOOTH},in PE,8,8,32,dadda,auto,1,ACME 3nm,50,1000,1.5")
    (reference,) = read_reference(file, "sg13g2")
    assert reference.settings[0]["technology"] == "sg13g2"
    with pytest.raises(UnknownNameError, match="sg13g2"):
        read_reference(file, "sg13g3")


def test_bad_tables(table: Callable[..., Path]) -> None:
    row = f"a,trad,{BOOTH},in PE,8,8,32,dadda,auto,1,{NANGATE},50"
    with pytest.raises(InvalidValueError, match="acc_width"):
        read_reference(table(f"{row},1,1", header=HEADER.replace("acc_width", "acc")))
    with pytest.raises(InvalidValueError, match=r"line 2, column 'final_adder'.*ripple"):
        read_reference(table(f"{row.replace('auto', 'riple')},1000,1.5"))
    with pytest.raises(InvalidValueError, match="line 2, column 'width_a'"):
        read_reference(table(f"{row.replace('PE,8', 'PE,eight')},1000,1.5"))
    with pytest.raises(InvalidValueError, match="no column with figures"):
        read_reference(table(row, header=HEADER.replace(",area_um2,min_period_ns", "")))
