"""Agreement with calculon and with measured clusters, and what tables are refused."""

from __future__ import annotations

import functools
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


@functools.cache
def published() -> Validation:
    return compared("published")


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
    assert error[~single].mean() < 0.07
    assert spearman(true[~single], ours[~single]) > 0.96


@pytest.mark.full
def test_measured_runs_of_llm_foundry_are_near() -> None:
    found = compared("LLM Foundry")
    ours = found.ours[:, found.metrics.index("tokens_per_s_per_gpu")]
    true = np.array([row.metrics["tokens_per_s_per_gpu"] for row in found.reference.rows])
    judging = np.arange(len(true)) % 3 != 0  # the rows on which nothing was fitted
    error = np.abs(ours / true - 1)[judging]
    assert error.mean() < 0.05
    assert spearman(true[judging], ours[judging]) > 0.99


@pytest.mark.parametrize(
    ("case", "metric", "mean", "worst"),
    [
        ("A100, recomputation", "iteration_s", 0.04, 0.08),
        ("A100, recomputation", "activation_memory_gib", 0.02, 0.04),
        ("B200, cut down", "iteration_s", 0.08, 0.12),
        ("B200, cut down", "peak_memory_gib", 0.01, 0.03),
        ("H100, dense", "tokens_per_s_per_gpu", 0.12, 0.12),
        ("H100, dense", "mfu_share", 0.12, 0.12),
    ],
)
def test_published_runs_are_near(case: str, metric: str, mean: float, worst: float) -> None:
    found = published()
    rows = [
        (row.metrics[metric], ours)
        for row, ours in zip(
            found.reference.rows, found.ours[:, found.metrics.index(metric)], strict=True
        )
        if row.case == case and metric in row.metrics
    ]
    assert rows
    errors = [abs(ours / true - 1) for true, ours in rows]
    assert np.mean(errors) < mean
    assert max(errors) < worst


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
