"""Agreement with boards, trained models and published ratios, and what tables are refused."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest

import archgym
from archgym.envs.llm.device.environment import LLMDevice
from archgym.envs.llm.device.validation.claims import CLAIMS, ratio
from archgym.errors import InvalidValueError
from archgym.validation.validate import Validation, validate


@functools.cache
def compared(title: str) -> Validation:
    found = [r for r in LLMDevice.references() if r.title.startswith(title)]
    assert len(found) == 1
    assert found[0].provenance["fitted"]
    return validate(found[0], lambda **settings: archgym.make("LLMDevice-v0", **settings))


def test_trained_models_rank_as_the_law_says() -> None:
    found = compared("trained models")
    assert not found.failed
    assert len(found.agreements) == 8
    assert all(one.spearman is not None and one.spearman > 0.99 for one in found.agreements)
    assert np.mean([one.mean_error for one in found.agreements]) < 0.06


def test_rates_of_measured_boards() -> None:
    found = compared("measured boards")
    assert not found.failed
    rates = {a.case: a for a in found.agreements if a.metric == "tokens_per_s"}
    assert rates["M1 Pro"].mean_error < 0.05
    assert rates["M3 Pro"].mean_error < 0.08  # nothing was fitted on it
    for board in ("Jetson Orin Nano Super", "Jetson Orin Nano"):
        assert rates[board].mean_error < 0.2
        assert (rates[board].spearman or 0) > 0.85
    prompts = {a.case: a for a in found.agreements if a.metric == "prefill_latency_ms"}
    assert prompts["M3 Pro"].mean_error < 0.1


@pytest.mark.parametrize(
    ("claim", "published"),
    [("pim_gpt_highest", 137), ("pim_gpt_lowest", 41), ("sail_highest", 10.7)],
)
def test_published_ratios_within_a_factor_of_one_and_a_half(claim: str, published: float) -> None:
    assert published / 1.5 < ratio(CLAIMS[claim]()) < published * 1.5


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1,2\n", "none of the columns claim, final_loss, tokens_per_s"),
        ("claim,ratio\npim,3\n", "pim_gpt_highest"),
        ("claim,ratio\nsail_highest,0\n", "above 0"),
        ("final_loss,training_gtokens,width,depth,data\n3,,512,8,x\n", "needs tokens"),
    ],
)
def test_tables_that_are_none_are_refused(tmp_path: Path, text: str, said: str) -> None:
    table = tmp_path / "table.csv"
    table.write_text(text)
    with pytest.raises(InvalidValueError, match=said):
        LLMDevice.references(table)


def test_a_table_of_one_row_is_compared(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("claim,ratio\nsail_highest,10\n")
    (reference,) = LLMDevice.references(table)
    found = validate(reference, lambda **settings: archgym.make("LLMDevice-v0", **settings))
    assert not found.failed


def test_there_are_neither_workloads_nor_hardware(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="neither workloads nor hardware"):
        LLMDevice.references(hardware="h100")
