"""``archgym new env NAME --command`` asks what it needs to know."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import archgym
from archgym.declared.proposals.interview import knob_of
from archgym.errors import ArchgymError
from tests.cli.conftest import Called, call  # noqa: F401 - a fixture

SCRIPT = 'echo "total time = $1 us"; echo "ways: $2"; echo "load 5" >&2; exit 3\n'


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def answer(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    call: Callable[..., Called],  # noqa: F811
) -> Callable[..., Called]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sim.sh").write_text(SCRIPT)

    def answer(*lines: str) -> Called:
        monkeypatch.setattr(sys, "stdin", Terminal("\n".join((*lines, ""))))
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
        return call("new", "env", "MySim", "--command")

    return answer


def test_questions_lead_to_a_file_that_works(answer: Callable[..., Called]) -> None:
    done = answer(
        "nosuch x", "sh sim.sh 25 lru",  # the first program is not there
        "26", "25", "time", "1..100", "lru", "policy", "lru fifo", "",
        "", "y", "2", "", "minimise", "minimize",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "'nosuch'" in done.out
    assert "'26' does not stand in the arguments" in done.out
    assert "Did you mean 'minimize'" in done.out
    env = archgym.make("my_sim.yaml")
    assert env.baseline_design == {"time": 25, "policy": "lru"}
    assert env.evaluate({"time": 60, "policy": "fifo"}).metrics == {"total_time_us": 60}


def test_a_file_that_the_program_writes_is_none_that_it_reads(
    answer: Callable[..., Called], tmp_path: Path
) -> None:
    """It exists from an earlier try by hand; workers must not all write that one."""
    (tmp_path / "sim.sh").write_text('cp "$1" "$2"; echo "$1 : 40.5%  of $3" >&2\n')
    (tmp_path / "in.txt").write_text("12345")
    (tmp_path / "out.txt").write_text("old")
    command = "sh sim.sh in.txt out.txt 5"
    done = answer(
        command, "5", "size", "1..x", "1..9", "", "", "y", "", "out_txt_size_b", "minimize"
    )
    assert done.code == 0, done.err
    assert "'1..x' is no range of numbers" in done.out
    text = (tmp_path / "my_sim.yaml").read_text()
    assert "'{{ here }}/in.txt', out.txt" in text
    (tmp_path / "out.txt").write_text("old")
    env = archgym.make("my_sim.yaml")
    metrics = env.evaluate({"size": 6}).metrics
    assert metrics["out_txt_size_b"] == 5
    assert metrics["value_share"] == pytest.approx(0.405)
    assert (metrics["time_s"] or 0) > 0
    assert (tmp_path / "out.txt").read_text() == "old"


def test_without_a_run_the_words_before_a_number_are_asked(answer: Callable[..., Called]) -> None:
    done = answer("sh sim.sh 25 4", "4", "ways", "2 4 8", "", "stderr", "n", "load", "", "maximize")
    assert done.code == 0, done.err
    env = archgym.make("my_sim.yaml")
    (metric,) = env.metrics
    assert (metric.name, metric.direction) == ("load_count", "maximize")
    text = (
        Path("my_sim.yaml")
        .read_text(encoding="utf-8")
        .replace("time_limit_s", "good_exit_codes: [3]\n    time_limit_s")
    )
    Path("my_sim.yaml").write_text(text, encoding="utf-8")
    assert archgym.make("my_sim.yaml").evaluate({"ways": 8}).metrics == {"load_count": 5}


def test_a_program_whose_command_never_changes_is_sent_to_the_other_way(
    answer: Callable[..., Called],
) -> None:
    done = answer("sh sim.sh 25 4", "", "4", "ways", "2 4 8", "", "stderr", "n", "load", "", "")
    assert done.code == 0, done.err
    assert "archgym new env NAME --command FOLDER" in done.out


def test_without_a_terminal_it_says_what_to_give(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    call: Callable[..., Called],  # noqa: F811
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    for words in (("--command",), ("--command", "--out", "there")):
        done = call("new", "env", "MySim", *words)
        assert done.code != 0
        assert "archgym new env my_sim --command FOLDER" in done.err.replace("\n", " ")


@pytest.mark.parametrize(
    ("part", "values", "message"),
    [
        ("9", "1 9", "'9'"),
        ("8", "1 2", "not among"),
        ("8", "9..12", "not in"),
        ("lru", "1..3", "range"),
    ],
)
def test_knobs_that_are_not_possible(part: str, values: str, message: str) -> None:
    with pytest.raises(ArchgymError, match=message):
        knob_of("ways", part, values, ["sim", "8", "lru"])
