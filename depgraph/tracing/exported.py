"""Reading an exported program: what each placeholder and each output stands for, and nothing that is not used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import fx
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind, TensorArgument

from depgraph.tracing.origin import unwrapped
from depgraph.tracing.program import Leaf, Source

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
    for node in program.graph.nodes:
        if node.op == "get_attr" and any("wrap_with" in str(user.target) for user in node.users):
            region = getattr(program.graph_module, node.target)
            region.forward = fx.Interpreter(region).run
    return program.run_decompositions({})


def read(
    exported: ExportedProgram,
    inputs: Sequence[Leaf],
    values: Mapping[str, torch.Tensor],
    tied: Mapping[str, str],
) -> Reading:
    """Return the graph of a functional exported program with the meaning of its placeholders and outputs.

    Parameters
    ----------
    exported : torch.export.ExportedProgram
        Made functional; its graph module is taken over.
    inputs : sequence of Leaf
        What its tensor inputs stand for.
    values : mapping
        Dotted names of parameters and buffers to their real values.
    tied : mapping
        Second names of tied parameters and buffers to the names that stay.
    """
    module = exported.graph_module
    graph, signature = module.graph, exported.graph_signature
    placeholders = {node.name: node for node in graph.nodes if node.op == "placeholder"}
    written = {spec.target for spec in signature.output_specs if spec.kind is not OutputKind.USER_OUTPUT}
    leaves = iter(inputs)
    sources: dict[str, Source] = {}
    canonical: dict[str, fx.Node] = {}
    for spec in signature.input_specs:
        node = placeholders[spec.arg.name]
        if spec.kind is InputKind.USER_INPUT:
            if isinstance(spec.arg, TensorArgument):
                leaf = next(leaves)
                sources[node.name] = Source("input", leaf.name, leaf.value, node.name in written)
            continue
        if spec.kind not in _KINDS or spec.target is None:
            continue
        name = unwrapped(spec.target)
        held = values.get(name)
        if held is None:
            held = exported.constants.get(spec.target, exported.state_dict.get(spec.target))
        assert isinstance(held, torch.Tensor)
        first = tied.get(name, name)
        mutated = spec.target in written or any(w and tied.get(unwrapped(w)) == first for w in written)
        if first in canonical:
            node.replace_all_uses_with(canonical[first])
            graph.erase_node(node)
        else:
            canonical[first] = node
            sources[node.name] = Source(_KINDS[spec.kind], first, held, mutated)
    reading = Reading(graph, module, sources, *_outputs(exported, graph))
    reading.prune()
    return reading


def _outputs(
    exported: ExportedProgram, graph: fx.Graph
) -> tuple[list[fx.Node | torch.Tensor], dict[str, fx.Node]]:
    results: list[fx.Node | torch.Tensor] = []
    updates: dict[str, fx.Node] = {}
    values: Any = graph.output_node().args[0]
    for spec, value in zip(exported.graph_signature.output_specs, values, strict=True):
        if spec.kind is OutputKind.USER_OUTPUT and isinstance(value, (fx.Node, torch.Tensor)):
            results.append(value)
        elif spec.kind in _STATE and spec.target is not None and isinstance(value, fx.Node):
            updates[unwrapped(spec.target)] = value
    return results, updates
