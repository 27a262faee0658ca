"""Stand-ins for the programs of the eight example files, and ways in which they misbehave."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.declared.conftest import copy_examples

__all__ = ["BEHAVIOURS", "Behaviour", "make_examples"]

LAST: Final = {
    "booksim": "booksim",
    "cachegrind": "valgrind",
    "champsim": "champsim",
    "fpga": "nextpnr-ice40",
    "gcc": "matmul",
    "gem5": "gem5.opt",
    "icarus": "vvp",
    "ngspice": "ngspice",
}
"""The program of each file whose output is read."""
SOURCES: Final = {"champsim": "out.json", "fpga": "report.json", "gem5": "stats.txt"}
"""The file that it writes, where it is not printed."""

_PRINTED: Final = {
    "booksim": "Packet latency average = 37.6\nAccepted flit rate average= 0.08\nHops average = 6",
    "valgrind": "I   refs:  1,000\nD1  misses:  100\nLL misses:  10",
    "champsim": '[{"roi": {"cores": [{"instructions": 300, "cycles": 200}]}}]',
    "nextpnr-ice40": '{"fmax": {"c": {"achieved": 99}},'
    ' "utilization": {"ICESTORM_LC": {"used": 9}}}',
    "matmul": "checksum = 5\ntime = 100 ns",
    "gem5.opt": "simSeconds 0.5 # s\nsystem.cpu.numCycles 7 # n\nsystem.cpu.ipc 0.5 # r\n"
    "system.cpu.dcache.overallMissRate::total 0.06 # r",
    "vvp": "cycles: 100\nstalls: 5",
    "ngspice": "-1.8*i(vdd) = 2e-04\ngain = 9e+01\ngbw = 2e+07\nphase = -1.6e+00",
}  # fmt: skip
_EXIT: Final = {"booksim": 255}
_BEFORE: Final = {
    "gcc": 'cp "BIN/matmul" matmul',
    "iverilog": ": > bench",
    "yosys": "echo '{}' > dot.json",
    "g++": ":",
}
"""Programs whose output is not read, and what they do."""

_LAST_PROGRAM: Final = """#!/bin/sh
case $1 in --version | -V) echo v1; exit ;; esac
out=OUT
good() { cat <<'END'
PRINTED
END
}
put() { if [ $out = stdout ]; then cat; elif [ $out = stderr ]; then cat >&2; else cat > $out; fi; }
BEHAVIOUR
good | put
exit CODE
"""


@dataclass(frozen=True)
class Behaviour:
    """What the last program does before its good output.

    Attributes:
        script: lines of sh; ``good`` prints the good output, ``put`` puts it where it is read.
        status: how the design ends.
        reason: a pattern of the reason.
        limits: keys of the stage that are set.
        reads_file: whether it is only for programs whose output is a file.
    """

    script: str
    status: str = "failed"
    reason: str = ""
    limits: str = ""
    reads_file: bool = False


_DONE: Final = "exit CODE"
_NUMBERS: Final = r"[0-9][0-9.,]*\(e[-+]*[0-9]*\)*"

BEHAVIOURS: Final[dict[str, Behaviour]] = {
    "crashes": Behaviour("kill -SEGV $$", reason="was ended by SIGSEGV"),
    "aborts": Behaviour("echo assertion >&2; kill -ABRT $$", reason="SIGABRT.*assertion"),
    "exits badly": Behaviour("echo cannot open >&2; exit 7", reason="exit code 7: cannot open"),
    "exits badly, silent": Behaviour("exit 9", reason="exit code 9: it printed nothing"),
    "says nothing": Behaviour(_DONE, reason="nothing in|left no file"),
    "hangs": Behaviour("sleep 300", "timeout", "within 0.7 s"),
    "hangs and ignores signals": Behaviour(
        "trap '' TERM INT HUP; while :; do sleep 300; done", "timeout", "within 0.7 s"
    ),
    "hangs in a loop": Behaviour("while :; do :; done", "timeout", "within 0.7 s"),
    "leaves a child": Behaviour("sleep 300 &", "ok"),
    "leaves a child of another session": Behaviour("setsid sleep 300 &", "ok"),
    "leaves a grandchild": Behaviour("(setsid sh -c 'sleep 300 & sleep 300' &)", "ok"),
    "leaves forty children": Behaviour(
        "for i in 1 2 3 4 5 6 7 8; do for j in 1 2 3 4 5; do sleep 300 & done; done", "ok"
    ),
    "forks a tree and hangs": Behaviour(
        'f() { [ "$1" = 0 ] && exec sleep 300; (f $(($1-1))) & (f $(($1-1))) & wait; }; f 5',
        "timeout",
        "within 0.7 s",
    ),
    "forks anew again and again": Behaviour(
        'r() { [ "$1" = 0 ] || { sleep 0.02; r $(($1-1)) & }; }; r 60', "ok"
    ),
    "prints without an end": Behaviour("yes", reason="printed more than 1000000 bytes"),
    "prints errors without an end": Behaviour("yes >&2", reason="printed more than 1000000 bytes"),
    "prints a line without an end": Behaviour(
        "tr '\\0' x < /dev/zero", reason="printed more than 1000000 bytes"
    ),
    "writes 10 GB": Behaviour(
        "head -c 10G /dev/zero > big || exit 9",
        reason="exit code 9.*[Ff]ile.*(large|limit)|SIGXFSZ",
        limits="file_limit_mb: 5",
    ),
    "writes 10 GB with a hole": Behaviour(
        "truncate -s 10G big || exit 9", reason="exit code 9.*[Ff]ile.*(large|limit)|SIGXFSZ"
    ),
    "uses memory without an end": Behaviour(
        "head -c 2G /dev/zero | tail > /dev/null || exit 9",
        reason="exit code 9.*memory",
        limits="memory_limit_mb: 100",
    ),
    "waits for input": Behaviour("read line", "ok"),
    "prints bytes that are no text": Behaviour("printf '\\377\\376\\000\\n'", "ok"),
    "gives nan": Behaviour(
        f"good | sed 's/{_NUMBERS}/nan/g' | put; {_DONE}", reason="nan|not JSON|"
    ),
    "gives words": Behaviour(
        f"good | sed 's/{_NUMBERS}/unknown/g' | put; {_DONE}",
        reason="'unknown' is not a number|is not JSON|nothing in .* matches",
    ),
    "stops in the middle": Behaviour(
        f"good | head -c 12 | put; {_DONE}", reason="is not JSON|nothing in .* matches"
    ),
    "writes another program's output": Behaviour(
        f"echo '<html>503</html>' | put; {_DONE}", reason="is not JSON|nothing in .* matches"
    ),
    "leaves a huge file to read": Behaviour(
        f"truncate -s 900M $out; {_DONE}",
        reason="larger than the limit",
        limits="file_limit_mb: 2000",
        reads_file=True,
    ),
    "leaves a pipe to read": Behaviour(
        f"mkfifo $out; {_DONE}", reason="left no file", reads_file=True
    ),
    "leaves a folder to read": Behaviour(
        f"mkdir $out; {_DONE}", reason="left no file", reads_file=True
    ),
    "leaves a link to nowhere": Behaviour(
        f"ln -s /no/such/place $out; {_DONE}", reason="left no file", reads_file=True
    ),
    "leaves a link to itself": Behaviour(
        f"ln -s $out $out; {_DONE}", reason="left no file", reads_file=True
    ),
    "leaves a link out of its folder": Behaviour(
        f"ln -s /etc/passwd $out; {_DONE}",
        reason="is not JSON|nothing in .* matches",
        reads_file=True,
    ),
    "deletes its folder": Behaviour(
        f'rm -rf "$PWD"; {_DONE}', reason="left no file|nothing in .* matches"
    ),
}


def script(path: Path, text: str) -> None:
    """A program."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def make_examples(folder: Path, behaviour: str = "") -> Path:
    """Copies the eight files into a folder, with stand-ins for all their programs.

    Args:
        folder: that gets the files.
        behaviour: lines of sh that the last program of each runs first.

    Returns:
        The folder that belongs on ``PATH``.
    """
    copy_examples(folder)
    bin_folder = folder / "bin"
    for name, text in _BEFORE.items():
        lines = ["#!/bin/sh", "case $1 in --version | -V) echo v1; exit ;; esac"]
        script(bin_folder / name, "\n".join([*lines, text.replace("BIN", str(bin_folder))]))
    for stem, name in LAST.items():
        out = SOURCES.get(stem, "stderr" if stem == "cachegrind" else "stdout")
        text = _LAST_PROGRAM.replace("OUT", out).replace("PRINTED", _PRINTED[name])
        text = text.replace("BEHAVIOUR", behaviour).replace("CODE", str(_EXIT.get(name, 0)))
        script(program(folder, stem), text)
    script(
        folder / "champsim.sh",
        f'if [ "$1" = program ]; then cp "{bin_folder}/champsim" champsim; fi\n',
    )
    return bin_folder


def program(folder: Path, stem: str) -> Path:
    """Where the last program of a file stands."""
    if stem == "gem5":
        return folder / "gem5" / "build" / "X86" / "gem5.opt"
    return folder / "bin" / LAST[stem]
