"""A graph in the making: its nodes, and what is known of each."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, fx

from depgraph.tracing.origin import current_line, current_module
from depgraph.tracing.private import unrecorded
from depgraph.tracing.recorder.geometry import Geometry
from depgraph.tracing.recorder.memories import Memories


class Nodes:
    """A graph in the making.

    Parameters
    ----------
    parent : Nodes, optional
        Of the body of a higher-order operator, the graph that the operator is in: tensors that the body closes over are
        lifted from there.

    Attributes
    ----------
    graph : torch.fx.Graph
    memories : Memories
    constants : dict
        Name of a ``get_attr`` node to its tensor.
    bodies : dict
        Name of a ``get_attr`` node to the graph module it stands for.
    lifted : list of torch.fx.Node
        Nodes of the parent that the graph takes besides its arguments.
    lifted_here : list of torch.fx.Node
        The placeholders for them.
    module : str
        Dotted name of the module that is running.
    """

    def __init__(self, parent: Nodes | None = None) -> None:
        self.parent = parent
        self.graph = fx.Graph()
        self.memories = Memories(self.view_of, self.constant)
        self.constants: dict[str, Tensor] = {}
        self.bodies: dict[str, fx.GraphModule] = {}
        self.lifted: list[fx.Node] = []
        self.lifted_here: list[fx.Node] = []
        self.module: str = parent.module if parent is not None else ""
        self._forms: dict[Any, Tensor] = {}

    def form(self, value: Any) -> Any:
        """Return a tensor without data that is laid out like another one; anything else as it is."""
        if not isinstance(value, Tensor):
            return value
        if value.layout is not torch.strided and not value.is_quantized:
            with unrecorded():
                return torch.empty(value.shape, dtype=value.dtype, layout=value.layout, device="meta")
        return self.laid_out(Geometry.of(value))

    def laid_out(self, geometry: Geometry) -> Tensor:
        """Return a tensor without data that is laid out in a given way."""
        key = geometry.size, geometry.stride, geometry.dtype
        if key not in self._forms:
            with unrecorded():
                if len(geometry.stride) == len(geometry.size):
                    form = torch.empty_strided(geometry.size, geometry.stride, dtype=geometry.dtype, device="meta")
                else:
                    form = torch.empty(geometry.size, dtype=geometry.dtype, device="meta")
            self._forms[key] = form
        return self._forms[key]

    def call(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], value: Any) -> fx.Node:
        """Add a call to the graph; its value has no data."""
        return self._noted(self.graph.call_function(target, args, kwargs), value)

    def view_of(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], geometry: Geometry) -> fx.Node:
        """Add a call to the graph whose value is laid out in a given way."""
        node = self.call(target, args, kwargs, self.laid_out(geometry))
        return _made(node)

    def derived(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], value: Any) -> fx.Node:
        """Add what is only made where it is needed, and is the same wherever it is made."""
        return _made(self.call(target, args, kwargs, value))

    def _noted(self, node: fx.Node, value: Any) -> fx.Node:
        module = current_module()
        node.meta = {"val": value, "module": self.module if module is None else module, "line": current_line()}
        return node

    def placeholder(self, name: str, tensor: Tensor) -> fx.Node:
        """Add an argument to the graph."""
        word = "".join(c if c.isalnum() else "_" for c in name)
        node = self.graph.placeholder(word if word.isidentifier() else f"_{word}")
        return self._noted(node, self.form(tensor))

    def constant(self, tensor: Tensor) -> fx.Node:
        """Add a tensor that was there before to the graph; in a body, as an argument more."""
        if self.parent is not None:
            outer = self.parent.memories.read(tensor)
            self.lifted.append(outer)
            self.lifted_here.append(self.placeholder(f"lifted_{len(self.lifted)}", tensor))
            return self.lifted_here[-1]
        name = f"constant_{len(self.constants)}"
        self.constants[name] = tensor
        return self._noted(self.graph.create_node("get_attr", name), self.form(tensor))

    def body(self, module: fx.GraphModule) -> fx.Node:
        """Add the body of a higher-order operator to the graph."""
        name = f"body_{len(self.bodies)}"
        self.bodies[name] = module
        return self.graph.create_node("get_attr", name)

    def read(self, tensor: Tensor) -> fx.Node:
        """Return the node that holds a tensor now."""
        return self.memories.read(tensor)


def _made(node: fx.Node) -> fx.Node:
    node.meta["made"] = True
    return node
