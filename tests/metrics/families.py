"""Well-known DAGs, of any size."""

from __future__ import annotations

import networkx as nx

CHOLESKY_COST = {"potrf": 1, "trsm": 3, "syrk": 3, "gemm": 6}


def grid(n: int, m: int) -> nx.DiGraph:
    dag = nx.DiGraph()
    dag.add_edges_from(((i, j), (i + 1, j)) for i in range(n - 1) for j in range(m))
    dag.add_edges_from(((i, j), (i, j + 1)) for i in range(n) for j in range(m - 1))
    return dag


def butterfly(n: int) -> nx.DiGraph:
    """Return the fast Fourier transform of n values, a power of two."""
    dag = nx.DiGraph()
    for level in range(n.bit_length() - 1):
        for i in range(n):
            dag.add_edges_from(((level, j), (level + 1, i)) for j in (i, i ^ 1 << level))
    return dag


def reduction_tree(n: int) -> nx.DiGraph:
    dag, level = nx.DiGraph(), [("leaf", i) for i in range(n)]
    dag.add_nodes_from(level)
    while len(level) > 1:
        above = []
        for pair in zip(level[::2], level[1::2], strict=False):
            above.append(("sum", pair))
            dag.add_edges_from((member, ("sum", pair)) for member in pair)
        level = above + level[len(above) * 2 :]
    return dag


def boolean_lattice(n: int) -> nx.DiGraph:
    return nx.DiGraph((a, a | 1 << b) for a in range(1 << n) for b in range(n) if not a >> b & 1)


def cholesky(tiles: int) -> nx.DiGraph:
    """Return the tasks of a tiled Cholesky factorisation; each reads the last tasks that wrote the tiles it uses."""
    dag, last = nx.DiGraph(), {}

    def task(kind: str, name: tuple[int, ...], reads: list[tuple[int, int]], writes: tuple[int, int]) -> None:
        dag.add_node((kind, *name), op=kind)
        dag.add_edges_from((last[tile], (kind, *name)) for tile in {*reads, writes} if tile in last)
        last[writes] = (kind, *name)

    for k in range(tiles):
        task("potrf", (k,), [], (k, k))
        for i in range(k + 1, tiles):
            task("trsm", (i, k), [(k, k)], (i, k))
        for i in range(k + 1, tiles):
            task("syrk", (i, k), [(i, k)], (i, i))
            for j in range(k + 1, i):
                task("gemm", (i, j, k), [(i, k), (j, k)], (i, j))
    return dag


# Scans: h_t = a_t h_{t-1} + b_t. The affine maps are the inputs; one node combines two of them.


def sequential(n: int) -> nx.DiGraph:
    dag, last = nx.DiGraph(), ("x", 0)
    for t in range(1, n):
        dag.add_edges_from([(last, ("h", t)), (("x", t), ("h", t))])
        last = ("h", t)
    return dag


def kogge_stone(n: int) -> nx.DiGraph:
    dag, level, step = nx.DiGraph(), [("x", t) for t in range(n)], 1
    while step < n:
        above = list(level)
        for t in range(step, n):
            above[t] = ("h", step, t)
            dag.add_edges_from([(level[t], above[t]), (level[t - step], above[t])])
        level, step = above, step * 2
    return dag


def chunked(n: int, size: int) -> nx.DiGraph:
    """Return scans within chunks side by side, a scan over their last values, and its results brought into each."""
    dag, level = nx.DiGraph(), [("x", t) for t in range(n)]
    for t in range(n):
        if t % size:
            dag.add_edges_from([(level[t - 1], ("in", t)), (level[t], ("in", t))])
            level[t] = ("in", t)
    for last in range(2 * size - 1, n, size):
        dag.add_edges_from([(level[last - size], ("between", last)), (level[last], ("between", last))])
        level[last] = ("between", last)
    for t in range(size, n):
        if (t + 1) % size:
            before = level[t // size * size - 1]
            dag.add_edges_from([(before, ("out", t)), (level[t], ("out", t))])
    return dag
