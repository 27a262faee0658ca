"""The designs of the ICCAD'22 contest."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import archgym
from archgym.envs.cpu.boom.environment import BoomContest, components_of
from archgym.envs.cpu.boom.tabulate import tabulated
from archgym.errors import InvalidValueError, SimulationError

CLASS, TABLE = "archgym.envs.cpu.boom:BoomContest", "tabular:boom-contest"
# The first row of the contest's file, without the last two components.
FIRST = (4, 1, 1, 1, 8, 1, 1, 8, 1, 1, 8, 8, 8, 16, 32, 52, 48, 8, 8, 64, 4, 1, 32, 64, 4, 0, 2)


def test_the_space_is_that_of_the_contest() -> None:
    space = BoomContest().design_space
    count = int(space.canonical_cardinality)
    assert count == 15_633
    designs = space.unrank(np.arange(count))
    assert len({components_of(design) for design in designs}) == count
    widths = [design["decode_width"] for design in designs]
    assert [widths.count(width) for width in range(1, 6)] == [5184, 3888, 2187, 2187, 2187]


def test_a_design_by_hand() -> None:
    sizes = ("issue_units", "front_end", "reorder_buffer", "registers", "load_store")
    design = {"decode_width": 1, **dict.fromkeys(sizes, 2), "icache": "1", "dcache": "1"}
    assert components_of(design) == (*FIRST, 1, 8)
    env = archgym.make(CLASS, simulator=TABLE)
    found = env.evaluate(design).metrics
    assert found == {
        "ipc_rate": 0.961109,
        "power_w": 0.026484,
        "area_um2": 1508807.546,
        "flow_s": 11011.35732,
    }


def test_the_optimum_of_one_goal_is_known() -> None:
    env = archgym.make(CLASS, simulator=TABLE, objective="maximize ipc_rate")
    assert env.optimum is not None
    assert env.optimum.metrics["ipc_rate"] == 2.999964
    assert len(archgym.make(CLASS, simulator=TABLE).objective.goals) == 3


def test_variants_that_a_width_lacks_are_illegal() -> None:
    env = archgym.make(CLASS, simulator=TABLE)
    for name, value in (("reorder_buffer", 4), ("icache", "4"), ("dcache", "4")):
        design = {**env.baseline_design, "decode_width": 3, name: value}
        assert env.evaluate(design).status == "illegal"


def test_without_its_table_it_says_what_to_give() -> None:
    env = archgym.make(CLASS)
    with pytest.raises(SimulationError, match="tabular:boom-contest"):
        env.evaluate(env.baseline_design)


@pytest.mark.parametrize(
    ("text", "message"),
    [("1 2 3\n", "not of 33"), ("a b\n", "cannot read"), ("1 " * 33, "does not hold the 15,633")],
)
def test_another_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "contest.csv"
    path.write_text(text)
    with pytest.raises(InvalidValueError, match=message):
        tabulated(path)
    with pytest.raises(InvalidValueError, match="cannot read"):
        tabulated(tmp_path / "none.csv")
