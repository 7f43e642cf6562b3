"""Schedules by the book, one node and one event at a time, and the best schedule of all by trying everything."""

from __future__ import annotations

import heapq
from functools import cache

import networkx as nx

Number = int | float


def urgency(dag: nx.DiGraph, cost: dict[int, Number]) -> dict[int, Number]:
    """Return the longest remaining path of each node, itself included."""
    longest: dict[int, Number] = {}
    for v in reversed(list(nx.topological_sort(dag))):
        longest[v] = cost[v] + max((longest[u] for u in dag.successors(v)), default=0)
    return longest


def list_schedule(dag: nx.DiGraph, cost: dict[int, Number], workers: int) -> dict[int, Number]:
    """Return when each node starts: the most urgent ready node whenever a worker is idle, lowest numbers first."""
    longest, waiting = urgency(dag, cost), dict(dag.in_degree)
    starts: dict[int, Number] = {}
    ready: list[tuple[Number, int]] = []
    running: list[tuple[Number, int]] = []
    idle, now = workers, 0

    def free(nodes: list[int]) -> None:
        while nodes:
            v = nodes.pop()
            if cost[v]:
                heapq.heappush(ready, (-longest[v], v))
            else:
                starts[v] = now
                nodes += finish(v)

    def finish(v: int) -> list[int]:
        done = []
        for u in dag.successors(v):
            waiting[u] -= 1
            if not waiting[u]:
                done.append(u)
        return done

    free([v for v, count in waiting.items() if not count])
    while ready or running:
        while ready and idle:
            _, v = heapq.heappop(ready)
            starts[v] = now
            heapq.heappush(running, (now + cost[v], v))
            idle -= 1
        now = running[0][0]
        over = []
        while running and running[0][0] == now:
            over.append(heapq.heappop(running)[1])
            idle += 1
        for v in over:
            free(finish(v))
    return starts


def best_makespan(dag: nx.DiGraph, cost: dict[int, int], workers: int) -> int:
    """Return the shortest makespan of all schedules, also those that leave workers idle: step by step, everything."""
    before = {v: frozenset(dag.predecessors(v)) for v in dag}

    @cache
    def rest(done: frozenset[int], running: frozenset[tuple[int, int]]) -> int:
        if len(done) == len(dag):
            return 0
        begun = {v for v, _ in running}
        ready = [v for v in dag if v not in done and v not in begun and before[v] <= done]
        timeless = frozenset(v for v in ready if not cost[v])
        if timeless:
            return rest(done | timeless, running)
        best = 10**9
        for chosen in range(1 << len(ready)):
            more = [v for i, v in enumerate(ready) if chosen >> i & 1]
            now = running | {(v, cost[v]) for v in more}
            if not now or len(now) > workers:
                continue
            step = min(left for _, left in now)
            over = frozenset(v for v, left in now if left == step)
            left = frozenset((v, left - step) for v, left in now if left > step)
            best = min(best, step + rest(done | over, left))
        return best

    return rest(frozenset(), frozenset())
