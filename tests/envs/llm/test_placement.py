"""Clusters whose links were measured one by one, and where ranks are placed on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import archgym
from archgym.envs.llm.environment import LLMTraining
from archgym.envs.llm.training.placement import LinkRates
from archgym.envs.llm.training.plan import plan_records
from archgym.errors import InvalidValueError, UnknownNameError

NODES = 8
SPEC = {"model": "gpt_7.5b", "cluster": "dgx_a100", "gpus": 8 * NODES, "batch": 512}


def written(folder: Path, links: NDArray[np.float64]) -> dict[str, Any]:
    path = folder / "links.csv"
    lines = [",".join(f"node{i}" for i in range(len(links)))]
    lines += [",".join(f"{value:g}" for value in line) for line in links]
    path.write_text("\n".join(lines) + "\n")
    return {**SPEC, "links": str(path)}


def two_racks() -> NDArray[np.float64]:
    """Nodes of two racks in turn: 25 within a rack, 5 between."""
    rack = np.arange(NODES) % 2
    return np.where(rack[:, None] == rack[None, :], 25.0, 5.0)


def seconds(workload: dict[str, Any], **changes: Any) -> float:
    env = archgym.make("LLMTraining-v0", workload=workload)
    plan = {**env.baseline_design, "tensor_parallel": 8, "pipeline_parallel": 2, **changes}
    plan |= {"schedule": "1f1b", "scatter_gather": True, "rank_order": "tp-cp-dp-pp"}
    found = env.evaluate(env.design_space.canonical(plan))
    assert found.status == "ok", found.reason
    return float(found.metrics["iteration_s"] or 0)


def test_equal_links_are_the_clusters_own(tmp_path: Path) -> None:
    equal = written(tmp_path, np.full((NODES, NODES), 25.0))
    assert seconds(equal, placement="in order") == pytest.approx(seconds(SPEC))
    assert seconds(equal, placement="by bandwidth") == pytest.approx(seconds(SPEC))


def test_placing_by_bandwidth_puts_a_stage_into_a_rack(tmp_path: Path) -> None:
    racks = written(tmp_path, two_racks())
    placed, in_order = (seconds(racks, placement=one) for one in ("by bandwidth", "in order"))
    assert seconds(SPEC) < placed < in_order


def test_one_slow_link_slows_only_the_groups_that_use_it(tmp_path: Path) -> None:
    links = np.full((NODES, NODES), 25.0)
    links[0, 1] = links[1, 0] = 1.0
    slow = written(tmp_path, links)
    assert seconds(slow, placement="in order") > 1.1 * seconds(SPEC)
    assert seconds(slow, placement="by bandwidth") == pytest.approx(seconds(SPEC))


@pytest.mark.parametrize(
    ("nodes", "share"),
    [((1, 2), 1.0), ((0, 4), 0.1), ((0, 1), 0.1)],
)
def test_gradients_cross_links_of_context_and_of_data_ranks(
    tmp_path: Path, nodes: tuple[int, int], share: float
) -> None:
    """One GPU a node; two context ranks, two stages, two data ranks, in this order: neighbours are
    1, 2 and 4 nodes apart, so that nobody sends from node 1 to node 2."""
    links = np.full((NODES, NODES), 25.0)
    links[nodes] = links[nodes[::-1]] = 2.5
    cluster = {"base": "dgx_a100", "node_gpus": 1, "network_gb_per_s": 25}
    model = {"base": "gpt_7.5b", "sequence": 8192}
    changes = {"model": model, "cluster": cluster, "gpus": NODES, "batch": 8}
    env = archgym.make("LLMTraining-v0", workload={**written(tmp_path, links), **changes})
    assert isinstance(env, LLMTraining)
    plan = {**env.baseline_design, "tensor_parallel": 1, "context_parallel": 2}
    plan |= {"pipeline_parallel": 2, "schedule": "1f1b", "rank_order": "tp-cp-pp-dp"}
    space = env.design_space
    designs = space.designs([space.canonical({**plan, "placement": "in order"})])
    loaded = env.loaded
    rates = LinkRates(links, 25.0, NODES, 1, loaded.model, loaded.tokens)
    (record,) = plan_records(designs, loaded.gpus, loaded.batch, rates)
    assert record["data_slowed"] == pytest.approx(share)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n3,4\n", "the workload has 8 nodes"),
        ("\n".join([",".join("abcdefgh"), *[",".join("5" * 8)] * 7, "5,5,5,x,5,5,5,5"]), "'d'"),
        ("\n".join([",".join("abcdefgh"), *[",".join("5" * 8)] * 7, "0,5,5,5,5,5,5,5"]), "above 0"),
    ],
)
def test_what_is_no_matrix_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "links.csv"
    path.write_text(text)
    with pytest.raises(InvalidValueError, match=message):
        archgym.make("LLMTraining-v0", workload={**SPEC, "links": str(path)})
    with pytest.raises(InvalidValueError, match="path of a file"):
        archgym.make("LLMTraining-v0", workload={**SPEC, "links": 7})


def test_synthetic_links_are_drawn_by_seed() -> None:
    def drawn(**settings: Any) -> dict[str, Any]:
        return {**SPEC, "links": settings}

    assert seconds(drawn(least_share=1.0), placement="in order") == pytest.approx(seconds(SPEC))
    first, other = (seconds(drawn(seed=seed), placement="in order") for seed in (0, 1))
    assert first == seconds(drawn(seed=0, least_share=0.3), placement="in order")
    assert first != other
    assert seconds(SPEC) < seconds(drawn(seed=0), placement="by bandwidth") < first


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seed": -1}, "seed is -1"),
        ({"least_share": 0}, "least_share is 0"),
        ({"leastshare": 0.5}, "Did you mean"),
    ],
)
def test_wrong_synthetic_links_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises((InvalidValueError, UnknownNameError), match=message):
        archgym.make("LLMTraining-v0", workload={**SPEC, "links": settings})
