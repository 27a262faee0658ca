"""What a first reader of the guide stumbled over."""

from __future__ import annotations

from pathlib import Path

import pytest

import archgym
from archgym.errors import ArchgymError, MissingDependencyError
from tests.declared.conftest import Write

SECONDS = """
parameters:
  level: {integer: [1, 4], baseline: 1}
stages:
  run: {run: [sh, -c, "echo $OLDPWD$SHLVL. > size.txt"]}
metrics:
  run_time_s: {seconds: run}
  size_b: {file_size: size.txt}
"""


def test_seconds_and_bytes_need_no_unit(write: Write) -> None:
    env = archgym.make(write(text=SECONDS))
    assert [(m.name, m.unit) for m in env.metrics] == [("run_time_s", "s"), ("size_b", "B")]


def test_a_program_does_not_see_where_somebody_began(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(text=SECONDS)
    sizes = set()
    for folder in ("", "/a/long/path/to/some/folder"):
        monkeypatch.setenv("OLDPWD", folder)
        monkeypatch.setenv("SHLVL", "7" * (1 + len(folder)))
        env = archgym.make(path)
        sizes.add(env.evaluate(env.baseline_design).metrics["size_b"])
    assert len(sizes) == 1


def test_a_bad_exit_code_is_shown_with_the_good_ones(write: Write) -> None:
    path = write(("time_limit_s: 10", "time_limit_s: 10\n    good_exit_codes: [2, 3]"))
    with pytest.raises(ArchgymError, match=r"awk ended with exit code 0.*good_exit_codes: 2, 3"):
        archgym.make(path).evaluate({"depth": 2, "width": 1, "policy": "lifo"})


@pytest.mark.parametrize("command", ["[./tool.sh, x]", "[sh, tool.sh]", "[sh, ./tool.sh]"])
def test_a_file_beside_the_declaration_is_found_in_the_message(
    write: Write, tmp_path: Path, command: str
) -> None:
    (tmp_path / "tool.sh").write_text("echo 1")
    text = SECONDS.replace('[sh, -c, "echo $OLDPWD$SHLVL. > size.txt"]', command)
    env = archgym.make(write(text=text))
    with pytest.raises((ArchgymError, MissingDependencyError), match=r"\{\{ here \}\}/tool.sh"):
        env.evaluate(env.baseline_design)


def test_a_number_as_an_argument_is_shown_in_quotes(write: Write) -> None:
    with pytest.raises(ArchgymError, match=r"line 5: .*cannot be 3: .*as '3' in quotes"):
        archgym.make(write(text=SECONDS.replace('[sh, -c, "echo', '[sh, 3, "echo')))


@pytest.mark.parametrize(
    ("word", "advice"),
    [("off", "YAML reads no, off or false as False, so put the word in quotes"), ("", "'' is an")],
)
def test_a_word_that_yaml_reads_as_something_else(write: Write, word: str, advice: str) -> None:
    env = f"time_limit_s: 10\n    env: {{MODE: {word}}}"
    with pytest.raises(ArchgymError, match=rf"line \d+: stages.run.env.MODE: .*{advice}"):
        archgym.make(write(("time_limit_s: 10", env)))


def test_the_nearest_lines_are_shown_where_nothing_matches(write: Write) -> None:
    env = archgym.make(write(("'area: (\\d+)'", "'total area is (\\d+)'")))
    message = r"nothing in stdout of stage run matches .*; nearest lines: area: 40$"
    with pytest.raises(ArchgymError, match=message):
        env.evaluate(env.baseline_design)
    path = write(("'{ printf", "'{ if (0) printf"), name="silent.yaml")
    with pytest.raises(ArchgymError, match=r"wait_ns: .*; stdout of stage run is empty"):
        archgym.make(path).simulate_baseline()


def test_a_ruler_in_the_output_is_no_key(write: Write) -> None:
    ruler = ("'{ printf \"wait", "'{ printf \"=== queue ===\\nwait")
    env = archgym.make(write(ruler, ("{key: wait,", "{key: wiat,")))
    with pytest.raises(ArchgymError, match=r"Did you mean 'wait'\? Allowed: area, credits, wait\."):
        env.evaluate(env.baseline_design)


def test_the_line_of_a_failure_is_shown(write: Write) -> None:
    failures = "failures:\n  - {regex: 'cred.t', means: failed}\nstages:\n"
    with pytest.raises(ArchgymError, match=r"printed 'cred.t': credits: 2$"):
        archgym.make(write(("stages:\n", failures))).simulate_baseline()


@pytest.mark.parametrize("code", ["echo Killed >&2; exit 9", "kill -SEGV $$"])
def test_the_memory_limit_is_named_where_a_program_may_have_died_of_it(
    write: Write, code: str
) -> None:
    limit = "x], memory_limit_mb: 500}"
    text = SECONDS.replace('"echo $OLDPWD$SHLVL. > size.txt"]}', f"'{code}', {limit}")
    with pytest.raises(ArchgymError, match="may need more than its memory_limit_mb of 500"):
        archgym.make(write(text=text)).simulate_baseline()
    without = write(text=text.replace(", memory_limit_mb: 500", ""))
    with pytest.raises(ArchgymError) as caught:
        archgym.make(without).simulate_baseline()
    assert "memory" not in str(caught.value)


def test_a_metric_without_a_unit_says_that_units_make_other_endings(write: Write) -> None:
    with pytest.raises(ArchgymError, match=r"'_count'.*; a metric with another ending has a unit"):
        archgym.make(write(("cost_count: {f", "stalls: {f")))
    assert archgym.make(write(("cost_count: {f", "ipc: {f"))).metrics[-1].unit == ""
