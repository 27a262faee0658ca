"""ONNX models as workloads, each built here."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from archgym.envs.accelerator.workload.layer import Layer, Network
from archgym.envs.accelerator.workload.workload import load_workload, workload_label
from archgym.errors import InvalidValueError, UnknownNameError

onnx = pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")
import onnx.helper as oh  # noqa: E402

FLOAT = 1
Shape = Sequence[int | str | None]


def model(
    path: Path,
    nodes: list[Any],
    inputs: dict[str, Shape],
    weights: Mapping[str, tuple[int, ...]] | None = None,
    output: str = "y",
    **extra: Any,
) -> Path:
    """Writes a model of zeros."""
    import numpy as np

    graph = oh.make_graph(
        nodes,
        "test",
        [oh.make_tensor_value_info(name, FLOAT, shape) for name, shape in inputs.items()],
        [oh.make_tensor_value_info(output, FLOAT, None)],
        [
            onnx.numpy_helper.from_array(np.zeros(shape, np.float32), name)
            for name, shape in (weights or {}).items()
        ],
    )
    onnx.save(oh.make_model(graph, **extra), path)
    return path


def only(network: Network) -> Layer:
    (layer,) = network.layers
    return layer


def conv(
    tmp_path: Path, x: Shape, w: tuple[int, ...], op: str = "Conv", **attributes: Any
) -> Network:
    node = oh.make_node(op, ["x", "w"], ["y"], name="c", **attributes)
    return load_workload(model(tmp_path / "m.onnx", [node], {"x": x}, {"w": w}))


def test_a_small_network_has_the_layers_of_its_graph(tmp_path: Path) -> None:
    nodes = [
        oh.make_node("Conv", ["x", "w1"], ["a"], strides=[2, 2], pads=[3, 3, 3, 3], name="stem"),
        oh.make_node("Relu", ["a"], ["b"]),
        oh.make_node("MaxPool", ["b"], ["c"], kernel_shape=[2, 2], strides=[2, 2]),
        oh.make_node("Conv", ["c", "w2"], ["d"], group=16, pads=[1, 1, 1, 1], name="dw"),
        oh.make_node("GlobalAveragePool", ["d"], ["e"]),
        oh.make_node("Flatten", ["e"], ["f"]),
        oh.make_node("Gemm", ["f", "w3", "bias"], ["y"], transB=1, name="fc"),
    ]
    weights = {"w1": (16, 3, 7, 7), "w2": (16, 1, 3, 3), "w3": (10, 16), "bias": (10,)}
    path = model(tmp_path / "small.onnx", nodes, {"x": (1, 3, 64, 64)}, weights)
    assert load_workload(path).layers == (
        Layer("stem", "conv", K=16, C=3, R=7, S=7, P=32, Q=32, stride=2),
        Layer("dw", "depthwise", K=16, C=16, R=3, S=3, P=16, Q=16, groups=16),
        Layer("fc", "gemm", K=10, C=16, P=1),
    )
    assert workload_label(path) == "small"


def test_equal_layers_are_counted(tmp_path: Path) -> None:
    names = ["x", "a", "b", "y"]
    nodes = [
        oh.make_node("Conv", [names[i], "w"], [names[i + 1]], pads=[1] * 4, name=f"c{i}")
        for i in range(3)
    ]
    network = load_workload(
        model(tmp_path / "m.onnx", nodes, {"x": (1, 8, 9, 9)}, {"w": (8, 8, 3, 3)})
    )
    assert (only(network).name, network.counts) == ("c0", (3,))


def test_symbolic_dimensions_are_given_in_the_workload(tmp_path: Path) -> None:
    node = oh.make_node("MatMul", ["x", "w"], ["y"])
    path = model(tmp_path / "m.onnx", [node], {"x": ("batch", None, 64)}, {"w": (64, 32)})
    with pytest.raises(InvalidValueError, match=r"'batch' \(input 'x', axis 0\), 'x:1'"):
        load_workload(path)
    sizes = {"batch": 2, "x:1": 10}
    assert only(load_workload({"file": path, "dimensions": sizes})).gemm == (20, 32, 64)
    with pytest.raises(UnknownNameError, match="Did you mean 'batch'"):
        load_workload({"file": path, "dimensions": {"batsh": 2, **sizes}})


@pytest.mark.parametrize(
    ("x", "w", "attributes", "macs"),
    [
        ((1, 4, 10), (6, 4, 3), {}, 6 * 4 * 3 * 8),  # one dimension
        ((2, 4, 10, 12), (6, 4, 3, 3), {"strides": [2, 1]}, 2 * 6 * 4 * 9 * 4 * 10),
        ((1, 4, 5, 6, 7), (6, 4, 3, 3, 3), {}, 6 * 4 * 27 * 3 * 4 * 5),  # three dimensions
        ((1, 4, 9, 9), (8, 2, 3, 3), {"group": 2, "dilations": [2, 2]}, 8 * 2 * 9 * 25),
        ((1, 4, 9, 3), (6, 4, 1, 3), {"strides": [3, 3]}, 6 * 4 * 3 * 3),  # one column
    ],
)
def test_convolutions_of_every_form_keep_their_macs(
    tmp_path: Path, x: Shape, w: tuple[int, ...], attributes: dict[str, Any], macs: int
) -> None:
    network = conv(tmp_path, x, w, **attributes)
    assert network.macs == macs
    assert only(network).weight_footprint == math.prod(w)


def test_a_window_that_slides_along_one_axis_only_keeps_its_stride(tmp_path: Path) -> None:
    layer = only(conv(tmp_path, (1, 4, 11, 3), (6, 4, 3, 3), strides=[4, 1]))
    assert (layer.kind, layer.P, layer.Q, layer.stride) == ("conv", 3, 1, 4)


def test_a_transposed_convolution_multiplies_once_for_each_input(tmp_path: Path) -> None:
    node = oh.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2], group=2)
    path = model(tmp_path / "m.onnx", [node], {"x": (1, 8, 5, 5)}, {"w": (8, 3, 4, 4)})
    assert load_workload(path).macs == 25 * 8 * 3 * 16


@pytest.mark.parametrize(
    ("a", "b", "gemm", "groups"),
    [
        ((3, 7, 16), (16, 5), (21, 5, 16), 1),
        ((2, 12, 7, 16), (2, 12, 16, 9), (7, 9, 16), 24),
        ((7, 16), (4, 16, 9), (36, 7, 16), 1),
        ((4, 1, 7, 16), (3, 16, 9), (7, 9, 16), 12),
        ((16,), (16, 5), (1, 5, 16), 1),
    ],
)
def test_matrix_products_broadcast_as_the_standard_says(
    tmp_path: Path, a: Shape, b: Shape, gemm: tuple[int, int, int], groups: int
) -> None:
    node = oh.make_node("MatMul", ["a", "b"], ["y"])
    layer = only(load_workload(model(tmp_path / "m.onnx", [node], {"a": a, "b": b})))
    assert (layer.gemm, layer.groups) == (gemm, groups)


@pytest.mark.parametrize(
    ("equation", "a", "b", "macs"),
    [
        ("bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5), 2 * 3 * 4 * 6 * 5),
        ("ij,jk->ki", (2, 3), (3, 4), 24),
        ("bi,bi->b", (2, 3), (2, 3), 6),
    ],
)
def test_einsum_contracts_what_the_result_does_not_name(
    tmp_path: Path, equation: str, a: Shape, b: Shape, macs: int
) -> None:
    node = oh.make_node("Einsum", ["a", "b"], ["y"], equation=equation)
    assert load_workload(model(tmp_path / "m.onnx", [node], {"a": a, "b": b})).macs == macs


def test_recurrent_layers_run_once_for_each_step(tmp_path: Path) -> None:
    node = oh.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=8, direction="bidirectional")
    weights = {"w": (2, 32, 5), "r": (2, 32, 8)}
    network = load_workload(model(tmp_path / "m.onnx", [node], {"x": (7, 3, 5)}, weights))
    assert network.macs == 2 * (7 * 3 * 32 * 5 + 7 * 3 * 32 * 8)
    assert network.counts == (2, 14)


def test_attention_is_two_products_for_each_key_head(tmp_path: Path) -> None:
    node = oh.make_node(
        "Attention", ["q", "k", "v"], ["y"], q_num_heads=8, kv_num_heads=2, name="att"
    )
    shapes: dict[str, Shape] = {"q": (3, 10, 64), "k": (3, 20, 16), "v": (3, 20, 16)}
    path = model(tmp_path / "m.onnx", [node], shapes, opset_imports=[oh.make_opsetid("", 23)])
    network = load_workload(path)
    assert network.macs == 2 * 3 * 8 * 10 * 20 * 8
    assert [layer.groups for layer in network.layers] == [6, 6]


def test_quantised_layers_are_layers(tmp_path: Path) -> None:
    node = oh.make_node(
        "QLinearConv", ["x", "s", "z", "w", "s", "z", "s", "z"], ["y"], name="q", pads=[1] * 4
    )
    zero = oh.make_tensor("z", 2, [], [0])
    scale = oh.make_tensor("s", FLOAT, [], [1.0])
    w = oh.make_tensor("w", 2, [8, 4, 3, 3], bytes(288), raw=True)
    graph = oh.make_graph(
        [node],
        "test",
        [oh.make_tensor_value_info("x", 2, (1, 4, 6, 6))],
        [oh.make_tensor_value_info("y", 2, None)],
        [zero, scale, w],
    )
    onnx.save(oh.make_model(graph), tmp_path / "m.onnx")
    layer = only(load_workload(tmp_path / "m.onnx"))
    assert layer == Layer("q", "conv", K=8, C=4, R=3, S=3, P=6, Q=6)


def test_shapes_that_constants_decide_are_followed(tmp_path: Path) -> None:
    shape = onnx.numpy_helper.from_array(__import__("numpy").array([2, 12, 8]), "s")
    nodes = [
        oh.make_node("Constant", [], ["shape"], value=shape),
        oh.make_node("Reshape", ["x", "shape"], ["a"]),
        oh.make_node("MatMul", ["a", "w"], ["y"]),
    ]
    path = model(tmp_path / "m.onnx", nodes, {"x": (24, 8)}, {"w": (8, 3)})
    assert load_workload(path).macs == 24 * 8 * 3


def test_functions_are_expanded(tmp_path: Path) -> None:
    inner = oh.make_function(
        "mine",
        "Block",
        ["a", "w"],
        ["b"],
        [oh.make_node("MatMul", ["a", "w"], ["h"]), oh.make_node("Relu", ["h"], ["b"])],
        [oh.make_opsetid("", 18)],
    )
    node = oh.make_node("Block", ["x", "w"], ["y"], domain="mine")
    path = model(
        tmp_path / "m.onnx",
        [node],
        {"x": (6, 4)},
        {"w": (4, 5)},
        functions=[inner],
        opset_imports=[oh.make_opsetid("", 18), oh.make_opsetid("mine", 1)],
    )
    assert load_workload(path).macs == 6 * 4 * 5


def test_operators_that_we_cannot_convert_are_named(tmp_path: Path) -> None:
    nodes = [
        oh.make_node("MatMul", ["x", "w"], ["a"]),
        oh.make_node("Mystery", ["a"], ["b"], domain="acme", name="m1"),
        oh.make_node("DFT", ["b"], ["y"], name="spectrum"),
    ]
    sets = [oh.make_opsetid("", 18), oh.make_opsetid("acme", 1)]
    path = model(tmp_path / "m.onnx", nodes, {"x": (6, 4)}, {"w": (4, 5)}, opset_imports=sets)
    with pytest.raises(InvalidValueError, match=r"acme:Mystery \(1, first 'm1'\); DFT .*ignore="):
        load_workload(path)
    network = load_workload({"file": path, "ignore": ["Mystery", "DFT"]})
    assert network.macs == 6 * 4 * 5


def test_weights_beside_the_model_are_not_opened(tmp_path: Path) -> None:
    path = model(
        tmp_path / "m.onnx",
        [oh.make_node("MatMul", ["x", "w"], ["y"])],
        {"x": (6, 400)},
        {"w": (400, 500)},
    )
    loaded = onnx.load(path)
    onnx.save(loaded, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    (tmp_path / "weights.bin").unlink()
    assert load_workload(path).macs == 6 * 400 * 500


def test_files_that_are_no_models_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    for content in (b"", b"\x00garbage" * 50, b"PK\x03\x04"):
        path.write_bytes(content)
        with pytest.raises(InvalidValueError, match="is no ONNX model"):
            load_workload(path)
    with pytest.raises(InvalidValueError, match="cannot read the model"):
        load_workload(tmp_path / "missing.onnx")


def test_a_model_without_layers_is_refused(tmp_path: Path) -> None:
    path = model(tmp_path / "m.onnx", [oh.make_node("Relu", ["x"], ["y"])], {"x": (1, 4)})
    with pytest.raises(InvalidValueError, match="no convolution and no matrix product"):
        load_workload(path)


def test_a_model_above_the_size_limit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("archgym.envs.accelerator.workload.onnx_file.FILE_LIMIT_BYTES", 100)
    path = model(
        tmp_path / "m.onnx",
        [oh.make_node("MatMul", ["x", "w"], ["y"])],
        {"x": (6, 40)},
        {"w": (40, 50)},
    )
    with pytest.raises(InvalidValueError, match="limit of 100 bytes; export it"):
        load_workload(path)


def nested_functions(path: Path, depth: int, last: str) -> Path:
    """A model whose function calls another one twice, and so on; the innermost one ``last``."""
    opsets = [oh.make_opsetid("", 17), oh.make_opsetid("own", 1)]
    functions = []
    for level in range(depth):
        called = f"f{level + 1}" if level < depth - 1 else last
        domain = "own" if called.startswith("f") else ""
        nodes = [
            oh.make_node(called, ["x"], ["t"], domain=domain),
            oh.make_node(called, ["t"], ["y"], domain=domain),
        ]
        functions.append(oh.make_function("own", f"f{level}", ["x"], ["y"], nodes, opsets))
    nodes = [
        oh.make_node("f0", ["x"], ["t"], domain="own"),
        oh.make_node("MatMul", ["t", "w"], ["y"]),
    ]
    extra: dict[str, Any] = {"functions": functions, "opset_imports": opsets}
    return model(path, nodes, {"x": (4, 4)}, {"w": (4, 4)}, **extra)


def test_functions_in_functions_are_counted_before_they_are_expanded(tmp_path: Path) -> None:
    """Three kilobytes that stand for a trillion operators."""
    path = nested_functions(tmp_path / "m.onnx", 40, "Relu")
    assert path.stat().st_size < 4096
    with pytest.raises(InvalidValueError, match="operators, at most 1000000 are read"):
        load_workload(path)
    assert only(load_workload(nested_functions(tmp_path / "m.onnx", 4, "Relu"))).K == 4


def test_a_function_that_calls_itself_is_refused(tmp_path: Path) -> None:
    path = nested_functions(tmp_path / "m.onnx", 2, "f0")
    with pytest.raises(InvalidValueError, match="'f0' calls itself"):
        load_workload(path)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "m.onnx")
    with pytest.raises(InvalidValueError, match="a pipe or a device"):
        load_workload(tmp_path / "m.onnx")


@pytest.mark.parametrize(
    ("op", "x", "w", "attributes"),
    [
        ("Conv", (1, 3, 8, 8), (16, 4, 3, 3), {}),
        ("ConvTranspose", (1, 3, 8, 8), (4, 16, 3, 3), {}),
        ("Gemm", (1, 128), (64, 10), {}),
        ("Gemm", (1, 128), (10, 64), {"transB": 1}),
        ("MatMul", (4, 128), (64, 10), {}),
        ("Einsum", (4, 128), (64, 10), {"equation": "ab,bc->ac"}),
        ("Einsum", (4, 128), (64, 10), {"equation": "ab,bcd->acd"}),
    ],
)
def test_layers_that_do_not_fit_each_other_are_refused(
    tmp_path: Path, op: str, x: Shape, w: tuple[int, ...], attributes: dict[str, Any]
) -> None:
    with pytest.raises(InvalidValueError) as error:
        conv(tmp_path, x, w, op, **attributes)
    text = str(error.value)
    assert "m.onnx" in text
    assert f"{op} 'c': 'w' of shape {w} does not fit 'x' of shape {x}" in text


@pytest.mark.parametrize("heads", [1, 8])
def test_einsum_repeats_what_is_one(tmp_path: Path, heads: int) -> None:
    node = oh.make_node("Einsum", ["q", "k"], ["y"], equation="bhqd,bhkd->bhqk")
    inputs: dict[str, Shape] = {"q": (2, 8, 9, 64), "k": (2, heads, 7, 64)}
    layer = only(load_workload(model(tmp_path / "m.onnx", [node], inputs)))
    assert (layer.macs, layer.groups) == (2 * 8 * 9 * 7 * 64, 16)
