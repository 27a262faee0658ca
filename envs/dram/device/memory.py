"""A memory: channels and ranks of a DRAM device."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from archgym.envs.dram.device.data_sheets import load_device
from archgym.envs.dram.device.device import Device
from archgym.errors import InvalidValueError, UnknownNameError

__all__ = ["Memory", "MemorySpec", "load_memory"]

MemorySpec: TypeAlias = str | os.PathLike[str] | Mapping[str, Any]
"""A device's name, the path of a device file, or ``{"device": ..., "channels": 2, "ranks": 2}``."""

_MAXIMA = {"channels": 64, "ranks": 8}


@dataclass(frozen=True)
class Memory:
    """Equal ranks on equal channels.

    Ranks of a channel share its buses; channels share nothing, and each has its own controller
    and front end.

    Attributes:
        device: the rank.
        channels: channels, a power of two.
        ranks: ranks of a channel, a power of two.
    """

    device: Device
    channels: int = 1
    ranks: int = 1

    def __post_init__(self) -> None:
        for name, maximum in _MAXIMA.items():
            value = getattr(self, name)
            whole = isinstance(value, int) and not isinstance(value, bool)
            if not whole or not 1 <= value <= maximum or value & (value - 1):
                raise InvalidValueError(
                    f"memory: {name} is {value!r}, it must be a power of two from 1 to {maximum}"
                )

    @property
    def name(self) -> str:
        """The device's name, with channels and ranks where there are several."""
        if self.channels == self.ranks == 1:
            return self.device.name
        return f"{self.device.name} x {self.channels} channels x {self.ranks} ranks"

    @property
    def capacity_bytes(self) -> int:
        """Bytes of all channels."""
        return self.device.capacity_bytes * self.ranks * self.channels

    @property
    def spec(self) -> str | dict[str, str | int]:
        """Argument of :func:`load_memory` that gives this memory, if its device ships."""
        if self.channels == self.ranks == 1:
            return self.device.name
        return {"device": self.device.name, "channels": self.channels, "ranks": self.ranks}

    @property
    def sha256(self) -> str:
        """Hash of every figure: equal hashes mean equal memories, whatever their files."""
        return hashlib.sha256(repr(self).encode()).hexdigest()

    @property
    def address_bits(self) -> int:
        """Bits of a byte address within the memory."""
        return self.capacity_bytes.bit_length() - 1


def load_memory(spec: MemorySpec) -> Memory:
    """The memory that a spec describes.

    Raises:
        UnknownNameError: for an unknown device or key, with suggestions.
        InvalidValueError: for a device file or a number that is not possible.

    Example:
        >>> load_memory({"device": "DDR4-2400", "ranks": 2}).capacity_bytes // 2**30
        8
    """
    if isinstance(spec, str | os.PathLike):
        return Memory(load_device(spec))
    if not isinstance(spec, Mapping):
        raise InvalidValueError(
            f"memory: it is {spec!r:.80}, allowed is the name of a device, the path of a device "
            "file, or a mapping with device, channels and ranks"
        )
    keys = ("device", "channels", "ranks")
    for key in spec:
        if key not in keys:
            raise UnknownNameError("memory key", key, keys, "memory")
    if not isinstance(spec.get("device"), str | os.PathLike):
        raise InvalidValueError(
            f"memory: device is {spec.get('device')!r}, it must be a name or the path of a file"
        )
    return Memory(load_device(spec["device"]), spec.get("channels", 1), spec.get("ranks", 1))
