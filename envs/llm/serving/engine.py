"""Serving software: its kernels, the time of its host, and the memory that it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from archgym.envs.llm.data.cluster import Chip
from archgym.envs.llm.data.fields import Entry, catalogue, field, read_entry
from archgym.envs.llm.data.stack import load_stack
from archgym.errors import InvalidValueError, UnknownNameError

__all__ = ["FORMS", "Engine", "engine_names", "load_engine"]

_FILE: Final = "engines.yaml"
FORMS: Final = ("kernels", "roofline", "linear")
"""How an iteration is timed: kernel by kernel; one roofline over the whole iteration; or a linear
sum of whole-iteration terms."""


@dataclass(frozen=True)
class Engine(Entry):
    """Serving software.

    Attributes:
        stack: name or mapping of the stack of kernels and links.
        form: how an iteration is timed, of ``FORMS``.
        request_us: from arrival until a request is queued, microseconds.
        token_us: from the end of an iteration until its tokens are seen; nothing waits for it.
        step_us: time of the host by iteration that no kernel hides.
        sequence_us: the same by sequence of the iteration.
        prompts_us: the same by iteration that prefills.
        graph_tokens: largest iteration that is captured in a graph; larger ones are launched kernel
            by kernel.
        eager_layer_us: time of the host to launch a layer; the least that one takes in iterations
            that are not captured.
        speeds: by chip, the share of its best kernels' rates that this engine reaches; 1 if left
            out. A chip that changes one of them has the share of that one, unless it is named.
        expert_speed: of the kernels of experts, by that of other products of their size.
        activation_gib: memory of activations of a replica, 2^30 bytes; 0 for what the largest
            iteration needs.
        expert_activation_gib: the same of models with experts.
        runtime_gib: memory of the runtime on a GPU that works alone, 2^30 bytes.
        runtime_group_gib: the same on one of several.
        counts_by_gpu: whether the memory of all GPUs is divided by what one of them keeps of a
            block, as BLIS does; its caches are too large by ``tensor_parallel``.
        decode_memory_share: share of the memory's bandwidth that attention of decoding sequences
            reaches; 0 for the stack's.
        prefill_share: share of the peak in iterations' prompts; forms other than ``kernels``.
        decode_share: the same of decoding sequences; ``roofline``.
        weights_scale: factor of the time to read the weights; ``linear``.
        cache_scale: the same of the cache; ``linear``.
        network_scale: the same of all-reduces, as if at the memory's bandwidth; ``linear``.
        layer_us: by layer and iteration; ``linear``.
    """

    stack: Any
    form: str = "kernels"
    request_us: float = field(0, default=0.0)
    token_us: float = field(0, default=0.0)
    step_us: float = field(0, default=0.0)
    sequence_us: float = field(0, default=0.0)
    prompts_us: float = field(0, default=0.0)
    graph_tokens: int = field(0, default=512)
    eager_layer_us: float = field(0, default=0.0)
    speeds: Mapping[str, float] | None = None
    expert_speed: float = field(0.05, 2, default=1.0)
    activation_gib: float = field(0, default=0.0)
    expert_activation_gib: float = field(0, default=0.0)
    runtime_gib: float = field(0, default=0.5)
    runtime_group_gib: float = field(0, default=1.0)
    counts_by_gpu: bool = field(default=False)
    decode_memory_share: float = field(0, 1, default=0.0)
    prefill_share: float = field(0.01, 10, default=0.5)
    decode_share: float = field(0.01, 10, default=0.3)
    weights_scale: float = field(0, default=1.0)
    cache_scale: float = field(0, default=1.0)
    network_scale: float = field(0, default=1.0)
    layer_us: float = field(0, default=0.0)

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise UnknownNameError("form", self.form, FORMS, "engine")
        load_stack(self.stack)
        if not isinstance(self.speeds, Mapping | None):
            raise InvalidValueError(
                f"engine: speeds is {self.speeds!r:.80}; it must be a mapping from chips to shares"
            )
        for chip, share in (self.speeds or {}).items():
            if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 2:
                raise InvalidValueError(
                    f"engine: speeds[{chip!r}] is {share!r:.80}; it must be a number above 0, at "
                    "most 2"
                )

    def speed_on(self, chip: Chip) -> float:
        """Share of the best kernels' rates that this engine reaches on a chip."""
        speeds = self.speeds or {}
        return speeds.get(chip.name, speeds.get(chip.base, 1.0))


def load_engine(spec: str | Mapping[str, Any]) -> Engine:
    """An engine by name or from a mapping, where ``base`` names one to change.

    Raises:
        UnknownNameError, InvalidValueError: naming what is not possible.
    """
    return read_entry(Engine, spec, _FILE, "engine")


def engine_names() -> dict[str, str]:
    """The engines that ship, with a line on each."""
    return {name: str(entry["doc"]) for name, entry in catalogue(_FILE).items()}
