"""Networks derived from their definitions, and workloads by name, by file and layer by layer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from archgym.envs.accelerator.workload.layer import Layer, Network
from archgym.envs.accelerator.workload.networks import NETWORKS, Builder, Shape, build
from archgym.envs.accelerator.workload.workload import (
    canonical_workload,
    load_workload,
    network_sha256,
    workload_card,
    workload_label,
    workload_names,
)
from archgym.errors import InvalidValueError, UnknownNameError

# Parameters (exact) and multiply-accumulates (as published, rounded) of an image, from:
# - torchvision 0.20 to 0.24, documentation of each model's weights: "num_params", "GFLOPS";
# - AlexNet in two groups: Sze et al., Proc. IEEE 2017, table II (61M weights, 724M MACs); its
#   60,965,224 values with biases are those of the Caffe reference model;
# - MnasNet-A1: Tan et al., CVPR 2019, table 1 (3.9M, 312M);
# - BERT-base: Hugging Face bert-base-uncased (109,482,240); Sun et al., MobileBERT, ACL 2020,
#   table 1: 22.5 GFLOPs, that is 11.25 GMACs, at sequence 128;
# - GPT-2: Hugging Face gpt2 (124,439,808).
PUBLISHED = {
    "alexnet": (60_965_224, 0.724e9, 0.5e6),
    "vgg16": (138_357_544, 15.47e9, 5e6),
    "resnet18": (11_689_512, 1.81e9, 5e6),
    "resnet34": (21_797_672, 3.66e9, 5e6),
    "resnet50": (25_557_032, 4.09e9, 5e6),
    "mobilenet_v2": (3_504_872, 0.30e9, 5e6),
    "efficientnet_b0": (5_288_548, 0.39e9, 5e6),
    "mnasnet_a1": (None, 0.312e9, 0.5e6),
    "mnasnet_b1": (4_383_312, 0.31e9, 5e6),
    "bert_base": (109_482_240, 11.25e9, 0.1e9),
    "vit_b_16": (86_567_656, 17.56e9, 5e6),
    "gpt_prefill": (124_439_808, None, 0.0),
    "gpt_decode": (124_439_808, None, 0.0),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_parameters_and_macs_are_the_published_ones(name: str) -> None:
    parameters, macs, rounding = PUBLISHED[name]
    built = build(name)
    if parameters is not None:
        assert built.parameters == parameters
    if macs is not None:
        assert abs(built.network.macs - macs) <= rounding


def test_mnasnet_a1_has_the_3_9_million_parameters_of_its_paper() -> None:
    assert round(build("mnasnet_a1").parameters / 1e6, 1) == 3.9


def test_the_convolutions_of_alexnet_and_vgg_have_the_published_macs() -> None:
    # Chen et al., Eyeriss, ISSCC 2016: 666 M and 15.3 G MACs in the convolutions.
    for name, published in (("alexnet", 666e6), ("vgg16", 15.3e9)):
        convolutions = [
            layer.macs * count
            for layer, count in pairs(build(name).network)
            if layer.kind == "conv"
        ]
        assert sum(convolutions) == pytest.approx(published, rel=4e-3)


def pairs(network: Network) -> list[tuple[Layer, int]]:
    return list(zip(network.layers, network.counts, strict=True))


def named(network: Network, name: str) -> Layer:
    return next(layer for layer in network.layers if layer.name == name)


def test_strides_and_paddings_give_the_known_output_sizes() -> None:
    alexnet, resnet = build("alexnet").network, build("resnet50").network
    assert [(c.P, c.Q, c.stride) for c in alexnet.layers[:3]] == [
        (55, 55, 4),
        (27, 27, 1),
        (13, 13, 1),
    ]
    assert (named(resnet, "conv1").P, named(resnet, "conv1").stride) == (112, 2)
    # v1.5: the 3x3 of a stage's first block halves the image, the 1x1 before it does not.
    assert (named(resnet, "layer2.0.conv1").P, named(resnet, "layer2.0.conv1").stride) == (56, 1)
    assert (named(resnet, "layer2.0.conv2").P, named(resnet, "layer2.0.conv2").stride) == (28, 2)
    assert named(resnet, "layer4.0.downsample").stride == 2
    last = named(build("mobilenet_v2").network, "head")
    assert (last.C, last.K, last.P) == (320, 1280, 7)


def test_depthwise_layers_have_a_group_for_each_channel() -> None:
    network = build("mobilenet_v2").network
    depthwise = [(layer, n) for layer, n in pairs(network) if layer.kind == "depthwise"]
    assert sum(n for _, n in depthwise) == 17  # one in each inverted residual block
    assert all(layer.K == layer.C == layer.groups for layer, _ in depthwise)


def test_a_decoded_token_costs_its_weights_and_its_context() -> None:
    # Kaplan et al., 2020: 12 x layers x width^2 weights (a multiply-accumulate each), and
    # 2 x layers x context x width for attention; the output scores come on top.
    network = build("gpt_decode", context=300).network
    assert network.macs == 12 * 12 * 768**2 + 2 * 12 * 300 * 768 + 50257 * 768


def test_a_prompt_costs_what_its_tokens_cost_one_by_one() -> None:
    prompt = build("gpt_prefill", sequence=64).network.macs
    token = build("gpt_decode", context=64).network.macs
    scores = 50257 * 768  # of the last token only
    assert prompt == 64 * (token - scores) + scores


def test_shared_key_heads_shrink_what_is_stored_and_not_what_is_computed() -> None:
    all_heads = build("gpt_decode", context=1000, depth=1).network
    shared = build("gpt_decode", context=1000, depth=1, kv_heads=4).network
    assert named(shared, "layer0.scores").macs == named(all_heads, "layer0.scores").macs
    ours, theirs = named(shared, "layer0.scores"), named(all_heads, "layer0.scores")
    assert 3 * ours.weight_footprint == theirs.weight_footprint


@pytest.mark.parametrize("name", NETWORKS)
def test_macs_grow_with_the_batch_and_weights_do_not(name: str) -> None:
    one, four = build(name), build(name, batch=4)
    assert four.network.macs == 4 * one.network.macs
    assert four.parameters == one.parameters
    trained = [n * layer.weight_footprint for layer, n in pairs(one.network) if not attends(layer)]
    batched = [n * layer.weight_footprint for layer, n in pairs(four.network) if not attends(layer)]
    assert trained == batched


def attends(layer: Layer) -> bool:
    return layer.name.endswith((".scores", ".values"))


def test_larger_images_cost_more_in_proportion_to_their_pixels() -> None:
    small, large = build("resnet18").network, build("resnet18", image_size=448).network
    classifier = 512 * 1000
    assert large.macs - classifier == 4 * (small.macs - classifier)


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(InvalidValueError, match="batch=0 must be a whole number from 1"):
        build("resnet18", batch=0)
    with pytest.raises(UnknownNameError, match="Did you mean 'image_size'"):
        build("resnet18", imagesize=64)
    with pytest.raises(UnknownNameError, match="Did you mean 'resnet50'"):
        build("resnet55")
    with pytest.raises(InvalidValueError, match="multiple of 16"):
        build("vit_b_16", image_size=100)
    with pytest.raises(InvalidValueError, match="kv_heads=5 must divide heads=12"):
        build("gpt_decode", kv_heads=5)


def test_the_builder_refuses_what_does_not_fit() -> None:
    net = Builder("small", Shape(3, 4, 4))
    with pytest.raises(InvalidValueError, match="window of 7 does not fit into 4"):
        net.conv("conv", 8, 7, padding=0)
    with pytest.raises(InvalidValueError, match="cannot be added"):
        net.join(Shape(8, 4, 4))


# -- workloads -----------------------------------------------------------------------------------

CONV: dict[str, Any] = {"K": 8, "C": 4, "R": 3, "S": 3, "P": 6, "Q": 5}


def test_every_workload_loads_and_has_a_hash_of_its_own() -> None:
    hashes = {workload_card(name)["sha256"] for name in workload_names()}
    assert len(hashes) == len(NETWORKS)
    for name in workload_names():
        assert load_workload(name).name == name


def test_hashes_do_not_change() -> None:
    # Datasets hold them: a change of a definition has to be on purpose.
    known = {"resnet50": "ea2762323f48", "bert_base": "191a4a68c2f7"}
    for name, beginning in known.items():
        assert workload_card(name)["sha256"].startswith(beginning)


def test_the_hash_tells_layers_apart_and_not_their_names() -> None:
    def sha(*rows: dict[str, Any]) -> str:
        return network_sha256(load_workload({"layers": list(rows)}))

    assert sha({**CONV, "name": "a"}) == sha({**CONV, "name": "b"})
    assert sha(CONV) != sha({**CONV, "stride": 2})
    assert sha(CONV) != sha({**CONV, "count": 2})
    assert sha({**CONV, "count": 2}) == sha(CONV, CONV)


def test_several_networks_run_one_after_another() -> None:
    parts: list[Any] = ["resnet18", {"network": "mobilenet_v2", "count": 6}, {"layers": [CONV]}]
    joined = load_workload({"networks": parts})
    alone = [load_workload(part) for part in parts]
    assert joined.macs == sum(network.macs for network in alone)
    assert joined.macs > 6 * load_workload("mobilenet_v2").macs
    assert joined.name == "resnet18+6xmobilenet_v2+layers"
    assert joined.layers[0].name == "resnet18/conv1"


def test_a_network_may_be_cut_to_some_layers() -> None:
    one = load_workload({"network": "resnet18", "only": ["layer1.0.conv1"]})
    assert [layer.name for layer in one.layers] == ["layer1.0.conv1"]
    assert one.macs == 4 * 56 * 56 * 64 * 64 * 9
    with pytest.raises(UnknownNameError, match=r"Did you mean 'layer1\.0\.conv1'"):
        load_workload({"network": "resnet18", "only": ["layer1.0.conv"]})


def test_labels_show_what_is_set() -> None:
    assert workload_label("resnet18") == "resnet18"
    assert workload_label({"network": "resnet18", "batch": 1}) == "resnet18"
    assert workload_label({"network": "resnet18", "batch": 2}) == "resnet18(batch=2)"
    assert workload_label({"layers": [CONV], "name": "mine"}) == "mine"
    assert workload_label("some/folder/model.onnx") == "model"


def test_the_canonical_form_is_json_and_a_valid_workload() -> None:
    for spec in (
        "bert_base",
        {"networks": ["resnet18", {"network": "gpt_decode", "context": 7, "count": 3}]},
        {"layers": [CONV], "only": ["conv_K8_C4_R3_S3_P6_Q5"]},
    ):
        canonical = canonical_workload(spec)
        assert canonical_workload(json.loads(json.dumps(canonical))) == canonical
        assert load_workload(canonical) == load_workload(spec)


@pytest.mark.parametrize(
    ("row", "macs"),
    [
        (CONV, 8 * 4 * 9 * 30),
        ({**CONV, "groups": 4}, 8 * 9 * 30),
        ({"kind": "depthwise", "C": 4, "R": 3, "S": 3, "P": 6, "Q": 5}, 4 * 9 * 30),
        ({"M": 7, "N": 5, "K": 3}, 105),
        ({"M": 7, "N": 5, "K": 3, "groups": 2, "batch": 3}, 630),
        # 224 inputs, 3 zeros on each side, windows of 7 every 2: 112 outputs.
        (
            {"K": 64, "C": 3, "R": 7, "S": 7, "Y": 224, "X": 224, "padding": 3, "stride": 2},
            118_013_952,
        ),
    ],
)
def test_layers_of_ones_own(row: dict[str, Any], macs: int, tmp_path: Path) -> None:
    assert load_workload({"layers": [row]}).macs == macs
    path = tmp_path / "mine.json"
    path.write_text(json.dumps([row, {**row, "count": 2}]))
    assert load_workload(path).macs == 3 * macs
    assert load_workload(str(path)).name == "mine"


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"layers": [CONV]}))
    first = load_workload(path)
    path.write_text(json.dumps({"layers": [{**CONV, "count": 12}]}))
    assert load_workload(path).macs == 12 * first.macs


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({**CONV, "K": 0}, "K is 0; it must be a whole number of at least 1"),
        ({**CONV, "K": "8"}, "K is '8'"),
        ({**CONV, "striide": 2}, "Did you mean 'stride'"),
        ({**CONV, "kind": "dethwise"}, "Did you mean 'depthwise'"),
        ({**CONV, "groups": 3}, "groups is 3; it divides K"),
        ({**CONV, "Y": 4}, r"give either P \(outputs\) or Y \(inputs\)"),
        ({**CONV, "padding": 1}, "padding goes with inputs"),
        ({"M": 3, "N": 4}, "K is missing"),
        ({"K": 8, "C": 4, "R": 9, "S": 1, "Y": 4, "X": 4}, "with padding there are 4 inputs"),
        (7, "must be a mapping"),
    ],
)
def test_layers_that_cannot_be_read_are_refused(row: Any, message: str) -> None:
    with pytest.raises((InvalidValueError, UnknownNameError), match=message):
        load_workload({"layers": [CONV, row]})


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("resnet5", "Did you mean 'resnet50'"),
        (7, "must be a name, a path or a mapping"),
        ({"network": "resnet18", "layers": [CONV]}, "exactly one of the keys"),
        ({"layers": []}, "at least one layer"),
        ({"networks": []}, "at least one workload"),
        ({"layers": [CONV], "count": 0}, "count=0"),
        ({"file": "x.json", "dimensions": {"N": 1}}, "unknown workload key 'dimensions'"),
        ("missing/file.json", "cannot read the workload"),
    ],
)
def test_workloads_that_do_not_exist_are_refused(spec: Any, message: str) -> None:
    with pytest.raises((InvalidValueError, UnknownNameError), match=message):
        load_workload(spec)


def test_a_file_that_is_no_list_of_layers_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text("{nonsense")
    with pytest.raises(InvalidValueError, match="is no JSON"):
        load_workload(path)
    path.write_text('{"layer": []}')
    with pytest.raises(InvalidValueError, match=r"layers is missing; the file has layer$"):
        load_workload(path)
    path.write_text('{"layers": []}')
    with pytest.raises(InvalidValueError, match="at least one layer"):
        load_workload(path)
