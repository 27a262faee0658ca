"""Agreement with BLIS, with measured servers and measured requests; what tables are refused."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest

import archgym
from archgym.envs.llm.data.cluster import load_cluster
from archgym.envs.llm.data.model import load_model
from archgym.envs.llm.deployment.environment import LLMServing
from archgym.envs.llm.serving.engine import load_engine
from archgym.envs.llm.serving.memory import memory_of
from archgym.envs.llm.serving.records import Pool
from archgym.envs.llm.validation.serving import blis
from archgym.envs.llm.validation.serving.blis import read_blis
from archgym.envs.llm.validation.serving.reference import read_reference, shipped_references
from archgym.errors import InvalidValueError
from archgym.problem.reference import read_table
from archgym.validation.agreement import spearman
from archgym.validation.validate import Validation, validate

TABLES = Path(blis.__file__).parent / "tables"
SILICON = (
    "backend,model_path,system,precision,isl,osl,concurrency,tp_size,silicon_ttft_ms,"
    "silicon_tpot_ms\n"
)


@functools.cache
def compared(title: str) -> Validation:
    (found,) = (r for r in shipped_references() if r.title.startswith(title))
    assert found.provenance
    return validate(found, lambda **settings: archgym.make("LLMServing-v0", **settings))


def column(found: Validation, metric: str, case: str = "") -> tuple[np.ndarray, np.ndarray]:
    """Theirs and ours."""
    pairs = [
        (row.metrics[metric], ours)
        for row, ours in zip(
            found.reference.rows, found.ours[:, found.metrics.index(metric)], strict=True
        )
        if metric in row.metrics and case in row.case
    ]
    theirs, ours = np.array(pairs).T
    return theirs, ours


@pytest.mark.full
@pytest.mark.parametrize(
    ("case", "error", "rank"), [("roofline", 0.02, 0.995), ("trained-physics", 0.03, 0.99)]
)
def test_runs_are_those_of_blis(case: str, error: float, rank: float) -> None:
    found = compared("BLIS")
    assert not found.failed
    for metric in ("ttft_p50_ms", "tpot_mean_ms", "requests_per_s"):
        theirs, ours = column(found, metric, case)
        assert len(theirs) > 50
        assert np.median(np.abs(ours / theirs - 1)) < error
        assert spearman(theirs, ours) > rank


def test_caches_have_the_blocks_that_blis_counts() -> None:
    """All but those of Qwen3 30B on few GPUs, whose heads BLIS takes to be half as wide."""
    _, rows = read_table(TABLES / "blis.csv")
    errors = []
    for row in rows:
        if row.text("complete") not in ("1", "1.0") or row.whole("prefill_instances"):
            continue
        case = read_blis(row)
        pool = Pool(
            "c",
            **{
                name: case.design[name]
                for name in ("tensor_parallel", "memory_share", "block_size")
            },
        )
        chip = load_cluster(case.workload["fleet"]["groups"][0]["cluster"]).device
        engine = load_engine(case.workload["engine"])
        memory = memory_of(load_model(case.workload["model"]), chip, engine, pool)
        errors.append(abs(memory.blocks / row.whole("kv_blocks") - 1))
    assert len(errors) > 100
    assert np.mean(np.array(errors) < 0.03) > 0.98
    assert np.median(errors) < 1e-3


@pytest.mark.full
@pytest.mark.parametrize(
    ("case", "mean_tpot", "tpot_rank", "mean_ttft", "ttft_rank"),
    [("dense", 0.10, 0.97, 0.35, 0.82), ("experts", 0.20, 0.88, 0.40, 0.88)],
)
def test_measured_servers_are_near(
    case: str, mean_tpot: float, tpot_rank: float, mean_ttft: float, ttft_rank: float
) -> None:
    found = compared("servers")
    assert not found.failed
    for metric, error, rank in (
        ("tpot_mean_ms", mean_tpot, tpot_rank),
        ("ttft_mean_ms", mean_ttft, ttft_rank),
    ):
        theirs, ours = column(found, metric, case)
        assert np.abs(ours / theirs - 1).mean() < error
        assert spearman(theirs, ours) > rank


@pytest.mark.full
def test_times_by_token_with_latent_attention_are_near_though_nothing_was_fitted() -> None:
    theirs, ours = column(compared("servers"), "tpot_mean_ms", "latent attention")
    assert len(theirs) > 200
    assert np.median(np.abs(ours / theirs - 1)) < 0.25
    assert spearman(theirs, ours) > 0.8


def test_measured_requests_are_near() -> None:
    found = compared("requests")
    assert len(found.reference.rows) == 1
    for metric in ("tpot_mean_ms", "e2e_mean_ms"):
        theirs, ours = column(found, metric)
        assert abs(ours[0] / theirs[0] - 1) < 0.08


def test_a_table_of_ones_own_is_read(tmp_path: Path) -> None:
    table = tmp_path / "own.csv"
    row = "vllm,meta-llama/Llama-3.1-70B,h200_sxm,fp8,1024,1024,4,4,90,10\n"
    table.write_text(SILICON + row + row.replace("meta-llama/Llama-3.1-70B", "x/y"))
    (reference,) = LLMServing.references(table)
    assert [skipped.line for skipped in reference.skipped] == [3]
    (one,) = reference.rows
    assert one.design["tensor_parallel"] == 4
    assert one.metrics == {"ttft_mean_ms": 90, "tpot_mean_ms": 10}
    found = validate(reference, lambda **settings: archgym.make("LLMServing-v0", **settings))
    assert not found.failed
    assert 5 < found.ours[0, found.metrics.index("tpot_mean_ms")] < 20


def test_runs_of_one_file_are_told_apart(tmp_path: Path) -> None:
    table = tmp_path / "runs.csv"
    lines = [
        "run,tp,dp,ep,max_num_seqs,max_num_batched_tokens,arrival_s,prompt_tokens,output_tokens,"
        "ttft_ms,latency_ms"
    ]
    for run, tp in (("RTX4090/Llama-3.1-8B", 1), ("RTXPRO6000/Qwen3-32B", 2)):
        lines += [f"{run},{tp},1,0,8,2048,{i},500,{20 * tp},50,500" for i in range(5)]
    table.write_text("\n".join(lines) + "\n")
    (reference,) = read_reference(table)
    assert [row.case for row in reference.rows] == ["RTX4090/Llama-3.1-8B", "RTXPRO6000/Qwen3-32B"]
    found = validate(reference, lambda **settings: archgym.make("LLMServing-v0", **settings))
    assert not found.failed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "none of the columns"),
        (SILICON + "vlm,meta-llama/Llama-3.1-70B,h200_sxm,fp8,8,8,4,4,1,1\n", "column 'backend'"),
        (
            SILICON + "vllm,meta-llama/Llama-3.1-70B,h200_sxm,fp8,8,8,4,four,1,1\n",
            "column 'tp_size'",
        ),
    ],
)
def test_bad_tables_are_refused(tmp_path: Path, text: str, message: str) -> None:
    table = tmp_path / "bad.csv"
    table.write_text(text)
    with pytest.raises(InvalidValueError, match=message):
        read_reference(table)
