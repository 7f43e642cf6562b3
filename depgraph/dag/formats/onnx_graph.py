"""The operation graph of an ONNX model."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from onnx import AttributeProto, GraphProto, NodeProto, ValueInfoProto

from depgraph.dag.dag import Dag
from depgraph.dag.formats.onnx_operators import CONTRACTIONS, FILLS, MEASURES, MOVES, SIZED_BY, Inputs
from depgraph.dag.graph import DependencyGraph, Operation, Terminal, Terminals
from depgraph.dag.reach import ancestors
from depgraph.dag.runs import Runs
from depgraph.errors import LoadError

NOTHING: frozenset[int] = frozenset()
_STANDARD = ("", "ai.onnx", "ai.onnx.ml", "ai.onnx.preview.training", "ai.onnx.preview")
_SCOPES = "pkg.torch.onnx.name_scopes"


@dataclass(frozen=True)
class Value:
    """A tensor: the nodes whose results are in it, and those that its shape depends on."""

    nodes: frozenset[int] = NOTHING
    shape: frozenset[int] = NOTHING

    @property
    def all(self) -> frozenset[int]:
        """What one reads who reads the tensor."""
        return self.nodes | self.shape


CONSTANT = Value()


def operation_graph(graph: GraphProto, source: str) -> DependencyGraph:
    """Return the operation graph of an ONNX graph without functions.

    Parameters
    ----------
    graph : onnx.GraphProto
    source : str
        The file it is from, ``""`` for none.
    """
    return _Reader(graph, source).graph()


class _Reader:
    """One pass over the nodes of a graph, in their order.

    Attributes
    ----------
    values : dict
        What each tensor is made of so far, by name.
    kept : list
        Nodes that are nodes of ours, with what they read.
    scalars : dict
        Tensors that are known, by name.
    """

    def __init__(self, proto: GraphProto, source: str) -> None:
        constants = _initializers(proto)
        self.proto, self.source = proto, source
        self.inputs = [info for info in proto.input if info.name not in constants]
        self.values = dict.fromkeys(constants, CONSTANT)
        self.kept: list[tuple[NodeProto, frozenset[int]]] = []
        self.scalars = {tensor.name: tensor for tensor in proto.initializer}
        self.static = {info.name for info in (*proto.value_info, *proto.output) if -1 not in _shape(info, (-1,))}

    def graph(self) -> DependencyGraph:
        """Run the pass."""
        for number, info in enumerate(self.inputs):
            self.define(info.name, Value(frozenset([number])), "An input")
        for node in self.proto.node:
            self.add(node)
        ends = [self.value(info.name, "The outputs of the graph") for info in self.proto.output]
        return self.assembled([_terminal(info, value) for info, value in zip(self.proto.output, ends, strict=True)])

    def value(self, name: str, reader: str) -> Value:
        """Return a tensor by name; that of an input left out is constant."""
        if name and name not in self.values:
            raise LoadError(
                f"{reader} read {name!r}, which is no input, no initializer and no output of an earlier node"
            )
        return self.values[name] if name else CONSTANT

    def define(self, name: str, value: Value, what: str) -> None:
        """Name a tensor; one without a name is not used."""
        if name in self.values:
            raise LoadError(f"{what} is called {name!r}, and so is another tensor of the model")
        if name:
            self.values[name] = Value(value.nodes) if name in self.static else value

    def add(self, node: NodeProto) -> None:
        """Follow one node of the model."""
        told = f"node {node.name or ', '.join(node.output)!r} ({node.op_type})"
        given = [self.value(name, f"The inputs of {told}") for name in node.input]
        captured = [self.value(name, f"The subgraphs of {told}") for name in _captured(node)]
        self.remember(node)
        if any(node.output):
            for name, value in zip(node.output, self.results(node, given, captured), strict=True):
                self.define(name, value, f"An output of {told}")

    def remember(self, node: NodeProto) -> None:
        """Keep the tensor that a Constant is, for those who ask for its value."""
        for attribute in node.attribute:
            if node.op_type == "Constant" and attribute.name == "value":
                self.scalars[node.output[0]] = attribute.t

    def results(self, node: NodeProto, given: Sequence[Value], captured: Sequence[Value]) -> list[Value]:
        """Return what the outputs of a node are made of."""
        operator, count = node.op_type, len(node.output)
        shapes = _joined(value.shape for value in given)
        if not _joined(value.all for value in (*given, *captured)):
            return [CONSTANT] * count
        if node.domain in _STANDARD:
            if operator in MEASURES:
                return [Value(shapes)] * count
            if operator in FILLS:
                sized = given[0].all if operator == "ConstantOfShape" else shapes
                return [Value(NOTHING, sized)] * count
            if self.only_moves(node):
                move = MOVES[operator]
                if not _joined(value.all for value in _at(given, move.says)):
                    moved = _at(given, move.data)
                    value = Value(_joined(v.nodes for v in moved), _joined(v.shape for v in moved))
                    return [value, *[CONSTANT] * (count - 1)] if operator == "Dropout" else [value] * count
        number = len(self.inputs) + len(self.kept)
        self.kept.append((node, _joined(value.all for value in (*given, *captured))))
        own = frozenset([number])
        return [Value(own, own if self.sizes(node, given, captured) else shapes)] * count

    def only_moves(self, node: NodeProto) -> bool:
        """Tell whether a node moves data, with the attributes and the known inputs that it has."""
        if node.op_type not in MOVES:
            return False
        attributes = {attribute.name: attribute for attribute in node.attribute}
        if node.op_type == "Dropout":  # in training it multiplies by what it draws
            return len(node.input) < 3 or not node.input[2] or self.is_false(node.input[2])
        if node.op_type in ("Resize", "Upsample"):
            smooth = "antialias" in attributes and attributes["antialias"].i
            return not smooth and _text(attributes.get("mode"), "nearest") == "nearest"
        return _text(attributes.get("reduction"), "none") == "none"

    def is_false(self, name: str) -> bool:
        """Tell whether a tensor is known to be the one value that stands for "no"."""
        from onnx.numpy_helper import to_array

        tensor = self.scalars.get(name)
        return tensor is not None and not tensor.external_data and not to_array(tensor).any()

    def sizes(self, node: NodeProto, given: Sequence[Value], captured: Sequence[Value]) -> bool:
        """Tell whether the shape of what a node computes depends on what it reads."""
        if node.domain not in _STANDARD:
            return True
        move = MOVES.get(node.op_type)
        deciding = (move.says if move.resizes else ()) if move else SIZED_BY.get(node.op_type, ())
        return bool(_joined(value.all for value in (*_at(given, deciding), *captured)))

    def assembled(self, outputs: list[Terminal]) -> DependencyGraph:
        """Put the graph together."""
        first, count = len(self.inputs), len(self.inputs) + len(self.kept)
        reads = _runs([NOTHING] * first + [read for _, read in self.kept])
        boundaries = np.arange(count + 1, dtype=np.int64)
        dag = Dag(first, reads.split_at(boundaries[1:]), boundaries)
        inputs = [_terminal(info, Value(frozenset([i]))) for i, info in enumerate(self.inputs)]
        ends = np.unique(np.concatenate([t.nodes.elements()[1] for t in outputs] or [np.zeros(0, np.int64)]))
        used = ancestors(dag, ends, ends + 1)
        names = self.names([terminal.name for terminal in inputs])
        return DependencyGraph(
            dag,
            [
                Operation(
                    node.op_type,
                    _scope(node),
                    self.source,
                    any(part.op_type in CONTRACTIONS for part in _with_inner(node)),
                    first + i,
                    first + i + 1,
                    labels=(names[first + i],),
                )
                for i, (node, _) in enumerate(self.kept)
            ],
            Terminals("input", inputs, {i: terminal.name for i, terminal in enumerate(inputs)}),
            Terminals("output", outputs, _output_keys(outputs)),
            self.warnings(),
            [terminal.name for i, terminal in enumerate(inputs) if not used[i]],
            input_labels=names[:first],
        )

    def names(self, inputs: list[str]) -> list[Hashable]:
        """Return the names of our nodes: those of the model's nodes, or of their first outputs, or their numbers."""
        given = [node.name for node, _ in self.kept]
        produced = [next(filter(None, node.output), "") for node, _ in self.kept]
        for names in (given, produced):
            if "" not in names and len({*inputs, *names}) == len(inputs) + len(names):
                return [*inputs, *names]
        return [*inputs, *range(len(inputs), len(inputs) + len(given))]

    def warnings(self) -> list[str]:
        """Return what is taken for granted of operators that ONNX does not define."""
        counts = Counter(f"{node.domain}.{node.op_type}" for node, _ in self.kept if node.domain not in _STANDARD)
        if not counts:
            return []
        return [f"Operators outside ONNX are taken to compute, and to read all their inputs: {', '.join(counts)}."]


def _text(attribute: AttributeProto | None, default: str) -> str:
    return default if attribute is None else attribute.s.decode(errors="replace")


def _terminal(info: ValueInfoProto, value: Value) -> Terminal:
    return Terminal(info.name, _shape(info), (), _runs([value.nodes]))


def _output_keys(outputs: Sequence[Terminal]) -> dict[Hashable, str]:
    """Return the keys that an output goes by besides its name: its number, and names as a trace has."""
    names = {terminal.name for terminal in outputs}
    keys: dict[Hashable, str] = {}
    for number, terminal in enumerate(outputs):
        keys |= {number: terminal.name, f"output.{number}": terminal.name}
    if len(outputs) == 1:
        keys["output"] = outputs[0].name
    return {key: name for key, name in keys.items() if key not in names}


def _captured(node: NodeProto) -> list[str]:
    """Return the names that the subgraphs of a node read and do not define: what they take from around them."""
    found: dict[str, None] = {}
    for graph in _subgraphs(node):
        inner = {*_initializers(graph), *(info.name for info in graph.input)}
        for part in graph.node:
            found |= {name: None for name in (*part.input, *_captured(part)) if name and name not in inner}
            inner |= set(part.output)
        found |= {info.name: None for info in graph.output if info.name not in inner}
    return list(found)


def _subgraphs(node: NodeProto) -> Iterator[GraphProto]:
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH or attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def _with_inner(node: NodeProto) -> Iterator[NodeProto]:
    """Return a node and all nodes of its subgraphs."""
    yield node
    for graph in _subgraphs(node):
        for part in graph.node:
            yield from _with_inner(part)


def _initializers(graph: GraphProto) -> set[str]:
    return {tensor.name for tensor in graph.initializer} | {t.values.name for t in graph.sparse_initializer}


def _shape(info: ValueInfoProto, otherwise: tuple[int, ...] = ()) -> tuple[int, ...]:
    """Return the shape of a tensor, -1 for each size that is open."""
    kind = info.type.tensor_type
    if not info.type.HasField("tensor_type") or not kind.HasField("shape"):
        return otherwise
    return tuple(int(d.dim_value) if d.HasField("dim_value") else -1 for d in kind.shape.dim)


def _scope(node: NodeProto) -> str:
    """Return the module that a node belongs to: as PyTorch wrote it down, else the folders of a name with slashes."""
    for entry in node.metadata_props:
        if entry.key == _SCOPES:
            try:
                return str(ast.literal_eval(entry.value)[-2])
            except (ValueError, SyntaxError, LookupError, TypeError):
                break
    return node.name.rpartition("/")[0].strip("/").replace("/", ".")


def _runs(rows: Sequence[frozenset[int]]) -> Runs:
    pairs = np.array([(row, node) for row, nodes in enumerate(rows) for node in nodes], np.int64).reshape(-1, 2)
    return Runs.from_elements(pairs[:, 0], pairs[:, 1], len(rows))


def _joined(sets: Iterable[frozenset[int]]) -> frozenset[int]:
    return NOTHING.union(*sets)


def _at(values: Sequence[Value], where: Inputs) -> list[Value]:
    return list(values) if where is None else [values[i] for i in where if i < len(values)]
