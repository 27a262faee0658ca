"""Files of others are data: never executed, never read without a limit, no paths from them.

Ruff's rules S (pyproject.toml) keep pickle, eval, exec, shells and unsafe YAML out of the code;
what they do not know is looked for here.
"""

from __future__ import annotations

import ast
import gzip
import io
import json
import os
import struct
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import archgym
from archgym.agents.rl.policies import read_policy
from archgym.data import Dataset
from archgym.data.parts import write_parquet
from archgym.enumeration import enumerate_space
from archgym.environment.recorded import recorded_settings
from archgym.envs.dram.traces.trace_files import read_trace
from archgym.envs.nas.data import nuclei
from archgym.envs.nas.hardware.latency_table import LatencyTable
from archgym.errors import (
    ArchgymError,
    DatasetError,
    ExperimentError,
    InvalidValueError,
    TraceError,
)
from archgym.experiment.spec.load import load_experiment, parse_value
from archgym.problem.reference import read_table
from archgym.proxy.files import load_proxy
from archgym.reading.files import read_arrays, read_bytes, read_json, read_text
from archgym.registry import make_agent
from tests.helpers import Adder

ROOT = Path(__file__).parent.parent

# -- the code ------------------------------------------------------------------------------------

_READERS = {f"archgym/reading/{name}.py" for name in ("files", "plain_yaml", "xml_text")}
"""The modules through which archives, YAML and XML of others are read."""
_MODULES = {"pickle", "cloudpickle", "dill", "marshal", "shelve", "joblib", "tarfile", "xml"}
_CALLS = {"np.load", "numpy.load", "torch.load", "yaml.load", "yaml.safe_load", "yaml.unsafe_load"}


def _calls(path: Path) -> Iterator[str]:
    """What a module imports or calls that it should not."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.partition(".")[0] in _MODULES)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in _MODULES:
            yield str(node.module)
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name in _CALLS:
                yield name
            for word in node.keywords:
                if word.arg in ("allow_pickle", "shell") and ast.unparse(word.value) != "False":
                    yield f"{name}({word.arg}={ast.unparse(word.value)})"


def test_the_search_finds_what_it_looks_for(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        "import pickle\nfrom xml.etree import ElementTree\nnp.load(a, allow_pickle=flag)\n"
        "subprocess.run(b, shell=True)\nyaml.load(c)\n"
    )
    assert sorted(_calls(module)) == [
        "np.load",
        "np.load(allow_pickle=flag)",
        "pickle",
        "subprocess.run(shell=True)",
        "xml.etree",
        "yaml.load",
    ]


def test_no_module_unpickles_or_starts_a_shell() -> None:
    modules = [p for top in ("archgym", "agents", "envs") for p in (ROOT / top).rglob("*.py")]
    assert len(modules) > 200
    found = {
        str(path.relative_to(ROOT)): calls
        for path in modules
        if str(path.relative_to(ROOT)) not in _READERS and (calls := list(_calls(path)))
    }
    assert found == {}


# -- limits --------------------------------------------------------------------------------------


def _gzip(n: int) -> bytes:
    """Gzipped zeros, a thousandth of their size."""
    return gzip.compress(b"0" * n)


def test_a_file_is_refused_at_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 10)
    assert read_bytes(path, 10) == b"x" * 10
    with pytest.raises(OSError, match="larger than the limit of 9 bytes"):
        read_bytes(path, 9)
    path.write_bytes(_gzip(1 << 20))
    assert path.stat().st_size < 1 << 12
    assert read_text(path, 1 << 20, unpack=True) == "0" * (1 << 20)
    with pytest.raises(OSError, match="larger than the limit"):
        read_text(path, (1 << 20) - 1, unpack=True)
    path.write_bytes(_gzip(1 << 20)[:-20])
    with pytest.raises(OSError, match="damaged gzip file"):
        read_text(path, 1 << 20, unpack=True)
    with pytest.raises(OSError, match="a pipe or a device"):
        read_bytes(Path("/dev/zero"), 1 << 10)
    with pytest.raises(OSError, match="a folder"):
        read_bytes(tmp_path, 1 << 10)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="a pipe or a device"):
        read_bytes(tmp_path / "pipe", 1 << 10)


def test_deep_json_is_an_error_and_no_crash(tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    path.write_text("[" * 200_000)
    with pytest.raises(ValueError, match="nested too deeply"):
        read_json(path)
    with pytest.raises(ArchgymError, match="nested too deeply"):
        archgym.make("DRAM-v0", memory=str(path))
    (tmp_path / "dataset.json").write_text("[" * 200_000)
    with pytest.raises(DatasetError, match="nested too deeply"):
        Dataset(tmp_path)


LAUGHS = "\n".join(
    ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 20))]
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LAUGHS, "more than 1,000,000 values"),
        ("a: &a [*a]", "an alias of itself"),
        ("a: &a {b: {c: *a}}", "an alias of itself"),
        ("[" * 20_000, "nested too deeply"),
        ("!!python/object/apply:os.getcwd []", "could not determine a constructor"),
    ],
)
def test_yaml_cannot_grow_call_or_crash(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match=message):
        parse_value(text, "text")
    path = tmp_path / "file.yaml"
    path.write_text(text)
    with pytest.raises(ExperimentError, match=message):
        load_experiment(path)
    with pytest.raises(InvalidValueError, match=message):
        LatencyTable.read(path)


def test_aliases_mean_what_they_stand_for() -> None:
    assert parse_value("{a: &a [1, {b: 2}], c: [*a, *a]}", "text") == {
        "a": [1, {"b": 2}],
        "c": [[1, {"b": 2}]] * 2,
    }


def test_experiment_of_any_size_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    with path.open("wb") as file:
        file.truncate(1 << 25)
    with pytest.raises(ExperimentError, match="larger than the limit"):
        load_experiment(path)


def test_packed_table_of_any_size_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(_gzip(1 << 20))
    monkeypatch.setattr("archgym.problem.reference._LIMIT_BYTES", 1 << 19)
    with pytest.raises(InvalidValueError, match="larger than the limit"):
        read_table(path)


def test_trace_lines_have_an_end(tmp_path: Path) -> None:
    path = tmp_path / "trace.stl"
    path.write_bytes(_gzip(1 << 22))
    with pytest.raises(TraceError, match="line 1: longer than 4096 characters"):
        read_trace(path)
    path.write_text("0: (999999999) read 0x0\n" * 5)
    with pytest.raises(TraceError, match="more than 67,108,864 requests of 64 bytes"):
        read_trace(path)


def _npz(arrays: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in arrays.items():
            archive.writestr(f"{name}.npy", data)
    return buffer.getvalue()


def _npy(shape: tuple[int, ...], data: bytes = b"", kind: str = "<f8") -> bytes:
    buffer = io.BytesIO()
    header = {"descr": kind, "fortran_order": False, "shape": shape}
    form: Any = np.lib.format
    form.write_array_header_1_0(buffer, header)
    return buffer.getvalue() + data


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (_npz({"a": _npy((1 << 21,), bytes(1 << 24))}), "larger than the limit"),
        (_npz({"a": _npy((1 << 50,))}), r"an array of shape \(1125899906842624,\)"),
        (_npz({"a": _npy((1,), bytes(8), "|O")}), "array of objects"),
        (_npz({"a": b"\x93NUMPY\x09\x09"}), "version"),
        (b"PK", "no NumPy archive, or damaged"),
        (_npz({"a": _npy((8,), bytes(64))})[:-9], "no NumPy archive, or damaged"),
    ],
)
def test_archives_are_measured_before_they_are_unpacked(content: bytes, message: str) -> None:
    with pytest.raises((OSError, ValueError), match=message):
        read_arrays(content, 1 << 20)


def test_arrays_are_those_that_were_written(tmp_path: Path) -> None:
    arrays: dict[str, Any] = {
        "rows": np.arange(6.0).reshape(2, 3),
        "columns": np.asfortranarray(np.arange(6, dtype=np.int16).reshape(2, 3)),
        "one": np.int64(7),
        "none": np.zeros((0, 4), np.uint8),
        "text": np.array("ä"),
    }
    path = tmp_path / "a.npz"
    for save in (np.savez, np.savez_compressed):
        save(path, allow_pickle=False, **arrays)
        found = read_arrays(path, 1 << 20)
        assert list(found) == list(arrays)
        for name, array in arrays.items():
            assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
            assert np.array_equal(found[name], array)


def test_pictures_are_measured_before_they_are_unpacked(tmp_path: Path) -> None:
    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    picture = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", len(header)) + b"IHDR" + header
    for number in range(5):
        for kind in ("images", "masks"):
            (tmp_path / str(number) / kind).mkdir(parents=True)
            (tmp_path / str(number) / kind / "a.png").write_bytes(picture)
    with pytest.raises(InvalidValueError, match="60000 x 60000 pixels"):
        nuclei.load(tmp_path)


@pytest.mark.parametrize("read", [read_trace, load_proxy, lambda path: read_policy(path, {})])
def test_no_archive_of_ours_is_read_without_measure(
    read: Callable[[Path], Any], tmp_path: Path
) -> None:
    path = tmp_path / "bomb.npz"
    path.write_bytes(_npz({"version": _npy((1 << 50,)), "header": _npy((1 << 50,))}))
    with pytest.raises(ArchgymError, match="an array of shape"):
        read(path)


# -- trust ---------------------------------------------------------------------------------------


def test_a_dataset_does_not_say_which_files_are_deleted(tmp_path: Path) -> None:
    env = archgym.make("Conformance-v0", record=tmp_path / "data")
    make_agent("random", env.design_space, seed=0).search(env, budget=3)
    env.close()
    Dataset(tmp_path / "data").seal()
    (part,) = (tmp_path / "data" / "evaluations").glob("*.parquet")
    whole = pq.read_table(part)
    kept = tmp_path / "kept.jsonl"
    kept.write_text("of the user")
    for name in ("../../kept.jsonl", str(kept), 7, ".."):
        forged = whole.replace_schema_metadata({b"archgym.journals": json.dumps([name]).encode()})
        part.unlink()
        write_parquet(part, forged.schema, [forged])
        with pytest.raises(DatasetError, match="something else than names of journals"):
            Dataset(tmp_path / "data").seal()
    assert kept.read_text() == "of the user"


def test_a_table_does_not_say_which_module_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archgym.register("AdderOfSecurity-v0", Adder)
    enumerate_space("AdderOfSecurity-v0", {}, tmp_path / "table", workers=1)
    (tmp_path / "module_of_a_stranger.py").write_text("raise SystemExit('executed')")
    monkeypatch.syspath_prepend(tmp_path)
    (path,) = (tmp_path / "table").glob("*.parquet")
    whole = pq.read_table(path)
    meta = json.loads(whole.schema.metadata[b"archgym.table"])
    meta["environment"] = "module_of_a_stranger:Adder"
    path.unlink()
    forged = whole.replace_schema_metadata({b"archgym.table": json.dumps(meta).encode()})
    pq.write_table(forged, path, write_page_checksum=True)
    with pytest.raises(InvalidValueError, match="the table is of environment module_of_a_stranger"):
        archgym.make("AdderOfSecurity-v0", simulator=f"tabular:{path}")
    assert "module_of_a_stranger" not in sys.modules


@pytest.mark.parametrize("name", ["program", "cache"])
def test_a_recording_does_not_say_which_program_is_run(name: str) -> None:
    settings = {"memory": "DDR3-1600", "simulator_options": {name: "/bin/true"}}
    cls = type(archgym.make("Conformance-v0"))
    with pytest.raises(InvalidValueError, match=f"{name}='/bin/true', which is not taken from"):
        recorded_settings(cls, settings)
    del settings["simulator_options"]
    assert recorded_settings(cls, settings) == {}
