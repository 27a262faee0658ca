"""Latency tables of network parts, as ProxylessNAS (arXiv 1812.00332) searches by.

A table has a line for each part that a chain of mobile bottlenecks may hold: the stem (``Conv``),
every block (``expanded_conv``, by shape, expansion, kernel, stride and whether its input is added),
the last 1x1 convolution (``Conv_1``) and the classifier (``Logits``), in the form and the unit of
the tables that were measured for that paper:

    expanded_conv-input:28x28x40-output:28x28x40-expand:3-kernel:5-stride:1-idskip:1: {mean: 1.2}

with ms. Backbones have lines of their own (:attr:`archgym.envs.nas.backbone.parts.Part.key`).
The latency of a network is the sum of its parts'. :func:`make_table` generates a table for
a device from archgym's cost model, :meth:`LatencyTable.read` reads a measured one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Final

from archgym.envs.accelerator.workload.layer import Layer, Network
from archgym.envs.nas.backbone.parts import STAGES, BackboneOptions
from archgym.envs.nas.families import (
    FAMILIES,
    Architecture,
    Backbone,
    MBConv,
    MBConvOptions,
    Task,
)
from archgym.envs.nas.hardware.chip import DEFAULT_TECHNOLOGY, Chip
from archgym.envs.nas.hardware.hardware_side import HardwareSide
from archgym.errors import InvalidValueError, SimulationError
from archgym.reading.suggestions import did_you_mean

__all__ = ["LatencyTable", "make_table", "network_parts", "part_keys"]

_NS_PER_MS: Final = 1e6
_LARGEST_MS: Final = 1e12
_COMPARED: Final = 2000
"""Lines of a table among which the one is looked for that a missing part resembles."""


@dataclass(frozen=True)
class LatencyTable:
    """Latency of parts of networks on one device.

    >>> table = LatencyTable("phone", {"Conv-input:8x8x1-output:8x8x8": 0.25})
    >>> table.latency_ms(["Conv-input:8x8x1-output:8x8x8"] * 2)
    0.5

    Attributes:
        name: the device.
        mean_ms: mean latency of each part, ms.
    """

    name: str
    mean_ms: Mapping[str, float]

    def latency_ms(self, keys: Sequence[str]) -> float:
        """The sum over some parts, ms.

        Raises:
            SimulationError: if the table lacks one, with the nearest one that it has.
        """
        for key in keys:
            if key not in self.mean_ms:
                near = did_you_mean(key, list(self.mean_ms)[:_COMPARED])
                raise SimulationError(f"latency table {self.name!r} lacks {key}. {near:.300}")
        return math.fsum(self.mean_ms[key] for key in keys)

    def write(self, path: Path) -> None:
        """Writes it as YAML, with a comment that says what it is."""
        lines = [f"# Latency of parts of networks on {self.name}: ms, from archgym's cost model"]
        lines += [f"{key}: {{mean: {value!r}}}" for key, value in sorted(self.mean_ms.items())]
        path.write_text("\n".join([*lines, ""]), encoding="utf-8")

    @staticmethod
    def read(path: Path) -> LatencyTable:
        """Reads one; what a line has beside ``mean`` is passed over.

        Raises:
            InvalidValueError: if the file is no such table; names the line's key.
        """
        import yaml

        from archgym.reading import plain_yaml as bounded_yaml

        try:
            data = bounded_yaml.read(path)
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise InvalidValueError(f"{path}: cannot read the latency table: {error}") from None
        if not isinstance(data, Mapping) or not data:
            raise InvalidValueError(f"{path}: a latency table maps parts to {{mean: MS}}")
        found: dict[str, float] = {}
        for key, entry in data.items():
            mean = entry.get("mean") if isinstance(entry, Mapping) else None
            if isinstance(mean, bool) or not isinstance(mean, int | float):
                mean = -1
            if not 0 <= mean <= _LARGEST_MS:
                raise InvalidValueError(
                    f"{path}: {key!s:.200}: {entry!r:.80} has no mean, a number of ms from 0 to "
                    f"{_LARGEST_MS:g}"
                )
            found[str(key)] = float(mean)
        return LatencyTable(path.stem, found)


def part_keys(task: Task, architecture: Architecture) -> list[str]:
    """The parts of a network, by their lines in a table, in execution order.

    Raises:
        InvalidValueError: if the task's networks are of another family.
    """
    return [key for key, _ in network_parts(task, architecture)]


def network_parts(task: Task, architecture: Architecture) -> list[tuple[str, tuple[Layer, ...]]]:
    """The parts of a network and the layers of each, in execution order.

    Raises:
        InvalidValueError: if the task's networks are of another family.
    """
    family = FAMILIES[task.family]
    if isinstance(family, Backbone):
        found_parts = family.parts(task, architecture)
        return [(part.key, family.part_layers(task, part, part.role)) for part in found_parts]
    if not isinstance(family, MBConv):
        raise InvalidValueError(
            f"latency tables are for chains of mobile bottlenecks and for backbones; task "
            f"{task.name!r} has networks of family {task.family!r}"
        )
    layers = {layer.name: layer for layer in family.layers(task, architecture).layers}
    channels, rows, columns = task.input_shape
    stem = layers["stem"]
    shape = _shape(stem)
    found: list[tuple[str, tuple[Layer, ...]]] = [
        (f"Conv-input:{rows}x{columns}x{channels}-output:{shape}", (stem,))
    ]
    for block in family.blocks(task, architecture):
        own = tuple(
            layers[name]
            for part in ("expand", "depthwise", "project")
            if (name := f"{block.name}_{part}") in layers
        )
        before, shape = shape, _shape(own[-1])
        key = (
            f"expanded_conv-input:{before}-output:{shape}-expand:{block.expansion}-"
            f"kernel:{block.kernel}-stride:{block.stride}-idskip:{int(block.has_identity)}"
        )
        found.append((key, own))
    head, classifier = layers["head"], layers["classifier"]
    found.append((f"Conv_1-input:{shape}-output:{_shape(head)}", (head,)))
    found.append((f"Logits-input:{_shape(head)}-output:{classifier.K}", (classifier,)))
    return found


def make_table(
    task: Task,
    device: Chip,
    name: str = "device",
    *,
    mode: str = "own",
    technology: str = DEFAULT_TECHNOLOGY,
) -> LatencyTable:
    """The table of a device from our own cost model, for every network of a task.

    Args:
        task: one whose networks are chains of mobile bottlenecks, or backbones.
        device: a chip of one sub-accelerator: on several, parts run at the same time, and no sum
            of parts is the latency.
        name: what to call the device.
        mode: ``own`` or ``paper``.
        technology: of mode ``own``.

    Raises:
        InvalidValueError: for another chip or task, or if a part does not fit the device.
    """
    if len(device.sub_accelerators) != 1:
        raise InvalidValueError(
            f"a latency table is of a device of one sub-accelerator, not "
            f"{len(device.sub_accelerators)}"
        )
    parts: dict[str, tuple[Layer, ...]] = {}
    for architecture in _covering(task):
        parts.update(network_parts(task, architecture))
    networks = [
        (Network(key, layers, (1,) * len(layers)),) for key, layers in sorted(parts.items())
    ]
    costs = HardwareSide(mode, technology=technology).evaluate(networks, [device] * len(networks))
    means = (costs.latency_ns / _NS_PER_MS).tolist()
    table = dict(zip(sorted(parts), means, strict=True))
    for key, mean in table.items():
        if math.isnan(mean):
            raise InvalidValueError(f"device {name!r}: {key} does not fit it")
    return LatencyTable(name, table)


def _covering(task: Task) -> list[Architecture]:
    """Architectures that hold every part of every architecture: all blocks alike, none skipped."""
    options = task.options
    if isinstance(options, BackboneOptions):
        return _covering_backbones(options)
    if not isinstance(options, MBConvOptions):
        return [{}]  # of another family, which network_parts refuses
    count = sum(stage.blocks for stage in options.stages)
    return [
        {
            f"block{number}_{knob}": value
            for number in range(1, count + 1)
            for knob, value in (("skip", False), ("kernel", kernel), ("expansion", expansion))
        }
        for kernel, expansion in product(options.kernels, options.expansions)
    ]


def _covering_backbones(options: BackboneOptions) -> list[Architecture]:
    """Deep backbones, whose stages are alike as far as they may be."""
    found: list[Architecture] = []
    for resolution, width, expansion, place in product(
        options.resolutions,
        options.widths,
        options.expansions,
        range(max(len(kinds) for kinds in options.kinds)),
    ):
        each: dict[str, Any] = {"resolution": resolution, "width": width, "expansion": expansion}
        for number in range(STAGES):
            kinds = options.kinds[number]
            each[f"stage{number + 1}_kind"] = kinds[min(place, len(kinds) - 1)]
            each[f"stage{number + 1}_depth"] = options.depths[number][-1]
        found.append(each)
    return found


def _shape(layer: Layer) -> str:
    """What a layer gives, as in ``28x28x40``."""
    return f"{layer.P}x{layer.Q}x{layer.K}"
