"""Kinds of damage to a run: what disks, copies and hands do to its files."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

NAME = "datasets/Conformance-v0"
Damage = Callable[[Path], object]
Lines = Callable[[list[str]], object]


def only(folder: Path, pattern: str) -> Path:
    (path,) = folder.glob(pattern)
    return path


def part(run: Path) -> Path:
    return only(run / NAME, "evaluations/*.parquet")


def attempts(run: Path) -> Path:
    return only(run / NAME, "attempts/*.parquet")


def table(run: Path) -> Path:
    return run / NAME / "trials/trials.parquet"


def sidecar(run: Path) -> Path:
    return run / NAME / "dataset.json"


def journal(run: Path) -> Path:
    return only(run / NAME, "journal/*.jsonl")


def of_run(name: str) -> Callable[[Path], Path]:
    return lambda run: only(run, name)


def changed_byte(of: Callable[[Path], Path], share: float, run: Path) -> None:
    """Changes the byte at that share of the length of a file."""
    content = bytearray(of(run).read_bytes())
    content[int(share * (len(content) - 1))] ^= 0x15
    of(run).write_bytes(content)


def cut(of: Callable[[Path], Path], size: int, run: Path) -> None:
    of(run).write_bytes(of(run).read_bytes()[:size])


def a_folder_instead(of: Callable[[Path], Path], run: Path) -> None:
    path = of(run)
    path.unlink()
    path.mkdir()


def a_pipe_instead(of: Callable[[Path], Path], run: Path) -> None:
    path = of(run)
    path.unlink()
    os.mkfifo(path)


def a_link_instead(of: Callable[[Path], Path], run: Path) -> None:
    path = of(run)
    moved = run.with_name(path.name)
    path.rename(moved)
    path.symlink_to(moved)


def copied(of: Callable[[Path], Path], name: str, run: Path) -> None:
    shutil.copy(of(run), of(run).with_name(name))


def renamed(of: Callable[[Path], Path], name: str, run: Path) -> None:
    of(run).rename(of(run).with_name(name))


def swapped(one: Callable[[Path], Path], other: Callable[[Path], Path], run: Path) -> None:
    left, right = one(run), other(run)
    content = left.read_bytes()
    left.write_bytes(right.read_bytes())
    right.write_bytes(content)


def of_another(of: Callable[[Path], Path], run: Path) -> None:
    """The file of another run, which the test has put beside this one."""
    shutil.copy(of(run.with_name("another")), of(run))


def deleted(of: Callable[[Path], Path], run: Path) -> None:
    of(run).unlink()


def text(of: Callable[[Path], Path], before: str, after: str, run: Path) -> None:
    content = of(run).read_text()
    assert before in content
    of(run).write_text(content.replace(before, after, 1))


def lines(change: Lines, run: Path) -> None:
    """Changes lines of the journal."""
    kept = journal(run).read_text().splitlines(keepends=True)
    change(kept)
    journal(run).write_text("".join(kept))


def log_lines(change: Lines, run: Path) -> None:
    """Changes lines of the log of trials."""
    path = only(run, "log/*.jsonl")
    kept = path.read_text().splitlines(keepends=True)
    change(kept)
    path.write_text("".join(kept))


def appended(content: bytes, run: Path) -> None:
    """Something behind the last line of the journal."""
    with journal(run).open("ab") as file:
        file.write(content)


def with_digit(number: int, found: list[str]) -> None:
    """One digit of a metric of a row is another one."""
    assert found[number].startswith("[")
    place = found[number].index("],[") + 5
    while not found[number][place].isdigit():
        place += 1
    digit = str((int(found[number][place]) + 1) % 10)
    found[number] = found[number][:place] + digit + found[number][place + 1 :]


def zeros(run: Path) -> None:
    """A block of the journal that never reached the disk."""
    content = bytearray(journal(run).read_bytes())
    content[1024:1536] = bytes(512)
    journal(run).write_bytes(content)


def swap(one: int, other: int, found: list[str]) -> None:
    found[one], found[other] = found[other], found[one]


def set_line(number: int, change: Callable[[str], str]) -> Lines:
    return lambda found: found.__setitem__(number, change(found[number]))


def dataset_and_list_deleted(run: Path) -> None:
    shutil.rmtree(run / NAME)
    (run / "trials.json").unlink()


def two_journals(run: Path) -> None:
    """The lines of a journal in two files."""
    path = journal(run)
    found = path.read_text().splitlines(keepends=True)
    path.write_text("".join(found[:20]))
    path.with_name("other.jsonl").write_text("".join(found[20:]))


def _file(name: str, of: Callable[[Path], Path], *, size: int = 100) -> dict[str, Damage]:
    """What happens to any file."""
    return {
        f"{name} deleted": partial(deleted, of),
        f"{name} empty": partial(cut, of, 0),
        f"{name} cut": partial(cut, of, -size),
        f"{name} a folder": partial(a_folder_instead, of),
        f"{name} a pipe": partial(a_pipe_instead, of),
        f"{name} a link": partial(a_link_instead, of),
    }


def _bytes(name: str, of: Callable[[Path], Path]) -> dict[str, Damage]:
    shares = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97, 1.0)
    return {f"{name}: a byte at {share}": partial(changed_byte, of, share) for share in shares}


FINISHED: dict[str, Damage] = {
    **_file("evaluations", part),
    **_bytes("evaluations", part),
    "all evaluations deleted": lambda run: shutil.rmtree(run / NAME / "evaluations"),
    "evaluations twice": partial(copied, part, "other.parquet"),
    "evaluations renamed": partial(renamed, part, "other.parquet"),
    "evaluations of another run": partial(of_another, part),
    **_file("trials", table),
    **_bytes("trials", table),
    "trials twice": partial(copied, table, "other.parquet"),
    "trials renamed": partial(renamed, table, "other.parquet"),
    "trials of another run": partial(of_another, table),
    **_file("attempts", attempts),
    **_bytes("attempts", attempts),
    "attempts twice": partial(copied, attempts, "other.parquet"),
    "attempts of another run": partial(of_another, attempts),
    "evaluations and attempts swapped": partial(swapped, part, attempts),
    **_file("sidecar", sidecar),
    "sidecar: another unit": partial(text, sidecar, '"unit": "ns"', '"unit": "ps"'),
    "sidecar: another value": partial(text, sidecar, "16", "17"),
    "sidecar: another checksum": partial(text, sidecar, '"checksum": "', '"checksum": "0'),
    "sidecar: another key": partial(text, sidecar, '"checksum"', '"checksun"'),
    "dataset and list of trials deleted": dataset_and_list_deleted,
    **_file("list of trials", of_run("trials.json")),
    "list of trials: another seed": partial(text, of_run("trials.json"), '"seed": 1', '"seed": 7'),
    "experiment deleted": partial(deleted, of_run("experiment.yaml")),
    "experiment: another budget": partial(text, of_run("experiment.yaml"), "12", "13"),
    "first designs: others": lambda run: (run / "initial_designs.json").write_text(
        json.dumps({"Conformance-v0": [{"ways": 2}]})
    ),
    "first designs deleted": partial(deleted, of_run("initial_designs.json")),
    "results deleted": partial(deleted, of_run("results.json")),
    "results: a byte": partial(changed_byte, of_run("results.json"), 0.5),
    "a table of results deleted": partial(deleted, of_run("results/trials.parquet")),
    "a table of results: a byte": partial(changed_byte, of_run("results/curves.parquet"), 0.5),
    "picture cut": partial(cut, of_run("best_so_far.png"), -100),
    "log deleted": partial(deleted, of_run("log/*.jsonl")),
    "log: a byte": partial(changed_byte, of_run("log/*.jsonl"), 0.4),
    "checksums: a byte": partial(changed_byte, of_run("checksums.json"), 0.4),
    "checksums deleted": partial(deleted, of_run("checksums.json")),
    "checksums cut": partial(cut, of_run("checksums.json"), -20),
}
"""Damage to a finished run."""
INTERRUPTED: dict[str, Damage] = {
    "a row lost": partial(lines, lambda found: found.pop(5)),
    "the first row lost": partial(lines, lambda found: found.pop(1)),
    "rows lost": partial(lines, lambda found: found.__delitem__(slice(3, 9))),
    "the last row of a trial lost": partial(lines, lambda found: found.pop(12)),
    "the beginning of a trial lost": partial(lines, lambda found: found.pop(0)),
    "the end of a trial lost": partial(lines, lambda found: found.pop(13)),
    "a trial lost": partial(lines, lambda found: found.__delitem__(slice(0, 14))),
    "the last trial lost": partial(lines, lambda found: found.__delitem__(slice(-14, None))),
    "a row doubled": partial(lines, lambda found: found.insert(5, found[5])),
    "a beginning doubled": partial(lines, lambda found: found.insert(1, found[0])),
    "an end doubled": partial(lines, lambda found: found.insert(13, found[13])),
    "a trial doubled": partial(lines, lambda found: found.extend(found[:14])),
    "rows swapped": partial(lines, partial(swap, 5, 6)),
    "rows of two trials swapped": partial(lines, partial(swap, 5, 19)),
    "beginnings of two trials swapped": partial(lines, partial(swap, 0, 14)),
    "a row of another trial": partial(lines, lambda found: found.insert(5, found[20])),
    "a digit": partial(lines, partial(with_digit, 5)),
    "a digit of the first row": partial(lines, partial(with_digit, 1)),
    "a digit of the last row": partial(lines, partial(with_digit, -2)),
    "another step": partial(lines, set_line(5, lambda line: line.replace("[0,4,", "[0,5,"))),
    "another trial": partial(lines, set_line(5, lambda line: line.replace("[0,", "[1,"))),
    "another seed": partial(lines, set_line(0, lambda line: line.replace('"seed":0', '"seed":9'))),
    "another agent": partial(lines, set_line(0, lambda line: line.replace("random", "sobol"))),
    "another end": partial(lines, set_line(13, lambda line: line.replace("finished", "closed"))),
    "a row cut": partial(lines, set_line(7, lambda line: line[:20])),
    "a row emptied": partial(lines, set_line(7, lambda line: "\n")),
    "a row not JSON": partial(lines, set_line(7, lambda line: "hello\n")),
    "a row without checksum": partial(
        lines, set_line(7, lambda line: line.rpartition(",")[0] + "]\n")
    ),
    "a row of other types": partial(lines, set_line(7, lambda line: line.replace("[", '["", '))),
    "zeros": zeros,
    **{f"a byte at {s}": partial(changed_byte, journal, s) for s in (0.0, 0.2, 0.5, 0.8)},
    **_file("journal", journal, size=2000),
    "journal twice": partial(copied, journal, "other.jsonl"),
    "journal in two": two_journals,
    "journal of another run": partial(of_another, journal),
    "journals and sidecar deleted": lambda run: shutil.rmtree(run / NAME),
    "sidecar deleted": partial(deleted, sidecar),
    "sidecar empty": partial(cut, sidecar, 0),
    "sidecar of another run": lambda run: text(sidecar, '"version": "', '"version": "9', run),
    "list of trials deleted": partial(deleted, of_run("trials.json")),
    "list of trials: another seed": partial(text, of_run("trials.json"), '"seed": 1', '"seed": 7'),
    "log not JSON": partial(text, of_run("log/*.jsonl"), '{"begin"', '["begin"'),
    "log: a digit": partial(text, of_run("log/*.jsonl"), '"wall_s":', '"wall_s":9'),
    "log: a line lost": partial(log_lines, lambda found: found.pop(1)),
    "log: a line doubled": partial(log_lines, lambda found: found.insert(1, found[1])),
    "checksums deleted": partial(deleted, of_run("checksums.json")),
    "zeros behind the journal": partial(appended, bytes(512)),
    "noise behind the journal": partial(appended, bytes(range(128, 255))),
    "words behind the journal": partial(appended, b"hello"),
}
"""Damage to a run that was killed before its journals became Parquet: 12 rows a trial, and a line
before and behind them."""
