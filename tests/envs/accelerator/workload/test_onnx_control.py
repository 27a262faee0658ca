"""ONNX models with control flow, and with sizes that exporters leave open."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from archgym.envs.accelerator.workload.layer import Network
from archgym.envs.accelerator.workload.workload import load_workload
from archgym.errors import InvalidValueError, UnknownNameError

onnx = pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")
import onnx.helper as oh  # noqa: E402

FLOAT, INT64, BOOL = 1, 7, 9


def body(nodes: list[Any], output: str, inputs: list[Any] | None = None, more: Any = ()) -> Any:
    shown = [oh.make_tensor_value_info(output, FLOAT, [4, 8])]
    return oh.make_graph(nodes, "inner", inputs or [], [*more, *shown])


def product(name: str, out: str, weights: str = "w") -> Any:
    return oh.make_node("MatMul", ["x", weights], [out], name=name)


def save(
    path: Path,
    nodes: list[Any],
    constants: Mapping[str, Any] | None = None,
    inputs: Mapping[str, tuple[int, Any]] | None = None,
) -> Path:
    given = {"x": (FLOAT, [4, 8]), **(inputs or {})}
    initial = {"w": np.zeros((8, 8), np.float32), "v": np.zeros((8, 8), np.float32)}
    graph = oh.make_graph(
        nodes,
        "test",
        [oh.make_tensor_value_info(name, *kind) for name, kind in given.items()],
        [oh.make_tensor_value_info("y", FLOAT, None)],
        [
            onnx.numpy_helper.from_array(np.asarray(value), name)
            for name, value in {**initial, **(constants or {})}.items()
        ],
    )
    onnx.save(oh.make_model(graph), path)
    return path


def counts(network: Network) -> dict[str, int]:
    return {layer.name: count for layer, count in zip(network.layers, network.counts, strict=True)}


def branches(then: list[Any], other: list[Any], name: str = "choose") -> Any:
    return oh.make_node(
        "If",
        ["c"],
        ["y"],
        name=name,
        then_branch=body(then, then[-1].output[0]),
        else_branch=body(other, other[-1].output[0]),
    )


TWO = [oh.make_node("MatMul", ["x", "w"], ["t0"], name="p0"),
       oh.make_node("MatMul", ["t0", "w"], ["t"], name="p1")]  # fmt: skip
ONE = [product("q", "e")]


@pytest.mark.parametrize(("truth", "times"), [(True, 2), (False, 1)])
def test_a_constant_condition_decides(tmp_path: Path, truth: bool, times: int) -> None:
    path = save(tmp_path / "m.onnx", [branches(TWO, ONE)], {"c": np.array(truth)})
    assert sum(load_workload(path).counts) == times


def test_branches_that_differ_are_named_and_chosen(tmp_path: Path) -> None:
    path = save(tmp_path / "m.onnx", [branches(TWO, ONE)], inputs={"c": (BOOL, [])})
    with pytest.raises(InvalidValueError, match="If 'choose': its branches run different layers"):
        load_workload(path)
    with pytest.raises(InvalidValueError, match=r"'runs': \{'choose': 'then'\}"):
        load_workload(path)
    assert counts(load_workload({"file": path, "runs": {"choose": "then"}})) == {"choose/p0": 2}
    assert counts(load_workload({"file": path, "runs": {"choose": "else"}})) == {"choose/q": 1}
    with pytest.raises(InvalidValueError, match="no branch"):
        load_workload({"file": path, "runs": {"choose": 3}})
    with pytest.raises(UnknownNameError, match="Did you mean 'choose'"):
        load_workload({"file": path, "runs": {"choos": "then", "choose": "then"}})


def test_branches_that_do_the_same_need_nothing(tmp_path: Path) -> None:
    alike = branches([product("a", "t")], [product("b", "e", "v")])
    path = save(tmp_path / "m.onnx", [alike], inputs={"c": (BOOL, [])})
    assert sum(load_workload(path).counts) == 1
    idle = branches([oh.make_node("Relu", ["x"], ["t"])], [oh.make_node("Abs", ["x"], ["e"])])
    nodes = [product("before", "z"), idle]
    assert counts(load_workload(save(tmp_path / "n.onnx", nodes, inputs={"c": (BOOL, [])}))) == {
        "before": 1
    }


def loop(passes: str, ends: bool = False) -> Any:
    condition = (
        oh.make_node("Less", ["i", "most"], ["goes"])
        if ends
        else oh.make_node("Identity", ["on"], ["goes"])
    )
    inputs = [
        oh.make_tensor_value_info("i", INT64, []),
        oh.make_tensor_value_info("on", BOOL, []),
        oh.make_tensor_value_info("h", FLOAT, [4, 8]),
    ]
    inner = body(
        [condition, oh.make_node("MatMul", ["h", "w"], ["h2"], name="step")],
        "h2",
        inputs,
        [oh.make_tensor_value_info("goes", BOOL, [])],
    )
    return oh.make_node("Loop", [passes, "", "x"], ["y"], name="again", body=inner)


def test_a_loop_runs_as_often_as_the_model_says(tmp_path: Path) -> None:
    path = save(tmp_path / "m.onnx", [loop("n")], {"n": np.array(12, np.int64)})
    assert counts(load_workload(path)) == {"again/step": 12}
    said = load_workload({"file": path, "runs": {"again": 3}})
    assert counts(said) == {"again/step": 3}


@pytest.mark.parametrize(("passes", "times"), [(0, 0), (-3, 0)])
def test_a_loop_that_does_not_run(tmp_path: Path, passes: int, times: int) -> None:
    nodes = [product("before", "z"), loop("n")]
    path = save(tmp_path / "m.onnx", nodes, {"n": np.array(passes, np.int64)})
    assert counts(load_workload(path)) == {"before": 1}


def test_more_passes_than_anything_runs_are_refused(tmp_path: Path) -> None:
    path = save(tmp_path / "m.onnx", [loop("n")], {"n": np.array(1 << 62, np.int64)})
    with pytest.raises(InvalidValueError, match="at most 1,000,000,000"):
        load_workload(path)


@pytest.mark.parametrize("ends", [False, True])
def test_a_loop_whose_passes_are_open_is_named(tmp_path: Path, ends: bool) -> None:
    constants = {"most": np.array(5, np.int64), **({"n": np.array(9, np.int64)} if ends else {})}
    inputs: dict[str, Any] = {} if ends else {"n": (INT64, [])}
    path = save(tmp_path / "m.onnx", [loop("n", ends)], constants, inputs)
    with pytest.raises(InvalidValueError, match=r"Loop 'again': .*'runs': {'again': 10}"):
        load_workload(path)
    assert counts(load_workload({"file": path, "runs": {"again": 7}})) == {"again/step": 7}
    with pytest.raises(InvalidValueError, match="number of passes"):
        load_workload({"file": path, "runs": {"again": "then"}})


def test_a_scan_passes_once_for_each_element(tmp_path: Path) -> None:
    inner = body(
        [oh.make_node("MatMul", ["s", "w"], ["s2"], name="cell"),
         oh.make_node("Identity", ["e"], ["o"])],
        "o",
        [oh.make_tensor_value_info("s", FLOAT, [4, 8]), oh.make_tensor_value_info("e", FLOAT, [8])],
        [oh.make_tensor_value_info("s2", FLOAT, [4, 8])],
    )  # fmt: skip
    node = oh.make_node(
        "Scan", ["x", "long"], ["last", "y"], name="scan", body=inner, num_scan_inputs=1
    )
    path = save(tmp_path / "m.onnx", [node], inputs={"long": (FLOAT, [20, 8])})
    assert counts(load_workload(path)) == {"scan/cell": 20}


def test_what_is_inside_of_what_is_inside(tmp_path: Path) -> None:
    inner = branches(TWO, ONE, name="deep")
    outer = oh.make_node(
        "If",
        ["c"],
        ["y"],
        name="outer",
        then_branch=body([inner], "y"),
        else_branch=body([oh.make_node("Relu", ["x"], ["r"])], "r"),
    )
    path = save(tmp_path / "m.onnx", [outer], inputs={"c": (BOOL, [])})
    with pytest.raises(InvalidValueError, match="If 'outer/deep': its branches"):
        load_workload(path)
    found = load_workload({"file": path, "runs": {"outer": "then", "outer/deep": "else"}})
    assert counts(found) == {"outer/deep/q": 1}


@pytest.mark.parametrize("size", [0, -1])
def test_sizes_of_zero_or_less_are_not_known(tmp_path: Path, size: int) -> None:
    graph = oh.make_graph(
        [oh.make_node("MatMul", ["x", "w"], ["y"], name="p")],
        "test",
        [oh.make_tensor_value_info("x", FLOAT, [size, 8])],
        [oh.make_tensor_value_info("y", FLOAT, [size, 8])],
        [onnx.numpy_helper.from_array(np.zeros((8, 8), np.float32), "w")],
    )
    path = tmp_path / "m.onnx"
    onnx.save(oh.make_model(graph), path)
    with pytest.raises(InvalidValueError, match="'x:0'"):
        load_workload(path)
    (layer,) = load_workload({"file": path, "dimensions": {"x:0": 5}}).layers
    assert layer.gemm == (5, 8, 8)


@pytest.mark.parametrize("runs", [3, {"a": -1}, {"a": "both"}, {"a": True}, {"a": [1]}])
def test_bad_settings(tmp_path: Path, runs: Any) -> None:
    with pytest.raises(InvalidValueError, match="must map names of operators"):
        load_workload({"file": str(tmp_path / "m.onnx"), "runs": runs})
