from __future__ import annotations

from pathlib import Path
from typing import Any


def test_evaluate_at_a_fidelity(call: Any, tmp_path: Path) -> None:
    full, part = (
        call("evaluate", "Conformance-v0", "ways=3", *options, "--json").json
        for options in ((), ("--fidelity", "0.1"))
    )
    assert (full["fidelity"], part["fidelity"]) == (1.0, 0.1)
    assert full["metrics"]["access_ns"] < part["metrics"]["access_ns"]
    assert full["baseline_metrics"]["access_ns"] < part["baseline_metrics"]["access_ns"]
    alike = call("evaluate", "Conformance-v0", "--fidelity", "0.1", "--json").json
    assert alike["metrics"] == alike["baseline_metrics"] == part["baseline_metrics"]
    assert alike["reward"] == 0.5
    given = ("evaluate", "Conformance-v0", "ways=3", "--fidelity", "0.1", "--json")
    recorded = call(*given, "--record", tmp_path / "data").json
    assert recorded["baseline_metrics"] == part["baseline_metrics"]
    assert recorded["reward"] != part["reward"]  # that of a dataset is against the full baseline
    assert "fidelity 0.1" in call("evaluate", "Conformance-v0", "--fidelity", "0.1").out
    assert "fidelity" not in call("evaluate", "Conformance-v0").out


def test_a_fidelity_that_is_not_there_is_one_clear_message(call: Any) -> None:
    called = call("evaluate", "Conformance-v0", "--fidelity", "0.5")
    assert called.code != 0
    assert "fidelity 0.5 is not among those" in called.err
    assert "0.1, 0.3, 1" in called.err


def test_show_lists_fidelities(call: Any) -> None:
    data = call("show", "Conformance-v0", "--json").json
    assert [one["cost"] for one in data["fidelities"]] == [0.1, 0.3, 1.0]
    assert "a tenth of the accesses" in call("show", "Conformance-v0").out
    assert "Fidelities" not in call("show", "TPE-v0").out
