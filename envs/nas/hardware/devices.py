"""Target devices: chips that are given, for searches of networks alone (as in ProxylessNAS)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from types import MappingProxyType
from typing import Any, Final

from archgym.envs.nas.hardware.chip import Chip, SubAccelerator
from archgym.errors import InvalidValueError, UnknownNameError

__all__ = ["DEVICES", "device_chip", "device_name"]

DEVICES: Final[Mapping[str, tuple[str, Chip]]] = MappingProxyType(
    {
        "edge": (
            "a small array whose PEs share a picture (after ShiDianNao, ISCA 2015): 64 PEs, 4 GB/s",
            Chip((SubAccelerator("shidiannao_os", 64, 4, 64),)),
        ),
        "cloud": (
            "a large array whose PEs share channels (after NVDLA): 4,096 PEs, 64 GB/s",
            Chip((SubAccelerator("nvdla_ws", 4096, 64, 256),)),
        ),
    }
)
"""What each is, and its chip. The figures are this project's own."""


def device_chip(spec: Any) -> Chip:
    """A device by name, or from what a file says.

    Args:
        spec: a name of :data:`DEVICES`, or a mapping, or a list of mappings, with the fields of
            :class:`archgym.envs.nas.hardware.chip.SubAccelerator`.

    Raises:
        UnknownNameError, InvalidValueError: if it is none.
    """
    if isinstance(spec, Chip):
        return spec
    if isinstance(spec, str):
        if spec not in DEVICES:
            raise UnknownNameError("device", spec, DEVICES)
        return DEVICES[spec][1]
    parts = [spec] if isinstance(spec, Mapping) else spec
    if not isinstance(parts, Sequence) or not all(isinstance(part, Mapping) for part in parts):
        raise InvalidValueError(
            f"device is {spec!r:.80}; it must be a name ({', '.join(DEVICES)}), or a mapping or a "
            "list of mappings with dataflow, pes, bandwidth_gbps and buffer_kib"
        )
    known = [field.name for field in fields(SubAccelerator)]
    for part in parts:
        for name in part:
            if name not in known:
                raise UnknownNameError("field of the device", str(name), known)
        for name in ("dataflow", "pes", "bandwidth_gbps"):
            if name not in part:
                raise InvalidValueError(f"device: {name} is missing in {dict(part)}")
    return Chip(tuple(SubAccelerator(**part) for part in parts))


def device_name(spec: Any) -> Any:
    """What a trial records of the device: its name, or its sub-accelerators."""
    if isinstance(spec, str):
        return spec
    return [
        {field.name: getattr(sub, field.name) for field in fields(SubAccelerator)}
        for sub in device_chip(spec).sub_accelerators
    ]
