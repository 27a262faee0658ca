"""Bad declarations and bad programs: one clear message each, and nothing left running."""

from __future__ import annotations

import os
import re
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

import pytest

import archgym
from archgym.errors import ArchgymError, MissingDependencyError
from tests.declared.conftest import Write

MISTAKES = {
    # YAML itself
    "not YAML": ("parameters:", "parameters: [", "line .*not YAML"),
    "a tab": ("  depth:", "\tdepth:", "line .*not YAML"),
    "a key twice": (
        "  width:",
        "  depth:",
        "line 5: this is not YAML: the key 'depth' is there twice",
    ),
    "a list instead of a mapping": ("parameters:\n", "parameters: [1]\nx:\n", "x: unknown key 'x'"),
    # keys
    "mistyped key": ("description", "descripton", "line 2: .*Did you mean 'description'"),
    "mistyped key of a parameter": ("unit: entries", "units: entries", "Did you mean 'unit'"),
    "mistyped key of a stage": ("time_limit_s", "timelimit", "Did you mean 'time_limit_s'"),
    "mistyped key of a metric": ("read_unit", "from_unit", "line 23: metrics.wait_ns.from_unit"),
    "no parameters": ("parameters:", "derived_:", "unknown key 'derived_'"),
    "no stages": ("stages:\n", "stages: {}\nx_:\n", "unknown key 'x_'"),
    "no metrics": ("metrics:\n", "workloads:\n", "workloads.wait_ns"),
    "no run": (
        "    run:\n",
        "    runs:\n",
        "stages.run.runs: unknown key 'runs'.*Did you mean 'run'",
    ),
    "a text for a mapping": (
        "{integer: [1, 16], baseline: 4, unit: entries}",
        "4",
        "allowed is a mapping",
    ),
    # parameters
    "no baseline": (", baseline: 4", "", "parameters.depth.baseline: this is missing"),
    "two kinds": ("integer: [1, 16]", "integer: [1, 16], values: [1]", "exactly one of the keys"),
    "no kind": ("integer: [1, 16], ", "", "exactly one of the keys .* not none"),
    "three bounds": ("[1, 16]", "[1, 2, 16]", "parameters.depth.integer: .*at most 2"),
    "bounds the wrong way": ("[1, 16]", "[16, 1]", "low <= high"),
    "text as a bound": ("[1, 16]", "[1, many]", "it cannot be 'many': allowed is an integer"),
    "baseline out of range": (
        "baseline: 4",
        "baseline: 40",
        "parameters.depth.baseline: .*cannot be 40",
    ),
    "baseline mistyped": ("baseline: fifo", "baseline: fito", "Did you mean 'fifo'"),
    "no power of two": ("[1, 8]", "[1, 9]", "9 is no power of two"),
    "YAML's yes": ("[fifo, lifo]", "[yes, no]", "in quotes"),
    "a value twice": ("[fifo, lifo]", "[fifo, fifo]", "lists a value twice"),
    "a name with a hyphen": ("  policy:", "  poli-cy:", "a name is made of letters"),
    "a name that is taken": ("  policy:", "  workload:", "the name 'workload' is taken"),
    "step of a list": ("values: [1, 2, 4]", "values: [1, 2, 4], step: 2", "step is for an integer"),
    "log of an integer": ("[1, 16]", "[1, 16], log: true", "log is for a real one"),
    # expressions
    "when with an unknown name": (
        "policy == fifo",
        "polcy == fifo",
        "unknown name 'polcy'.*'policy'",
    ),
    "when with a mistyped name and a number": (
        "baseline: 1}",
        "baseline: 1, when: dept != 2}",
        "unknown name 'dept'. Did you mean 'depth'",
    ),
    "when with an unknown value": ("policy == fifo", "policy == fofo", "fofo"),
    "when looks ahead": ("baseline: 4", "baseline: 4, when: width > 1", "unknown name 'width'"),
    "rule that is no expression": ("<= 32", "<=", "rules.small: .*is no expression"),
    "rule with a call": ("depth * width <= 32", "open(depth)", "unknown function 'open'"),
    "rule with an attribute": ("depth * width <= 32", "depth.real <= 1", "is not taken"),
    "rule that the baseline breaks": ("<= 32", "<= 3", "the baseline breaks rule 'small'"),
    "rule without a parameter": ("depth * width <= 32", "'2 > 1'", "looks at no parameter"),
    "derived from nothing": ("10 * depth", "10 * dept", "derived.area: .*Did you mean 'depth'"),
    "derived with the name of a parameter": ("  area:", "  depth:", "the name 'depth' is taken"),
    # templates and files
    "unknown name in a template": (
        "{{ area }}",
        "{{ aera }}",
        "files.0.text: .*Did you mean 'area'",
    ),
    "open braces": ("{{ area }}", "{{ area", "is no template"),
    "unknown filter": ("{{ area }}", "{{ area | hexa }}", "is no template"),
    "unknown folder": (
        "design.txt\n    time",
        "'{{ folder.mak }}'\n    time",
        "unknown folder 'mak'",
    ),
    "two contents": ("    text:", "    copy: x\n    text:", "exactly one of the keys"),
    "no content": (
        '    text: "{{ depth }} {{ width }} {{ area }} {{ credits }}\\n"\n',
        "",
        "not none",
    ),
    "outside the folder": (
        "path: design.txt",
        "path: ../design.txt",
        "inside the folder of the run",
    ),
    "absolute path": ("path: design.txt", "path: /etc/design.txt", "inside the folder of the run"),
    "no template file": (
        "    text:",
        "    template: quue.yaml\n  - path: b\n    text:",
        "Did you mean",
    ),
    "edit without set": (
        "    text:",
        "    edit: queue.yaml\n  - path: b\n    text:",
        "go together",
    ),
    "edit nowhere": (
        "    text:",
        "    edit: queue.yaml\n    set: {rules.smal: 1}\n  - path: b\n    text:",
        "unknown key 'smal'. Did you mean 'small'",
    ),
    "edit of another format": (
        "    text:",
        "    edit: queue.yaml\n    format: json\n    set: {a: 1}\n  - path: b\n    text:",
        "the file to edit is not JSON",
    ),
    # stages
    "no program": ("- awk\n", "- ''\n", "which is empty"),
    "run as one text": ("    run:\n", "    run: awk\n    run_:\n", "unknown key 'run_'"),
    "time limit of zero": ("time_limit_s: 10", "time_limit_s: 0", "more than 0"),
    "time limit as a text": ("time_limit_s: 10", "time_limit_s: soon", "allowed is a number"),
    "exit code too large": ("time_limit_s: 10", "good_exit_codes: [256]", "at most 255"),
    "uses an unknown name": ("time_limit_s: 10", "uses: [depht]", "not called run"),
    # metrics
    "name without its unit": ("  wait_ns:", "  wait:", "must end in '_ns'"),
    "wrong unit": ("read_unit: us", "read_unit: MHz", "metrics.wait_ns: 'MHz' is a frequency"),
    "spelled out unit": ("read_unit: us", "read_unit: usecs", "Is the unit 'us' meant?"),
    "spelled out unit of a metric": ("unit: ns", "unit: nsec", "Is the unit 'ns' meant?"),
    "braces without quotes": ("- awk", "- [awk, -D{{ depth }}]", "put a text with {{ }} in quotes"),
    "key that YAML reads as a boolean": ("stages:", "off:", "the key off is read as false"),
    "unknown unit": ("read_unit: us", "read_unit: uss", "Did you mean 'us'"),
    "no pattern": ("'area: (\\d+)'", "'area: (\\d+'", "is no regular expression"),
    "two readings": ("{key: wait", "{key: wait, json: a", "exactly one of the keys"),
    "no reading": ("key: wait, ", "", "exactly one of the keys"),
    "unknown goal": ("unit: ns", "goal: smallest, unit: ns", "allowed is 'minimize' or 'maximize'"),
    "unknown take": ("unit: ns", "take: middle, unit: ns", "allowed is 'first', 'last'"),
    "formula before its metric": (
        "  wait_ns:",
        "  early_count: {formula: area_um2}\n  wait_ns:",
        "area_um2 must be listed before",
    ),
    "formula with an unknown name": (
        "wait_ns * area_um2",
        "wait_ms * area_um2",
        "unknown name 'wait_ms'",
    ),
    "unknown stage": ("{key: wait", "{stage: rnu, key: wait", "Did you mean 'run'"),
    "path that is none": ("key: wait", "json: 'a[b'", "is no path"),
    "objective of an unknown metric": (
        "metrics:",
        "objective: minimize wait_ms\nmetrics:",
        "objective: .*wait_ns",
    ),
    "objective of another form": (
        "metrics:",
        "objective: [wait_ns]\nmetrics:",
        "'minimize METRIC'",
    ),
    "objective of an optional metric": ("{key: wait", "{optional: true, key: wait", "is optional"),
    # other parts
    "failure without a text": (
        "metrics:",
        "failures: [{means: illegal}]\nmetrics:",
        "exactly one of the keys",
    ),
    "failure of unknown meaning": (
        "metrics:",
        "failures: [{text: a, means: ilegal}]\nmetrics:",
        "'illegal'",
    ),
    "fidelities without the full one": (
        "metrics:",
        "fidelities: [{value: 0.1, cost: 0.1, values: {n: 1}}]\nmetrics:",
        "the full simulation",
    ),
    "fidelities with other names": (
        "metrics:",
        "fidelities: [{value: 0.1, cost: 0.1, values: {n: 1}}, "
        "{value: 1, cost: 1, values: {m: 1}}]\nmetrics:",
        "unknown value",
    ),
    "workloads with other names": (
        "metrics:",
        "workloads: {a: {values: {n: 1}}, b: {values: {m: 1}}}\nmetrics:",
        "workloads.b: unknown value",
    ),
    "workload's file that is not there": (
        "metrics:",
        "workloads: {a: {files: {t: queue.yml}}}\nmetrics:",
        "workloads.a.files.t: there is no file .*Did you mean",
    ),
    "noise of one run": ("metrics:", "noise: {repeats: 1}\nmetrics:", "at least 2"),
    "noise of an unknown metric": (
        "metrics:",
        "noise: {repeats: 2, spread: [wait_n]}\nmetrics:",
        "'wait_ns'",
    ),
    "unknown keep": (
        "metrics:",
        "keep: sometimes\nmetrics:",
        "allowed is 'never', 'failed' or 'always'",
    ),
    "input that is not there": (
        "metrics:",
        "inputs: [a.txt]\nmetrics:",
        "inputs.0: there is no file",
    ),
    "version that fails": ("metrics:", "version: ['false']\nmetrics:", "the version cannot be had"),
}
"""What is replaced by what in the declaration, and a pattern of the message."""

RUNS: dict[str, tuple[list[tuple[str, str]], str, str]] = {
    "exit code": ([("RUN", "exit 3")], "failed", "sh ended with exit code 3: it printed nothing"),
    "signal": ([("RUN", "kill -SEGV $$")], "failed", "sh was ended by SIGSEGV"),
    "no number": ([("RUN", "echo wait = fast")], "failed", "'fast' is not a number"),
    "not a number": ([("RUN", "echo wait = nan")], "failed", "wait_ns is nan, not a finite number"),
    "below zero": ([("RUN", "echo wait = -1")], "failed", "wait_ns is -1000, below zero"),
    "mistyped key": ([("RUN", "echo waits = 1")], "failed", "Did you mean 'waits'"),
    "nothing": ([("RUN", "true")], "failed", "wait_ns: nothing in stdout of stage run matches"),
    "hang": (
        [("RUN", "sleep 60"), ("time_limit_s: 10", "time_limit_s: 0.4")],
        "timeout",
        "within 0.4 s",
    ),
    "hang of a child": (
        [("RUN", "sleep 60 & wait"), ("time_limit_s: 10", "time_limit_s: 0.4")],
        "timeout",
        "within 0.4 s",
    ),
    "a child left behind": ([("RUN", "echo wait = 1; sleep 60 &")], "ok", ""),
    "a child that left the group": ([("RUN", "echo wait = 1; setsid sleep 60 &")], "ok", ""),
    "endless output": (
        [("RUN", "yes"), ("time_limit_s: 10", "output_limit_mb: 1")],
        "failed",
        "printed more than 1000000 bytes",
    ),
    "a huge file": (
        [("RUN", "head -c 10G /dev/zero > big"), ("time_limit_s: 10", "file_limit_mb: 1")],
        "failed",
        "exit code|SIGXFSZ",
    ),
    "too much memory": (
        [("RUN", "head -c 400M /dev/zero | tail"), ("time_limit_s: 10", "memory_limit_mb: 100")],
        "failed",
        "nothing in stdout|memory|exit code",
    ),
    "a file that is missing": (
        [("RUN", "true"), ("{key: wait", "{from: out.txt, key: wait")],
        "failed",
        "stage run left no file 'out.txt'",
    ),
    "a huge file to read": (
        [("RUN", "truncate -s 1G out.txt"), ("{key: wait", "{from: out.txt, key: wait")],
        "failed",
        "out.txt: larger than|out.txt: .*large",
    ),
    "a pipe to read": (
        [("RUN", "mkfifo out.txt"), ("{key: wait", "{from: out.txt, key: wait")],
        "failed",
        "left no file",
    ),
    "not JSON": ([("RUN", "echo hello"), ("key: wait", "json: wait")], "failed", "is not JSON"),
    "not XML": ([("RUN", "echo hello"), ("key: wait", "xml: wait")], "failed", "is not XML"),
    "XML of a billion laughs": (
        [("RUN", "echo '<!DOCTYPE a [<!ENTITY a \"b\">]><a>1</a>'"), ("key: wait", "xml: a")],
        "failed",
        "entities",
    ),
    "no such column": (
        [("RUN", "printf 'waits,b\\n1,2\\n'"), ("key: wait", "csv: wait")],
        "failed",
        "has no column 'wait'. Did you mean 'waits'",
    ),
    "bytes that are no text": ([("RUN", "printf 'wait = \\377\\n'")], "failed", "is not a number"),
}
"""Replacements for a declaration with a shell script, the status and a pattern of the reason."""

SHELL = r"""
parameters:
  depth: {integer: [1, 16], baseline: 4}
stages:
  run:
    run: [sh, -c, "RUN", MARK]
    time_limit_s: 10
metrics:
  wait_ns: {key: wait, unit: ns, read_unit: us}
"""


def test_there_are_enough_bad_files() -> None:
    assert len(MISTAKES) + len(RUNS) >= 100


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_clear_message(write: Write, mistake: str) -> None:
    old, new, pattern = MISTAKES[mistake]
    path = write((old, new))
    with pytest.raises(ArchgymError) as caught:
        archgym.make(path)
    message = str(caught.value)
    assert re.search(pattern, message, re.DOTALL), message
    assert re.match(r".*queue\.yaml(, line \d+)?: ", message), message
    assert "\n" not in message.strip()
    assert len(message) < 700


@pytest.mark.parametrize("case", RUNS)
def test_a_bad_run_is_one_reason_and_leaves_nothing(
    write: Write, case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes, status, pattern = RUNS[case]
    (tmp_path / "work").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "work"))
    mark = f"mark{uuid.uuid4().hex}"
    script = changes[0][1].replace("\\", "\\\\").replace('"', '\\"')
    path = write(("RUN", script), ("MARK", mark), *changes[1:], text=SHELL)
    env = archgym.make(path)
    env.baseline_metrics = [1.0]
    began = time.monotonic()
    outcome = env.evaluate({"depth": 8})
    assert time.monotonic() - began < 8
    assert outcome.status == status, outcome.reason
    assert re.search(pattern, outcome.reason), outcome.reason
    assert "Traceback" not in outcome.reason
    assert running(mark, tmp_path) == []
    assert os.listdir(tmp_path / "work") == []


def test_a_regular_expression_is_bounded_in_time(write: Write, monkeypatch: Any) -> None:
    monkeypatch.setattr("archgym.declared.readings.extract.PATTERN_LIMIT_S", 0.2)
    path = write(
        ("RUN", "echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"),
        ("key: wait", "regex: '(a|aa)+$'"),
        text=SHELL,
    )
    env = archgym.make(path)
    env.baseline_metrics = [1.0]
    assert "took more than 0.2 s" in env.evaluate({"depth": 8}).reason


def test_a_missing_program_ends_the_search_and_says_how_to_get_it(write: Write) -> None:
    path = write(
        ("sh, -c", "no-such-program, -c"),
        ("stages:", "install: apt install it\nstages:"),
        text=SHELL,
    )
    with pytest.raises(
        MissingDependencyError, match=r"no program 'no-such-program' on PATH\. apt install it"
    ):
        archgym.make(path).simulate_baseline()


def running(mark: str, folder: Path) -> list[str]:
    """Processes with a mark among their arguments, or at work in a folder, removed or not."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            arguments = (entry / "cmdline").read_bytes()
            if mark.encode() in arguments or str(folder) in os.readlink(entry / "cwd"):
                found.append(entry.name)
        except OSError:
            continue
    return found
