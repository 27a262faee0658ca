"""Commands in a container of the real Podman, where it can run one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
import time
from collections.abc import Iterator

import pytest

import archgym
from archgym.declared import DeclaredEnvironment
from archgym.errors import MissingDependencyError, SimulationError
from tests.declared.conftest import Write

pytestmark = pytest.mark.full

IMAGE = "localhost/archgym-test:1"
_OPTIONS: tuple[list[str], ...] = (
    [],
    ["--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024"],
    ["--ulimit=nofile=20000:20000", "--ulimit=nproc=4096:4096"],
)
"""Further options, of which the first that this machine takes are used."""
TEXT = """
where: {container: IMAGE, with: podman, options: {podman: OPTIONS}}
version: [busybox, cat, /version]
parameters:
  depth: {integer: [1, 16], baseline: 4}
files:
  - {path: design.txt, text: "{{ depth }}\\n"}
stages:
  prepare:
    uses: []
    run: [sh, -c, "echo 3 > made; cat {{ here }}/queue.yaml > copy"]
  run:
    run: [sh, -c, 'read d < design.txt; id -u; ls /sys/class/net; touch {{ folder.prepare }}/new; echo "depth $d"; cat {{ folder.prepare }}/made > mine']
    time_limit_s: 60
metrics:
  depth_count: {regex: 'depth (\\d+)'}
"""  # noqa: E501


def podman(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["podman", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """Options with which an image of busybox runs."""
    busybox = shutil.which("busybox")
    if shutil.which("podman") is None or busybox is None:
        pytest.skip("podman and a static busybox are not installed")
    folder = tmp_path_factory.mktemp("podman")
    configuration = folder / "storage.conf"
    configuration.write_text(
        f'[storage]\ndriver = "vfs"\ngraphroot = "{folder}/graph"\nrunroot = "{folder}/run"\n'
    )
    if os.getuid() == 0:
        os.environ["CONTAINERS_STORAGE_CONF"] = str(configuration)
    containers = folder / "containers.conf"
    engine = 'runtime = "runc"\n' if shutil.which("runc") else ""
    containers.write_text(
        f'[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n{engine}'
    )
    os.environ.setdefault("CONTAINERS_CONF", str(containers))
    (folder / "version").write_text("tool 7\n")
    with tarfile.open(folder / "image.tar", "w") as image:
        image.add(busybox, "bin/busybox")
        image.add(folder / "version", "version")
        for name in ("sh", "cat", "id", "ls", "touch", "sleep"):
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            image.addfile(link)
    try:
        if podman("import", str(folder / "image.tar"), IMAGE).returncode:
            pytest.skip("podman imports no image here")
        for given in _OPTIONS:
            limits = "--ulimit=core=0:0"
            ran = podman("run", "--rm", "--network=none", limits, *given, IMAGE, "id")
            if ran.returncode == 0:
                break
        else:
            pytest.skip(f"podman runs no container here: {ran.stderr.strip()[-200:]}")
        yield list(given)
    finally:
        podman("rmi", "--force", IMAGE)
        os.environ.pop("CONTAINERS_STORAGE_CONF", None)
        if os.environ.get("CONTAINERS_CONF") == str(containers):
            del os.environ["CONTAINERS_CONF"]


def made(write: Write, options: list[str], *changes: tuple[str, str]) -> DeclaredEnvironment:
    text = TEXT.replace("IMAGE", IMAGE).replace("OPTIONS", json.dumps(options))
    env = archgym.make(write(*changes, text=text), keep="always")
    assert isinstance(env, DeclaredEnvironment)
    return env


def test_a_design_runs_in_the_image(write: Write, options: list[str]) -> None:
    env = made(write, options)
    assert env.version.startswith("tool 7 ")
    assert env.simulate_baseline() == [4]
    (folder,) = env.kept
    assert (folder / "run.stdout").read_text().split() == [str(os.getuid()), "lo", "depth", "4"]
    assert "Read-only" in (folder / "run.stderr").read_text()
    assert (folder / "mine").stat().st_uid == os.getuid()
    assert podman("ps", "--all", "--quiet").stdout == ""


def test_a_container_is_gone_when_its_time_is_up(write: Write, options: list[str]) -> None:
    env = made(write, options, ("read d", "sleep 50; read d"), ("t_s: 60", "t_s: 3"))
    began = time.monotonic()
    with pytest.raises(SimulationError, match="did not finish within 3 s"):
        env.simulate_baseline()
    assert time.monotonic() - began < 40
    assert podman("ps", "--all", "--quiet").stdout == ""


def test_what_is_missing_is_named(write: Write, options: list[str]) -> None:
    with pytest.raises(MissingDependencyError, match="no program 'nosuch' in the image"):
        made(write, options, ("run: [sh, -c, 'read", "run: [nosuch, 'read")).simulate_baseline()
    with pytest.raises(MissingDependencyError, match="podman pull localhost/archgym-test:2"):
        made(write, options, ("archgym-test:1", "archgym-test:2"))
