"""Environments declared in YAML: what a design gives, and under what it is kept."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import archgym
from archgym.declared import DeclaredEnvironment
from archgym.errors import InvalidValueError, UnknownNameError
from tests.declared.conftest import QUEUE, Write


def evaluated(path: str, /, fidelity: float = 1.0, **changes: Any) -> Any:
    env = archgym.make(path)
    return env.evaluate({**env.baseline_design, **changes}, fidelity)


def test_metrics_of_a_design(write: Write) -> None:
    outcome = evaluated(write(), depth=8, width=2)
    assert outcome.status == "ok"
    assert outcome.metrics == {"wait_ns": 10.3, "area_um2": 320.0, "cost_count": 3296.0}


def test_the_design_space_is_as_declared(write: Write) -> None:
    env = archgym.make(write())
    assert env.baseline_design == {"depth": 4, "width": 1, "policy": "fifo", "credits": 2}
    assert env.design_space.raw_cardinality == 16 * 3 * 2 * 4
    assert env.evaluate({"depth": 16, "width": 4, "policy": "lifo"}).reason.startswith(
        "rule 'small'"
    )
    assert "credits" not in env.design_space.canonical(
        {"depth": 1, "width": 1, "policy": "lifo", "credits": 8}
    )


def test_every_kind_of_parameter(write: Write) -> None:
    path = write(
        (
            "parameters:\n",
            "parameters:\n"
            "  volt: {real: [0.6, 1.2], log: true, baseline: 1.0, unit: V}\n"
            "  fast: {boolean: true, baseline: false}\n"
            "  order: {permutation: [a, b, c], baseline: bca}\n"
            "  even: {integer: [2, 8], step: 2, baseline: 6}\n",
        ),
        ("{{ credits }}", "{{ credits }} {{ volt }} {{ fast }} {{ order }} {{ even }}"),
        ("$3, $4", '($6 $7 $8 == "falsebca6"), $4'),
    )
    assert evaluated(path).metrics["area_um2"] == 1


def test_an_inactive_parameter_without_a_value_is_a_failure_that_says_so(write: Write) -> None:
    path = write((", when_inactive: 0", ""))
    outcome = evaluated(path, policy="lifo")
    assert outcome.status == "failed"
    assert "credits does not act in this design" in outcome.reason


def test_files_are_edited_in_place(write: Write, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"core": {"l1": [{"kb": 1}, {"kb": 2}]}}')
    (tmp_path / "b.yml").write_text("core:\n  kb: 1\n")
    (tmp_path / "c.ini").write_text("[core]\nKB = 1\n")
    (tmp_path / "d.xml").write_text('<c><p name="kb" value="1"/><q>1</q></c>')
    files = (
        "  - {path: a.json, edit: a.json, set: {'core.l1[1].kb': '{{ depth }}'}}\n"
        "  - {path: b.yml, edit: b.yml, set: {core.kb: '{{ depth * 2 }}'}}\n"
        "  - {path: c.ini, edit: c.ini, set: {core.KB: '{{ depth }}'}}\n"
        "  - {path: d.xml, edit: d.xml, set: {\"p[@name='kb']/@value\": '{{ depth }}', q: 7}}\n"
    )
    env = archgym.make(write(("files:\n", f"files:\n{files}")), keep="always")
    assert isinstance(env, DeclaredEnvironment)
    env.evaluate({**env.baseline_design, "depth": 9})
    folder = env.kept[-1]
    assert json.loads((folder / "a.json").read_text()) == {"core": {"l1": [{"kb": 1}, {"kb": 9}]}}
    assert "kb: 18" in (folder / "b.yml").read_text()
    assert "KB = 9" in (folder / "c.ini").read_text()
    assert '<p name="kb" value="9" /><q>7</q>' in (folder / "d.xml").read_text()
    assert "design.txt" in (folder / "commands.txt").read_text()


@pytest.mark.parametrize(
    ("printed", "reading", "value"),
    [
        ("a 1\na 2\na 3", "regex: 'a (\\d)', take: first", 1),
        ("a 1\na 2\na 3", "regex: 'a (?<value>\\d)'", 3),
        ("a 1\na 2\na 3", "regex: 'a (\\d)', take: sum", 6),
        ("refs: 1,234,567", "regex: 'refs: ([\\d,]+)'", 1234567),
        ("share: 12.5 %", "key: share", 12.5),
        ('{"runs": [{"ms": 1}, {"ms": 4}]}', "json: 'runs[*].ms', take: mean", 2.5),
        ("name,ms\nx,1\ny,2\n", "csv: ms, where: {name: x}", 1),
        ("name;ms\nx;1\ny;2\n", "csv: ms, separator: ';', take: max", 2),
        ('<s><t n="a" v="3"/><t n="b" v="4"/></s>', "xml: \"t[@n='a']/@v\"", 3),
        ("<s><t>5</t></s>", "xml: t", 5),
    ],
)
def test_readings(write: Write, tmp_path: Path, printed: str, reading: str, value: float) -> None:
    (tmp_path / "out.txt").write_text(printed)
    path = write(
        ("  wait_ns: {key: wait, unit: ns, read_unit: us}", f"  got_count: {{{reading}, from: o}}"),
        ("  cost_count: {formula: wait_ns * area_um2}\n", ""),
        ("files:\n", "files:\n  - {path: o, copy: out.txt}\n"),
    )
    assert evaluated(path).metrics["got_count"] == value


def test_an_optional_metric_may_be_missing(write: Write) -> None:
    added = "  more_count: {key: more, optional: true}\n"
    path = write(("metrics:\n", f"objective: minimize wait_ns\nmetrics:\n{added}"))
    assert evaluated(path).metrics["more_count"] is None


def test_stage_folders_are_made_once_for_equal_values(write: Write, tmp_path: Path) -> None:
    log = tmp_path / "compiled"
    path = write(
        (
            "stages:\n",
            "stages:\n  compile:\n    uses: [width]\n"
            f"    run: [sh, -c, 'echo {{{{ width }}}} | tee made >> {log}']\n",
        ),
        ("      - awk\n", "      - awk\n      - -vmade={{ folder.compile }}\n"),
    )
    env = archgym.make(path)
    for depth in (1, 2, 3):
        for width in (1, 2):
            assert env.evaluate({**env.baseline_design, "depth": depth, "width": width}).feasible
    archgym.make(path).evaluate({**env.baseline_design, "depth": 9, "width": 2})
    assert sorted(log.read_text().split()) == ["1", "2"]


def test_concurrent_processes_make_a_stage_folder_once(write: Write, tmp_path: Path) -> None:
    path = write(
        (
            "stages:\n",
            "stages:\n  compile:\n    uses: [width]\n"
            f"    run: [sh, -c, 'echo x >> {tmp_path}/compiled; sleep 0.5']\n",
        )
    )
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=evaluated, args=(path,)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert (tmp_path / "compiled").read_text().split() == ["x"]


def test_a_killed_process_leaves_no_half_folder(write: Write, tmp_path: Path) -> None:
    path = write(
        (
            "stages:\n",
            "stages:\n  compile:\n    uses: [width]\n"
            f"    run: [sh, -c, 'echo x >> {tmp_path}/began; echo half > a;"
            f" test -e {tmp_path}/go || sleep 2; echo whole > a']\n",
        ),
        ("      - awk\n", "      - awk\n      - -vmade={{ folder.compile }}\n"),
    )
    code = f"import archgym; archgym.make({path!r}).simulate_baseline()"
    process = subprocess.Popen([sys.executable, "-c", code])
    while not (tmp_path / "began").exists():
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    (tmp_path / "go").touch()
    assert evaluated(path).status == "ok"
    (made,) = (tmp_path / "cache/archgym/stages").glob("*/work/a")
    assert made.read_text() == "whole\n"


def test_a_stage_sees_only_what_it_uses(write: Write) -> None:
    path = write(
        (
            "stages:\n",
            'stages:\n  compile: {uses: [width], run: [echo, "{{ depth }}"]}\n',
        )
    )
    with pytest.raises(
        UnknownNameError, match=r"queue\.yaml, line 16: stages\.compile\.run\.1: .*sees"
    ):
        archgym.make(path)


@pytest.mark.parametrize(
    ("means", "status"), [("illegal", "illegal"), ("failed", "failed"), ("retry", "failed")]
)
def test_failures(write: Write, means: str, status: str) -> None:
    path = write(
        ("metrics:\n", f"failures: [{{text: 'area: 640', means: {means}, wait_s: 0}}]\nmetrics:\n")
    )
    outcome = evaluated(path, depth=16, width=2)
    assert (outcome.status, "printed 'area: 640'" in outcome.reason) == (status, True)
    assert evaluated(path).status == "ok"


def test_a_run_is_tried_again(write: Write, tmp_path: Path) -> None:
    path = write(
        (
            "stages:\n",
            "stages:\n  licence: {run: [sh, -c, "
            f"'test -e {tmp_path}/free || {{ touch {tmp_path}/free; echo no licence; exit 1; }}'"
            "]}\n",
        ),
        ("metrics:\n", "failures: [{text: no licence, means: retry, wait_s: 0}]\nmetrics:\n"),
    )
    assert evaluated(path).status == "ok"


def test_exit_codes(write: Write) -> None:
    stage = "stages:\n  first: {run: [sh, -c, 'exit 255'], good_exit_codes: [255]}\n"
    assert evaluated(write(("stages:\n", stage))).status == "ok"
    with pytest.raises(
        archgym.errors.SimulationError, match="stage first: sh ended with exit code 255"
    ):
        evaluated(write(("stages:\n", stage.replace(", good_exit_codes: [255]", ""))))


def test_workloads(write: Write) -> None:
    workloads = (
        "workloads:\n  light: {values: {load: 1}, weight: 3}\n  heavy: {values: {load: 5}}\n"
        "  other: {values: {load: 9}, held_out: true}\n"
    )
    path = write(
        ("files:\n", f"{workloads}files:\n"),
        ("{{ area }}", "{{ area * load }}"),
        ("unit: um2}", "unit: um2, over_workloads: worst}"),
        ("  cost_count", "  mean_count: {formula: area_um2}\n  geo_count: "
         "{formula: area_um2, over_workloads: geometric_mean}\n  cost_count"),
    )  # fmt: skip
    metrics = evaluated(path).metrics
    assert (metrics["area_um2"], metrics["mean_count"]) == (200, 40 * (3 + 5) / 4)
    assert metrics["geo_count"] == pytest.approx(40 * 5**0.25)
    for workload, area in (("light", 40), ("heavy", 200), ("held_out", 360), ("other", 360)):
        env = archgym.make(path, workload=workload)
        assert env.evaluate(env.baseline_design).metrics["area_um2"] == area
    with pytest.raises(UnknownNameError, match="Did you mean 'heavy'"):
        archgym.make(path, workload="heavi")


def test_fidelities(write: Write) -> None:
    part = (
        "fidelities:\n  - {value: 0.1, cost: 0.2, values: {cycles: 10}}\n"
        "  - {value: 1, cost: 1, values: {cycles: 100}}\n"
    )
    path = write(("files:\n", f"{part}files:\n"), ("{{ area }}", "{{ area * cycles }}"))
    assert [one.cost for one in archgym.make(path).fidelities] == [0.2, 1]
    assert evaluated(path, 0.1).metrics["area_um2"] == 400
    assert evaluated(path).metrics["area_um2"] == 4000


def test_noise_gives_medians_and_their_spread(write: Write) -> None:
    path = write(
        ("files:\n", "noise: {repeats: 3, spread: [area_um2]}\nfiles:\n"),
        ("{{ area }}", "{{ area + repeat * repeat }}"),
    )
    metrics = evaluated(path).metrics
    assert metrics["area_um2"] == 41
    assert metrics["area_um2_spread_share"] == pytest.approx(2.0816659994661326 / 41)


def test_the_version_follows_the_program_and_the_file(write: Write, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("1")
    path = write(("files:\n", "version: [echo, 'sim 1.2']\ninputs: [in.txt]\nfiles:\n"))
    first = archgym.make(path).version
    assert first.startswith("sim 1.2 ")
    write(("files:\n", "version: [echo, 'sim 1.3']\ninputs: [in.txt]\nfiles:\n"))
    second = archgym.make(path).version
    (tmp_path / "in.txt").write_text("2")
    write(("files:\n", "version: [echo, 'sim 1.3']\ninputs: [in.txt]\nfiles:\n# a comment\n"))
    third = archgym.make(path).version
    write(
        ("files:\n", "version: [echo, 'sim 1.3']\ninputs: [in.txt]\nfiles:\n"),
        ("A queue", "Another text"),
        ("  small:", "  tiny:"),
    )
    assert len({first, second, third}) == 3
    assert archgym.make(path).version == third


def test_conformance_of_a_declared_environment(write: Write) -> None:
    from archgym.check import check_environment

    results = check_environment(write(), only=["determinism", "encodings", "recording"])
    assert [result.name for result in results if not result.passed] == []


def test_the_schema_is_for_editors(write: Write) -> None:
    from archgym.declared import Declaration

    schema = Declaration.model_json_schema(by_alias=True)
    assert {"parameters", "metrics"} == set(schema["required"])
    assert "from" in schema["$defs"]["MetricEntry"]["properties"]


def test_a_dataset_starts_no_program(write: Write, tmp_path: Path) -> None:
    from archgym.data import load
    from archgym.validation.replay import replay

    path = write(
        ("    run:\n      - awk", f"    env: {{TOUCH: '{tmp_path}/ran'}}\n    run:\n      - awk")
    )
    env = archgym.make(path, record="recorded")
    env.evaluate(env.baseline_design)
    env.close()
    found = replay(load("recorded"))
    assert found.rows == 0
    assert "name it with --environment queue.yaml" in next(iter(found.skipped))
    assert replay(load("recorded"), environment=path).rows_that_differ == 0


def test_a_path_that_is_not_there(write: Write) -> None:
    write()
    with pytest.raises(InvalidValueError, match=r"Did you mean '.*queue\.yaml'"):
        archgym.make(str(Path("queu.yaml").absolute()))


def test_nothing_is_left_of_runs(write: Write, tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "t").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "t"))
    assert evaluated(write()).status == "ok"
    assert os.listdir(tmp_path / "t") == []
    assert QUEUE.count("awk") == 2
