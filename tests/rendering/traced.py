"""Graphs built by hand that look like those of traced models."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from depgraph.dag.dag import Dag
from depgraph.dag.graph import DependencyGraph, Operation, Terminal, Terminals
from depgraph.dag.runs import IntArray, Runs, union


class Model:
    """A graph under construction: `read` methods say what is read, `add` makes the operation that reads it."""

    def __init__(self, **inputs: int) -> None:
        self.boundaries = [0]
        self.inputs: dict[str, IntArray] = {}
        self.reads: list[Runs] = []
        self.operations: list[Operation] = []
        self.outputs: list[Terminal] = []
        for name, count in inputs.items():
            self.inputs[name] = self._number(count)
        self.reads.append(Runs.empty(self.boundaries[-1]))

    def _number(self, count: int) -> IntArray:
        self.boundaries.append(self.boundaries[-1] + count)
        return np.arange(self.boundaries[-2], self.boundaries[-1])

    def add(
        self,
        name: str,
        module: str,
        *reads: Runs,
        grid: tuple[int, ...] | None = None,
        contraction: bool = False,
        line: int = 1,
        coordinates: IntArray | None = None,
    ) -> IntArray:
        """Add an operation with one node a row of what is read."""
        count = len(reads[0])
        first = self.boundaries[-1]
        self.reads.append(union(list(reads)))
        grid = (count,) if grid is None else grid
        self.operations.append(
            Operation(name, module, f"model.py:{line}", contraction, first, first + count, grid, coordinates)
        )
        return self._number(count)

    def recurrent(self, name: str, module: str, x: IntArray, *, reverse: bool = False, line: int = 1) -> IntArray:
        """Add a recurrent layer: one node a step, in blocks of their own."""
        first, count = self.boundaries[-1], len(x)
        step = np.arange(first, first + count)
        before = np.append(-1, step[:-1])
        x = x[::-1] if reverse else x
        self.reads.append(union([Runs.singletons(x), Runs.singletons(before)]))
        where = np.arange(count)[::-1, None] if reverse else None
        self.operations.append(Operation(name, module, f"model.py:{line}", True, first, first + count, (count,), where))
        self.boundaries += (step + 1).tolist()
        return step[::-1] if reverse else step

    def output(self, name: str, *nodes: IntArray, tracked: bool = True) -> None:
        """Name an output; position p gathers the p-th node of each array."""
        count = len(nodes[0])
        rows = union([Runs.singletons(ids) for ids in nodes])
        self.outputs.append(Terminal(name, (1, count, 8), (1,) if tracked else (), rows))

    def graph(self) -> DependencyGraph:
        """Return the finished graph."""
        parts = [len(part) for part in self.reads]
        assert sum(parts) == self.boundaries[-1]
        indptr = np.append(0, np.cumsum(np.concatenate([part.counts for part in self.reads])))
        starts = np.concatenate([part.starts for part in self.reads])
        stops = np.concatenate([part.stops for part in self.reads])
        blocks = np.array(self.boundaries, np.int64)
        inputs = [
            Terminal(name, (1, len(ids), 8), (1,) if len(ids) > 1 else (), Runs.singletons(ids))
            for name, ids in self.inputs.items()
        ]
        count = sum(len(ids) for ids in self.inputs.values())
        return DependencyGraph(
            Dag(count, Runs(indptr, starts, stops).split_at(blocks[1:]), blocks),
            self.operations,
            Terminals("input", inputs, dict(enumerate(self.inputs))),
            Terminals("output", self.outputs),
            mode="eval",
        )


def each(nodes: IntArray) -> Runs:
    """Row p reads node p."""
    return Runs.singletons(np.asarray(nodes))


def all_of(nodes: IntArray, rows: int) -> Runs:
    """Every row reads every node."""
    low, high = int(nodes[0]), int(nodes[-1]) + 1
    return Runs(np.arange(rows + 1), np.full(rows, low), np.full(rows, high))


def up_to(nodes: IntArray) -> Runs:
    """Row p reads nodes 0 to p."""
    return Runs(np.arange(len(nodes) + 1), np.full(len(nodes), nodes[0]), nodes + 1)


def attention(model: Model, module: str, q: IntArray, kv: IntArray, causal: bool = False) -> IntArray:
    """Multi-head attention: three projections, fused attention, one projection."""
    query = model.add("linear", module, each(q), contraction=True, line=10)
    key = model.add("linear", module, each(kv), contraction=True, line=11)
    value = model.add("linear", module, each(kv), contraction=True, line=12)
    seen = (up_to(key), up_to(value)) if causal else (all_of(key, len(query)), all_of(value, len(query)))
    mixed = model.add("scaled_dot_product_attention", module, each(query), *seen, contraction=True, line=13)
    return model.add("linear", f"{module}.out_proj", each(mixed), contraction=True, line=14)


def layer(model: Model, module: str, x: IntArray, memory: IntArray | None = None) -> IntArray:
    """One post-norm Transformer layer; a decoder layer where there is a memory to read."""

    def residual(before: IntArray, after: IntArray, number: int) -> IntArray:
        total = model.add("add", module, each(before), each(after), line=20)
        return model.add("layer_norm", f"{module}.norm{number}", each(total), line=21)

    x = residual(x, attention(model, f"{module}.self_attn", x, x, causal=memory is not None), 1)
    if memory is not None:
        x = residual(x, attention(model, f"{module}.multihead_attn", x, memory), 2)
    hidden = model.add("linear", f"{module}.linear1", each(x), contraction=True, line=22)
    hidden = model.add("relu", module, each(hidden), line=23)
    hidden = model.add("linear", f"{module}.linear2", each(hidden), contraction=True, line=24)
    return residual(x, hidden, 3 if memory is not None else 2)


def encoder(n: int = 6, layers: int = 2) -> DependencyGraph:
    """A Transformer encoder."""
    model = Model(x=n)
    x = model.inputs["x"]
    for number in range(layers):
        x = layer(model, f"layers.{number}", x)
    model.output("output", x)
    return model.graph()


def transformer(n: int = 5, m: int = 4, layers: int = 6) -> DependencyGraph:
    """A Transformer with encoder and decoder."""
    model = Model(src=n, tgt=m)
    memory, y = model.inputs["src"], model.inputs["tgt"]
    for number in range(layers):
        memory = layer(model, f"transformer.encoder.layers.{number}", memory)
    memory = model.add("layer_norm", "transformer.encoder.norm", each(memory))
    for number in range(layers):
        y = layer(model, f"transformer.decoder.layers.{number}", y, memory)
    y = model.add("layer_norm", "transformer.decoder.norm", each(y))
    y = model.add("linear", "generator", each(y), contraction=True)
    model.output("output", model.add("log_softmax", "", each(y)))
    return model.graph()


def stacked_lstm(n: int = 6, layers: int = 2, bidirectional: bool = False) -> DependencyGraph:
    """Recurrent layers on top of each other."""
    model = Model(x=n)
    x = model.inputs["x"]
    for number in range(layers):
        forth = model.recurrent("lstm", f"lstm{number}", x)
        x = forth
        if bidirectional and number == layers - 1:
            back = model.recurrent("lstm", f"lstm{number}", model.inputs["x"], reverse=True)
            model.output("output", forth, back)
            return model.graph()
    model.output("output", x)
    model.output("output.1", x[-1:], tracked=False)
    return model.graph()


def convolution(n: int = 8) -> DependencyGraph:
    """Two convolutions, the second with stride 2, and a mean over time."""
    model = Model(x=n)
    x = model.inputs["x"]

    def windows(nodes: IntArray, stride: int) -> Runs:
        middle = np.arange(0, len(nodes), stride)
        low, high = np.maximum(middle - 1, 0), np.minimum(middle + 2, len(nodes))
        return Runs(np.arange(len(middle) + 1), nodes[low], nodes[high - 1] + 1)

    x = model.add("conv1d", "net.0", windows(x, 1), contraction=True, line=5)
    x = model.add("relu", "net.1", each(x), line=5)
    x = model.add("conv1d", "net.2", windows(x, 2), contraction=True, line=5)
    pooled = model.add("mean", "", all_of(x, 1), grid=(), line=9)
    model.output("output", model.add("linear", "head", each(pooled), grid=(), contraction=True), tracked=False)
    return model.graph()


def eager_attention(n: int = 4) -> DependencyGraph:
    """Causal attention written out: the scores are pairs, of which half are never computed."""
    model = Model(x=n)
    x = model.inputs["x"]
    q = model.add("linear", "q", each(x), contraction=True)
    k = model.add("linear", "k", each(x), contraction=True)
    v = model.add("linear", "v", each(x), contraction=True)
    row, column = np.tril_indices(n)
    where = np.stack([row, column], 1)
    scores = model.add("matmul", "", each(q[row]), each(k[column]), contraction=True, coordinates=where)
    first = np.append(np.flatnonzero(column == 0), len(row))
    rows = Runs(np.arange(n + 1), scores[first[:-1]], scores[first[1:] - 1] + 1)
    weights = model.add("softmax", "", rows)
    model.output("output", model.add("matmul", "", each(weights), up_to(v), contraction=True))
    return model.graph()


def loop(n: int = 10, cells: int = 1) -> DependencyGraph:
    """A recurrence written as a Python loop: every step is four operations of their own."""
    model = Model(x=n)
    x = model.inputs["x"]
    state: IntArray | None = None
    states: list[IntArray] = []
    for t in range(n):
        new = model.add("linear", "cell", each(x[t : t + 1]), grid=(), contraction=True)
        if state is not None:
            old = model.add("linear", "cell", each(state), grid=(), contraction=True)
            new = model.add("add", "cell", each(new), each(old), grid=())
        state = model.add("tanh", "cell", each(new), grid=())
        states.append(state)
    model.output("output", np.concatenate(states))
    return model.graph()


def named(names: Sequence[str]) -> DependencyGraph:
    """A chain of operations with these names, reading an input with the first one."""
    model = Model(**{"x": 2})
    x = model.inputs["x"]
    for name in names:
        x = model.add(name, name, each(x))
    model.output("output", x)
    return model.graph()
