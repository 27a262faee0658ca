"""Recipes of the shipped programs; ``archgym trace recipe --cpu sqlite`` records one again.

The programs and their inputs are those of DRAM-v0
(:mod:`archgym.envs.dram.traces.recording_recipes`), and some more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from archgym.envs.cpu.traces.program import Program
from archgym.envs.cpu.traces.recording import record_program
from archgym.envs.dram.traces import recording_inputs as inputs
from archgym.envs.dram.traces.recording_recipes import RECIPES, Recipe, run_recipe
from archgym.errors import UnknownNameError

__all__ = ["PROGRAMS", "make"]

_INSTRUCTIONS = 2_000_000

_WORDS = (
    "open F, 'text' or die; while (<F>) {"
    "for (split) { $n{lc $_}++; $l{length $_}++ if /a[^ ]*e/ } }"
    "for (sort { $n{$b} <=> $n{$a} || $a cmp $b } keys %n) { $s .= sprintf '%s %d;', $_, $n{$_} }"
    "print length $s;"
)

_PERL = Recipe(
    "Perl: words of a text, by a hash, regular expressions and sorting",
    "perl-base",
    ("perl", "-e", _WORDS),
    lambda folder: inputs.text(folder / "text", 100_000, 6),
    "100,000 words of running text with Zipf's frequencies, Python's random.Random(6)",
    skip_instructions=0,
    environment={"PERL_HASH_SEED": "0"},
)

PROGRAMS: dict[str, tuple[Recipe, int]] = {
    "perl": (_PERL, 40_000_000),
    "python_json": (RECIPES["python_json"], 60_000_000),
    "sort": (RECIPES["sort"], 60_000_000),
    "sqlite": (RECIPES["sqlite"], 20_000_000),
    "xz": (RECIPES["xz"], 50_000_000),
    "zstd": (RECIPES["zstd"], 20_000_000),
}
"""Recipe and number of skipped instructions of each program."""


def make(
    name: str,
    *,
    timeout_s: float = 3600.0,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Program, dict[str, Any]]:
    """Generate the input of a recipe and record its program.

    Args:
        name: a key of :data:`PROGRAMS`.
        timeout_s: limit on the wall time of the recording, s.
        progress: as in :func:`archgym.envs.cpu.traces.recording.record_program`.

    Returns:
        The stream and its card.

    Raises:
        UnknownNameError: for an unknown recipe.
        TraceError: if the program is not installed or fails.
    """
    if name not in PROGRAMS:
        raise UnknownNameError("recipe", name, PROGRAMS)
    recipe, skipped = PROGRAMS[name]
    return run_recipe(
        name,
        recipe,
        record_program,
        f"archgym trace recipe --cpu {name}",
        skip_instructions=skipped,
        max_instructions=_INSTRUCTIONS,
        timeout_s=timeout_s,
        progress=progress,
    )
