"""Folders of archgym's own names that somebody put into a dataset."""

from __future__ import annotations

from pathlib import Path

from tests.trust.received import called, received_run


def test_an_empty_folder_is_no_interrupted_repair(tmp_path: Path) -> None:
    """It took the place of the evaluations, and the run then passed as one without any."""
    run = received_run(tmp_path / "run")
    dataset = run / "datasets" / "Conformance-v0"
    (dataset / "repaired").mkdir()
    ended = called(["dataset", "repair", "."], run)
    assert ended.code == 2
    assert "is not of an earlier repair" in ended.err
    assert any((dataset / "evaluations").glob("*.parquet"))
