"""Files of autotuners are read as data, are environments, and come from datasets again."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import archgym
from archgym.data import Dataset
from archgym.errors import DatasetError, InvalidValueError
from archgym.export.files import export
from archgym.tuning import import_tuning, read_tuning


def entry(block: int, layout: str, time: Any, **more: Any) -> dict[str, Any]:
    times = {"compile_time": 400.0, "benchmark_time": 80.0, "verification_time": 20.0}
    return {"block": block, "layout": layout, "time": time, **times, **more}


CACHE: dict[str, Any] = {
    "device_name": "A4000",
    "kernel_name": "vector_add",
    "tune_params_keys": ["block", "layout"],
    "tune_params": {"block": [64, 32, 128], "layout": ["aos", "soa"]},
    "objective": "time",
    "cache": {
        "32,aos": entry(32, "aos", 3.0, **{"GFLOP/s": 40.0}, nvml_power=50.0),
        "64,aos": entry(64, "aos", 2.0, **{"GFLOP/s": 60.0}, nvml_power=60.0),
        "128,aos": entry(128, "aos", "CompilationFailedConfig"),
        "32,soa": entry(32, "soa", 1.5, **{"GFLOP/s": 80.0}, nvml_power=55.0),
        "64,soa": entry(64, "soa", "InvalidConfig"),
    },
}


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    path = tmp_path / "vector_add.json"
    path.write_text(json.dumps(CACHE))
    return path


def test_a_cache_file_of_kernel_tuner_is_an_environment(cache: Path) -> None:
    env = archgym.make(str(cache))
    assert env.name == "vector_add.json"
    units = {metric.name: metric.unit for metric in env.metrics}
    assert units == {"time_ms": "ms", "gflop_per_s": "GFLOP/s", "nvml_power_w": "W"}
    assert {m.name: m.direction for m in env.metrics}["gflop_per_s"] == "maximize"
    assert env.baseline_design == {"block": 32, "layout": "aos"}
    best = env.evaluate({"block": 32, "layout": "soa"})
    assert best.metrics == {"time_ms": 1.5, "gflop_per_s": 80.0, "nvml_power_w": 55.0}
    assert best.simulation_s == pytest.approx(0.5)
    failed = env.evaluate({"block": 128, "layout": "aos"})
    assert (failed.status, "compile" in failed.reason) == ("failed", True)
    assert env.evaluate({"block": 64, "layout": "soa"}).status == "illegal"
    absent = env.evaluate({"block": 128, "layout": "soa"})
    assert (absent.status, "does not hold" in absent.reason) == ("illegal", True)


def test_a_search_finds_the_best_configuration(cache: Path) -> None:
    env = archgym.make(str(cache))
    result = archgym.make_agent("random", env.design_space, seed=0).search(env, budget=10)
    assert result.best is not None
    assert result.best.metrics["time_ms"] == 1.5


def test_held_parameters_and_spaces_of_users_are_looked_up_too(cache: Path) -> None:
    env = archgym.make(str(cache), fixed={"layout": "soa"})
    assert env.evaluate({"block": 32}).metrics["time_ms"] == 1.5
    space = archgym.space.DesignSpace(
        [
            archgym.space.Categorical("layout", ["soa", "aos"]),
            archgym.space.Ordinal("block", [32, 64]),
        ]
    )
    env = archgym.make(str(cache), space=space)
    assert env.evaluate({"block": 32, "layout": "soa"}).metrics["time_ms"] == 1.5


def test_a_cache_that_was_not_closed_is_read(cache: Path) -> None:
    text = json.dumps(CACHE, indent=0)
    for ending in ("\n}\n}", ",\n}"):
        open_text = text.removesuffix("\n}\n}") + ending.replace("\n}\n}", "").replace("\n}", "")
        cache.write_text(open_text, encoding="utf-8")
        assert len(read_tuning(cache).measured) == 5


def test_what_was_measured_becomes_a_dataset_and_t4_and_comes_back(
    cache: Path, tmp_path: Path
) -> None:
    assert import_tuning(cache, tmp_path / "designs") == 5
    dataset = Dataset(tmp_path / "designs")
    assert dataset.trials()["agent"].to_pylist() == ["kernel_tuner"]
    statuses = dataset.evaluations()["status"].to_pylist()
    assert sorted(statuses) == ["failed", "illegal", "ok", "ok", "ok"]
    assert export(dataset, tmp_path / "all.json") == 5
    written = json.loads((tmp_path / "all.json").read_text())
    first = written["results"][0]
    assert written["schema_version"] == "1.0.0"
    assert first["configuration"] == {"block": 32, "layout": "aos"}
    assert first["objectives"] == ["time_ms"]
    assert first["times"]["runtimes"] == [pytest.approx(500.0)]
    assert {one["invalidity"] for one in written["results"]} == {
        "correct",
        "runtime",
        "constraints",
    }
    again = read_tuning(tmp_path / "all.json")
    assert again.space == read_tuning(cache).space
    assert again.metrics[0].name == "time_ms"
    both = {json.dumps(one.design, sort_keys=True): one.metrics for one in again.measured}
    for one in read_tuning(cache).measured:
        assert both[json.dumps(one.design, sort_keys=True)] == one.metrics


def test_conditions_survive_t4(tmp_path: Path) -> None:
    with archgym.make("Conformance-v0", record=tmp_path / "designs") as env:
        env.evaluate_batch(env.design_space.sample(12, np.random.default_rng(0)))
    assert export(Dataset(tmp_path / "designs"), tmp_path / "t.json", "t4", indent=True) == 12
    tuning = read_tuning(tmp_path / "t.json")
    assert tuning.space == env.design_space
    again = archgym.make(str(tmp_path / "t.json"))
    (one, *_) = (one for one in tuning.measured if one.metrics)
    found = again.evaluate(one.design).metrics
    assert {name: value for name, value in found.items() if value is not None} == one.metrics


def test_metrics_of_our_own_export_come_back_as_they_were(tmp_path: Path) -> None:
    with archgym.make("Conformance-v0", record=tmp_path / "designs") as env:
        env.evaluate_batch(env.design_space.sample(12, np.random.default_rng(0)))
    export(Dataset(tmp_path / "designs"), tmp_path / "t.json", "t4")
    metrics = {metric.name: metric for metric in read_tuning(tmp_path / "t.json").metrics}
    assert metrics["hit_rate"].unit == ""
    assert metrics["hit_rate"].direction == "maximize"
    assert list(metrics.values()) == list(env.metrics)


def test_no_unit_is_made_up_where_a_name_needs_none(tmp_path: Path) -> None:
    result = {
        "configuration": {"block": 32},
        "measurements": [{"name": "hit_rate", "value": 0.5, "unit": ""}],
        "objectives": ["hit_rate"],
    }
    (tmp_path / "t.json").write_text(json.dumps({"results": [result]}))
    (metric,) = read_tuning(tmp_path / "t.json").metrics
    assert (metric.name, metric.unit) == ("hit_rate", "")


def test_gzipped_results_and_the_unit_of_their_times(tmp_path: Path) -> None:
    results = [
        {
            "configuration": {"block": block},
            "measurements": [{"name": "time", "value": 16 / block, "unit": ""}],
            "objectives": ["time"],
        }
        for block in (32, 64)
    ]
    data = {"metadata": {"timeunit": "miliseconds"}, "results": results}
    path = tmp_path / "t.json.gz"
    path.write_bytes(gzip.compress(json.dumps(data).encode()))
    env = archgym.make(str(path))
    assert env.evaluate({"block": 32}).metrics == {"time_ms": 0.5}


def test_results_of_others_without_our_notes_are_read(tmp_path: Path) -> None:
    measurement = {"name": "Kernel time", "value": 2.5, "unit": "us"}
    result = {
        "configuration": {"TILE-X": 8, "unroll": True},
        "times": {"compilation_time": 100, "runtimes": [2.5], "validation": 1},
        "invalidity": "correct",
        "correctness": 1,
        "objectives": ["Kernel time"],
        "measurements": [measurement],
    }
    other = {**result, "configuration": {"TILE-X": 16, "unroll": False}, "invalidity": "timeout"}
    path = tmp_path / "t4.json"
    path.write_text(json.dumps({"schema_version": "1.0.0", "results": [result, other]}))
    env = archgym.make(str(path))
    assert env.evaluate({"TILE_X": 8, "unroll": True}).metrics == {"Kernel_time_us": 2.5}
    assert env.evaluate({"TILE_X": 16, "unroll": False}).status == "timeout"


HOSTILE: dict[str, Any] = {
    "text": "no JSON",
    "a list": "[]",
    "neither": "{}",
    "nested": "[" * 100_000,
    "null bytes": "\0" * 100,
    "cache is a list": json.dumps({"cache": [], "tune_params": {}}),
    "no configuration": json.dumps({"cache": {}, "tune_params": {"a": [1]}}),
    "a number as entry": json.dumps({"cache": {"1": 3}, "tune_params": {"a": [1]}}),
    "an object as value": json.dumps(
        {"cache": {"1": {"a": {"x": 1}, "time": 1.0}}, "tune_params": {"a": [{"x": 1}]}}
    ),
    "infinite": '{"tune_params": {"a": [1]}, "cache": {"1": {"a": 1, "time": 1e999}}}',
    "NaN": '{"tune_params": {"a": [NaN]}, "cache": {"1": {"a": NaN, "time": 1.0}}}',
    "huge number": '{"tune_params": {"a": [1]}, "cache": {"1": {"a": 1, "time": 1'
    + "0" * 5000
    + "}}}",
    "value outside": json.dumps({"cache": {"9": {"a": 9, "time": 1.0}}, "tune_params": {"a": [1]}}),
    "names alike": json.dumps(
        {
            "cache": {"1,1": {"a-b": 1, "a b": 1, "time": 1.0}},
            "tune_params": {"a-b": [1], "a b": [1]},
        }
    ),
    "results is text": json.dumps({"results": "x"}),
    "measurement is text": json.dumps(
        {"results": [{"configuration": {"a": 1}, "measurements": "x"}]}
    ),
    "odd invalidity": json.dumps({"results": [{"configuration": {"a": 1}, "invalidity": "maybe"}]}),
    "parameters differ": json.dumps(
        {
            "results": [
                {
                    "configuration": {"a": 1},
                    "measurements": [{"name": "t", "value": 1, "unit": "s"}],
                },
                {"configuration": {"b": 1}},
            ]
        }
    ),
    "a space that is none": json.dumps(
        {
            "metadata": {"archgym": {"design_space": {"parameters": 3}}},
            "results": [{"configuration": {"a": 1}}],
        }
    ),
    "many values": json.dumps(
        {
            "tune_params": {"a": list(range(5000))},
            "cache": {"1": {"a": 1, "time": 1.0}},
        }
    ),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_files_are_refused_with_their_name(text: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.json"
    path.write_text(text)
    with pytest.raises(InvalidValueError, match=r"odd\.json"):
        read_tuning(path)


def test_a_name_that_is_no_text_is_escaped(tmp_path: Path) -> None:
    (tmp_path / "sum.json").write_text(json.dumps({**CACHE, "kernel_name": "\udcff"}))
    made = archgym.make(str(tmp_path / "sum.json"))
    assert "\\udcff" in (type(made).__doc__ or "")


def test_files_that_are_not_there_or_no_files(tmp_path: Path) -> None:
    (tmp_path / "sum.json").write_text(json.dumps(CACHE))
    with pytest.raises(InvalidValueError, match=r"Did you mean .*sum\.json"):
        archgym.make(str(tmp_path / "summ.json"))
    with pytest.raises(InvalidValueError, match="folder"):
        read_tuning(tmp_path)


def test_a_dataset_of_something_else_takes_no_import(cache: Path, tmp_path: Path) -> None:
    with archgym.make("Conformance-v0", record=tmp_path / "designs") as env:
        env.evaluate(env.baseline_design)
    with pytest.raises(DatasetError, match="cannot take"):
        import_tuning(cache, tmp_path / "designs")


def test_several_problems_are_no_t4(tmp_path: Path) -> None:
    for objective in ("minimize energy_pj", "minimize access_ns"):
        with archgym.make(
            "Conformance-v0", objective=objective, record=tmp_path / "designs"
        ) as env:
            env.evaluate(env.baseline_design)
    with pytest.raises(InvalidValueError, match="one problem"):
        export(Dataset(tmp_path / "designs"), tmp_path / "t.json", "t4")


def t4_result(block: Any, time: float, unit: str = "ms") -> dict[str, Any]:
    measured = [{"name": "time", "value": time, "unit": unit}]
    return {"configuration": {"block": block}, "measurements": measured, "objectives": ["time"]}


def test_a_measurement_in_two_units_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mixed.json"
    path.write_text(json.dumps({"results": [t4_result(1, 2.0), t4_result(2, 0.001, "s")]}))
    with pytest.raises(InvalidValueError, match="'time' is in 'ms' and in 's'"):
        read_tuning(path)


def test_a_configuration_with_two_results_is_said(tmp_path: Path) -> None:
    path = tmp_path / "twice.json"
    results = [t4_result(1, 2.0), t4_result(2, 3.0), t4_result(2, 3.0), t4_result(1, 5.0)]
    path.write_text(json.dumps({"results": results}))
    assert read_tuning(path).contradictions == 1  # the second one is only repeated
    (said,) = archgym.make(str(path)).warnings
    assert said.startswith("1 configuration stands in the file several times with different")
    with pytest.warns(UserWarning, match="the last one counts"):
        assert import_tuning(path, tmp_path / "designs") == 2
    assert Dataset(tmp_path / "designs").evaluations()["metric.time_ms"].to_pylist() == [5.0, 3.0]
    path.write_text(json.dumps({"results": results[:3]}))
    assert archgym.make(str(path)).warnings == []


def test_measurements_of_the_wrong_form_are_named(tmp_path: Path) -> None:
    path = tmp_path / "wrong.json"
    for wrong in ("x", [1], None):
        entry = {**t4_result(2, 3.0), "measurements": wrong}
        path.write_text(json.dumps({"results": [t4_result(1, 2.0), entry]}))
        with pytest.raises(InvalidValueError, match=r"results\[1\]\.measurements cannot be"):
            read_tuning(path)
    path.write_text("[" * 1_000_000)
    with pytest.raises(InvalidValueError, match="nested too deeply"):
        read_tuning(path)


def test_measurements_that_read_alike_are_named(cache: Path) -> None:
    data = {**CACHE, "cache": {k: {**e, "time_ms": 7.0} for k, e in CACHE["cache"].items()}}
    cache.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(InvalidValueError, match="'time' and 'time_ms' are 'time_ms'"):
        read_tuning(cache)


def test_a_measurement_that_is_missing_somewhere_does_not_fail_the_configuration(
    cache: Path, tmp_path: Path
) -> None:
    first = {k: v for k, v in CACHE["cache"]["32,aos"].items() if k != "nvml_power"}
    cache.write_text(
        json.dumps({**CACHE, "cache": {**CACHE["cache"], "32,aos": first}}), encoding="utf-8"
    )
    env = archgym.make(str(cache))
    assert env.baseline_design == {"block": 64, "layout": "aos"}
    metrics = env.evaluate({"block": 32, "layout": "aos"}).metrics
    assert (metrics["time_ms"], metrics["nvml_power_w"]) == (3.0, None)
    assert import_tuning(cache, tmp_path / "designs") == 5
    power = archgym.make(str(cache), objective="minimize nvml_power_w")
    assert power.evaluate({"block": 32, "layout": "aos"}).status == "failed"


def test_values_of_several_kinds_are_imported(tmp_path: Path) -> None:
    path = tmp_path / "kinds.json"
    blocks = [1, True, "auto"]
    path.write_text(json.dumps({"results": [t4_result(b, 2.0) for b in blocks]}))
    assert import_tuning(path, tmp_path / "designs") == 3
    assert [one.design["block"] for one in read_tuning(path).measured] == blocks
