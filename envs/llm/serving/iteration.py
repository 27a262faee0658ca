"""Time of one iteration from its tokens, in closed form."""

from __future__ import annotations

from typing import Any

from archgym.envs.llm.serving.compiled import compiled, inlined

__all__ = ["assembled_s", "attention", "lookup"]


@compiled
def lookup(nodes: Any, values: Any, tokens: float) -> float:
    """A tabulated time at ``tokens``, linear between the nodes and beyond the last one."""
    if tokens <= 0.0:
        return 0.0
    low, high = 0, len(nodes) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if nodes[middle] <= tokens:
            low = middle
        else:
            high = middle
    share = (tokens - nodes[low]) / (nodes[high] - nodes[low])
    return float(values[low] + share * (values[high] - values[low]))


@inlined
def attention(
    cost: Any, prefill: float, decode: float, pairs: float, past: float, context: float
) -> tuple[float, float]:
    """Seconds of attention's arithmetic and of its memory accesses.

    Args:
        cost: coefficients.
        prefill: new tokens of prompts.
        decode: new tokens of decoding sequences.
        pairs: pairs of new tokens of prompts and those that they attend to.
        past: tokens that chunks of prompts find in the cache.
        context: tokens in the contexts of decoding sequences.
    """
    compute = prefill * cost.prefill_s + decode * cost.decode_s
    compute += pairs * cost.pair_s + context * cost.context_s
    memory = prefill * cost.prefill_memory_s + decode * cost.decode_memory_s
    memory += past * cost.past_memory_s + context * cost.context_memory_s
    return compute, memory


@inlined
def assembled_s(
    cost: Any,
    tokens: float,
    products: float,
    network: float,
    logits: float,
    compute: float,
    memory: float,
) -> float:
    """Seconds of the GPUs in an iteration, from those of its parts."""
    if cost.joint:
        seconds = max(compute, memory + products)
    else:
        attended = max(compute, memory) + cost.attention_s
        seconds = products + attended + network
        if cost.nano > 1:
            longest = max(products, attended, network)
            seconds = longest + (seconds - longest) / cost.nano
    seconds = (seconds + logits) * (1.0 + cost.draft_share)
    if tokens > cost.graph_tokens:
        seconds = max(seconds, cost.eager_s)
    return float(max(seconds * cost.stage_scale, cost.stream_s))
