"""Ordinary input that cannot be used ends in one sentence, before anything runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Called

RUN = ("run", "quickstart", "--local", "-q", "--set", "budget=3", "--set", "seeds=1")
LONG = "x" * 300


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([*RUN, "--set", "seeds=1000000000000"], "at most 10,000,000"),
        ([*RUN, "--set", "seeds=[99999999999999999999]"], "at most 9223372036854775807"),
        ([*RUN, "--set", f"budget={10**30}"], "budget cannot be"),
        ([*RUN, "--set", f"seed={10**30}"], "seed cannot be"),
        ([*RUN, "--set", "simulation.time_limit_s=.inf"], "a finite number"),
        ([*RUN, "--set", "simulation.time_limit_s=1e300"], "at most"),
        ([*RUN, "--set", "resources.cpus_per_trial=.nan"], "resources.cpus_per_trial cannot be"),
        (
            [
                *RUN,
                "--set",
                "agents=[{name: auto, samples: 100000000, "
                "hyperparameters: {effort: {uniform: [0.1, 0.9]}}}]",
            ],
            "at most 10,000,000 can be listed",
        ),
        (["run", "quickstart", "--storage", "zzz://x"], "--storage cannot be 'zzz://x'"),
        ([*RUN, "--out", LONG], "File name too long"),
        (["best", LONG], "File name too long"),
        (["report", LONG], "File name too long"),
        (["dataset", "info", LONG], "File name too long"),
        (["show", "TPE-v0", "--picture", "/proc/zzz.svg"], "cannot use /proc/zzz.svg"),
        (["check", "random", "--set", "zzz=1"], "unknown hyperparameter of agent 'random' 'zzz'"),
        (["evaluate", "Conformance-v0", "--set", "levels=zzz"], "levels must be an integer"),
        (["evaluate", "Conformance-v0", "--set", "levels=1"], "levels must be an integer"),
        (["evaluate", "Conformance-v0", "--simulator", "proxy:/dev/zero"], "a pipe or a device"),
        (["evaluate", "Conformance-v0", "--record", "/proc/x"], "cannot write to /proc/x"),
        (["evaluate", "Conformance-v0", "ways=\udcff"], "ways"),
        (["best", "\udcff"], "is not there"),
        (["status", "FILE"], "is a file; the status is that of the folder of a run"),
        (["proxy", "train", "RUN", "--out", "/proc/x"], "cannot write /proc/x"),
        ([*RUN, "--out", "\udcff"], "its name is not in UTF-8"),
        (["evaluate", "Conformance-v0", "--record", "\udcff"], "its name is not in UTF-8"),
        (["dataset", "sample", "RUN", "\udcff", "--rows", "1"], "its name is not in UTF-8"),
        (["dataset", "export", "RUN", "/proc/x.csv"], "cannot write /proc/x.csv"),
        (["report", "RUN", "--out", "/proc/x.html"], "cannot write"),
        (["report", "RUN", "--out", "OUT/x.html", "--figures", "/proc/x"], "cannot write"),
        (["enumerate", "Conformance-v0", "--set", "space=finite", "--out", "/proc/x"], "/proc/x"),
        (["docs", "commands", "--out", "/proc"], "cannot write"),
    ],
    ids=lambda value: " ".join(value[-2:])[:60] if isinstance(value, list) else None,
)
def test_ordinary_input(
    words: list[str], message: str, tmp_path: Path, call: Callable[..., Called]
) -> None:
    if "RUN" in words:
        data = tmp_path / "data"
        assert call("evaluate", "Conformance-v0", "ways=2", "--record", data).code == 0
        words = [str(data) if word == "RUN" else word for word in words]
    words = [__file__ if word == "FILE" else word for word in words]
    ended = call(*(word.replace("OUT", str(tmp_path)) for word in words))
    assert ended.code == 2
    assert message in ended.err
    assert len(ended.err.splitlines()) <= 5


def test_the_folder_of_a_run_is_no_experiment(tmp_path: Path, call: Callable[..., Called]) -> None:
    out = tmp_path / "run"
    assert call(*RUN, "--out", out).code == 0
    ended = call("run", out, "--local")
    assert ended.code == 2
    assert f"archgym run {out / 'experiment.yaml'} --out {out} --resume goes on" in ended.err


def test_a_folder_whose_name_looks_like_an_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Callable[..., Called]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call("evaluate", "Conformance-v0", "--record", "proxy:x").code == 0
    assert call("dataset", "validate", "proxy:x").code == 0


def test_a_file_that_is_no_experiment_is_not_shown(
    tmp_path: Path, call: Callable[..., Called]
) -> None:
    (tmp_path / "x.yaml").write_text("SECRET")
    ended = call("run", tmp_path / "x.yaml", "--local")
    assert ended.code == 2
    assert "SECRET" not in ended.err
