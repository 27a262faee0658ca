"""Which tokens a replica computes in an iteration: admission, blocks of the cache, preemption."""

from __future__ import annotations

from typing import Any

from archgym.envs.llm.serving.compiled import compiled
from archgym.envs.llm.serving.prefixes import IN_TIER, claim, drop, held, make_room, register

__all__ = [
    "BUDGET",
    "CONTEXT",
    "DECODE",
    "LOADED_S",
    "PAIRS",
    "PAST",
    "PREFILL",
    "PROMPTS",
    "SEQUENCES",
    "arrive",
    "blocks_of",
    "form_batch",
    "occupy",
    "release",
    "share_prefix",
]

PREFILL, DECODE, PAIRS, PAST, CONTEXT, SEQUENCES, PROMPTS, LOADED_S, BUDGET = range(9)
"""Sums of a batch: new tokens of prompts and of decoding sequences, pairs and past tokens of the
prompts, tokens in contexts, sequences, prompts among them, seconds in which the offload tier is
read or written, and tokens that may still be added."""


@compiled
def blocks_of(pool: Any, tokens: int) -> int:
    """Blocks that hold ``tokens`` tokens."""
    return int((tokens + pool.block - 1) // pool.block)


@compiled
def arrive(pool: Any, replica: Any, requests: Any, one: int, front: bool) -> None:
    """A request joins the queue: at its end, at its front, or by the length of its prompt."""
    before, after = -1, replica.waiting
    if pool.shortest:
        while after >= 0 and (
            requests[after].prompt < requests[one].prompt
            or (
                requests[after].prompt == requests[one].prompt
                and (requests[after].arrival, after) < (requests[one].arrival, one)
            )
        ):
            before, after = after, requests[after].next
    elif not front and after >= 0:
        before, after = replica.last_waiting, -1
    requests[one].next = after
    if before >= 0:
        requests[before].next = one
    else:
        replica.waiting = one
    if after < 0:
        replica.last_waiting = one


@compiled
def occupy(
    pool: Any, cost: Any, replica: Any, users: Any, older: Any, newer: Any, blocks: int
) -> bool:
    """Takes blocks of the cache, from unused prefixes if need be; whether there were enough."""
    if blocks > pool.blocks - replica.used:
        return False
    if blocks > 0:
        if replica.idle_prefixes > 0:
            make_room(pool, cost, replica, users, older, newer, blocks)
        replica.used += blocks
        replica.peak = max(replica.peak, replica.used)
    return True


@compiled
def _take(
    pool: Any, cost: Any, replica: Any, requests: Any, users: Any, older: Any, newer: Any,
    one: int, tokens: int,
) -> bool:  # fmt: skip
    """Gives a sequence the blocks for ``tokens`` tokens; whether there were enough."""
    held_blocks = requests[one].blocks + requests[one].shared * pool.prefix_blocks
    missing = blocks_of(pool, tokens) - held_blocks
    if missing <= 0:
        return True
    if not occupy(pool, cost, replica, users, older, newer, missing):
        return False
    requests[one].blocks += missing
    return True


@compiled
def release(
    pool: Any, replica: Any, requests: Any, users: Any, older: Any, newer: Any, ids: Any,
    starts: Any, one: int,
) -> None:  # fmt: skip
    """A sequence gives back its blocks; those of its prefix stay for others."""
    replica.used -= requests[one].blocks
    requests[one].blocks = 0
    for i in range(requests[one].shared):
        drop(pool, replica, users, older, newer, ids[starts[one] + i])
    requests[one].shared = 0


@compiled
def share_prefix(
    pool: Any, replica: Any, requests: Any, users: Any, older: Any, newer: Any, ids: Any,
    starts: Any, one: int,
) -> None:  # fmt: skip
    """A prefill has ended: whole blocks of the prefix serve others from now on."""
    last = min(starts[one + 1] - starts[one], requests[one].prompt // pool.prefix_tokens)
    for i in range(requests[one].shared, last):
        block = ids[starts[one] + i]
        if users[block] >= 0:  # another sequence computed it at the same time
            break
        register(replica, users, older, newer, block)
        requests[one].shared += 1
        requests[one].blocks -= pool.prefix_blocks


@compiled
def _preempt(
    pool: Any, cost: Any, replica: Any, requests: Any, users: Any, older: Any, newer: Any,
    ids: Any, starts: Any, running: Any, sums: Any,
) -> int:  # fmt: skip
    """The sequence that was admitted last makes room, and waits at the front of the queue."""
    replica.running -= 1
    one = running[replica.running]
    request = requests[one]
    request.preempted += 1
    if request.new > 0:  # it came back from the tier just now, to decode
        sums[DECODE] -= request.new
        sums[CONTEXT] -= request.computed
        sums[SEQUENCES] -= 1.0
        sums[BUDGET] += request.new
        request.new = 0
    if pool.swap:
        moved = blocks_of(pool, request.computed)
        request.kept = request.computed
        request.swapped = 1
        sums[LOADED_S] += moved * cost.swap_s
        replica.moved += moved * cost.swap_bytes
    else:
        target = request.prompt + request.generated
        replica.outstanding_tokens += request.computed + target - request.target
        if request.computed > request.target:
            replica.outstanding_tokens -= request.computed - request.target
        request.computed = 0
        request.target = target
    release(pool, replica, requests, users, older, newer, ids, starts, one)
    arrive(pool, replica, requests, one, True)
    return int(one)


@compiled
def _count(cost: Any, request: Any, new: int, sums: Any) -> None:
    """Adds ``new`` tokens of a sequence to the batch."""
    request.new = new
    sums[SEQUENCES] += 1.0
    sums[BUDGET] -= new
    if request.computed < request.target:
        before = float(request.computed)
        seen = float(request.target) if cost.whole_prompt else before
        sums[PREFILL] += new
        sums[PAIRS] += new * (seen + 0.5 * (new if cost.whole_prompt else new - 1))
        sums[PAST] += before
        sums[PROMPTS] += 1.0
    else:
        sums[DECODE] += new
        sums[CONTEXT] += request.computed


@compiled
def _admit(
    pool: Any, cost: Any, replica: Any, requests: Any, users: Any, older: Any, newer: Any,
    ids: Any, starts: Any, sums: Any,
) -> bool:  # fmt: skip
    """Admits the head of the queue if tokens and blocks allow it."""
    one = replica.waiting
    request = requests[one]
    budget = int(sums[BUDGET])
    ahead = 1 + cost.speculative
    if request.kept > 0:
        target = request.target
        new = ahead if request.kept >= target else min(budget, target - request.kept)
        if new > budget or not _take(
            pool, cost, replica, requests, users, older, newer, one, request.kept + new
        ):
            return False
        request.computed = request.kept
        request.kept = 0
        if request.swapped:
            moved = blocks_of(pool, request.computed)
            sums[LOADED_S] += moved * cost.swap_s
            replica.moved += moved * cost.swap_bytes
            request.swapped = 0
        _count(cost, request, new, sums)
        return True
    hits = 0
    found = 0
    if pool.prefix_cache and starts[one + 1] > starts[one]:
        last = starts[one] + min(
            starts[one + 1] - starts[one], (request.prompt - 1) // pool.prefix_tokens
        )
        hits = held(users, ids, starts[one], last, False)
        if pool.tier_prefixes > 0:
            found = held(users, ids, starts[one], last, True) - hits
        for i in range(hits):
            claim(pool, replica, users, older, newer, ids[starts[one] + i])
        request.shared = hits
    past = (hits + found) * pool.prefix_tokens
    missing = request.target - past
    new = min(missing, budget)
    if not pool.chunked and missing > budget:
        # A prompt beyond the limit of an iteration has one of its own.
        new = missing if sums[SEQUENCES] == 0 else 0
    good = new > 0 and _take(pool, cost, replica, requests, users, older, newer, one, past + new)
    if not good:
        release(pool, replica, requests, users, older, newer, ids, starts, one)
        return False
    if found > 0:
        # Making room may have pushed blocks out of the tier; only those that are there are read.
        still = 0
        for i in range(hits, hits + found):
            if users[ids[starts[one] + i]] != IN_TIER:
                break
            still += 1
        past = (hits + still) * pool.prefix_tokens
        new = min(request.target - past, new)
        moved = still * pool.prefix_blocks
        sums[LOADED_S] += moved * cost.swap_s
        replica.moved += moved * cost.swap_bytes
    replica.outstanding_tokens -= past
    request.computed = past
    request.cached = max(request.cached, past)
    _count(cost, request, new, sums)
    return True


@compiled
def form_batch(
    pool: Any, cost: Any, replica: Any, requests: Any, users: Any, older: Any, newer: Any,
    ids: Any, starts: Any, running: Any, sums: Any,
) -> None:  # fmt: skip
    """Chooses the tokens of the next iteration, as vLLM's scheduler does.

    Running sequences come first, in order of admission; one that finds no block preempts the last
    one. Then the queue is admitted, unless a sequence was preempted. Where prompts have priority,
    sequences decode only in iterations without prompts.

    Args:
        pool: how the replica schedules.
        cost: coefficients of an iteration.
        replica: the replica.
        requests: all requests.
        users: of blocks of prefixes, shape (blocks,).
        older: links of these.
        newer: links of these.
        ids: blocks of the prefixes of all requests.
        starts: first id of each request.
        running: requests in order of admission.
        sums: float64, shape (9,): is set to what the iteration has.
    """
    sums[:] = 0.0
    sums[BUDGET] = pool.max_tokens
    for j in range(replica.running):
        requests[running[j]].new = 0
    if pool.prefill_first:
        _continue_prompts(pool, cost, replica, requests, users, older, newer, running, sums)
        _admit_queue(pool, cost, replica, requests, users, older, newer, ids, starts, running, sums)
        if sums[PREFILL] > 0:
            return
    unharmed = _serve_running(
        pool, cost, replica, requests, users, older, newer, ids, starts, running, sums
    )
    if unharmed and not pool.prefill_first:
        _admit_queue(pool, cost, replica, requests, users, older, newer, ids, starts, running, sums)


@compiled
def _serve_running(
    pool: Any, cost: Any, replica: Any, requests: Any, users: Any, older: Any, newer: Any,
    ids: Any, starts: Any, running: Any, sums: Any,
) -> bool:  # fmt: skip
    """Running sequences in order; whether none was preempted."""
    ahead = 1 + cost.speculative
    preempted = False
    j = 0
    while j < replica.running and sums[BUDGET] > 0:
        one = running[j]
        request = requests[one]
        new = ahead
        if request.new > 0:
            j += 1
            continue
        if request.computed < request.target:
            new = request.target - request.computed
            if pool.chunked:
                new = min(new, int(sums[BUDGET]))
        elif new > sums[BUDGET]:
            break
        while not _take(
            pool, cost, replica, requests, users, older, newer, one, request.computed + new
        ):
            preempted = True
            victim = _preempt(
                pool, cost, replica, requests, users, older, newer, ids, starts, running, sums
            )
            if victim == one:
                return False
        _count(cost, request, new, sums)
        j += 1
    return not preempted


@compiled
def _admit_queue(
    pool: Any, cost: Any, replica: Any, requests: Any, users: Any, older: Any, newer: Any,
    ids: Any, starts: Any, running: Any, sums: Any,
) -> None:  # fmt: skip
    """The queue in order, as far as sequences, tokens and blocks are left."""
    while replica.waiting >= 0 and replica.running < pool.max_seqs and sums[BUDGET] > 0:
        one = replica.waiting
        if not _admit(pool, cost, replica, requests, users, older, newer, ids, starts, sums):
            break
        _to_running(replica, requests, running, one)


@compiled
def _continue_prompts(
    pool: Any, cost: Any, replica: Any, requests: Any, users: Any, older: Any, newer: Any,
    running: Any, sums: Any,
) -> None:  # fmt: skip
    """Goes on with prompts that earlier iterations began, as far as there are blocks."""
    for j in range(replica.running):
        request = requests[running[j]]
        if request.computed < request.target and sums[BUDGET] > 0:
            new = min(request.target - request.computed, int(sums[BUDGET]))
            if _take(
                pool, cost, replica, requests, users, older, newer, running[j],
                request.computed + new,
            ):  # fmt: skip
                _count(cost, request, new, sums)


@compiled
def _to_running(replica: Any, requests: Any, running: Any, one: int) -> None:
    replica.waiting = requests[one].next
    requests[one].next = -1
    running[replica.running] = one
    replica.running += 1
    if requests[one].queued < 0:
        requests[one].queued = replica.clock - requests[one].arrival
