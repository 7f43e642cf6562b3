"""Reading an exported program: what each placeholder and each output stands for, and nothing that is not used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import fx
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind, TensorArgument

from depgraph.tracing.origin import unwrapped
from depgraph.tracing.program import Leaf, Source
from depgraph.tracing.state import State

_KINDS: dict[InputKind, Literal["parameter", "buffer", "constant"]] = {
    InputKind.PARAMETER: "parameter",
    InputKind.BUFFER: "buffer",
    InputKind.CONSTANT_TENSOR: "constant",
}
_STATE = (OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION)


@dataclass(eq=False)
class Reading:
    """The parts of a `Program` that an exported program holds; attributes are those of `Program`."""

    graph: fx.Graph
    module: fx.GraphModule
    sources: dict[str, Source]
    results: list[fx.Node | torch.Tensor]
    updates: dict[str, fx.Node]

    def prune(self) -> None:
        """Make the results and updates all that the graph returns, and drop what none of them reads."""
        kept = [value for value in self.results if isinstance(value, fx.Node)] + list(self.updates.values())
        self.graph.output_node().args = (tuple(kept),)
        self.graph.eliminate_dead_code(lambda node: node.op in ("placeholder", "output"))

    def split(self, outputs: int, assigned: Sequence[str]) -> list[fx.Node | torch.Tensor]:
        """Keep that many results as outputs, take the next ones for new values of the named state, return the rest."""
        extra = self.results[outputs:]
        del self.results[outputs:]
        for name, value in zip(assigned, extra, strict=False):
            if isinstance(value, fx.Node):
                self.updates[name] = value
            for placeholder, source in self.sources.items():
                if source.name == name and source.kind != "input":
                    self.sources[placeholder] = replace(source, mutated=True)
        return extra[len(assigned) :]


def functional(program: ExportedProgram) -> ExportedProgram:
    """Return a program in which no operation writes to what another has made, with composite operations kept whole.

    Regions with settings of their own (autocast) are run node by node while they are dissolved, so that each node keeps
    its module and its line.
    """
    regions = [
        getattr(program.graph_module, node.target)
        for node in program.graph.nodes
        if node.op == "get_attr" and any("wrap_with" in str(user.target) for user in node.users)
    ]
    try:
        for region in regions:
            region.forward = fx.Interpreter(region).run
        result: ExportedProgram = program.run_decompositions({})
        return result
    finally:
        for region in regions:
            vars(region).pop("forward", None)


def read(exported: ExportedProgram, inputs: Sequence[Leaf], state: State) -> Reading:
    """Return the graph of a functional exported program with the meaning of its placeholders and outputs.

    Parameters
    ----------
    exported : torch.export.ExportedProgram
        Made functional; its graph module is taken over.
    inputs : sequence of Leaf
        What its tensor inputs stand for.
    state : State
        What its parameters and buffers stand for.
    """
    module = exported.graph_module
    graph, signature = module.graph, exported.graph_signature
    placeholders = {node.name: node for node in graph.nodes if node.op == "placeholder"}
    written = {
        state.first_name(unwrapped(spec.target))
        for spec in signature.output_specs
        if spec.kind is not OutputKind.USER_OUTPUT and spec.target is not None
    }
    leaves = iter(inputs)
    sources: dict[str, Source] = {}
    first: dict[str, fx.Node] = {}
    for spec in signature.input_specs:
        node = placeholders[spec.arg.name]
        if spec.kind is InputKind.USER_INPUT and isinstance(spec.arg, TensorArgument):
            leaf = next(leaves)
            sources[node.name] = Source("input", leaf.name, leaf.value, node.name in written)
        if spec.kind not in _KINDS or spec.target is None:
            continue
        name = state.first_name(unwrapped(spec.target))
        if name in first:
            node.replace_all_uses_with(first[name])
            graph.erase_node(node)
            continue
        first[name] = node
        kind = "parameter" if name in state.parameters else _KINDS[spec.kind]
        value = state.values.get(name)
        if value is None:
            value = exported.constants.get(spec.target, exported.state_dict.get(spec.target))
        assert isinstance(value, torch.Tensor)
        shown = "" if "lifted_tensor" in name and name not in state.values else name
        sources[node.name] = Source(kind, shown, value, name in written)
    reading = Reading(graph, module, sources, *_outputs(exported, graph, state))
    reading.prune()
    return reading


def _outputs(
    exported: ExportedProgram, graph: fx.Graph, state: State
) -> tuple[list[fx.Node | torch.Tensor], dict[str, fx.Node]]:
    results: list[fx.Node | torch.Tensor] = []
    updates: dict[str, fx.Node] = {}
    values: Any = graph.output_node().args[0]
    for spec, value in zip(exported.graph_signature.output_specs, values, strict=True):
        if spec.kind is OutputKind.USER_OUTPUT and isinstance(value, (fx.Node, torch.Tensor)):
            results.append(value)
        elif spec.kind in _STATE and spec.target is not None and isinstance(value, fx.Node):
            updates[state.first_name(unwrapped(spec.target))] = value
    return results, updates
