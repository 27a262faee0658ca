"""Mappings whose tiles divide the layer, and the random search of Timeloop among them."""

from __future__ import annotations

import numpy as np
import pytest

from archgym.envs.accelerator.cost.hardware import Hardware
from archgym.envs.accelerator.cost.model import evaluate
from archgym.envs.accelerator.environment import AcceleratorEnvironment
from archgym.envs.accelerator.workload.layer import Layer
from archgym.errors import InvalidValueError
from tests.envs.accelerator.random_designs import table

EYERISS = Hardware(
    "eyeriss_rs",
    16,
    16,
    input_rf_bytes=24,
    weight_rf_bytes=384,
    output_rf_bytes=32,
    buffer_bytes=131072,
    noc_bytes_per_cycle=64.0,
    dram_bytes_per_cycle=32.0,
    dram_links="duplex",
    keeps_halves=False,
    word_bits=16,
    accumulator_bits=16,
    weights_bypass_buffer=True,
    tiles="divide",
)


def conv(**sizes: int) -> Layer:
    return Layer("l", "conv", **({"K": 64, "C": 64, "R": 3, "S": 3, "P": 28, "Q": 28} | sizes))


def test_an_array_is_used_as_far_as_divisors_allow() -> None:
    """Of 16 rows 3 columns of the window take 12 with 4 channels; 13 columns of outputs take 13."""
    costs = evaluate(table(conv(), conv(K=1, P=13, Q=13)), [EYERISS])
    assert costs["cycles"][0, 0] == 64 * 64 * 9 * 28 * 28 / (16 * 12)
    assert costs["compute_cycles"][0, 1] == 64 * 9 * 13 * 13 / (13 * 12)


def test_a_prime_number_of_channels_does_not_divide() -> None:
    fast = EYERISS.replace(noc_bytes_per_cycle=1e9, dram_bytes_per_cycle=1e9)
    costs = evaluate(table(conv(K=61, C=59, Q=29)), [fast])
    assert costs["cycles"][0, 0] == 61 * 59 * 9 * 28 * 29 / 3
    assert evaluate(table(conv(K=61, C=59, Q=29)), [fast.replace(tiles="any")])["cycles"][0, 0] < (
        costs["cycles"][0, 0] / 10
    )


@pytest.mark.parametrize("field", ["buffer_bytes", "weight_rf_bytes", "output_rf_bytes"])
def test_more_memory_is_never_slower(field: str) -> None:
    rng = np.random.default_rng(41)
    for _ in range(8):
        k, c, q = (int(rng.integers(2, 97)) for _ in range(3))
        designs = [EYERISS.replace(**{field: 64 << i}) for i in range(12)]
        costs = evaluate(table(conv(K=k, C=c, Q=q)), designs)
        cycles = costs["cycles"][costs.mapped[:, 0], 0]
        assert len(cycles) > 0
        assert (np.diff(cycles) <= 0).all()


def test_a_random_search_finds_no_better_and_the_same_every_time() -> None:
    layers = table(conv(), conv(K=96, C=48, Q=30), conv(R=1, S=1, K=512))
    large = EYERISS.replace(rows=32, columns=32, noc_bytes_per_cycle=8.0)
    designs = [large.replace(victory_condition=n) for n in (0, 5000, 20, 20)]
    cycles = evaluate(layers, designs)["cycles"]
    assert (cycles[1:] >= cycles[0]).all()
    assert (cycles[2] == cycles[3]).all()
    assert cycles[2].sum() > cycles[1].sum()


def test_groups_and_images_follow_each_other() -> None:
    one = evaluate(table(conv()), [EYERISS]).layer(0, 0)
    many = evaluate(table(conv(K=192, C=192, groups=3, batch=2)), [EYERISS]).layer(0, 0)
    for column in ("cycles", "dram_bytes", "energy_pj", "macs"):
        assert many[column] == pytest.approx(6 * one[column], rel=1e-12)


def test_a_window_wider_than_the_array_has_no_mapping() -> None:
    assert not evaluate(table(conv(S=17)), [EYERISS]).mapped[0, 0]


def test_weights_go_around_the_buffer() -> None:
    with pytest.raises(InvalidValueError, match="tiles is 'divide'"):
        EYERISS.replace(weights_bypass_buffer=False)


def test_other_dataflows_keep_their_own_mappings() -> None:
    other = EYERISS.replace(dataflow="nvdla_ws")
    costs = evaluate(table(conv(K=61)), [other, other.replace(tiles="any")])
    assert costs["cycles"][0, 0] == costs["cycles"][1, 0]


def test_the_space_of_timeloops_knobs_takes_timeloops_tiles() -> None:
    layer = {"layers": [{"K": 61, "C": 32, "R": 3, "S": 3, "P": 14, "Q": 14}]}
    cycles = []
    for tiles in ("any", "divide"):
        env = AcceleratorEnvironment(
            space="eyeriss",
            workload=layer,
            hardware={"tiles": tiles},
            objective="minimize latency_cycles",
        )
        found = env.evaluate(env.baseline_design).metrics["latency_cycles"]
        assert found is not None
        cycles.append(found)
    assert cycles[0] < cycles[1]
