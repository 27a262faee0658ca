"""Memories: channels and ranks of a device."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from archgym.envs.dram.device import device as module
from archgym.envs.dram.device.data_sheets import load_device
from archgym.envs.dram.device.memory import Memory, load_memory
from archgym.errors import InvalidValueError, UnknownNameError

SHIPPED = Path(module.__file__).parent / "sheets"


def test_a_name_is_one_rank_on_one_channel() -> None:
    memory = load_memory("DDR3-1600")
    assert memory == Memory(load_device("DDR3-1600"), channels=1, ranks=1)
    assert memory.name == "DDR3-1600"
    assert memory.capacity_bytes == 2**30
    assert memory.address_bits == 30


def test_channels_and_ranks_multiply_the_capacity() -> None:
    memory = load_memory({"device": "DDR4-2400", "channels": 4, "ranks": 2})
    assert memory.device is load_device("DDR4-2400")
    assert memory.capacity_bytes == 8 * 2**32
    assert memory.address_bits == 35
    assert memory.name == "DDR4-2400 x 4 channels x 2 ranks"


def test_a_file(tmp_path: Path) -> None:
    document = json.loads((SHIPPED / "DDR4-2400.json").read_text())
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({**document, "name": "mine"}))
    assert load_memory(path).name == "mine"
    assert load_memory(str(path)) == load_memory({"device": path})
    assert load_memory({"device": str(path), "ranks": 2}).ranks == 2


@pytest.mark.parametrize("name", ["channels", "ranks"])
@pytest.mark.parametrize("value", [0, 3, -2, 2.0, "2", True, None, 128])
def test_numbers_that_are_not_possible(name: str, value: Any) -> None:
    with pytest.raises(InvalidValueError, match=f"{name} is {value!r}, it must be a power of two"):
        load_memory({"device": "DDR3-1600", name: value})


def test_unknown_keys_and_devices() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'channels'"):
        load_memory({"device": "DDR3-1600", "chanels": 2})
    with pytest.raises(UnknownNameError, match="Did you mean 'DDR3-1600'"):
        load_memory({"device": "DDR3-1601"})


@pytest.mark.parametrize("memory", [None, 0, ["DDR3-1600"]])
def test_no_memory(memory: Any) -> None:
    with pytest.raises(InvalidValueError, match=r"memory: it is .* allowed is the name"):
        load_memory(memory)


@pytest.mark.parametrize("device", [None, 3, ["DDR3-1600"]])
def test_no_device(device: Any) -> None:
    with pytest.raises(InvalidValueError, match="device is"):
        load_memory({"device": device})
    with pytest.raises(InvalidValueError, match="device is None"):
        load_memory({"ranks": 2})
