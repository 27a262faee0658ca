"""Commands in containers. The engines are stand-ins that take the options of the real ones only."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import archgym
from archgym.declared import DeclaredEnvironment
from archgym.errors import ArchgymError, InvalidValueError, MissingDependencyError, SimulationError
from tests.declared.conftest import Write

STAND_IN = Path(__file__).with_name("engine_stand_in.py")
TEXT = """
where: {container: sim:1}
parameters:
  depth: {integer: [1, 16], baseline: 4}
workloads:
  a: {files: {trace: "../elsewhere/trace.txt"}}
files:
  - {path: design.txt, text: "{{ depth }}\\n"}
stages:
  prepare:
    uses: []
    run: [sh, -c, "echo built > made; cat {{ here }}/queue.yaml | head -1"]
  run:
    run: [sh, -c, 'read d < design.txt; echo "depth $d $KEY"; cat {{ folder.prepare }}/made $0', "{{ trace }}"]
    env: {KEY: "a,b = {{ depth }}"}
    time_limit_s: 20
metrics:
  depth_count: {regex: 'depth (\\d+) a,b'}
"""  # noqa: E501


class Engines:
    """Stand-ins on PATH, and what they were called with."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self._path = folder, folder / "bin"
        self._path.mkdir(parents=True)
        for name in ("sh", "cat", "sleep", "awk", "head", "prlimit", "setpriv"):
            (self._path / name).symlink_to(str(shutil.which(name)))
        monkeypatch.setenv("PATH", str(self._path))
        monkeypatch.setenv("STAND_IN", str(folder))
        monkeypatch.setenv("STAND_IN_OWN", str(folder.parent))
        self.set_images(**{"sim:1": "1234"})

    def set_images(self, **images: str) -> None:
        (self.folder / "images.json").write_text(json.dumps(images))

    def install(self, *names: str) -> None:
        for name in names:
            script = self._path / name
            script.write_text(f"#!{sys.executable}\n{STAND_IN.read_text()}")
            script.chmod(0o755)

    def calls(self, engine: str, verb: str) -> list[list[str]]:
        lines = (self.folder / "calls.jsonl").read_text().splitlines()
        return [call for call in map(json.loads, lines) if call[0] == engine and verb in call[1:3]]


@pytest.fixture
def engines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Engines:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "trace.txt").write_text("trace\n")
    return Engines(tmp_path / "engines", monkeypatch)


@pytest.fixture
def made(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    from archgym.declared.places import engines as module

    module._rootless.cache_clear()
    (tmp_path / "mine").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def made(*changes: tuple[str, str], **arguments: Any) -> DeclaredEnvironment:
        env = archgym.make(write(*changes, text=TEXT, name="mine/queue.yaml"), **arguments)
        assert isinstance(env, DeclaredEnvironment)
        return env

    return made


@pytest.mark.parametrize("engine", ["docker", "podman", "apptainer"])
def test_commands_run_in_the_container(engines: Engines, made: Any, engine: str) -> None:
    engines.install(engine)
    env = made(keep="always")
    assert env.simulate_baseline() == [4]
    (folder,) = env.kept
    assert (folder / "run.stdout").read_text() == "depth 4 a,b = 4\nbuilt\ntrace\n"
    assert "built" not in (folder / "prepare.stdout").read_text()
    assert f"of {engine}" in (folder / "commands.txt").read_text()
    verb = "exec" if engine == "apptainer" else "run"
    first, second = engines.calls(engine, verb)
    assert "--network=none" in first
    assert "--network=none" in second
    if engine != "apptainer":
        assert "--rm" in second
        name = next(text for text in second if text.startswith("--name=archgym-"))
        assert name not in first


def test_the_network_and_options_are_asked_for(engines: Engines, made: Any) -> None:
    engines.install("docker")
    more = "network: true, options: {docker: [--cpus=2], apptainer: [--nv]}"
    env = made(("container: sim:1", f"container: sim:1, {more}"))
    env.simulate_baseline()
    for call in engines.calls("docker", "run"):
        assert "--cpus=2" in call
        assert "--nv" not in call
        assert not any("--network" in text for text in call)


@pytest.mark.parametrize("engine", ["docker", "podman", "apptainer"])
def test_a_container_is_killed_when_its_time_is_up(
    engines: Engines, made: Any, engine: str
) -> None:
    engines.install(engine)
    env = made(('echo "depth', 'exec sleep 4321.5; echo "depth'), ("t_s: 20", "t_s: 0.7"))
    with pytest.raises(SimulationError, match=r"did not finish within 0.7 s"):
        env.simulate_baseline()
    left = subprocess.run(["/bin/sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"],
                          capture_output=True, text=True, check=False).stdout  # fmt: skip
    assert "sleep 4321.5" not in left.replace("sleep 4321.5; echo", "")
    assert not list(engines.folder.glob("*.pid"))


def test_limits_of_memory_are_handed_on(engines: Engines, made: Any) -> None:
    engines.install("docker", "apptainer")
    change = ("time_limit_s: 20", "time_limit_s: 20\n    memory_limit_mb: 100")
    made(change).evaluate({"depth": 2})
    assert "--memory=100000000b" in engines.calls("docker", "run")[-1]
    bad = ('echo "depth', 'echo out of memory >&2; exit 3; echo "depth')
    with pytest.raises(SimulationError, match="may need more than its memory_limit_mb of 100"):
        made(change, bad, where="apptainer").simulate_baseline()
    assert any("ulimit -v 97656" in text for text in engines.calls("apptainer", "exec")[-1])


def test_an_argument_says_where_instead_of_the_file(engines: Engines, made: Any) -> None:
    assert made(where="host").evaluate({"depth": 2}).status == "ok"
    engines.install("docker", "podman")
    assert made().evaluate({"depth": 2}).status == "ok"
    assert made(where="podman").evaluate({"depth": 2}).status == "ok"
    engines.set_images(**{"other:2": "5"})
    env = made(where={"container": "other:2", "with": "podman"})
    assert env.evaluate({"depth": 2}).status == "ok"
    assert "other:2" in engines.calls("podman", "run")[-1]
    assert "where" not in env.settings


def test_the_image_is_a_part_of_the_version(engines: Engines, made: Any) -> None:
    engines.install("docker", "podman")
    first = made().version
    assert made(where="podman").version == first
    engines.set_images(**{"sim:1": "9999"})
    assert made().version != first
    assert made(where="host").version != first


def test_a_stage_has_a_place_of_its_own(engines: Engines, made: Any) -> None:
    engines.install("podman")
    env = made(("    uses: []", "    uses: []\n    where: host"))
    assert env.simulate_baseline() == [4]
    assert len(engines.calls("podman", "run")) == 1


def test_an_image_of_apptainer_is_a_file(engines: Engines, made: Any, tmp_path: Path) -> None:
    engines.install("docker", "apptainer")
    (tmp_path / "mine" / "sim.sif").write_text("an image")
    sif = ("sim:1", "sim.sif")
    first = made(sif)
    assert first.evaluate({"depth": 2}).status == "ok"
    (tmp_path / "mine" / "sim.sif").write_text("another image")
    assert made(sif).version != first.version
    with pytest.raises(InvalidValueError, match=r"sim.sif is an image of apptainer, not of docker"):
        made(sif, where="docker")
    with pytest.raises(MissingDependencyError, match=r"line 2: where: there is no image .*/no.sif"):
        made(("sim:1", "no.sif"))


MISTAKES = {
    "{container: sim:1, wiht: docker}": "line 2: where.wiht: unknown key 'wiht'.*'with'",
    "{container: sim:1, with: dokcer}": "where.with: .*allowed is 'docker', 'podman' or 'appt",
    "somewhere": "where: .*'somewhere'.*allowed is host, or a mapping with container",
    "{with: docker}": "where.container: this is missing",
    "{container: ''}": "container is empty",
    "{container: sim:7}": "docker does not give the image sim:7.*docker pull sim:7",
    "{container: sim:1, mounts: [none]}": "mounts: there is no .*/none",
}


@pytest.mark.parametrize("where", MISTAKES)
def test_mistakes_are_named(engines: Engines, made: Any, where: str) -> None:
    engines.install("docker")
    with pytest.raises(ArchgymError, match=MISTAKES[where]):
        made(("{container: sim:1}", where))


def test_an_engine_that_is_not_installed_is_named(engines: Engines, made: Any) -> None:
    with pytest.raises(
        MissingDependencyError, match="docker or podman or apptainer is not on PATH"
    ):
        made()
    with pytest.raises(MissingDependencyError, match="podman is not on PATH"):
        made(where="podman")
    with pytest.raises(ArchgymError, match="Did you mean 'docker'"):
        made(where="doker")


def test_a_program_that_is_not_in_the_image_is_named(engines: Engines, made: Any) -> None:
    engines.install("podman")
    env = made(("run: [sh, -c, 'read", "run: [sim, -c, 'read"))
    with pytest.raises(MissingDependencyError, match="no program 'sim' in the image sim:1"):
        env.evaluate({"depth": 2})
    own = ('echo "depth', 'echo "sh: x: no such file or directory" >&2; exit 127; echo "depth')
    with pytest.raises(SimulationError, match="sh ended with exit code 127: sh: x: no such file"):
        made(own).simulate_baseline()


def test_an_engine_for_a_file_without_a_container(write: Write) -> None:
    with pytest.raises(InvalidValueError, match="where is 'docker', but the file names no"):
        archgym.make(write(), where="docker")
