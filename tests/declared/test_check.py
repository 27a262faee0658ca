"""``archgym check`` of a declared environment."""

from __future__ import annotations

from pathlib import Path

from archgym.check import check
from tests.declared.conftest import Write


def test_the_baseline_and_each_parameter_are_run(write: Write) -> None:
    found = {result.name: result for result in check(write())}
    assert list(found) == ["can_be_made", "baseline_twice", "metrics", "parameters", "time"]
    assert found["baseline_twice"].detail == "both runs gave the same"
    assert "wait_ns = 27 ns" in found["metrics"].detail
    assert not found["parameters"].passed
    assert not found["parameters"].required
    assert "no metric changed with policy fifo -> lifo; credits" in found["parameters"].detail
    assert "depth 4 -> 16: wait_ns 27 -> " in found["parameters"].detail
    assert "a search of 200 designs takes" in found["time"].detail


def test_a_parameter_is_moved_to_a_value_that_the_program_takes(write: Write) -> None:
    refusing = '$1 > 8 { print "too deep" } $2 > 1 { print "too wide" } { printf'
    declared = "failures:\n  - {regex: too (deep|wide), means: illegal}\nmetrics:"
    (result,) = check(write(("{ printf", refusing), ("metrics:", declared)), only=["parameters"])
    assert not result.passed
    assert not result.required
    assert "depth 4 -> 3: wait_ns 27 -> " in result.detail
    assert "(refused: 16, illegal: stage run printed" in result.detail
    assert "no metric changed with policy fifo -> lifo; credits" in result.detail
    assert "width cannot be moved: refused: 4, 2, illegal: stage run" in result.detail
    exits = refusing.replace('print "too wide"', "exit 3")
    (failed,) = check(write(("{ printf", exits), ("metrics:", declared)), only=["parameters"])
    assert failed.required
    assert "width cannot be moved: refused: 4, 2, failed: stage run" in failed.detail
    assert "depth 4 -> 3: wait_ns 27 -> " in failed.detail


def test_a_noisy_program_is_told(write: Write) -> None:
    shell = "      - sh\n      - -c\n      - 'echo wait = $$ us; echo area: 1'\n"
    (result,) = check(write(("      - awk\n", shell)), only=["baseline_twice"])
    assert not result.passed
    assert "noise: {repeats: 3}" in result.detail


def test_only_the_time_of_a_run_that_is_sought_counts_as_noise(write: Write) -> None:
    timed = ("metrics:", "metrics:\n  host_s: {seconds: run}")
    area = ("  cost_count: {formula: wait_ns * area_um2}", "objective: minimize area_um2")
    (result,) = check(write(timed, area), only=["baseline_twice"])
    assert result.passed
    assert "both runs gave the same, but for their time (host_s by" in result.detail
    (sought,) = check(write(timed), only=["baseline_twice"])
    assert not sought.passed


def test_a_value_that_fails_is_told_although_others_do_not(write: Write) -> None:
    exits = '$1 > 8 { print "too deep"; exit 3 } { printf'
    (result,) = check(write(("{ printf", exits)), only=["parameters"])
    assert not result.passed
    assert "(refused: 16, failed: stage run" in result.detail


def test_a_change_within_the_noise_is_none(write: Write, tmp_path: Path) -> None:
    """Runs differ from one to the next, and no parameter matters."""
    runs = tmp_path / "runs.txt"
    text = f"echo 1 >> {runs}; echo wait = $(($(wc -l < {runs}) % 5 + 1)) us; echo area: 1"
    shell = f"      - sh\n      - -c\n      - '{text}'\n"
    noisy = ("metrics:", "noise: {repeats: 5}\nmetrics:")
    (result,) = check(write(("      - awk\n", shell), noisy), only=["parameters"])
    assert "no metric changed by more than its spread with depth 4 -> 16" in result.detail


def test_a_reason_is_given_once(write: Write) -> None:
    found = check(write(("0.1/($1*$2)", "0.1/(16-$1)/0")))
    details = [result.detail for result in found if not result.passed]
    assert len([text for text in details if "is not a number" in text]) == 1
    assert len([text for text in details if "the baseline, see above" in text]) >= 2


def test_a_program_that_fails_is_told(write: Write) -> None:
    path = write(("0.1/($1*$2)", "0.1/(16-$1)/0"))
    found = {result.name: result for result in check(path)}
    assert not found["baseline_twice"].passed
    assert "depth=4 width=1 policy=fifo credits=2: failed: " in found["baseline_twice"].detail
