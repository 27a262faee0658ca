"""Where weights and caches of keys and values lie: SRAM, near memory, far memory, flash."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from archgym.envs.llm.device.machine.hardware import Hardware
from archgym.envs.llm.device.model import Transformers

__all__ = ["Placement"]

Array = NDArray[np.float64]


class Placement:
    """Bytes by tier, filled from the fastest on.

    The caches of keys and values, and the activations of a prompt, come before weights; they may
    lie in near and far memory, weights in all tiers. Weights of every layer are spread alike. Where
    a design stripes weights, near and far memory have them by their bandwidths as far as both have
    room.

    Attributes:
        resident_share, near_share, far_share, flash_share: of the weights that products read.
        kv_near_share: of the caches; the rest lies in far memory.
        free_bytes: of all tiers together; negative by what fits nowhere.
        kv_bytes: of the caches at the longest.
        weight_bytes: of all weights, the embedding included.
    """

    def __init__(
        self, models: Transformers, hardware: Hardware, tokens: int, prompt: int, batch: int
    ) -> None:
        streamed = models.weight_bytes(models.layer_weights + models.products["logits"].weights)
        embedding = models.weight_bytes(models.embedding_weights)
        activation_bytes = np.ceil(hardware.columns["activation_bits"] / 8)
        widest = np.maximum(models.hidden, models.feedforward)
        working = batch * prompt * (2 * models.hidden + widest) * activation_bytes
        working = np.maximum(0.0, working - hardware.buffer_bytes)
        self.kv_bytes = models.kv_bytes_per_token * tokens * batch
        changing = self.kv_bytes + working
        near, far = hardware.near.bytes, hardware.far.bytes
        resident = np.minimum(streamed, hardware.resident_bytes)
        changing_near = np.minimum(changing, near)
        changing_far = np.minimum(changing - changing_near, far)
        left = streamed - resident
        room, far_room = near - changing_near, far - changing_far
        rates = hardware.near.bytes_per_s + hardware.far.bytes_per_s
        striped = hardware.columns["far_striped"] * hardware.far.bytes_per_s / rates
        weights_far = np.minimum(left * striped, far_room)
        weights_near = np.minimum(left - weights_far, room)
        weights_far = np.minimum(left - weights_near, far_room)
        left = left - weights_near - weights_far
        weights_flash = np.minimum(left, hardware.flash_bytes)
        missing = left - weights_flash + changing - changing_near - changing_far
        rest = near + far + hardware.flash_bytes - changing_near - changing_far
        rest = rest - weights_near - weights_far - weights_flash
        missing = missing + np.maximum(0.0, embedding - rest)
        self.free_bytes = np.where(missing > 0, -missing, rest - embedding)
        lost = streamed - resident - weights_near - weights_far - weights_flash
        self.resident_share = resident / streamed
        self.near_share = (weights_near + lost) / streamed  # as if there were room
        self.far_share, self.flash_share = weights_far / streamed, weights_flash / streamed
        total = np.maximum(changing, 1.0)
        self.kv_near_share = np.where(changing_far > 0, changing_near / total, 1.0)
        self.weight_bytes = streamed + embedding
