"""Agreement with calculon and with measured clusters, and what tables are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import archgym
from archgym.envs.llm.environment import LLMTraining
from archgym.errors import InvalidValueError
from archgym.problem.reference import Reference
from archgym.validation.agreement import spearman
from archgym.validation.validate import Validation, validate

VTRAIN = "set,gpus,global_batch,micro_batch,hidden,heads,layers,seq_len,tp,dp,pp,iteration_ms\n"


def compared(title: str) -> Validation:
    found: list[Reference] = [r for r in LLMTraining.references() if r.title.startswith(title)]
    assert len(found) == 1
    assert found[0].provenance["rows"]
    return validate(found[0], lambda **settings: archgym.make("LLMTraining-v0", **settings))


@pytest.mark.full
def test_iterations_and_memory_are_calculons() -> None:
    found = compared("calculon")
    assert not found.failed
    for metric in ("iteration_s", "peak_memory_gib"):
        (one,) = [a for a in found.agreements if a.metric == metric]
        assert one.n == 400
        assert one.spearman > 0.99
        assert one.mean_error < 0.05
    memory = [row.metrics["peak_memory_gib"] for row in found.reference.rows]
    ours = found.ours[:, found.metrics.index("peak_memory_gib")]
    assert np.mean((np.array(memory) <= 80) == (ours <= 80)) >= 0.97


@pytest.mark.full
def test_iterations_are_near_measured_ones() -> None:
    found = compared("vTrain")
    ours = found.ours[:, found.metrics.index("iteration_s")]
    true = np.array([row.metrics["iteration_s"] for row in found.reference.rows])
    single = np.array([row.case == "one node" for row in found.reference.rows])
    error = np.abs(ours / true - 1)
    assert error[single].mean() < 0.08
    assert spearman(true[single], ours[single]) > 0.98
    assert error[~single].mean() < 0.10
    assert spearman(true[~single], ours[~single]) > 0.95


def test_a_table_of_ones_own_is_read(tmp_path: Path) -> None:
    table = tmp_path / "own.csv"
    table.write_text(VTRAIN + "single,8,32,2,1024,16,12,1024,2,2,2,150\n")
    (reference,) = LLMTraining.references(table)
    (row,) = reference.rows
    assert row.design["tensor_parallel"] == 2
    assert row.metrics == {"iteration_s": 0.15}
    found = validate(reference, lambda **settings: archgym.make("LLMTraining-v0", **settings))
    assert not found.failed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "none of the columns"),
        ("iteration_ms,gpus\n1,8\n", "column 'hidden'"),
        (VTRAIN + "single,8,32,2,1024,16,12,1024,two,2,2,150\n", "column 'tp'"),
    ],
)
def test_bad_tables_are_refused(tmp_path: Path, text: str, message: str) -> None:
    table = tmp_path / "bad.csv"
    table.write_text(text)
    with pytest.raises(InvalidValueError, match=message):
        LLMTraining.references(table)
