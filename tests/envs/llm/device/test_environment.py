"""The environment of devices through its public interface: conservation, hands, monotony."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import archgym
from archgym.envs.llm.device.environment import LLMDevice
from archgym.envs.llm.device.space import BASELINE
from archgym.envs.llm.device.workload import WORKLOADS, load_workload
from archgym.errors import ArchgymError
from archgym.space import DesignSpace, Ordinal

PARTS = ("compute", "sram", "near", "far", "flash", "in_memory", "static")
NEAR_BANK = {
    "products": "near_bank",
    "pim_lanes": 16,
    "pim_banks_per_unit": 1,
    "attention_in_memory": False,
}


@pytest.fixture(scope="module")
def env() -> LLMDevice:
    made = archgym.make("LLMDevice-v0")
    assert isinstance(made, LLMDevice)
    return made


def metrics(env: archgym.Environment, design: Mapping[str, Any]) -> dict[str, float]:
    outcome = env.evaluate(design)
    assert outcome.status == "ok", outcome.reason
    return {name: value for name, value in outcome.metrics.items() if value is not None}


def columns(env: archgym.Environment, n: int, seed: int = 0) -> dict[str, Any]:
    designs = env.design_space.sample(n, np.random.default_rng(seed))
    outcomes = env.evaluate_batch(designs)
    assert (outcomes.status == 0).all()
    return {name: outcomes.metrics[:, i] for i, name in enumerate(outcomes.metric_names)}


@pytest.mark.parametrize("workload", list(WORKLOADS))
def test_parts_add_up_to_wholes(workload: str) -> None:
    env = archgym.make("LLMDevice-v0", workload=workload)
    column = columns(env, 2000)
    assert all(np.isfinite(values).all() for values in column.values())
    energy = sum(column[f"{part}_energy_mj_per_token"] for part in PARTS)
    np.testing.assert_allclose(energy, column["energy_mj_per_token"], rtol=1e-9)
    times = ("products", "attention", "vector", "operators")
    latency = sum(column[f"{part}_ms"] for part in times)
    np.testing.assert_allclose(latency, column["token_latency_ms"], rtol=1e-9)
    loaded = load_workload(workload)
    answer = (loaded.output - 1) * column["token_latency_ms"]
    whole = answer + column["prefill_latency_ms"]
    np.testing.assert_allclose(whole, column["request_latency_ms"], rtol=1e-9)
    rate = loaded.batch * 1e3 / column["token_latency_ms"]
    np.testing.assert_allclose(rate, column["tokens_per_s"], rtol=1e-9)
    assert (column["memory_usd"] < column["cost_usd"]).all()


def test_parameters_bytes_and_time_of_a_small_model_by_hand(env: LLMDevice) -> None:
    design = {
        **BASELINE,
        "layers": 4,
        "hidden": 256,
        "heads": 4,
        "kv_heads": 2,
        "feedforward_ratio": 2.0,
        "vocabulary": 16384,
        "tied_embeddings": False,
        "weight_bits": 16,
        "mac_units": 65536,
        "channels": 1,
    }
    del design["quantization"]
    found = metrics(env, design)
    layer = 256 * 256 + 256 * 256 + 256 * 256 + 3 * 256 * 512  # q; k and v; output; gate, up, down
    weights = 4 * layer + 2 * 16384 * 256
    assert found["parameters_m"] == pytest.approx(weights / 1e6)
    assert found["weights_gib"] == pytest.approx(2 * weights / 2**30)
    cache = 2 * 4 * 2 * 64 * 2 * (512 + 128)
    assert found["kv_cache_gib"] == pytest.approx(cache / 2**30)
    bandwidth = 12.8e9 * 64 * 2 / (64 * 2 + 2) * (1 - (168 + 17 + 15) / 3125)
    assert found["near_gb_per_s"] == pytest.approx(bandwidth / 1e9)
    read = 2 * (4 * layer + 16384 * 256)  # the embedding gives one row only
    assert found["products_ms"] == pytest.approx(read / bandwidth * 1e3)
    keys = 2 * 4 * 2 * 64 * 2 * (512 + 129 / 2 + 1)
    assert found["attention_ms"] == pytest.approx(keys / bandwidth * 1e3)
    assert found["operators_ms"] == pytest.approx((9 * 4 + 3) * 0.2e-3)
    assert found["free_memory_gib"] < 1 - (2 * weights + cache) / 2**30 + 1e-9


def test_a_prompt_is_bound_by_multipliers_by_hand(env: LLMDevice) -> None:
    design = {**BASELINE, "mac_units": 256, "activation_bits": 8, "kv_bits": 8, "channels": 16}
    found = metrics(env, design)
    h, f = 1024, 4096
    layer = 2 * h * h + 2 * h * 256 + 3 * h * f
    macs = 512 * 16 * layer + 32000 * h + 2 * 16 * 1024 * 512 * 513 / 2
    operations = 512 * 16 * (10 * h + 3 * (1024 + 256) + 5 * 16 * 513 / 2 + 5 * f)
    seconds = macs / (256 * 800e6 * 0.9) + operations / (16 * 800e6) + (9 * 16 + 3) * 0.2e-6
    assert found["prefill_latency_ms"] == pytest.approx(seconds * 1e3, rel=2e-3)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("channels", [1, 2, 4, 8, 16, 32, 64]),
        ("mac_units", [256, 1024, 4096, 16384, 65536]),
        ("clock_mhz", [200, 400, 800, 1600]),
        ("sram_mib", [0.25, 1.0, 4.0, 16.0, 64.0]),
    ],
)
@pytest.mark.parametrize("workload", ["phone", "shared_box"])
def test_more_of_a_resource_is_never_slower(name: str, values: list[Any], workload: str) -> None:
    # What has no room in a slow tier may be faster in two tiers at a time; and weights in SRAM are
    # the processor's, which units at banks may outrun: neither is asked here.
    env = archgym.make(
        "LLMDevice-v0",
        workload=workload,
        fixed={"flash_gb_per_s": 0, "sram_resident_share": 0.0},
        exclude={"far_striped": [False]},
    )
    designs = list(env.design_space.sample(300, np.random.default_rng(1)))
    before = None
    for value in values:
        changed = env.design_space.designs([{**design, name: value} for design in designs])
        found = env.evaluate_batch(changed)
        names = list(found.metric_names)
        assert (found.status == 0).all()
        now = found.metrics[:, [names.index("token_latency_ms"), names.index("prefill_latency_ms")]]
        if before is not None:
            assert (now <= before * (1 + 1e-9)).all()
        before = now


def test_a_design_alone_and_among_others_has_the_same_metrics(env: LLMDevice) -> None:
    designs = env.design_space.sample(200, np.random.default_rng(3))
    together = dict(zip(designs.keys(), env.simulate_batch(designs), strict=True))
    for i in (0, 77, 199):
        alone = env.simulate_batch(designs[i : i + 1])[0][0]
        assert alone == together[designs[i : i + 1].keys()[0]][0]


def test_units_at_banks_speed_up_tokens_not_prompts(env: LLMDevice) -> None:
    processor = metrics(env, BASELINE)
    inside = metrics(env, {**BASELINE, **NEAR_BANK})
    assert inside["products_ms"] < 0.6 * processor["products_ms"]
    # the logits of the last token are one vector's too
    assert inside["prefill_latency_ms"] == pytest.approx(processor["prefill_latency_ms"], rel=0.02)
    assert inside["energy_mj_per_token"] < processor["energy_mj_per_token"]
    fewer = metrics(env, {**BASELINE, **NEAR_BANK, "pim_banks_per_unit": 4})
    assert inside["products_ms"] < fewer["products_ms"]
    assert inside["cost_usd"] > fewer["cost_usd"] > processor["cost_usd"]


def test_tables_pay_with_a_batch_on_few_multipliers() -> None:
    few = {**BASELINE, "mac_units": 256, "clock_mhz": 800, "weight_bits": 4, "activation_bits": 8}
    gains = []
    for batch in (1, 8, 64):
        env = archgym.make("LLMDevice-v0", workload={"prompt": 64, "output": 64, "batch": batch})
        without = metrics(env, few)["products_ms"]
        tables = metrics(env, {**few, "products": "sram_tables", "table_weights": 4})["products_ms"]
        gains.append(without / tables)
    assert gains[0] < gains[1] <= gains[2]
    assert gains[2] > 2


def test_what_fits_nowhere_is_said_and_infeasible() -> None:
    env = archgym.make("LLMDevice-v0", workload={"prompt": 16, "output": 16})
    large = {**BASELINE, "layers": 48, "hidden": 3072, "weight_bits": 8, "channels": 1}
    outcome = env.evaluate(large)
    assert not outcome.feasible
    assert (outcome.metrics["free_memory_gib"] or 0) < -5
    far = {**large, "far_memory": "DDR5-4800", "far_channels": 1, "far_striped": False}
    with_far = env.evaluate(far)
    assert with_far.feasible
    slow = metrics(env, far)["token_latency_ms"]
    assert metrics(env, {**far, "far_channels": 4})["token_latency_ms"] < slow
    flash = {**large, "flash_gb_per_s": 2}
    assert env.evaluate(flash).feasible
    assert metrics(env, flash)["token_latency_ms"] > 2 * slow


def test_weights_that_stay_in_sram_are_not_read_from_memory(env: LLMDevice) -> None:
    small = {**BASELINE, "layers": 6, "hidden": 512, "vocabulary": 16384, "weight_bits": 4,
             "sram_mib": 32.0}  # fmt: skip
    before = metrics(env, small)
    after = metrics(env, {**small, "sram_resident_share": 0.75})
    assert after["near_energy_mj_per_token"] < 0.5 * before["near_energy_mj_per_token"]
    assert after["token_latency_ms"] < before["token_latency_ms"]


def test_budgets_of_the_workload_limit_the_default_objective() -> None:
    loose = archgym.make("LLMDevice-v0", workload="phone")
    strict = archgym.make(
        "LLMDevice-v0", workload={"base": "phone", "budgets": {"token_latency_ms": 1}}
    )
    assert loose.evaluate(BASELINE).feasible
    assert not strict.evaluate(BASELINE).feasible
    assert loose.workload_sha256 == strict.workload_sha256  # the same metrics


def test_training_beyond_the_laws_is_warned_about() -> None:
    env = archgym.make("LLMDevice-v0", workload={"base": "phone", "training_gtokens": 18000})
    assert any("350" in text for text in env.warnings)
    assert not archgym.make("LLMDevice-v0", workload="phone").warnings


def test_prices_move_cost_and_nothing_else(env: LLMDevice) -> None:
    cheap = archgym.make("LLMDevice-v0", workload={"base": "phone", "prices": {"wafer_usd": 3000}})
    before, after = metrics(env, BASELINE), metrics(cheap, BASELINE)
    assert after.pop("cost_usd") < before.pop("cost_usd")
    assert after == before


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        ("phon", "phone"),
        ({"prompt": 10}, "output"),
        ({"prompt": 0, "output": 1}, "prompt is 0"),
        ({"prompt": 1, "output": 1, "batch": 10**9}, "from 1 to 4,096"),
        ({"prompt": 1, "output": 1, "law": "gemstone"}, "gemstones"),
        ({"base": "laptop", "software": "metall"}, "metal"),
        ({"base": "laptop", "software": {"base": "metal", "memory_share": 2}}, "at most 1"),
        ({"base": "laptop", "prices": {"wafer": 1}}, "wafer_usd"),
        ({"base": "laptop", "budgets": {"energy": 1}}, "energy_mj_per_token"),
        ({"base": "laptop", "training_gtokens": -1}, "above 0"),
        ({"base": "laptop", "promt": 3}, "prompt"),
        (3, "it must be a name"),
    ],
)
def test_what_is_not_possible_is_refused_by_name(workload: Any, said: str) -> None:
    with pytest.raises(ArchgymError, match=said):
        archgym.make("LLMDevice-v0", workload=workload)


def test_heads_must_divide_the_width(env: LLMDevice) -> None:
    outcome = env.evaluate({**BASELINE, "heads": 12})
    assert outcome.status == "illegal"
    assert "heads" in (outcome.reason or "")


def test_a_space_of_ones_own_has_the_parameters_that_are_needed() -> None:
    space = DesignSpace([Ordinal("layers", [4, 8]), Ordinal("hidden", [256, 512])])
    with pytest.raises(ArchgymError, match="heads, kv_heads, feedforward_ratio"):
        archgym.make("LLMDevice-v0", space=space)
