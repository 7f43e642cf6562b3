"""What tracing hands on: one functional ATen graph, and the names of everything that goes in and comes out."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch
from torch import fx, nn

if TYPE_CHECKING:
    from depgraph.tracing.python.findings import Findings
    from depgraph.tracing.rows.spaces import Told

Kind = Literal["input", "parameter", "buffer", "constant"]


@dataclass(frozen=True, eq=False)
class Leaf:
    """A tensor that the user passes in or gets back.

    Attributes
    ----------
    name : str
        Canonical name: ``"x"``, ``"batch.feats.1"``, ``"output"``, ``"output.logits"``.
    aliases : tuple
        Every further key it answers to.
    value : torch.Tensor
        Of an input, the example value. Of an output, a tensor without data that gives shape and dtype.
    """

    name: str
    aliases: tuple[Hashable, ...]
    value: torch.Tensor


@dataclass(frozen=True, eq=False)
class Source:
    """What a placeholder of the graph stands for.

    Attributes
    ----------
    kind : {"input", "parameter", "buffer", "constant"}
    name : str
        Name of the input, dotted name of the parameter or buffer in the user's model; may be ``""`` for a constant.
    value : torch.Tensor
        The real value, which may be on the meta device.
    mutated : bool
        Whether forward writes to it.
    """

    kind: Kind
    name: str
    value: torch.Tensor
    mutated: bool


@dataclass(eq=False)
class Program:
    """A model as a functional ATen graph: no operation writes to what another has made.

    Attributes
    ----------
    graph : torch.fx.Graph
        Placeholders, ``call_function`` nodes (operator overloads, ``operator.getitem``, higher-order operators),
        ``get_attr`` nodes for the subgraphs of higher-order operators, and the output. Every ``call_function`` node has
        its value without data in ``meta["val"]``, the dotted name of the module that ran it in ``meta["module"]`` and
        the line of the user's code in ``meta["line"]``.
    module : torch.nn.Module
        Owner of the subgraphs.
    sources : dict
        Name of a placeholder to what it stands for.
    inputs, outputs : list of Leaf
        Tensors passed in and got back, in flattening order.
    results : list
        For each output the node that holds it.
    updates : dict
        Dotted name of a buffer that forward writes to, to the node holding what it holds afterwards.
    parameters : list of str
        Dotted names of all parameters; tied ones under each of their names.
    tied : dict
        Second names of tied parameters and buffers to the name they go by in ``sources``.
    findings : Findings
        What is to be said of values that left it.
    told : Told
        What Python was told of sizes that values decide.
    mode : {"eval", "train"}
    """

    graph: fx.Graph
    module: nn.Module
    sources: dict[str, Source]
    inputs: list[Leaf]
    outputs: list[Leaf]
    results: list[fx.Node]
    updates: dict[str, fx.Node]
    parameters: list[str]
    tied: dict[str, str]
    findings: Findings
    told: Told
    mode: str

    @property
    def warnings(self) -> list[str]:
        """What is to be said of values that left it, if no input is held."""
        return self.findings.sentences()

    def where(self, node: fx.Node) -> tuple[str, str]:
        """Return the dotted path of the module that ran a node, and the ``"file:line"`` in the user's own code."""
        line = node.meta.get("line")
        return node.meta.get("module", ""), str(line) if line else ""
