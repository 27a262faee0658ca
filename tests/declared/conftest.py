"""A declaration around awk, and a way to change it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "simulators"

QUEUE = r"""
description: A queue, simulated by awk.
parameters:
  depth: {integer: [1, 16], baseline: 4, unit: entries}
  width: {values: [1, 2, 4], baseline: 1}
  policy: {choices: [fifo, lifo], baseline: fifo}
  credits: {powers_of_two: [1, 8], baseline: 2, when: policy == fifo, when_inactive: 0}
derived:
  area: 10 * depth * width ** 2
rules:
  small: depth * width <= 32
files:
  - path: design.txt
    text: "{{ depth }} {{ width }} {{ area }} {{ credits }}\n"
stages:
  run:
    run:
      - awk
      - '{ printf "wait = %.4f us\narea: %d\ncredits: %d\n", 0.1/($1*$2)+0.0005*$1, $3, $4 }'
      - design.txt
    time_limit_s: 10
metrics:
  wait_ns: {key: wait, unit: ns, read_unit: us}
  area_um2: {regex: 'area: (\d+)', unit: um2}
  cost_count: {formula: wait_ns * area_um2}
"""

Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes the declaration, with texts in it replaced, and gives its path."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)

    def write(*changes: tuple[str, str], text: str = QUEUE, name: str = "queue.yaml") -> str:
        for old, new in changes:
            assert old in text, old
            text = text.replace(old, new, 1)
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return write


def copy_examples(folder: Path) -> None:
    """Copies the files around real simulators, with empty ones in place of ChampSim's sources."""
    for path in EXAMPLES.iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    champsim = folder / "champsim"
    names = ("inc/a.h", "src/main.cc", "btb/a/a.cc", "btb/a/a.h")
    traces = (f"traces/{name}.champsim.xz" for name in ("sort", "sqlite", "gzip"))
    for name in (*names, *traces):
        (champsim / name).parent.mkdir(parents=True, exist_ok=True)
        (champsim / name).touch()
