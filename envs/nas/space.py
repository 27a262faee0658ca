"""The joint design space: a network for each task, and the chip that runs all of them.

Every network is a group of parameters and so is every sub-accelerator, which makes them the
players of multi-agent search (``groups: suggested``). A network's parameters are those of its
family with the network's name in front. A chip is one of

- ``heterogeneous``: one to four sub-accelerators, each with its own dataflow, size and bandwidth,
- ``homogeneous``: one to four equal ones,
- ``single``: one,
- ``network``: not searched, the environment's ``device`` runs the networks.

A sub-accelerator that is not there has no parameters. Those that are there share 4,096 processing
elements and 64 GB/s (NASAIC, DAC 2020). A chip whose sub-accelerators change places is another
design with the same metrics.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal

from archgym.envs.nas.families import Architecture, Task
from archgym.envs.nas.hardware.chip import (
    MAX_BANDWIDTH_GBPS,
    MAX_PES,
    MAX_SUB_ACCELERATORS,
    Chip,
    SubAccelerator,
)
from archgym.envs.nas.tasks import family_of
from archgym.errors import UnknownNameError
from archgym.space import (
    Categorical,
    DesignSpace,
    Expression,
    Integer,
    Ordinal,
    Parameter,
    Rule,
    param,
)
from archgym.space.kinds import parameter_from_json

__all__ = [
    "CHIPS",
    "DATAFLOWS",
    "GRIDS",
    "ChipForm",
    "Grid",
    "Player",
    "Reader",
    "chip_design",
    "form_of",
    "largest_architecture",
    "name_networks",
    "nas_space",
    "network_design",
    "smallest_architecture",
]

ChipForm = Literal["heterogeneous", "homogeneous", "single", "network"]
CHIPS: Final[dict[ChipForm, str]] = {
    "heterogeneous": "networks, and one to four sub-accelerators, each of any kind and size",
    "homogeneous": "networks, and one to four equal sub-accelerators",
    "single": "networks, and one accelerator",
    "network": "networks only; the argument device is what runs them",
}
DATAFLOWS: Final = ("nvdla_ws", "shidiannao_os", "eyeriss_rs")
"""NASAIC's templates dla, shi and rs, by their names in Accelerator-v0."""


@dataclass(frozen=True)
class Grid:
    """Sizes that a sub-accelerator may have.

    Attributes:
        pes: processing elements.
        bandwidths_gbps: of the network on chip, GB/s.
        buffers_kib: global buffer, KiB; empty where the cost model has no limit to it.
    """

    pes: tuple[int, ...]
    bandwidths_gbps: tuple[int, ...]
    buffers_kib: tuple[int, ...]


GRIDS: Final[dict[str, Grid]] = {
    "own": Grid(
        tuple(2**i for i in range(4, 13)),
        tuple(2**i for i in range(7)),
        tuple(2**i for i in range(3, 9)),
    ),
    # Every solution that NASAIC publishes has multiples of 32 PEs and of 8 GB/s.
    "paper": Grid(tuple(range(32, MAX_PES + 1, 32)), tuple(range(8, 65, 8)), ()),
}
"""By the mode of a workload."""


@dataclass(frozen=True)
class Player:
    """One network of a design: its name, which its parameters begin with, and its task."""

    name: str
    task: Task


def name_networks(tasks: Sequence[Task]) -> tuple[Player, ...]:
    """A network for each task: its task's name, with a number where the task comes twice.

    >>> from archgym.envs.nas.tasks import TASKS
    >>> [player.name for player in name_networks([TASKS["digits"], TASKS["digits"]])]
    ['digits_1', 'digits_2']
    """
    names = [task.name for task in tasks]
    found: list[Player] = []
    for i, task in enumerate(tasks):
        twice = names.count(task.name) > 1
        name = f"{task.name}_{names[: i + 1].count(task.name)}" if twice else task.name
        found.append(Player(name, task))
    return tuple(found)


def form_of(space: str | DesignSpace) -> ChipForm:
    """The form of chip that the designs of a space describe, one of :data:`CHIPS`.

    Raises:
        UnknownNameError: for a name that is no form.
    """
    if isinstance(space, str):
        for form in CHIPS:
            if form == space:
                return form
        raise UnknownNameError("space", space, CHIPS)
    if "sub_1_pes" not in space:
        return "network"
    if "sub_accelerators" not in space:
        return "single"
    return "heterogeneous" if "sub_2_pes" in space else "homogeneous"


def nas_space(networks: Sequence[Player], chip: ChipForm, grid: Grid) -> DesignSpace:
    """The space of some networks and one form of chip."""
    parameters = [p for player in networks for p in _network_parameters(player)]
    if chip == "network":
        return DesignSpace(parameters)
    if chip == "single":
        return DesignSpace([*parameters, *_sub_accelerator(1, grid, None)])
    parameters.append(
        Integer(
            "sub_accelerators",
            1,
            MAX_SUB_ACCELERATORS,
            doc="sub-accelerators on the chip",
            group="chip",
        )
    )
    if chip == "homogeneous":
        parameters += _sub_accelerator(1, grid, None)
        return DesignSpace(parameters, _homogeneous_rules())
    for number in range(1, MAX_SUB_ACCELERATORS + 1):
        there = None if number == 1 else param("sub_accelerators") >= number
        parameters += _sub_accelerator(number, grid, there)
    return DesignSpace(parameters, _heterogeneous_rules())


class Reader:
    """Splits designs into architectures and chips.

    Args:
        networks: the networks of the space.
        space: a space of :func:`nas_space`, or one with the same parameters.
        device: the chip of spaces that have none.
    """

    def __init__(
        self, networks: Sequence[Player], space: DesignSpace, device: Chip | None = None
    ) -> None:
        self._own = [
            [
                (f"{player.name}_{parameter.name}", parameter.name)
                for parameter in family_of(player.task).parameters(player.task)
            ]
            for player in networks
        ]
        self._counted = "sub_accelerators" in space
        self._equal = self._counted and "sub_2_pes" not in space
        self._device = device if "sub_1_pes" not in space else None

    def architectures(self, design: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The architecture of each network, inactive parameters left out."""
        return [
            {local: design[name] for name, local in pairs if name in design} for pairs in self._own
        ]

    def chip(self, design: Mapping[str, Any]) -> Chip:
        """The chip."""
        if self._device is not None:
            return self._device
        count = design["sub_accelerators"] if self._counted else 1
        if self._equal:
            return Chip((_read_sub_accelerator(design, 1),) * count)
        return Chip(tuple(_read_sub_accelerator(design, i) for i in range(1, count + 1)))


def network_design(
    networks: Sequence[Player], architectures: Sequence[Architecture]
) -> dict[str, Any]:
    """The parameters that describe networks; the inverse of :meth:`Reader.architectures`."""
    return {
        f"{player.name}_{name}": value
        for player, architecture in zip(networks, architectures, strict=True)
        for name, value in architecture.items()
    }


def chip_design(chip: Chip, form: ChipForm, grid: Grid) -> dict[str, Any]:
    """The parameters that describe a chip; the inverse of :meth:`Reader.chip`.

    Args:
        chip: the chip; of one that is not of the form, what the form has parameters for.
        form: form of the space.
        grid: of the space.
    """
    if form == "network":
        return {}
    subs = chip.sub_accelerators
    design: dict[str, Any] = {} if form == "single" else {"sub_accelerators": len(subs)}
    for number, sub in enumerate(subs if form == "heterogeneous" else subs[:1], start=1):
        design[f"sub_{number}_dataflow"] = sub.dataflow
        design[f"sub_{number}_pes"] = sub.pes
        design[f"sub_{number}_bandwidth_gbps"] = sub.bandwidth_gbps
        if grid.buffers_kib:
            design[f"sub_{number}_buffer_kib"] = sub.buffer_kib
    return design


@cache
def smallest_architecture(task: Task) -> Architecture:
    """The network with the fewest parameters: every list of options goes from small to large."""
    return _extreme(task, last=False)


@cache
def largest_architecture(task: Task) -> Architecture:
    """The network with the most parameters; it skips no block."""
    return _extreme(task, last=True)


def _extreme(task: Task, *, last: bool) -> Architecture:
    space = DesignSpace(family_of(task).parameters(task))
    # A boolean leaves a block out: it makes a network smaller.
    codes = [
        parameter.size - 1 if last != (parameter.kind == "boolean") else 0
        for parameter in space.parameters
    ]
    return space.design(space.canonical_codes(codes))


def _network_parameters(player: Player) -> Iterable[Parameter]:
    for parameter in family_of(player.task).parameters(player.task):
        fields = parameter.to_json()
        fields["name"] = f"{player.name}_{parameter.name}"
        fields["group"] = player.name
        if "when" in fields:
            fields["when"] = _renamed(fields["when"], player.name)
        yield parameter_from_json(fields)


def _renamed(expression: Any, prefix: str) -> Any:
    """The JSON form of an expression, with a prefix before each parameter's name."""
    if isinstance(expression, Mapping):
        if "param" in expression:
            return {"param": f"{prefix}_{expression['param']}"}
        return {**expression, "args": [_renamed(arg, prefix) for arg in expression["args"]]}
    return expression


def _sub_accelerator(number: int, grid: Grid, there: Expression | None) -> Iterable[Parameter]:
    name = f"sub_{number}"
    yield Categorical(
        f"{name}_dataflow",
        DATAFLOWS,
        doc="what stays in the array, and what its rows and columns stand for",
        when=there,
        group=name,
    )
    for knob, levels, unit, doc in (
        ("pes", grid.pes, "PEs", "processing elements"),
        ("bandwidth_gbps", grid.bandwidths_gbps, "GB/s", "of its network on chip"),
        ("buffer_kib", grid.buffers_kib, "KiB", "global buffer"),
    ):
        if levels:
            yield Ordinal(f"{name}_{knob}", levels, doc=doc, unit=unit, when=there, group=name)


def _heterogeneous_rules() -> list[Rule]:
    """Totals of the first two, three and four: one holds wherever one of them is not there."""
    rules: list[Rule] = []
    for knob, maximum, unit in (
        ("pes", MAX_PES, "processing elements"),
        ("bandwidth_gbps", MAX_BANDWIDTH_GBPS, "GB/s"),
    ):
        total = param(f"sub_1_{knob}")
        for number in range(2, MAX_SUB_ACCELERATORS + 1):
            total = total + param(f"sub_{number}_{knob}")
            rules.append(
                Rule(
                    f"{knob}_of_{number}",
                    total <= maximum,
                    f"{number} sub-accelerators share {maximum:,} {unit}",
                )
            )
    return rules


def _homogeneous_rules() -> list[Rule]:
    return [
        Rule(
            f"{knob}_in_all",
            param("sub_accelerators") * param(f"sub_1_{knob}") <= maximum,
            f"the sub-accelerators share {maximum:,} {unit}",
        )
        for knob, maximum, unit in (
            ("pes", MAX_PES, "processing elements"),
            ("bandwidth_gbps", MAX_BANDWIDTH_GBPS, "GB/s"),
        )
    ]


def _read_sub_accelerator(design: Mapping[str, Any], number: int) -> SubAccelerator:
    name = f"sub_{number}"
    size = (design[f"{name}_pes"], design[f"{name}_bandwidth_gbps"])
    buffer = design.get(f"{name}_buffer_kib")
    return SubAccelerator(design[f"{name}_dataflow"], *size, *(() if buffer is None else (buffer,)))
