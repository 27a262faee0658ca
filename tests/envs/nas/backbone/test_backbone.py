"""Vision backbones: parts by formula, deployed modules, and the order of measurements."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from archgym.envs.nas.accuracy.zero_cost import ProxyAccuracy
from archgym.envs.nas.backbone.campaign import Plan, measure, network_order, part_order
from archgym.envs.nas.backbone.deployed import deployed
from archgym.envs.nas.backbone.parts import (
    IMAGENET,
    Part,
    architecture_of,
    architectures,
    key_of,
    macs,
    parameter_count,
    parts_of,
)
from archgym.envs.nas.backbone.timing import CoreTimer, Timed
from archgym.envs.nas.families.torch_modules import initialise
from archgym.envs.nas.tasks import TASKS, family_of

SMALL = "r160-w16-e3-mbconv2.fused1.attention3.attention1"


def test_parts_have_the_figures_worked_out_by_hand() -> None:
    expand, depthwise, project = 16 * 48 * 80**2, 9 * 48 * 40**2, 48 * 16 * 40**2
    assert Part("mbconv", 80, 16, 16, 3, 2).macs == expand + depthwise + project
    assert Part("fused", 80, 16, 32, 3, 2).macs == (9 * 16 * 48 + 48 * 32) * 40**2
    linear, products = (3 + 1 + 2 * 3) * 64 * 64 * 100, 2 * 100 * 100 * 64
    assert Part("attention", 10, 64, 64, 3, 1).macs == linear + products
    down = 9 * 32 * 64 * 100
    assert Part("attention", 20, 32, 64, 3, 2).macs == down + linear + products
    assert Part("stem", 160, 3, 16, 1, 2).key == "Conv-input:160x160x3-output:80x80x16"
    block = Part("mbconv", 80, 16, 16, 3, 2)
    assert block.key == "mbconv-input:80x80x16-output:40x40x16-expand:3-stride:2"


def test_every_network_has_a_key_and_comes_back_from_it() -> None:
    every = list(architectures(IMAGENET))
    assert len(every) == 4 * 4 * 2 * (2 * 2) * (2 * 2) * (3 * 3) * (3 * 3) == 41_472
    for each in random.Random(0).sample(every, 200):
        assert architecture_of(key_of(each)) == each
    with pytest.raises(ValueError, match="is no network"):
        architecture_of("r160")


@pytest.mark.parametrize("key", [SMALL, "r160-w24-e6-fused1.mbconv3.mbconv1.fused2"])
def test_modules_have_the_counted_multiply_accumulates_and_parameters(key: str) -> None:
    architecture = architecture_of(key)
    parts = parts_of(IMAGENET, architecture)
    network = deployed(parts).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    size = architecture["resolution"]
    x = torch.randn(1, 3, size, size)
    # PyTorch counts what it multiplies, an independent count of the formulas.
    counter = FlopCounterMode(display=False)
    with torch.no_grad(), counter, sdpa_kernel(SDPBackend.MATH):
        out = network(x)
    assert counter.get_total_flops() == 2 * macs(parts)
    assert sum(each.numel() for each in network.parameters()) == parameter_count(parts)
    assert out.shape == (1, 1000)
    assert out.isfinite().all()


class Fake:
    """Takes a second for everything."""

    def __init__(self) -> None:
        self.now = 0.0
        self.shapes: list[tuple[int, ...]] = []

    def prepared(self, make: object) -> torch.nn.Module:
        return torch.nn.Identity()

    def timed(self, module: torch.nn.Module, shape: tuple[int, ...], calls: int = 1) -> Timed:
        self.now += 1.0
        self.shapes.append(shape)
        return Timed(self.now, self.now, calls, True)


def test_measurements_come_in_passes_and_stop_in_time() -> None:
    keys, parts = network_order(3), part_order(3)
    assert len(set(keys)) == 41_472
    assert len({part.key for part in parts}) == len(parts) == 672
    timer = Fake()
    rows: list[tuple[str, int, int]] = []
    plan = Plan(keys, parts, again=2, alone=1, batches=(1, 64), begun=0.0, seconds=100.0)
    measure(plan, timer, lambda s, n, b, timed: rows.append((s, n, b)), lambda: timer.now)
    networks = {number: [s for s, n, b in rows if n == number and b == 1] for number in (1, 2, 3)}
    assert networks[1] == keys[: len(networks[1])]
    assert sorted(networks[2]) == sorted(keys[:2])
    assert networks[3] == keys[:1]
    # Eight networks, parts from 16 to 80 s, two networks again, new ones to 96 s, one alone.
    assert [s for s, n, b in rows if n == 0] == [p.key for p in parts[:32] for _ in range(2)]
    assert 98 <= timer.now <= 102
    assert {b for _, _, b in rows} == {1, 64}
    assert timer.shapes[1][0] == 64


def test_a_core_is_timed() -> None:
    timer = CoreTimer(seconds=0.0)
    module = timer.prepared(lambda: deployed(parts_of(IMAGENET, architecture_of(SMALL))))
    timed = timer.timed(module, (1, 3, 160, 160))
    assert timed.finite
    assert timed.runs == 5
    assert 0 < timed.fastest_us <= timed.time_us


@pytest.mark.full
def test_trained_copies_are_independent_and_scored() -> None:
    task = TASKS["imagenet_backbone"]
    family, architecture = family_of(task), architecture_of(SMALL)
    x = torch.from_numpy(np.random.default_rng(0).random((1, 3, 160, 160), dtype=np.float32))
    found = []
    for seeds in ([1, 2], [1], [2]):
        module = family.module(task, architecture, len(seeds))
        initialise(module, [np.random.default_rng(seed) for seed in seeds])
        with torch.no_grad():
            found.append(module.eval()(x.repeat(1, len(seeds), 1, 1)))
    assert torch.allclose(found[0], torch.cat(found[1:], 1), rtol=1e-3, atol=0.1)
    # Attention has no part in the flow but that all pixels are mixed.
    assert np.isfinite(ProxyAccuracy("synflow").accuracies(task, [architecture], 1)).all()
