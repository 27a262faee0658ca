"""A folder for the Hugging Face hub in one command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from archgym.data import Dataset, Selection, find_datasets, load
from archgym.errors import InvalidValueError, UnknownNameError
from archgym.export.files import export
from tests.cli.conftest import Called, call
from tests.report.studies import run

__all__ = ["Called", "call"]


def metadata(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((folder / "README.md").read_text().split("---\n")[1])
    return found


def rows_of(folder: Path, config: dict[str, Any]) -> int:
    files = sorted(folder.glob(config["data_files"]))
    assert files
    return sum(pq.read_metadata(file).num_rows for file in files)


def test_one_dataset(tmp_path: Path, call: Any) -> None:
    folder, out = run(tmp_path / "run"), tmp_path / "hub"
    called = call("dataset", "export", folder, out, "--format", "hf", "--license", "cc-by-4.0")
    assert called.code == 0, called.err
    whole = load(folder)
    about = metadata(out)
    evaluations, trials = about["configs"]
    assert rows_of(out, evaluations) == len(whole) == len(load(out))
    assert rows_of(out, trials) == len(whole.trials)
    names = pq.read_schema(next(out.glob(evaluations["data_files"]))).names
    assert names == [one["name"] for one in about["dataset_info"][0]["features"]]
    assert call("dataset", "validate", out).code == 0
    again = call("dataset", "export", folder, out, "--format", "hf", "--license", "mit")
    assert again.code == 2
    assert "exists already" in again.err


def test_a_run_with_several_datasets(tmp_path: Path, call: Any) -> None:
    spaces = [{"id": "Conformance-v0", "space": name} for name in ("finite", "default")]
    folder = run(tmp_path / "run", environments=spaces)
    out = tmp_path / "new" / "hub"
    words = ("--format", "hf", "--license", "mit", "--title", "Two spaces")
    called = call("dataset", "export", folder, out, *words, "--agent", "random")
    assert called.code == 0, called.err
    about = metadata(out)
    assert about["pretty_name"] == "Two spaces"
    assert len({one["config_name"] for one in about["configs"]}) == 4
    assert sum(bool(one.get("default")) for one in about["configs"]) == 1
    kept = [len(Selection(one).where((), agents="random")) for one in find_datasets(folder)]
    evaluations = [one for one in about["configs"] if one["config_name"].endswith("-evaluations")]
    assert sorted(rows_of(out, one) for one in evaluations) == sorted(kept)
    for one in find_datasets(folder):
        assert (out / one.directory.name / "README.md").is_file()
        assert isinstance(load(out / one.directory.name).dataset, Dataset)


def test_a_licence_is_asked_for_before_anything_is_written(tmp_path: Path) -> None:
    data = load(run(tmp_path / "run"))
    with pytest.raises(InvalidValueError, match="names the licence"):
        export(data, tmp_path / "hub", "hf")
    with pytest.raises(UnknownNameError, match="Did you mean 'mit'"):
        export(data, tmp_path / "hub", "hf", licence="mitt")
    assert not (tmp_path / "hub").exists()
