"""Values that leave the graph: a condition, a number, a list or an array made of a tensor's values.

What Python does with such a value cannot be followed; the graph holds for the value that the example inputs give. Each
place where that happens is noted, with the tensor, so that it can be said which inputs the value came from.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import fx
from torch._C._functorch import peek_interpreter_stack
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from depgraph.errors import TracingError
from depgraph.tracing.opaque import has_sizes_from_values
from depgraph.tracing.origin import Line, current_line, line_of_node

Kind = Literal["condition", "number", "array", "size", "stranger"]

_T = torch.Tensor
_ESCAPES: dict[Any, Kind] = {
    _T.__bool__: "condition",
    _T.__contains__: "condition",
    _T.is_nonzero: "condition",
    _T.equal: "condition",
    _T.allclose: "condition",
    torch.is_nonzero: "condition",
    torch.equal: "condition",
    torch.allclose: "condition",
    _T.item: "number",
    _T.__int__: "number",
    _T.__index__: "number",
    _T.__float__: "number",
    _T.__complex__: "number",
    _T.tolist: "array",
    _T.numpy: "array",
    _T.__array__: "array",
    _T.__dlpack__: "array",
}
_DATA: Any = _T.data  # a property, whose accessors are what is called
_SHOWN_ONLY: set[Callable[..., Any]] = {_T.__repr__, _T.__format__}
_CHECKS = ("assert ", "assert(", "torch._assert", "torch._check")
_LITERALS = {torch.ops.aten.lift_fresh_copy.default, torch.ops.aten.lift_fresh.default}
_SCALARS = {
    torch.ops.aten.item.default,
    torch.ops.aten._local_scalar_dense.default,
    torch.ops.aten.is_nonzero.default,
    torch.ops.aten.equal.default,
}


@dataclass(frozen=True, eq=False)
class Escape:
    """A value that left the graph.

    Attributes
    ----------
    kind : {"condition", "number", "array", "size", "stranger"}
    operation : str
        What took it out: ``"item"``, ``"tolist"``.
    value : object
        What the example inputs made it, ``None`` where that was not seen.
    line : Line or None
        The line of the user's code.
    followed : bool
        Whether what Python computes from it is known to be followed.
    """

    kind: Kind
    operation: str
    value: object
    line: Line | None
    followed: bool = False


#: Changes the value of the escape with a number on its way.
Shift = Callable[[int, Any], Any]


class Watch(TorchFunctionMode):
    """While active, notes each value that leaves the graph, and keeps a copy of the tensor it was made of.

    Parameters
    ----------
    shift : callable, optional
        Changes the numbers and arrays that leave.

    Attributes
    ----------
    escapes : list of Escape
    copies : list of torch.Tensor
        One for each escape.
    transformed : bool
        Whether an operation ran inside a `torch.func` transform.
    """

    def __init__(self, shift: Shift | None = None) -> None:
        super().__init__()
        self.shift = shift
        self.escapes: list[Escape] = []
        self.copies: list[torch.Tensor] = []
        self._shared: list[tuple[torch.Tensor, torch.Tensor, int, Line | None]] = []
        self.transformed = False

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Note the value where the function makes one, and run the function as usual."""
        kwargs = kwargs or {}
        self.transformed = self.transformed or peek_interpreter_stack() is not None
        if func == _DATA.__get__:  # tracing loses sight of what comes out of it
            return args[0].detach()
        if func == _DATA.__set__:
            if args[0].untyped_storage().data_ptr() != args[1].untyped_storage().data_ptr():
                args[0].copy_(args[1])
            return None
        if func is _T.__deepcopy__:  # copies memory behind the back of tracing
            return args[0].clone()
        if func in _SHOWN_ONLY:
            with disable_proxy_modes_tracing():
                return func(*args, **kwargs)
        if func not in _ESCAPES:
            return func(*args, **kwargs)
        read = [value for value in args if isinstance(value, torch.Tensor)]
        copies = [tensor.clone() for tensor in read]
        line = current_line()
        with disable_proxy_modes_tracing():
            value = func(*args, **kwargs)
            if _ESCAPES[func] == "array" and func is not _T.tolist:
                self._shared += [(tensor, tensor.clone(), tensor._version, line) for tensor in read]
        if not _is_check(line):
            if self.shift is not None and _ESCAPES[func] != "condition":
                value = self.shift(len(self.escapes), value)
            self.escapes += [Escape(_ESCAPES[func], func.__name__.strip("_"), value, line)] * len(copies)
            self.copies += copies
        return value

    def check_memory(self) -> None:
        """Raise where something wrote to a tensor through an array that shares its memory.

        Raises
        ------
        TracingError
            Naming the line at which the array was made.
        """
        with disable_proxy_modes_tracing():
            for tensor, before, version, line in self._shared:
                if tensor._version == version and not torch.equal(tensor.nan_to_num(), before.nan_to_num()):
                    raise TracingError(
                        f"{line or 'The model'}: the array made here shares the memory of a tensor, and is written to. "
                        "That cannot be followed: write to the tensor, or to a copy of the array."
                    )


def _is_check(line: Line | None) -> bool:
    """Return whether a line only checks a value: the model either goes on as it does, or not at all."""
    return line is not None and linecache.getline(line.file, line.number).lstrip().startswith(_CHECKS)


def note_operations(graph: fx.Graph) -> list[Escape]:
    """Note the operations of a recorded graph that take values out of it without Python asking for them.

    ``x[:n]`` with a tensor n does, and so does every operation whose result is as large as the values say. Copies of
    the tensors they read become further outputs of the graph, one for each escape that is returned.
    """
    escapes: list[Escape] = []
    copies: list[fx.Node] = []
    for node in list(graph.nodes):
        if node.op != "call_function":
            continue
        scalar, sized = node.target in _SCALARS, has_sizes_from_values(node)
        if not scalar and not sized:
            continue
        line = line_of_node(node)
        if not _is_check(line):
            kind: Kind = "size" if sized else "number" if "item" in node.name else "condition"
            value = _sizes(node) if sized else None
            for read in _deciding(node):
                with graph.inserting_before(node):
                    copies.append(graph.call_function(torch.ops.aten.clone.default, (read,)))
                copies[-1].meta = {**node.meta, "val": read.meta.get("val")}
                escapes.append(Escape(kind, node.target._opname, value, line))
        if scalar and not node.users:
            graph.erase_node(node)
    return_too(graph, copies)
    return escapes


def strangers(line: fx.GraphModule, known: set[int]) -> list[fx.Node]:
    """Return the tensors in a recorded graph that no recorded operation made, and that were not there before.

    `torch.from_numpy` returns such tensors, and extensions that bypass PyTorch's dispatcher do.
    """
    found: list[fx.Node] = []
    for node in line.graph.find_nodes(op="get_attr"):
        value = getattr(line, node.target, None)
        literal = all(user.target in _LITERALS for user in node.users)
        if isinstance(value, torch.Tensor) and id(value) not in known and node.users and not literal:
            found.append(node)
    return found


def return_too(graph: fx.Graph, nodes: list[fx.Node]) -> None:
    """Make nodes further outputs of a graph."""
    output = graph.output_node()
    returned: Any = output.args[0]
    output.args = ((*returned, *nodes),)


_DECIDING = {
    torch.ops.aten.index.Tensor: 1,
    torch.ops.aten.masked_select.default: 1,
    torch.ops.aten._pack_padded_sequence.default: 1,
}


def _deciding(node: fx.Node) -> list[fx.Node]:
    """Return the nodes whose values decide: of most operations all that they read, of an index the masks."""
    reads: Any = node.args[_DECIDING[node.target]] if node.target in _DECIDING else (node.args, node.kwargs)
    found: list[fx.Node] = []
    fx.map_arg(reads, found.append)
    return found


def _sizes(node: fx.Node) -> Any:
    shapes = [tuple(value.shape) for value in pytree.tree_leaves(node.meta["val"])]
    return shapes[0] if len(shapes) == 1 else shapes
