"""A replica from one event to the next: iterations, and stretches that only decode."""

from __future__ import annotations

from typing import Any

import numpy as np

from archgym.envs.llm.serving.compiled import compiled, inlined
from archgym.envs.llm.serving.iteration import assembled_s, attention, lookup
from archgym.envs.llm.serving.scheduling import (
    CONTEXT,
    DECODE,
    LOADED_S,
    PAIRS,
    PAST,
    PREFILL,
    PROMPTS,
    SEQUENCES,
    arrive,
    blocks_of,
    form_batch,
    occupy,
    release,
    share_prefix,
)

__all__ = ["advance", "come", "next_s"]


@compiled
def come(replica: Any, requests: Any, one: int, ready: float) -> None:
    """A request is on its way to a replica, which it reaches at ``ready``."""
    requests[one].ready = ready
    before, after = -1, replica.coming
    while after >= 0 and requests[after].ready <= ready:
        before, after = after, requests[after].next
    requests[one].next = after
    if before >= 0:
        requests[before].next = one
    else:
        replica.coming = one
    replica.outstanding += 1
    replica.outstanding_tokens += requests[one].target - requests[one].kept


@compiled
def next_s(replica: Any, requests: Any) -> float:
    """When the replica can begin its next iteration; infinite if it has nothing to do."""
    if replica.running > 0 or replica.waiting >= 0:
        return float(replica.clock)
    if replica.coming >= 0:
        return float(max(replica.clock, requests[replica.coming].ready))
    return np.inf


@compiled
def _receive(pool: Any, replica: Any, requests: Any) -> None:
    """Requests that have reached the replica join its queue."""
    while replica.coming >= 0 and requests[replica.coming].ready <= replica.clock:
        one = replica.coming
        replica.coming = requests[one].next
        arrive(pool, replica, requests, one, False)


@inlined
def _accepted(cost: Any, replica: Any) -> int:
    """Tokens that every decoding sequence gets in this iteration."""
    if cost.speculative == 0:
        return 1
    turn = replica.turn
    return int(np.floor((turn + 1) * cost.accepted) - np.floor(turn * cost.accepted))


@inlined
def _pass_time(replica: Any, seconds: float, gpu: float, arithmetic: float) -> None:
    replica.block_seconds += replica.used * seconds
    replica.clock += seconds
    replica.busy += seconds
    replica.gpu += gpu
    replica.arithmetic += min(gpu, arithmetic)
    replica.iterations += 1
    replica.turn += 1


@compiled
def advance(
    pool: Any, cost: Any, nodes: Any, tables: Any, replica: Any, requests: Any, users: Any,
    older: Any, newer: Any, ids: Any, starts: Any, running: Any, sums: Any, ended: Any,
    until: float, stop: bool,
) -> int:  # fmt: skip
    """Runs iterations that begin before ``until``, at least one.

    Args:
        pool: how the replica schedules.
        cost: coefficients of an iteration.
        nodes: tokens of the tables.
        tables: seconds by tokens, shape (4, nodes).
        replica: is brought forward.
        requests: all requests.
        users: of blocks of prefixes.
        older: links of these.
        newer: links of these.
        ids: blocks of the prefixes of all requests.
        starts: first id of each request.
        running: requests in order of admission.
        sums: scratch, shape (9,).
        ended: takes the requests that end, or leave after their prefill.
        until: seconds.
        stop: whether to return after an iteration in which a request ends.

    Returns:
        How many requests ended; they did at the replica's clock if ``stop``.
    """
    count = 0
    while True:
        start = next_s(replica, requests)
        if start == np.inf:
            return count
        replica.clock = start
        _receive(pool, replica, requests)
        before = count
        if not pool.leaps or not _leap(
            pool, cost, nodes, tables, replica, requests, users, older, newer, running, until
        ):
            form_batch(
                pool, cost, replica, requests, users, older, newer, ids, starts, running, sums
            )
            _step(pool, cost, nodes, tables, replica, requests, running, sums)
        count = _finish(
            pool, cost, replica, requests, users, older, newer, ids, starts, running, ended, count
        )
        if replica.clock >= until or (stop and count > before):
            return count


@compiled
def _step(
    pool: Any, cost: Any, nodes: Any, tables: Any, replica: Any, requests: Any, running: Any,
    sums: Any,
) -> None:  # fmt: skip
    """One iteration: time passes, tokens are computed and given."""
    parts = float(max(1.0, min(cost.pipeline, sums[SEQUENCES])))
    tokens = (sums[PREFILL] + sums[DECODE]) / parts
    products = lookup(nodes, tables[0], tokens)
    network = lookup(nodes, tables[1], tokens)
    logits = lookup(nodes, tables[2], (sums[DECODE] + sums[PROMPTS]) / parts)
    work = lookup(nodes, tables[3], tokens)
    compute, memory = attention(
        cost, sums[PREFILL] / parts, sums[DECODE] / parts, sums[PAIRS] / parts,
        sums[PAST] / parts, sums[CONTEXT] / parts,
    )  # fmt: skip
    gpu = assembled_s(cost, tokens, products, network, logits, compute, memory)
    seconds = gpu + cost.step_s + cost.sequence_s * sums[SEQUENCES]
    seconds += sums[LOADED_S]
    if sums[PROMPTS] > 0:
        seconds += cost.prompts_s
    accepted = _accepted(cost, replica)
    _pass_time(replica, seconds, gpu, work + compute)
    replica.tokens += int(sums[PREFILL] + sums[DECODE])
    replica.prompt_tokens += int(sums[PREFILL])
    for j in range(replica.running):
        request = requests[running[j]]
        if request.new == 0:
            continue
        if request.computed < request.target:
            request.computed += request.new
            replica.outstanding_tokens -= request.new
            if request.computed == request.target:
                request.generated += 1
                if request.first < 0:
                    request.first = replica.clock + cost.token_s
        else:
            given = min(accepted, request.output - request.generated)
            request.computed += given
            request.generated += given


@compiled
def _admissible(pool: Any, replica: Any, requests: Any, ahead: int, missing: int) -> bool:
    """Whether the queue could give a sequence to one of the next iterations.

    Args:
        pool: how the replica schedules.
        replica: the replica, all of whose sequences decode.
        requests: all requests.
        ahead: tokens of a sequence and iteration.
        missing: blocks that the running sequences take first.
    """
    if replica.waiting < 0:
        return False
    if pool.prefix_cache or pool.shortest or replica.coming >= 0:
        # Who is next, or how much of its prompt is cached, may change meanwhile.
        return True
    budget = pool.max_tokens - replica.running * ahead
    free = pool.blocks - replica.used - missing
    if pool.prefill_first:  # the queue comes before those that run
        budget, free = pool.max_tokens, pool.blocks - replica.used
    request = requests[replica.waiting]
    wanted = request.target if not pool.chunked else min(request.target, budget)
    if request.kept >= request.target:
        wanted = request.kept + ahead
    elif request.kept > 0:
        wanted = request.kept + min(budget, request.target - request.kept)
    return bool(blocks_of(pool, wanted) <= free)


@compiled
def _leap(
    pool: Any, cost: Any, nodes: Any, tables: Any, replica: Any, requests: Any, users: Any,
    older: Any, newer: Any, running: Any, until: float,
) -> bool:  # fmt: skip
    """Iterations in which all sequences decode and nobody is admitted, until one ends.

    Each one costs a few operations, whatever the number of sequences: the context grows by as many
    tokens as there are sequences, and blocks by those whose last one is full, which a count by
    fill tells. It gives what single iterations give.

    Returns:
        Whether there was such an iteration.
    """
    ahead = 1 + cost.speculative
    n = replica.running
    budget = pool.max_tokens - n * ahead
    if n == 0 or budget < 0:
        return False
    context, least, missing = 0, np.int64(1 << 60), 0
    fill = np.zeros(pool.block, np.int64)
    for j in range(n):
        request = requests[running[j]]
        if request.computed < request.target:
            return False
        context += request.computed
        least = min(least, request.output - request.generated)
        wanted = blocks_of(pool, request.computed + ahead)
        missing += max(0, wanted - request.blocks - request.shared * pool.prefix_blocks)
        fill[(request.computed + ahead - 1) % pool.block] += 1
    room = n < pool.max_seqs and (budget > 0 or pool.prefill_first)
    if room and _admissible(pool, replica, requests, ahead, missing):
        return False
    due = requests[replica.coming].ready if replica.coming >= 0 else np.inf
    parts = float(max(1.0, min(cost.pipeline, n)))
    tokens = n * ahead / parts
    products = lookup(nodes, tables[0], tokens)
    network = lookup(nodes, tables[1], tokens)
    logits = lookup(nodes, tables[2], tokens)
    work = lookup(nodes, tables[3], tokens)
    given, shift, last = 0, 0, 0
    while given < least:
        if not occupy(pool, cost, replica, users, older, newer, missing):
            break
        compute, memory = attention(cost, 0.0, n * ahead / parts, 0.0, 0.0, context / parts)
        gpu = assembled_s(cost, tokens, products, network, logits, compute, memory)
        seconds = gpu + cost.step_s + cost.sequence_s * n
        last = _accepted(cost, replica)
        _pass_time(replica, seconds, gpu, work + compute)
        replica.tokens += n * ahead
        given += last
        context += n * last
        missing = 0
        for _ in range(last):
            shift += 1
            missing += fill[(pool.block - shift % pool.block) % pool.block]
        if replica.clock >= until or replica.clock >= due:
            break
    if given == 0:
        return False
    _settle(pool, replica, requests, running, given, given - last + ahead)
    return True


@compiled
def _settle(pool: Any, replica: Any, requests: Any, running: Any, given: int, reached: int) -> None:
    """After a leap: ``given`` tokens a sequence, and blocks for ``reached`` more than it had."""
    for j in range(replica.running):
        request = requests[running[j]]
        held = request.blocks + request.shared * pool.prefix_blocks
        request.blocks += max(0, blocks_of(pool, request.computed + reached) - held)
        own = min(given, request.output - request.generated)
        request.computed += own
        request.generated += own


@compiled
def _finish(
    pool: Any, cost: Any, replica: Any, requests: Any, users: Any, older: Any, newer: Any,
    ids: Any, starts: Any, running: Any, ended: Any, count: int,
) -> int:  # fmt: skip
    """Takes out the sequences that have ended, or whose prefill has, and keeps their order."""
    kept = 0
    for j in range(replica.running):
        one = running[j]
        request = requests[one]
        done = request.generated >= request.output
        filled = request.computed >= request.target
        if (
            filled
            and pool.prefix_cache
            and request.generated <= 1
            and starts[one + 1] > starts[one]
        ):
            share_prefix(pool, replica, requests, users, older, newer, ids, starts, one)
        if done or (filled and pool.hands_over):
            release(pool, replica, requests, users, older, newer, ids, starts, one)
            if done:
                request.finished = replica.clock + cost.token_s
                replica.output_tokens += request.generated
            replica.outstanding -= 1
            ended[count] = one
            count += 1
        else:
            running[kept] = one
            kept += 1
    replica.running = kept
    return count
