"""The records that the compiled serving simulator reads and writes.

Times are in seconds, sizes in bytes, the cache in blocks.
"""

from __future__ import annotations

from typing import Final

import numpy as np

__all__ = ["COST", "NODES", "POOL", "REPLICA", "REQUEST", "TABLES"]

_F, _I = np.float64, np.int64


def _octaves() -> list[float]:
    """0, 1, 2 ... 8, then eight points an octave up to 2^17."""
    points = [float(i) for i in range(9)]
    for octave in range(3, 17):
        points += [2.0**octave * (1 + i / 8) for i in range(1, 9)]
    return points


NODES: Final = np.array(_octaves())
"""Tokens of an iteration at which its time is tabulated."""
TABLES: Final = ("products", "network", "logits", "arithmetic")
"""Seconds by tokens: products with weights and element-wise kernels; collectives; the output layer
(by sampled sequences); and the arithmetic that products and element-wise kernels contain."""

COST: Final = np.dtype(
    [
        *(
            (name, _F)
            for name in (
                "pair_s",
                "prefill_s",
                "decode_s",
                "context_s",
                "past_memory_s",
                "prefill_memory_s",
                "decode_memory_s",
                "context_memory_s",
                "attention_s",
                "graph_tokens",
                "eager_s",
                "step_s",
                "sequence_s",
                "prompts_s",
                "stage_scale",
                "stream_s",
                "draft_share",
                "request_s",
                "token_s",
                "swap_s",
                "swap_bytes",
                "transfer_s",
                "transfer_bytes",
                "transfer_latency_s",
                "accepted",
            )
        ),
        *((name, _I) for name in ("joint", "whole_prompt", "pipeline", "nano", "speculative")),
    ]
)
"""Time of an iteration, in closed form.

Of attention's arithmetic: ``pair_s`` by pair of a new and an older token of prompts, ``context_s``
by token in the contexts of decoding sequences, ``prefill_s`` and ``decode_s`` by new token. Of its
memory accesses ``*_memory_s``, and ``past_memory_s`` by token that a chunk of a prompt finds in the
cache. Of its launch ``attention_s``. ``eager_s``: least time of an iteration of more than
``graph_tokens`` tokens. Of the host: ``step_s`` by iteration, ``sequence_s`` by sequence,
``prompts_s`` by iteration with prompts. ``stage_scale`` of the longest stage by the mean one;
``stream_s`` in which offloaded weights are read; ``draft_share`` of the draft model in an
iteration. ``request_s`` before a request is queued, ``token_s`` after an iteration until its tokens
are seen. ``swap_*`` by block of the cache to or from the offload tier, ``transfer_*`` by token
between pools. ``accepted`` tokens of a sequence and iteration, on average. ``joint``: one roofline
over all kernels of the iteration. ``whole_prompt``: pairs are counted as if the whole prompt came
before each chunk. ``nano``: parts of a batch that overlap.
"""

POOL: Final = np.dtype(
    [
        (name, _I)
        for name in (
            "max_seqs",
            "max_tokens",
            "chunked",
            "shortest",
            "prefill_first",
            "swap",
            "block",
            "blocks",
            "prefix_cache",
            "prefix_blocks",
            "prefix_tokens",
            "tier_prefixes",
            "hands_over",
            "routing",
            "leaps",
        )
    ]
)
"""How a replica schedules. ``prefix_blocks`` cache blocks a block of a prefix, ``tier_prefixes`` of
these in the offload tier; ``hands_over``: sequences leave after their prefill."""

REQUEST: Final = np.dtype(
    [
        *((name, _F) for name in ("arrival", "ready", "first", "finished", "queued")),
        *(
            (name, _I)
            for name in (
                "prompt",
                "output",
                "computed",
                "target",
                "generated",
                "blocks",
                "shared",
                "kept",
                "swapped",
                "preempted",
                "cached",
                "next",
                "new",
            )
        ),
    ]
)
"""A request. ``ready``: when it reaches its replica. ``computed`` tokens are in the cache,
``target`` of them make the prefill; ``blocks`` are its own, ``shared`` blocks of its prefix are in
the prefix cache; ``kept`` tokens come with it (``swapped``: from the offload tier). ``next`` in its
list, -1 at the end; ``new`` tokens in this iteration."""

REPLICA: Final = np.dtype(
    [
        *((name, _F) for name in ("clock", "busy", "gpu", "arithmetic", "block_seconds", "moved")),
        *(
            (name, _I)
            for name in (
                "coming",
                "waiting",
                "last_waiting",
                "running",
                "outstanding",
                "outstanding_tokens",
                "used",
                "peak",
                "idle_prefixes",
                "oldest",
                "newest",
                "tier_count",
                "tier_oldest",
                "tier_newest",
                "turn",
                "iterations",
                "prompt_tokens",
                "tokens",
                "output_tokens",
            )
        ),
    ]
)
"""A replica. ``coming`` heads the list of requests by ``ready``, ``waiting`` the queue.
``idle_prefixes`` are cached and in use by no sequence; ``oldest`` and ``newest`` end their list in
order of use. ``arithmetic`` and ``gpu``: busy seconds; ``moved``: bytes to and from the tier."""
