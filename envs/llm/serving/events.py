"""Requests through the replicas of a deployment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from archgym.envs.llm.serving.compiled import compiled, entry
from archgym.envs.llm.serving.prefixes import held
from archgym.envs.llm.serving.replica import advance, come, next_s

__all__ = ["LEAST_LOADED", "PREFIX_AFFINITY", "ROUND_ROBIN", "serve"]

ROUND_ROBIN, LEAST_LOADED, PREFIX_AFFINITY = 0, 1, 2


@compiled
def _choose(
    pool: Any, replicas: Any, requests: Any, users: Any, ids: Any, starts: Any, one: int, turn: int
) -> int:
    """The replica to which a request goes.

    By turns; to the one with the fewest requests; or to the one that has the fewest prompt tokens
    to compute, counted with those of this prompt that its prefix cache lacks.
    """
    n = len(replicas)
    if pool.routing == ROUND_ROBIN:
        return turn % n
    best, least = 0, np.inf
    for r in range(n):
        load = float(replicas[r].outstanding)
        if pool.routing == PREFIX_AFFINITY:
            load = float(replicas[r].outstanding_tokens)
            if pool.prefix_cache and starts[one + 1] > starts[one]:
                hits = held(users[r], ids, starts[one], starts[one + 1], pool.tier_prefixes > 0)
                load -= hits * pool.prefix_tokens
        if load < least:
            best, least = r, load
    return best


@compiled
def _stage(
    pool: Any, cost: Any, nodes: Any, tables: Any, replicas: Any, requests: Any, users: Any,
    older: Any, newer: Any, ids: Any, starts: Any, running: Any, sums: Any, ended: Any, order: Any,
) -> int:  # fmt: skip
    """Requests of an open loop through one pool, in order of ``ready``; how many left it."""
    count = 0
    for turn in range(len(order)):
        one = order[turn]
        ready = requests[one].ready
        if pool.routing != ROUND_ROBIN:
            for r in range(len(replicas)):
                if next_s(replicas[r], requests) < ready:
                    count += advance(
                        pool, cost, nodes, tables, replicas[r], requests, users[r], older[r],
                        newer[r], ids, starts, running[r], sums, ended[count:], ready, False,
                    )  # fmt: skip
        chosen = _choose(pool, replicas, requests, users, ids, starts, one, turn)
        come(replicas[chosen], requests, one, ready)
    for r in range(len(replicas)):
        if next_s(replicas[r], requests) < np.inf:
            count += advance(
                pool, cost, nodes, tables, replicas[r], requests, users[r], older[r], newer[r],
                ids, starts, running[r], sums, ended[count:], np.inf, False,
            )  # fmt: skip
    return count


@compiled
def _hand_over(cost: Any, requests: Any, one: int, clock: float) -> float:
    """A prefilled sequence leaves for the other pool; when it is there."""
    request = requests[one]
    request.kept = request.computed
    request.target = request.computed
    size = request.computed * cost.transfer_s
    return float(clock + cost.transfer_latency_s + size)


@compiled
def _closed_loop(
    pools: Any, costs: Any, nodes: Any, tables: Any, main: Any, prefill: Any, requests: Any,
    users: Any, older: Any, newer: Any, ids: Any, starts: Any, running: Any, sums: Any, ended: Any,
    closed: int,
) -> None:  # fmt: skip
    """As many requests as there are users; the replica that is furthest behind goes on."""
    split = len(prefill) > 0
    first = len(main)
    front = prefill if split else main
    at = 1 if split else 0
    base = first if split else 0
    total = first + len(prefill)
    begun, moved = 0, 0
    while begun < min(closed, len(requests)):
        chosen = _choose(pools[at], front, requests, users[base:], ids, starts, begun, begun)
        come(front[chosen], requests, begun, requests[begun].arrival + costs[at].request_s)
        begun += 1
    while True:
        now, second, who = np.inf, np.inf, -1
        for r in range(total):
            replica = main[r] if r < first else prefill[r - first]
            start = next_s(replica, requests)
            if start < now:
                now, second, who = start, now, r
            else:
                second = min(second, start)
        if who < 0:
            return
        kind = 0 if who < first else 1
        replica = main[who] if kind == 0 else prefill[who - first]
        count = advance(
            pools[kind], costs[kind], nodes, tables[kind], replica, requests, users[who],
            older[who], newer[who], ids, starts, running[who], sums, ended, second, True,
        )  # fmt: skip
        for i in range(count):
            one = ended[i]
            if requests[one].generated < requests[one].output:
                ready = _hand_over(costs[1], requests, one, replica.clock)
                chosen = _choose(pools[0], main, requests, users, ids, starts, one, moved)
                moved += 1
                come(main[chosen], requests, one, ready)
            elif begun < len(requests):
                arrival = max(requests[begun].arrival, replica.clock)
                requests[begun].arrival = arrival
                chosen = _choose(
                    pools[at], front, requests, users[base:], ids, starts, begun, begun
                )
                come(front[chosen], requests, begun, arrival + costs[at].request_s)
                begun += 1


@entry
def serve(sources: int) -> Callable[..., None]:
    """Brings all requests through a deployment; arguments as in :mod:`.layout`."""

    def run(
        pools: Any, costs: Any, nodes: Any, tables: Any, main: Any, prefill: Any, requests: Any,
        users: Any, older: Any, newer: Any, ids: Any, starts: Any, running: Any, closed: int,
    ) -> None:  # fmt: skip
        _ = sources
        n = len(requests)
        sums = np.zeros(9)
        ended = np.zeros(n, np.int64)
        split = len(prefill) > 0
        front = 1 if split else 0
        if closed == 0:
            order = np.arange(n)
            for i in range(n):
                requests[i].ready = requests[i].arrival + costs[front].request_s
            if split:
                # Replicas are asked one after the other, so what leaves is sorted by time.
                first = len(main)
                count = _stage(
                    pools[1], costs[1], nodes, tables[1], prefill, requests, users[first:],
                    older[first:], newer[first:], ids, starts, running[first:], sums, ended, order,
                )  # fmt: skip
                ready = np.zeros(n)
                left = np.zeros(n, np.int64)
                going = 0
                for i in range(count):
                    one = ended[i]
                    if requests[one].generated < requests[one].output:
                        clock = requests[one].first - costs[1].token_s
                        ready[going] = _hand_over(costs[1], requests, one, clock)
                        left[going] = one
                        going += 1
                by_time = np.argsort(ready[:going], kind="mergesort")
                order = left[:going][by_time]
                for i in range(going):
                    requests[order[i]].ready = ready[by_time[i]]
            _stage(
                pools[0], costs[0], nodes, tables[0], main, requests, users, older, newer, ids,
                starts, running, sums, ended, order,
            )  # fmt: skip
            return
        _closed_loop(
            pools, costs, nodes, tables, main, prefill, requests, users, older, newer, ids, starts,
            running, sums, ended, closed,
        )  # fmt: skip

    return run
