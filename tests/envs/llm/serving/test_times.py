"""Times of iterations: known answers, and what must not make them longer."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from archgym.envs.llm.data.cluster import load_cluster
from archgym.envs.llm.data.model import load_model
from archgym.envs.llm.serving.engine import engine_names, load_engine
from archgym.envs.llm.serving.memory import memory_of
from archgym.envs.llm.serving.records import Deployment, Pool, Requests
from archgym.envs.llm.serving.simulator import simulate
from archgym.errors import InvalidValueError, UnknownNameError
from tests.envs.llm.serving.scenes import ENGINE, FLEET, SMALL, drawn, loop, serve

H100 = Pool("dgx_h100")
ONE = Requests.of([0.0], [100], [3])
CHIP = {"base": "h100", "matrix_tflops": 1000, "memory_gb_per_s": 1000}
MODEL = load_model(
    {
        "layers": 2, "hidden": 1000, "feedforward": 4000, "heads": 10, "vocabulary": 0,
        "sequence": 1, "gated": True,
    }
)  # fmt: skip


def latencies(engine: dict[str, Any]) -> tuple[float, float]:
    """First token and end of one request of 100 and 3 tokens, by hand-made hardware."""
    fleet = {"c": load_cluster({"base": "dgx_h100", "chip": CHIP})}
    served = simulate([Deployment(Pool("c"))], MODEL, fleet, ONE, load_engine(engine))
    return float(served.first_token_s[0, 0]), float(served.finished_s[0, 0])


def test_the_roofline_is_that_of_the_whole_iteration() -> None:
    # Two matrices count: 2 x (4 x 1000^2 + 2 x 1000 x 4000) = 24e6 weights of two bytes.
    first, end = latencies({"base": "blis_roofline_h100", "prefill_share": 0.001 * 10})
    token = 2 * 24e6 + 2 * 2 * 1000
    pair = 2 * 10 * (4 * 100 + 5)
    prefill = (100 * token + pair * 100 * 99 / 2) / (1000e12 * 0.01)
    assert first == pytest.approx(prefill, rel=1e-9)
    weights, cache, values = 48e6, 4 * 2 * 10 * 100, 2 * 2 * 1000
    decode = sum((weights + cache * (context + 1) + values) / 1e12 for context in (100, 101))
    assert end - first == pytest.approx(decode, rel=1e-9)


def test_the_linear_form_adds_its_terms() -> None:
    engine = {
        "base": "blis_linear", "prefill_share": 0.01, "request_us": 1000, "token_us": 0,
        "weights_scale": 2, "cache_scale": 3, "step_us": 7, "sequence_us": 5, "layer_us": 11,
    }  # fmt: skip
    first, end = latencies(engine)
    weights = 2 * (4 * 1000**2 + 3 * 1000 * 4000)
    fixed = 2 * weights * 2 / 1e12 + 2 * 11e-6 + 12e-6
    prefill = (100 * 2 * weights + 4 * 2 * 1000 * 100 * (100 + 50)) / (1000e12 * 0.01)
    assert first == pytest.approx(1e-3 + fixed + prefill, rel=1e-9)
    decode = 3 * 4 * 2 * 1000 * (101 + 102) / 1e12
    assert end - first == pytest.approx(2 * fixed + decode, rel=1e-9)


def test_decoding_reads_the_weights() -> None:
    """A lone sequence takes at least the weights' bytes by the bandwidth, and not twice that."""
    served = serve(H100, Requests.of([0.0], [100], [101]))
    seconds = (served.finished_s - served.first_token_s)[0, 0] / 100
    least = 2 * (SMALL.parameters - SMALL.vocabulary * SMALL.hidden) / 3.35e12
    assert least < seconds < 2 * least


@pytest.mark.parametrize("form", ["vllm", "tensorrt_llm", "sglang", "blis_linear"])
@pytest.mark.parametrize(
    "better",
    [
        {"chip": {"base": "h100", "memory_gb_per_s": 6700}},
        {"chip": {"base": "h100", "matrix_tflops": 1978, "fp8_tflops": 3958}},
        {"node_gb_per_s": 900},
    ],
    ids=["memory", "arithmetic", "links"],
)
def test_faster_hardware_is_not_slower(form: str, better: dict[str, Any]) -> None:
    engine = load_engine(form)
    fleet = {"old": FLEET["dgx_h100"], "new": load_cluster({"base": "dgx_h100", **better})}
    # All arrive at once, so that which tokens an iteration has does not depend on times.
    some = drawn(60, 6)
    requests = Requests.of(np.zeros(60), some.prompt_tokens, some.output_tokens)
    pools = [Deployment(Pool(name, tensor_parallel=2, max_num_seqs=16)) for name in fleet]
    old, new = simulate(pools, SMALL, fleet, requests, engine).finished_s
    assert (new <= old + 1e-12).all()


def test_more_cache_preempts_less_and_ends_sooner() -> None:
    requests = drawn(120, 30)
    ends, lost = [], []
    for blocks in (300, 600, 1200, 20000):
        served = serve(dataclasses.replace(H100, cache_blocks=blocks), requests)
        ends.append(served.finished_s.max())
        lost.append(served.preemptions.sum())
    assert ends == sorted(ends, reverse=True)
    assert lost[0] > lost[-1] == 0


def test_fewer_bits_are_faster_where_the_memory_limits() -> None:
    requests = Requests.of(np.zeros(4), np.full(4, 2000), np.full(4, 200))
    times = []
    for weight, cache, compute in ((16, 16, 16), (16, 8, 16), (8, 8, 16), (8, 8, 8)):
        pool = dataclasses.replace(H100, weight_bits=weight, cache_bits=cache, compute_bits=compute)
        times.append(serve(pool, requests).finished_s.max())
    assert times == sorted(times, reverse=True)
    assert times[0] > 1.3 * times[-1]


def test_nano_batches_help_large_batches_only() -> None:
    """NanoFlow: products, attention and collectives overlap; a small batch reads weights twice."""
    ratios = []
    for users in (2, 512):
        requests = loop(2 * users, users)
        one, two = (
            serve(
                dataclasses.replace(H100, tensor_parallel=8, nano_batches=parts, max_num_seqs=512),
                requests,
                load_model("llama3_70b"),
            ).finished_s.max()
            for parts in (1, 2)
        )
        ratios.append(one / two)
    assert ratios[0] < 1.0
    assert 1.1 < ratios[1] < 2.0


def test_speculation_gives_the_tokens_that_its_acceptance_says() -> None:
    requests = Requests.of([0.0], [100], [1001])
    pool = dataclasses.replace(H100, speculative_tokens=2, acceptance=0.5, draft_share=0.0)
    served = serve(pool, requests)
    assert served.iterations[0, 0] == pytest.approx(1 + 1000 / 1.75, abs=2)
    plain = serve(H100, requests)
    assert served.finished_s.max() < plain.finished_s.max()
    slow = serve(dataclasses.replace(pool, draft_share=0.9), requests)
    assert slow.finished_s.max() > plain.finished_s.max()


def test_offloaded_weights_take_their_time_and_leave_room() -> None:
    requests = drawn(30, 4)
    half = dataclasses.replace(H100, offload="pool", offload_weights=0.5)
    slow = serve(dataclasses.replace(half, offload_gb_per_s=50), requests)
    fast = serve(dataclasses.replace(half, offload_gb_per_s=4000), requests)
    plain = serve(H100, requests)
    assert slow.cache_blocks[0, 0] > plain.cache_blocks[0, 0]
    assert slow.finished_s.mean() > fast.finished_s.mean() >= plain.finished_s.mean()
    iteration = slow.busy_s[0, 0] / slow.iterations[0, 0]
    assert iteration >= 0.5 * slow.weights_gib[0, 0] * 2**30 / 50e9


def test_what_does_not_fit_is_not_simulated() -> None:
    served = serve(Pool("rtx_4090_node"), drawn(5, 1), load_model("llama3_70b"))
    assert not served.fits.any()
    assert np.isnan(served.finished_s).all()
    assert serve(
        Pool("dgx_h100", tensor_parallel=4), drawn(5, 1), load_model("llama3_70b")
    ).fits.all()


def test_weights_are_shared_out() -> None:
    """Parameters over all GPUs are those of the model, and heads that are held twice."""
    for tensor, stages in ((1, 1), (4, 1), (2, 4), (8, 2)):
        pool = dataclasses.replace(H100, tensor_parallel=tensor, pipeline_parallel=stages)
        held = serve(pool, ONE).weights_gib[0, 0] * 2**30 * tensor
        layers = SMALL.parameters - 2 * SMALL.vocabulary * SMALL.hidden
        ends = 2 if stages == 1 else 1
        whole = 2 * (layers / stages + ends * SMALL.vocabulary * SMALL.hidden)
        assert held == pytest.approx(whole, rel=2e-4)


def test_energy_lies_between_idle_and_full_power() -> None:
    served = serve(dataclasses.replace(H100, tensor_parallel=2), drawn(60, 5))
    seconds = served.finished_s.max() * 2
    assert 120 * seconds < served.energy_j[0, 0] < 700 * seconds


@pytest.mark.parametrize(
    ("pool", "message"),
    [
        ({"cluster": "dgx_h10"}, "dgx_h100"),
        ({"tensor_parallel": 3}, "tensor_parallel is 3.*heads, 32"),
        ({"pipeline_parallel": 64}, "pipeline_parallel is 64.*layers, 32"),
        ({"max_num_batched_tokens": 4, "speculative_tokens": 4}, "max_num_batched_tokens is 4"),
    ],
)
def test_bad_deployments_are_refused(pool: dict[str, Any], message: str) -> None:
    with pytest.raises((InvalidValueError, UnknownNameError), match=message):
        serve(Pool(**{"cluster": "dgx_h100", **pool}), ONE)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"max_num_seqs": 0}, "max_num_seqs is 0"),
        ({"scheduler": "fcfz"}, "fcfs"),
        ({"preemption": "swop"}, "swap"),
        ({"memory_share": 1.5}, "memory_share is 1.5"),
        ({"cache_bits": 3}, "cache_bits is 3; it must be 4, 8 or 16"),
        ({"acceptance": 1.0}, "acceptance is 1.0"),
        ({"expert_parallel": 3}, "expert_parallel is 3"),
    ],
)
def test_bad_pools_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises((InvalidValueError, UnknownNameError), match=message):
        Pool("dgx_h100", **values)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (([], [], []), "none"),
        (([0, 1], [1], [1, 1]), "prompt_tokens has 1"),
        (([0, 1], [1, 0], [1, 1]), r"prompt_tokens\[1\] is 0"),
        (([1, 0], [1, 1], [1, 1]), r"arrival_s\[1\] is 0"),
        (([0, np.nan], [1, 1], [1, 1]), "finite"),
    ],
)
def test_bad_requests_are_refused(columns: tuple[Any, Any, Any], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        Requests.of(*columns)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("vlm", "vllm"),
        ({"base": "vllm", "form": "linar"}, "linear"),
        ({"base": "vllm", "step_us": -1}, "step_us is -1"),
        ({"base": "vllm", "speeds": {"h100": 0}}, r"speeds\['h100'\] is 0"),
    ],
)
def test_bad_engines_are_refused(spec: Any, message: str) -> None:
    with pytest.raises((InvalidValueError, UnknownNameError), match=message):
        load_engine(spec)


def test_every_engine_serves() -> None:
    for name in engine_names():
        assert np.isfinite(serve(H100, drawn(10, 2), engine=load_engine(name)).finished_s).all()


def test_a_latent_cache_is_as_small_as_published_on_every_gpu() -> None:
    """DeepSeek-V3 caches 70,272 bytes a token in 16 bits (Zhao et al., ISCA 2025, table 1)."""
    model, chip = load_model("deepseek_v3"), FLEET["dgx_h100"].device
    engine = load_engine("vllm")
    pools = [Pool("dgx_h100", tensor_parallel=n, weight_bits=8, block_size=1) for n in (1, 8)]
    whole, shared = (memory_of(model, chip, engine, pool) for pool in pools)
    assert whole.block == shared.block == 70_272
    weights = model.parameters + 129280 * 7168 * 2  # embeddings have 16 bits
    assert whole.weights == pytest.approx(weights, rel=0.002)
    common = 61 * 7168 * (1536 + 512 + 64)  # every GPU has them
    assert shared.weights == pytest.approx((whole.weights - common) / 8 + common, rel=0.003)


def test_decoding_reads_the_latent_cache_whatever_the_parallelism() -> None:
    """Between contexts that differ by 1,000 tokens lie their bytes by the bandwidth."""
    model = load_model({"base": "deepseek_v3", "layers": 8, "experts": 0})
    chip = {"base": "h100", "memory_gib": 800, "matrix_tflops": 1900}  # bytes decide
    fleet = {"c": load_cluster({"base": "dgx_h100", "chip": chip})}
    for tensor in (1, 8):
        pool = Pool("c", tensor_parallel=tensor)
        ends = []
        for prompt in (1000, 2000):
            served = simulate(
                [Deployment(pool)], model, fleet, Requests.of([0.0], [prompt], [2]), ENGINE
            )
            ends.append(float(served.finished_s[0, 0] - served.first_token_s[0, 0]))
        bandwidth = FLEET["dgx_h100"].device.memory_gb_per_s * 1e9 * ENGINE.decode_memory_share
        assert ends[1] - ends[0] == pytest.approx(8 * 576 * 2 * 1000 / bandwidth, rel=1e-6)


def test_leaping_gives_the_same_with_latent_attention() -> None:
    model = load_model({"base": "deepseek_v3", "layers": 8, "experts": 0})
    pool = Pool("dgx_h100", tensor_parallel=2, cache_blocks=200)
    leapt, stepped = (serve(pool, drawn(60, 20), model, leaps=leaps) for leaps in (True, False))
    assert leapt.preemptions.sum() > 0
    assert (leapt.finished_s == stepped.finished_s).all()
