"""Families of networks: layers, parameters and keys against the modules that are trained."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from archgym.envs.accelerator.workload.layer import Network
from archgym.envs.nas.families import FAMILIES, Architecture, Task
from archgym.envs.nas.families.torch_modules import initialise
from archgym.envs.nas.tasks import (
    TASKS,
    architecture_space,
    distinct_architectures,
    family_of,
    task_of,
)
from archgym.errors import InvalidValueError, SpaceTooLargeError, UnknownNameError

SMALL = [name for name, task in TASKS.items() if task.input_shape[1] <= 32]

DIGITS = {
    "stem_filters": 4,
    "stage1_filters": 8,
    "stage1_skips": 0,
    "stage2_filters": 8,
    "stage2_skips": 0,
}


def some(task: Task, count: int, seed: int = 0) -> list[Architecture]:
    return list(architecture_space(task).sample(count, np.random.default_rng(seed)))


def ready(task: Task, architecture: Architecture, seeds: list[int]) -> nn.Module:
    module = family_of(task).module(task, architecture, len(seeds))
    initialise(module, [np.random.default_rng(seed) for seed in seeds])
    return module.eval()


def convolutions(module: nn.Module, task: Task) -> tuple[list[tuple[int, int, int]], torch.Size]:
    """Multiply-accumulates, weights and outputs of each convolution as it runs, and the output."""
    found = []

    def look(layer: nn.Module, given: Any, output: torch.Tensor) -> None:
        assert isinstance(layer, nn.Conv2d)
        weights = layer.weight.numel()
        pixels = output.shape[2] * output.shape[3]
        found.append((weights * pixels, weights, output.numel()))

    for layer in module.modules():
        if isinstance(layer, nn.Conv2d):
            layer.register_forward_hook(look)
    with torch.no_grad():
        output = module(torch.zeros((1, *task.input_shape)))
    return found, output.shape


def bounds(network: Network) -> list[tuple[object, ...]]:
    return [(layer.kind, *layer.row) for layer in network.layers]


# -- layers and parameters -----------------------------------------------------------------------


@pytest.mark.parametrize("name", TASKS)
def test_layers_are_those_of_the_module(name: str) -> None:
    task = TASKS[name]
    family = family_of(task)
    for architecture in some(task, 4 if name in SMALL else 1):
        network = family.layers(task, architecture)
        ran, shape = convolutions(ready(task, architecture, [0]), task)
        assert ran == [
            (layer.macs, layer.weight_footprint, layer.output_footprint)
            for layer in network.layers
            if not layer.name.endswith(("_scores", "_mixed"))  # products of attention
        ]
        assert network.counts == (1,) * len(network.layers)
        classes = shape == (1, task.outputs)
        masks = shape == (1, task.outputs, *task.input_shape[1:])
        assert classes if task.metric == "accuracy" else masks


@pytest.mark.parametrize("name", TASKS)
def test_parameters_are_those_of_the_module(name: str) -> None:
    task = TASKS[name]
    family = family_of(task)
    for architecture in some(task, 5, seed=1):
        module = family.module(task, architecture)
        count = sum(parameter.numel() for parameter in module.parameters())
        assert family.parameter_count(task, architecture) == count


def test_a_residual_classifier_by_hand() -> None:
    task, family = TASKS["digits"], FAMILIES["residual"]
    assert family.parameter_count(task, DIGITS) == 44 + 304 + 592 + 90
    macs = [layer.macs for layer in family.layers(task, DIGITS).layers]
    # 3x3 filters at 8x8, 8x8 and, after a pooling, 4x4 pixels; then 8 x 10 weights.
    assert macs == [9 * 4 * 64, 9 * 4 * 8 * 64, 9 * 8 * 8 * 16, 80]


def test_a_unet_by_hand() -> None:
    task, family = TASKS["cells"], FAMILIES["unet"]
    architecture = {"height": 2, "level1_filters": 4, "level2_filters": 16}
    layers = family.layers(task, architecture).layers
    assert [(layer.name, layer.K, layer.C, layer.R, layer.P) for layer in layers] == [
        ("down1_1", 4, 1, 3, 32),
        ("down1_2", 4, 4, 3, 32),
        ("down2_1", 16, 4, 3, 16),
        ("down2_2", 16, 16, 3, 16),
        ("up1", 16, 16, 1, 16),
        ("up1_1", 4, 8, 3, 32),
        ("up1_2", 4, 4, 3, 32),
        ("mask", 1, 4, 1, 32),
    ]


def test_the_mobile_bottlenecks_of_proxylessnas() -> None:
    task = TASKS["imagenet_mbconv"]
    # Six candidates in the first block of a stage, those and none in the others.
    assert architecture_space(task).canonical_cardinality == 6**6 * 7**15
    wide = {
        parameter.name: {"kernel": 7, "expansion": 6, "skip": False}[parameter.name.split("_")[1]]
        for parameter in family_of(task).parameters(task)
    }
    layers = family_of(task).layers(task, wide).layers
    assert len(layers) == 1 + 2 + 21 * 3 + 2
    assert [layer.P for layer in layers[:3]] == [112, 112, 112]
    assert (layers[-2].K, layers[-2].P) == (1280, 7)
    assert layers[-1].macs == 1280 * 1000


@pytest.mark.parametrize("height", [1, 3])
def test_a_mask_may_be_there_whatever_the_signs_of_its_weights(height: int) -> None:
    task = TASKS["cells"]
    architecture = {"height": height, **{f"level{n}_filters": 8 for n in range(1, height + 1)}}
    module = ready(task, architecture, [0])
    image = torch.from_numpy(np.random.default_rng(0).random((1, 1, 32, 32), dtype=np.float32))
    last = [layer for layer in module.modules() if isinstance(layer, nn.Conv2d)][-1]
    with torch.no_grad():
        for sign in (1.0, -1.0):
            last.weight.copy_(sign * last.weight.abs())
            logits = module.train()(image)
            assert logits.min() < 0 < logits.max()


# -- keys ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "distinct"),
    [
        ("digits", 4 * (4 * 3) ** 2),
        ("cells", 3 + 3**2 + 3**3 + 3**4 + 3**5),
        # First blocks 4 ways; one more block or none; two more, one more or none, in order.
        ("digits_mbconv", 4 * (1 + 4) * 4 * (1 + 4 + 4**2)),
    ],
)
def test_equal_keys_are_equal_networks(name: str, distinct: int) -> None:
    task = TASKS[name]
    family = family_of(task)
    by_key: dict[str, list[tuple[object, ...]]] = {}
    for designs in architecture_space(task).enumerate():
        for architecture in designs:
            layers = bounds(family.layers(task, architecture))
            key = family.key(task, architecture)
            assert by_key.setdefault(key, layers) == layers
    assert len(by_key) == distinct
    assert len({tuple(layers) for layers in by_key.values()}) == distinct
    assert list(distinct_architectures(task)) == list(by_key)


def test_which_of_equal_blocks_is_left_out_does_not_matter() -> None:
    task = TASKS["digits_mbconv"]
    block = {"block{}_skip": False, "block{}_kernel": 5, "block{}_expansion": 6}
    rest = {f"block{n}_{what}": 3 for n in (1, 3) for what in ("kernel", "expansion")}
    fourth = {key.format(4): value for key, value in block.items()}
    fifth = {key.format(5): value for key, value in block.items()}
    one = {**rest, "block2_skip": True, **fourth, "block5_skip": True}
    other = {**rest, "block2_skip": True, "block4_skip": True, **fifth}
    assert family_of(task).key(task, one) == family_of(task).key(task, other) == "k3e3-k3e3.k5e6"
    image = torch.from_numpy(np.random.default_rng(0).random((3, 1, 8, 8), dtype=np.float32))
    with torch.no_grad():
        assert torch.equal(ready(task, one, [7])(image), ready(task, other, [7])(image))


# -- copies --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SMALL)
def test_copies_are_independent_networks(name: str) -> None:
    task = TASKS[name]
    images = np.random.default_rng(0).random((2, 2, *task.input_shape), dtype=np.float32)
    for architecture in some(task, 2, seed=2):
        both = ready(task, architecture, [3, 4])
        with torch.no_grad():
            together = both(torch.from_numpy(images).flatten(1, 2))
            for copy, seed in enumerate([3, 4]):
                alone = ready(task, architecture, [seed])(torch.from_numpy(images[:, copy]))
                own = together[:, copy * task.outputs : (copy + 1) * task.outputs]
                torch.testing.assert_close(own, alone, rtol=1e-4, atol=1e-4)


# -- what is refused -----------------------------------------------------------------------------


def test_a_family_refuses_the_tasks_of_others() -> None:
    with pytest.raises(InvalidValueError, match=r"digits.*ResidualOptions.*UNetOptions"):
        FAMILIES["unet"].parameters(TASKS["digits"])


def test_unknown_tasks_are_named() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'digits'"):
        task_of("digit")


def test_the_whole_space_of_proxylessnas_is_not_enumerated() -> None:
    with pytest.raises(SpaceTooLargeError):
        distinct_architectures(TASKS["imagenet_mbconv"])
