"""Cell libraries as calibrated coefficients: from counts to area and clock period.

Area is a sum over cells. The period is that of the slowest stage; a stage adds up what a signal
passes: clock-to-output and setup, digit encoder, selection, full-adder levels, multiplexers, carry
chains. The coefficients are fitted to synthesised processing elements
(:mod:`archgym.envs.tpe.calibration.area_and_delay`), so that they hold what the synthesis tool
makes of a cell in its surroundings, not the area or delay of one cell of the library.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archgym.envs.tpe.microarchitecture.datapath import Stage
from archgym.envs.tpe.microarchitecture.edge import EdgeBlock
from archgym.envs.tpe.microarchitecture.pe import PE
from archgym.envs.tpe.microarchitecture.structure import Counts, counts, edge_counts
from archgym.errors import InvalidValueError, UnknownNameError
from archgym.reading.files import read_json

if TYPE_CHECKING:
    from archgym.envs.tpe.technology.energies import Energies

__all__ = [
    "AREA_TERMS",
    "PERIOD_TERMS",
    "SIGNED_TERMS",
    "Technology",
    "area_terms",
    "load_technology",
    "stage_terms",
    "technology_names",
]

_FOLDER = "fitted"
_FORMAT = 3
_LIMIT_BYTES = 2**20
"""Size of a technology file beyond which it is not read."""

AREA_TERMS: Mapping[str, str] = {
    "register": "flip-flop",
    "full_adder": "full adder of the compressor tree",
    "half_adder": "half adder, or full adder with a constant one",
    "select": "partial product bit of radix 4",
    "sign": "partial product bit of a signed binary digit",
    "and": "partial product bit of an AND array",
    "encoder": "Booth encoder of one digit, with drivers of its lines",
    "stored_encoder": "Booth encoder whose digit goes into a register",
    "multiplexer": "2:1 multiplexer, or one AND-OR of a wider one",
    "pending": "one place of the chain that finds the next non-zero digit",
    "recoding": "one bit of a recoding with carries (EN-T, CSD, magnitude)",
    "adder": "bit of an adder of which the tool chooses the form",
    "ripple": "bit of a ripple-carry adder",
    "prefix_bit": "bit of a prefix adder: its own generate, propagate and sum",
    "prefix_node": "node of a prefix network",
}
"""Terms of the area, um2 each."""

PERIOD_TERMS: Mapping[str, str] = {
    "register": "clock to output and setup",
    "encoder": "Booth encoder",
    "select": "selection of a partial product bit",
    "select_fanout": "partial product bit that the lines of a digit drive",
    "operand_fanout": "doubling of the partial products that an operand bit drives",
    "and": "AND of an array multiplier",
    "level": "full adder of the compressor tree, on the way of its last bit",
    "multiplexer": "2:1 multiplexer",
    "pending": "digit of the chain that finds the next non-zero one",
    "adder": "carry-propagate adder, whatever its width",
    "adder_bit": "bit of the first carry-propagate adder, operands from registers",
    "late_adder_bit": "likewise, operands from a compressor tree, whose low bits are there early",
    "second_adder": "second adder in series",
    "sign_fanout": "bit of the second adder above the sign of the product, which drives them all",
    "ripple": "bit of the carry chain of ripple-carry adders, beyond what the tool would choose",
    "brent_kung": "likewise, Brent-Kung",
    "kogge_stone": "likewise, Kogge-Stone",
    "sklansky": "likewise, Sklansky",
}
"""Terms of the delay of a stage, ns each. Delays of adders grow with their width rather than with
its logarithm: ABC recovers area until little of a prefix network's depth is left."""

SIGNED_TERMS = ("ripple", "brent_kung", "kogge_stone", "sklansky")
"""Terms that compare with another one, so that they can be negative."""


def area_terms(counts: Counts) -> dict[str, float]:
    """How often each term of the area occurs in a block, without what constants leave out."""
    return {
        "register": counts["register_bit"],
        "full_adder": counts["full_adder"],
        "half_adder": counts["half_adder"] + counts["full_adder_one"],
        "select": counts.left("select_bit"),
        "sign": counts["sign_bit"],
        "and": counts["and_bit"],
        "encoder": counts.left("booth_encoder"),
        "stored_encoder": counts.left("stored_encoder"),
        "multiplexer": counts["mux_bit"] + counts.left("pick_bit"),
        "pending": counts.left("pending_digit"),
        "recoding": counts["magnitude_bit"]
        + counts["ent_digit"]
        + counts["csd_bit"]
        + counts["csd_digit"],
        "adder": counts.left("add_bit"),
        "ripple": counts.left("ripple_bit"),
        "prefix_bit": counts.left("prefix_start"),
        "prefix_node": counts.left("prefix_cell") + counts.left("prefix_carry"),
    }


def stage_terms(stage: Stage) -> dict[str, float]:
    """How often each term of the delay occurs in a stage."""
    terms = dict.fromkeys(PERIOD_TERMS, 0.0)
    selects = stage.select or stage.and_array
    terms["register"] = 1
    terms["encoder"] = stage.encoder
    terms["select"] = stage.select
    terms["select_fanout"] = stage.select * stage.select_fanout
    terms["operand_fanout"] = selects * math.log2(max(stage.operand_fanout, 1))
    terms["and"] = stage.and_array
    terms["level"] = stage.depth
    terms["multiplexer"] = stage.shift_levels + stage.window_levels
    # Besides the digits themselves: the gate that starts the chain, and the one that ends it.
    terms["pending"] = stage.pending + 2 if stage.pending else 0
    if stage.adders:
        first = stage.adders[0]
        terms["adder"] = 1
        terms["late_adder_bit" if stage.depth else "adder_bit"] = first.width
        if first.form != "auto":
            terms[first.form] = first.width + sum(adder.sign_fanout for adder in stage.adders[1:])
    if len(stage.adders) > 1:
        terms["second_adder"] = 1
        terms["sign_fanout"] = stage.adders[1].sign_fanout
    return terms


@dataclass(frozen=True)
class Technology:
    """A calibrated cell library.

    Attributes:
        name: short, as in the `technology` argument of the environment.
        title: library and corner.
        source: what it was calibrated from, with which tool.
        area_um2_of: um2 for each of :data:`AREA_TERMS`.
        delay_ns_of: ns for each of :data:`PERIOD_TERMS`.
        error: mean relative errors of the calibration, cross-validated, and on how many blocks.
        energy: what :mod:`archgym.envs.tpe.technology.energies` needs to know of the library.
    """

    name: str
    title: str
    source: str
    area_um2_of: Mapping[str, float]
    delay_ns_of: Mapping[str, float]
    error: Mapping[str, float] = field(default_factory=dict)
    energy: Mapping[str, float] = field(default_factory=dict)

    def area_um2(self, counts: Counts) -> float:
        """Area of a block's cells, um2."""
        of = self.area_um2_of
        return float(sum(of[name] * n for name, n in area_terms(counts).items() if n))

    def min_period_ns(self, counts: Counts) -> float:
        """Least clock period of a block, register to register, ns; without placed wires."""
        return max(map(self.stage_delay_ns, counts.stages), default=self.delay_ns_of["register"])

    def pe_area_um2(self, pe: PE) -> float:
        """Area of one processing element, um2."""
        return self.area_um2(counts(pe))

    def pe_period_ns(self, pe: PE) -> float:
        """Least clock period of one processing element, ns."""
        return self.min_period_ns(counts(pe))

    def edge_area_um2(self, block: EdgeBlock) -> float:
        """Area of an edge block, um2."""
        return self.area_um2(edge_counts(block))

    def edge_period_ns(self, block: EdgeBlock) -> float:
        """Least clock period of an edge block, ns."""
        return self.min_period_ns(edge_counts(block))

    @property
    def energies(self) -> Energies:
        """Energies of switching in the library."""
        from archgym.envs.tpe.technology.energies import Energies

        return Energies.of(self.name, self.energy)

    def stage_delay_ns(self, stage: Stage) -> float:
        """Delay of one stage with clock-to-output and setup, ns."""
        of = self.delay_ns_of
        return float(sum(of[name] * n for name, n in stage_terms(stage).items() if n))

    @cached_property
    def sha256(self) -> str:
        """Hash of the coefficients."""
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """The JSON object of a technology file."""
        return {
            "format": _FORMAT,
            "name": self.name,
            "title": self.title,
            "source": self.source,
            "area_um2_of": dict(self.area_um2_of),
            "delay_ns_of": dict(self.delay_ns_of),
            "error": dict(self.error),
            "energy": dict(self.energy),
        }

    @classmethod
    def from_json(cls, card: Any, where: str = "technology") -> Technology:
        """Reads what :meth:`to_json` gave.

        Raises:
            InvalidValueError: names the key that is wrong.
        """
        if not isinstance(card, dict) or card.get("format") != _FORMAT:
            raise InvalidValueError(
                f"{where}: not a technology of format {_FORMAT}; "
                "`archgym simulators calibrate` writes one"
            )
        for key, terms in (("area_um2_of", AREA_TERMS), ("delay_ns_of", PERIOD_TERMS)):
            table = card.get(key)
            if not isinstance(table, dict) or set(table) != set(terms):
                raise InvalidValueError(f"{where}: {key} must have exactly {', '.join(terms)}")
        texts = [card.get(key) for key in ("name", "title", "source")]
        if not all(isinstance(text, str) for text in texts):
            raise InvalidValueError(f"{where}: name, title and source must be texts")
        tables = [
            _numbers(card.get(key, {}), f"{where}: {key}")
            for key in ("area_um2_of", "delay_ns_of", "error", "energy")
        ]
        name, title, source = map(str, texts)
        return cls(name, title, source, *tables)


def _numbers(table: Any, where: str) -> dict[str, float]:
    if not isinstance(table, dict):
        raise InvalidValueError(f"{where} must be a table of numbers")
    for name, value in table.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not (number and math.isfinite(value) and (value >= 0 or name in SIGNED_TERMS)):
            raise InvalidValueError(f"{where}.{name} is {value!r}, it must be a number from 0 up")
    return {str(name): float(value) for name, value in table.items()}


def technology_names() -> tuple[str, ...]:
    """The technologies that ship, in alphabetical order."""
    folder = resources.files("archgym.envs.tpe.technology") / _FOLDER
    return tuple(
        sorted(entry.name[:-5] for entry in folder.iterdir() if entry.name.endswith(".json"))
    )


@lru_cache(maxsize=64)
def _shipped(name: str) -> Technology:
    text = (resources.files("archgym.envs.tpe.technology") / _FOLDER / f"{name}.json").read_text(
        "utf-8"
    )
    return Technology.from_json(json.loads(text), name)


def load_technology(name: str | os.PathLike[str]) -> Technology:
    """A technology by name, or from a file that `archgym simulators calibrate` wrote.

    Raises:
        UnknownNameError: if it is neither.
        InvalidValueError: if it is no text or path, or the file is not one.
    """
    if not isinstance(name, str | os.PathLike):
        raise InvalidValueError(
            f"technology {name!r} must be the path of a calibrated file, or one of "
            f"{', '.join(technology_names())}"
        )
    if isinstance(name, str) and name in technology_names():
        return _shipped(name)
    path = Path(name)
    if not path.is_file():
        if path.suffix or len(path.parts) > 1:
            raise InvalidValueError(
                f"technology: there is no file {path}; beside files there are "
                f"{', '.join(technology_names())}"
            )
        raise UnknownNameError("technology", os.fspath(name), technology_names())
    try:
        card = read_json(path, _LIMIT_BYTES)
    except OSError as error:
        raise InvalidValueError(f"{path} cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise InvalidValueError(f"{path} is no JSON: {error}") from None
    return Technology.from_json(card, str(path))
