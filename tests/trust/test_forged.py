"""Damaged or forged JSON ends in a message, whichever file it is in."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import archgym
from archgym.registry import make_agent
from tests.cli.conftest import Called
from tests.trust.forged import Forger
from tests.trust.received import received_run

COMMANDS = [
    ["best", "RUN"],
    ["best", "RUN", "--json"],
    ["report", "RUN", "--out", "OUT/report.html"],
    ["dataset", "info", "RUN"],
    ["dataset", "validate", "RUN"],
    ["dataset", "validate", "RUN", "--replay", "3"],
    ["dataset", "export", "RUN", "OUT/rows.csv"],
    ["dataset", "filter", "RUN", "OUT/new", "--agent", "ga"],
    ["dataset", "merge", "RUN", "OTHER", "OUT/merged"],
    ["dataset", "split", "RUN", "OUT/parts"],
    ["proxy", "train", "RUN", "--out", "OUT/proxy", "--model", "ridge"],
    ["run", "RUN/experiment.yaml", "--local", "--resume", "--out", "RUN", "-q"],
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has ended, with a dataset that a journal has not left yet."""
    folder = received_run(tmp_path_factory.mktemp("forged") / "run")
    dataset = folder / "datasets" / "Conformance-v0"
    env = archgym.make("Conformance-v0", space="finite", record=dataset)
    make_agent("random", env.design_space, seed=5).search(env, budget=6, trial_id="beside")
    env.close()
    return folder


def check(seed: int, run: Path, place: Path, call: Callable[..., Called]) -> str:
    """Damages a run and runs a command on it; what is wrong with how the command ended."""
    forger = Forger(seed)
    copy, other = shutil.copytree(run, place / "run"), shutil.copytree(run, place / "other")
    (place / "out").mkdir()
    how = "; ".join(forger.damage(copy) for _ in range(forger.random.choice([1, 1, 1, 2])))
    command = forger.random.choice(COMMANDS)
    words = [
        word.replace("RUN", str(copy))
        .replace("OUT", str(place / "out"))
        .replace("OTHER", str(other))
        for word in command
    ]
    about = f"seed {seed}, {' '.join(command)}: {how}"
    try:
        ended = call(*words)
    except Exception as error:
        return f"{about}: {type(error).__name__}: {error}"
    finally:
        left = [path.name for path in (place / "out").iterdir() if path.name.startswith(".")]
        shutil.rmtree(place)
    if ended.code not in (0, 1, 2) or "Traceback" in ended.err:
        return f"{about}: code {ended.code}: {ended.err}"
    if ended.code == 2 and not 1 <= len(ended.err.splitlines()) <= 5:
        return f"{about}: {len(ended.err.splitlines())} lines: {ended.err}"
    return f"{about}: left {left}" if left else ""


@pytest.mark.parametrize("seed", range(40))
def test_damage_ends_in_a_message(
    seed: int, run: Path, tmp_path: Path, call: Callable[..., Called]
) -> None:
    assert not check(seed, run, tmp_path / "here", call)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_much_damage_ends_in_messages(
    run: Path, tmp_path: Path, call: Callable[..., Called]
) -> None:
    found = [check(seed, run, tmp_path / "here", call) for seed in range(100, 1600)]
    assert not [one for one in found if one]
