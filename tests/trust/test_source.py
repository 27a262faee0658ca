"""Results of an edited simulator do not join those of the one before."""

from __future__ import annotations

import importlib
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import archgym
from archgym.data import Dataset
from archgym.environment.source import source_sha256
from archgym.errors import DatasetError
from tests.cli.conftest import Called

TOY = '''"""A toy."""

import archgym
from archgym.space import DesignSpace, Integer
from toy_costs.model import energy_j

UNUSED = 1


class Toy(archgym.Environment):
    """Of two parameters."""

    design_space = DesignSpace([Integer("x", 0, 9), Integer("y", 0, 9)])
    metrics = (archgym.Metric("energy_j", "J", "minimize", "energy"),)
    default_objective = {"minimize": "energy_j"}
    baseline = {"x": 0, "y": 0}

    def simulate(self, design):
        return {"energy_j": energy_j(design["x"], design["y"])}
'''
MODEL = """from pathlib import Path

from .constants import STEP as FIRST


def energy_j(x, y):
    offset = float((Path(__file__).parent / "offset.txt").read_text())
    return FIRST * (x - 3) ** 2 + y + offset


def unused():
    return 3
"""
FILES = {
    "toy_source.py": TOY,
    "toy_costs/__init__.py": "",
    "toy_costs/model.py": MODEL,
    "toy_costs/constants.py": "STEP = 2.0\nOTHER = 1\n",
    "toy_costs/offset.txt": "1.5",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A user's folder with the toy, in which commands are called."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    forget()


def forget() -> None:
    for name in [name for name in sys.modules if name.startswith("toy_")]:
        del sys.modules[name]


def toy() -> type[archgym.Environment]:
    """The class, as another process would load it."""
    forget()
    importlib.invalidate_caches()
    found: type[archgym.Environment] = importlib.import_module("toy_source").Toy
    return found


def edit(folder: Path, name: str, before: str, after: str) -> None:
    text = (folder / name).read_text()
    assert before in text
    (folder / name).write_text(text.replace(before, after))


MATTERS = {
    "the class": ("toy_source.py", 'design["x"], ', 'design["x"] + 1, '),
    "a function of another module": ("toy_costs/model.py", "** 2", "** 4"),
    "a constant of a third one": ("toy_costs/constants.py", "2.0", "2.5"),
    "a file that it names": ("toy_costs/offset.txt", "1.5", "1.6"),
}
DOES_NOT = {
    "documentation": ("toy_source.py", "Of two parameters", "Of some parameters"),
    "layout": ("toy_source.py", "\n\n\nclass", "\n\n# here it is\n\nclass"),
    "another constant": ("toy_source.py", "UNUSED = 1", "UNUSED = 2"),
    "another function": ("toy_costs/model.py", "return 3", "return 4"),
    "a constant beside": ("toy_costs/constants.py", "OTHER = 1", "OTHER = 7"),
}


@pytest.mark.parametrize("what", MATTERS)
def test_an_edit_that_matters(what: str, folder: Path) -> None:
    toy()(record="rows").evaluate({"x": 1, "y": 1})
    edit(folder, *MATTERS[what])
    with pytest.raises(DatasetError, match=r"source of the simulator has changed.*version '1'"):
        toy()(record="rows")
    edit(folder, "toy_source.py", "metrics =", 'version = "2"\n    metrics =')
    with pytest.raises(DatasetError, match="the simulators differ"):
        toy()(record="rows")
    toy()(record="other").evaluate({"x": 1, "y": 1})


@pytest.mark.parametrize("what", DOES_NOT)
def test_an_edit_that_does_not(what: str, folder: Path) -> None:
    toy()(record="rows").evaluate({"x": 1, "y": 1})
    edit(folder, *DOES_NOT[what])
    toy()(record="rows").evaluate({"x": 2, "y": 1})
    assert len(Dataset("rows").evaluations()) == 2


def test_installed_code_has_its_version() -> None:
    assert source_sha256(type(archgym.make("DRAM-v0"))) == ""


def written(folder: Path, **changes: Any) -> Path:
    experiment = {
        "name": "toy",
        "budget": 6,
        "environments": [{"id": "toy_source:Toy"}],
        "agents": [{"name": "random"}],
        **changes,
    }
    (folder / "toy.yaml").write_text(yaml.safe_dump(experiment))
    return folder / "toy.yaml"


def test_a_run_goes_on_after_an_edit_that_changes_no_metric(
    folder: Path, call: Callable[..., Called]
) -> None:
    run = ("run", written(folder), "--local", "-q", "--out", "run")
    replay = ("dataset", "validate", "run", "--replay", "all", "--environment", "toy_source:Toy")
    assert call(*run).code == 0
    written(folder, budget=8)
    edit(folder, "toy_costs/model.py", "+ y +", "+ 2 * y +")
    forget()
    shown = call(*run, "--resume")
    assert shown.code == 2
    command = "run/datasets/Toy --replay --accept-source --environment toy_source:Toy shows it"
    assert command in shown.err
    assert call(*replay, "--accept-source").code == 1
    forget()
    assert call(*run, "--resume").code == 2
    edit(folder, "toy_costs/model.py", "+ 2 * y +", "+ (y + 0) +")
    forget()
    assert call(*run, "--resume").code == 2
    assert call(*replay, "--accept-source").code == 0
    assert call(*run, "--resume").code == 0
    assert len(Dataset("run/datasets/Toy").evaluations()) == 8


def test_another_version_is_accepted_if_no_metric_changed(
    folder: Path, call: Callable[..., Called]
) -> None:
    run = ("run", written(folder), "--local", "-q", "--out", "run")
    assert call(*run).code == 0
    written(folder, budget=8)
    edit(folder, "toy_source.py", "metrics =", 'version = "2"\n    metrics =')
    forget()
    shown = call(*run, "--resume")
    assert "with version '1', and now it is '2'" in shown.err
    command = shlex.split(shown.err.partition("as before, archgym ")[2].partition(" shows it")[0])
    accepted = call(*command, "--json")
    assert (accepted.code, accepted.err) == (0, "version 2 accepted in place of 1\n")
    assert accepted.json["passed"]
    assert "nothing to accept" in call(*command).out
    assert call(*run, "--resume").code == 0
    assert Dataset("run/datasets/Toy").sidecar.simulator["version"] == "2"


def test_a_cache_knows_the_source(folder: Path, call: Callable[..., Called]) -> None:
    experiment = written(folder, simulation={"cache": "cache.sqlite"})
    assert call("run", experiment, "--local", "-q", "--out", "one").code == 0
    edit(folder, "toy_costs/offset.txt", "1.5", "100")
    forget()
    assert call("run", experiment, "--local", "-q", "--out", "two").code == 0
    one, two = (
        Dataset(f"{name}/datasets/Toy").evaluations()["metric.energy_j"].to_pylist()
        for name in ("one", "two")
    )
    assert max(one) < 100 <= min(two)


def test_packages_of_another_environment_are_installed_too(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = folder / "lib" / "site-packages"
    packages.mkdir(parents=True)
    (packages / "toy_package.py").write_text("import numpy\n\n\nclass Base:\n    size = 1\n")
    monkeypatch.syspath_prepend(str(packages))
    edit(folder, "toy_source.py", "(archgym.Environment)", "(Base, archgym.Environment)")
    edit(
        folder,
        "toy_source.py",
        "import archgym\n",
        "import archgym\nfrom toy_package import Base\n",
    )
    before = source_sha256(toy())
    edit(packages, "toy_package.py", "size = 1", "size = 2")
    assert source_sha256(toy()) == before != ""


def test_a_long_chain_of_names(folder: Path) -> None:
    chain = "".join(f"def f{n}(x):\n    return f{n + 1}(x)\n\n\n" for n in range(3000))
    text = (folder / "toy_costs" / "model.py").read_text()
    (folder / "toy_costs" / "model.py").write_text(
        f"{text}\n\n{chain}def f3000(x):\n    return x\n"
    )
    edit(folder, "toy_costs/model.py", "+ y +", "+ f0(y) +")
    before = source_sha256(toy())
    edit(folder, "toy_costs/model.py", "    return x\n", "    return x + 1\n")
    assert source_sha256(toy()) != before
