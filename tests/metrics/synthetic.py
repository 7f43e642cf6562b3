"""Graphs shaped like models, of any size, built without PyTorch."""

from __future__ import annotations

import numpy as np

from depgraph.dag.dag import Dag
from depgraph.dag.graph import DependencyGraph, Operation, Terminal, Terminals
from depgraph.dag.runs import Runs, union


class Builder:
    """Adds operations, each of them a block of nodes that read earlier blocks."""

    def __init__(self, inputs: int) -> None:
        self.inputs, self.nodes = inputs, inputs
        self.rows = [Runs.empty(inputs)]
        self.bounds = [0, inputs]
        self.operations: list[Operation] = []

    def add(self, name: str, *reads: Runs, contraction: bool = False) -> np.ndarray:
        """Add one node a row; row i reads the union of the i-th rows. Return the numbers of the nodes."""
        start, rows = self.nodes, union(list(reads)).split_at(np.array(self.bounds[1:]))
        self.nodes += len(rows)
        self.rows.append(rows)
        self.bounds.append(self.nodes)
        self.operations.append(Operation(name, "", "", contraction, start, self.nodes, grid=(len(rows),)))
        return np.arange(start, self.nodes)

    def graph(self, *outputs: Runs) -> DependencyGraph:
        indptr = np.cumsum([0, *(len(r.starts) for r in self.rows)])
        reads = Runs(
            np.concatenate([[0], *(r.indptr[1:] + low for r, low in zip(self.rows, indptr[:-1], strict=True))]),
            np.concatenate([r.starts for r in self.rows]),
            np.concatenate([r.stops for r in self.rows]),
        )
        tokens = Terminal("x", (1, self.inputs), (1,), Runs.singletons(np.arange(self.inputs)))
        ends = [
            Terminal("output" if not i else f"output.{i}", (1, len(rows)), (1,), rows) for i, rows in enumerate(outputs)
        ]
        return DependencyGraph(
            Dag(self.inputs, reads, np.array(self.bounds)),
            self.operations,
            Terminals("input", [tokens], {0: "x"}),
            Terminals("output", ends, {"output.0": "output"}),
        )


def nothing() -> DependencyGraph:
    """Return the graph of a model that takes nothing in and computes nothing: no nodes at all."""
    return DependencyGraph(Dag(0, Runs.empty(0), np.array([0])), [], Terminals("input", []), Terminals("output", []))


def one_to_one(ids: np.ndarray) -> Runs:
    return Runs.singletons(ids)


def windows(ids: np.ndarray, starts: np.ndarray, stops: np.ndarray) -> Runs:
    """Row i: ids[starts[i]] … ids[stops[i] - 1], the ids being consecutive."""
    return Runs(np.arange(len(starts) + 1), ids[0] + starts, ids[0] + stops)


def transformer(layers: int, tokens: int, attention: str = "causal", window: int = 0) -> DependencyGraph:
    """Return a decoder like GPT-2: packed projection, fused attention, GELU by tanh; 17 operations a layer."""
    build, where = Builder(tokens), np.arange(tokens)
    starts, stops = {
        "causal": (0 * where, where + 1),
        "full": (0 * where, 0 * where + tokens),
        "window": (np.maximum(where - window + 1, 0), where + 1),
        "centred": (np.maximum(where - window, 0), np.minimum(where + window + 1, tokens)),
    }[attention]

    def chain(name: str, ids: np.ndarray, contraction: bool = False) -> np.ndarray:
        return build.add(name, one_to_one(ids), contraction=contraction)

    x = chain("embedding", where)
    for _ in range(layers):
        packed = chain("linear", chain("layer_norm", x), contraction=True)
        context = build.add("attention", windows(packed, starts, stops), contraction=True)
        x = build.add("add", one_to_one(x), one_to_one(chain("linear", context, contraction=True)))
        hidden = chain("linear", chain("layer_norm", x), contraction=True)
        cubed = chain("mul", chain("pow", hidden))
        inner = chain("mul", build.add("add", one_to_one(hidden), one_to_one(cubed)))
        gate = chain("add", chain("tanh", inner))
        mixed = build.add("mul", one_to_one(chain("mul", hidden)), one_to_one(gate))
        x = build.add("add", one_to_one(x), one_to_one(chain("linear", mixed, contraction=True)))
    return build.graph(one_to_one(chain("linear", chain("layer_norm", x), contraction=True)))


def recurrent(layers: int, steps: int, both_ways: bool = False) -> DependencyGraph:
    """Return stacked recurrent layers, one node a layer, step and direction, each node a block."""
    build = Builder(steps)
    layer = [one_to_one(np.array([t])) for t in range(steps)]
    for _ in range(layers):
        directions = []
        for order in [range(steps), range(steps - 1, -1, -1)][: 1 + both_ways]:
            state: list[Runs] = []
            cells: dict[int, Runs] = {}
            for t in order:
                cells[t] = one_to_one(build.add("rnn", layer[t], *state, contraction=True))
                state = [cells[t]]
            directions.append(cells)
        layer = [union([cells[t] for cells in directions]) for t in range(steps)]
    rows = Runs(
        np.cumsum([0, *(len(r.starts) for r in layer)]),
        np.concatenate([r.starts for r in layer]),
        np.concatenate([r.stops for r in layer]),
    )
    return build.graph(rows)


def eager_attention(layers: int, tokens: int) -> DependencyGraph:
    """Return attention written out: one node a score, full, with the values projected beside the scores."""
    build, where = Builder(tokens), np.arange(tokens)
    row, column = np.repeat(where, tokens), np.tile(where, tokens)
    x = where
    for _ in range(layers):
        q, k, v = (build.add("linear", one_to_one(x), contraction=True) for _ in range(3))
        scores = build.add("matmul", one_to_one(q[row]), one_to_one(k[column]), contraction=True)
        scaled = build.add("div", one_to_one(scores))
        shares = build.add("softmax", windows(scaled, where * tokens, (where + 1) * tokens))
        everything = windows(v, 0 * where, 0 * where + tokens)
        mixed = build.add("matmul", one_to_one(shares), everything, contraction=True)
        x = build.add("add", one_to_one(x), one_to_one(build.add("linear", one_to_one(mixed), contraction=True)))
    return build.graph(one_to_one(x))
