"""Stands in for docker, podman or apptainer: takes their options only, and runs the command here.

It is called by the name of the engine. The folder in ``STAND_IN`` holds ``images.json`` (name: id)
and gets ``calls.jsonl``. As with the real ones, a container of docker or podman is no child of the
client: killing the client leaves it running.
"""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

ENGINE = Path(sys.argv[0]).name
STATE = Path(os.environ["STAND_IN"])
VALUED = {"name", "label", "network", "user", "security-opt", "ulimit", "memory", "memory-swap"}
VALUED |= {"mount", "workdir", "env", "entrypoint", "pull", "cpus"}
SWITCHES = {"rm"}
if ENGINE == "docker":
    SWITCHES.add("init")
else:
    VALUED |= {"timeout", "userns"}
Options = dict[str, list[str]]


def refuse(text: str, code: int = 125) -> None:
    sys.stderr.write(f"{ENGINE}: {text}\n")
    sys.exit(code)


def split(arguments: list[str], valued: set[str], switches: set[str]) -> tuple[Options, list[str]]:
    """Options of a command line, and what follows them."""
    options: Options = {}
    rest = list(arguments)
    while rest and rest[0].startswith("--"):
        name, equals, value = rest.pop(0)[2:].partition("=")
        if name in switches and not equals:
            options.setdefault(name, []).append("")
        elif name in valued:
            options.setdefault(name, []).append(value if equals else rest.pop(0))
        else:
            refuse(f"unknown flag: --{name}")
    return options, rest


def mounted(options: Options, read_only: str) -> dict[str, bool]:
    """Folders and files that the container sees, and whether it may write them."""
    found = {}
    for text in options.get("mount", []):
        (fields,) = csv.reader([text])
        pairs = dict(field.partition("=")[::2] for field in fields)
        writable = pairs.pop(read_only, None) is None
        if set(pairs) != {"type", "source", "destination"} or pairs["type"] != "bind":
            refuse(f"invalid mount {text!r}")
        if not os.path.exists(pairs["source"]):
            refuse(f"bind source path does not exist: {pairs['source']}")
        assert pairs["source"] == pairs["destination"]
        found[pairs["destination"]] = writable
    return found


def program(
    command: list[str], folder: str, seen: dict[str, bool], env: dict[str, str]
) -> list[str]:
    """The command, if the container has its program and sees the paths that it names."""
    if not seen.get(folder):
        refuse(f"workdir {folder} is not mounted for writing", 126)
    for text in command:
        for word in text.replace("=", " ").split():
            path = os.path.normpath(word)
            if path.startswith(os.environ["STAND_IN_OWN"]) and not any(
                path == one or path.startswith(f"{one}/") for one in seen
            ):
                refuse(f"{path}: no such file inside", 1)
    if os.sep not in command[0] and not any(
        os.access(f"{place}/{command[0]}", os.X_OK) for place in env["PATH"].split(":")
    ):
        refuse(f'exec: "{command[0]}": executable file not found in $PATH', 127)
    return command


def run(arguments: list[str]) -> int:
    options, rest = split(arguments, VALUED, SWITCHES)
    image, *command = rest
    if options.get("pull") != ["never"] or image not in json.loads(
        (STATE / "images.json").read_text()
    ):
        refuse(f"No such image: {image}")
    user, _, group = options["user"][0].partition(":")
    assert (int(user), int(group)) == (os.getuid(), os.getgid())
    for limit in options["ulimit"]:
        name, _, values = limit.partition("=")
        if name == "as":  # as go-units, which both use
            refuse(f"invalid ulimit type: {name}")
        int(values.partition(":")[0])
    env = dict(text.partition("=")[::2] for text in options["env"])
    env = {"PATH": "/usr/bin:/bin", **env}
    (folder,) = options["workdir"]
    command = [options["entrypoint"][0], *command]
    command = program(command, folder, mounted(options, "readonly"), env)
    (name,) = options["name"]
    inside = subprocess.Popen(command, cwd=folder, env=env, start_new_session=True)
    (STATE / f"{name}.pid").write_text(str(inside.pid))
    code = inside.wait()
    (STATE / f"{name}.pid").unlink(missing_ok=True)
    return code if code >= 0 else 128 - code


def remove(arguments: list[str]) -> int:
    more = {"time", "ignore"} if ENGINE == "podman" else set()
    options, (name,) = split(arguments, more & {"time"}, {"force", "volumes"} | more & {"ignore"})
    assert "force" in options
    path = STATE / f"{name}.pid"
    if path.exists():
        os.killpg(int(path.read_text()), signal.SIGKILL)
        path.unlink()
    elif "ignore" not in options:
        refuse(f"No such container: {name}", 1)
    return 0


def execute(arguments: list[str]) -> int:
    """``apptainer exec``."""
    switches = {"containall", "no-home", "net", "nv"}
    options, rest = split(arguments, {"network", "mount", "pwd"}, switches)
    image, *command = rest
    if not image.startswith("docker://") and not os.path.exists(image):
        refuse(f"could not open image {image}", 255)
    assert "containall" in options
    env = {"PATH": "/usr/bin:/bin", "HOME": "/root"}
    start = "APPTAINERENV_"
    env |= {k.removeprefix(start): v for k, v in os.environ.items() if k.startswith(start)}
    (folder,) = options["pwd"]
    command = program(command, folder, mounted(options, "ro"), env)
    os.chdir(folder)
    os.execvpe(command[0], command, env)


def main() -> int:
    with open(STATE / "calls.jsonl", "a", encoding="utf-8") as calls:
        calls.write(json.dumps([ENGINE, *sys.argv[1:]]) + "\n")
    arguments = sys.argv[1:]
    if ENGINE == "apptainer":
        switches, arguments = split(arguments, set(), {"quiet"})
        assert arguments.pop(0) == "exec", switches
        return execute(arguments)
    verb = arguments.pop(0)
    if verb == "run":
        return run(arguments)
    if verb == "rm":
        return remove(arguments)
    if verb == "info":
        sys.stdout.write("[]\n")
        return 0
    assert (verb, arguments[:2]) == ("image", ["inspect", "--format={{.Id}}"])
    images = json.loads((STATE / "images.json").read_text())
    if arguments[2] not in images:
        refuse(f"Error: No such image: {arguments[2]}", 1)
    sys.stdout.write(f"sha256:{images[arguments[2]]}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
