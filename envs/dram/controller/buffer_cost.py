"""Bits of storage in the controller's queues: the cost that larger queues have."""

from __future__ import annotations

import math

from archgym.envs.dram.controller.config import ControllerConfig
from archgym.envs.dram.device.memory import Memory

__all__ = ["buffer_bits"]


def buffer_bits(config: ControllerConfig, memory: Memory) -> int:
    """Bits of storage in the controllers' request buffers, response queues and arbiters.

    A count of what has to be held, in any technology, by each channel's controller:

    - a request entry holds the line address, one bit for read or write, a tag to answer it, and
      a line of data if it can be a write;
    - ``bankwise`` buffers have entries per bank, ``read_write`` for reads and as many for writes
      (reads hold no data), ``shared`` once;
    - a response queue or arbiter that reorders holds, for each request that can be under way, a
      line of data and a tag until its turn comes; an arbiter that counts transactions holds
      their tags.

    >>> from archgym.envs.dram.device.memory import load_memory
    >>> memory = load_memory("DDR3-1600")
    >>> one = ControllerConfig(scheduler_buffer="shared", request_buffer_size=1)
    >>> buffer_bits(one, memory)  # 24 address + 1 + 0 tag + 512 data
    537
    """
    device = memory.device
    line = 8 * device.bytes_per_request
    size = config.request_buffer_size
    readers, writers = {
        "bankwise": (0, size * device.banks * memory.ranks),
        "read_write": (size, size),
        "shared": (0, size),
    }[config.scheduler_buffer]
    entries = readers + writers
    counted = config.arbiter != "simple"
    under_way = config.max_active_transactions if counted else entries
    tag = math.ceil(math.log2(under_way)) if under_way > 1 else 0
    in_channel = memory.address_bits - int(math.log2(memory.channels))
    address = in_channel - int(math.log2(device.bytes_per_request))
    bits = entries * (address + 1 + tag) + writers * line
    if config.resp_queue == "reorder":
        bits += min(entries, under_way) * (line + tag)
    if counted:
        bits += under_way * tag
    if config.arbiter == "reorder":
        bits += under_way * line
    return bits * memory.channels
