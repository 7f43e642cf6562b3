"""Operations that have run, as nodes of a functional graph."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx

from depgraph.errors import TracingError
from depgraph.tracing.origin import current_line
from depgraph.tracing.private import is_wrapped, unrecorded
from depgraph.tracing.python.checks import is_literal
from depgraph.tracing.python.numbers import is_symbolic, plain, settled
from depgraph.tracing.python.ways_out import has_sizes_from_values
from depgraph.tracing.recorder.functional import functional, written
from depgraph.tracing.recorder.geometry import Geometry, has_strides, memory_of, piece
from depgraph.tracing.recorder.leaving import Shift
from depgraph.tracing.recorder.memory import Memory, View
from depgraph.tracing.recorder.nodes import Nodes
from depgraph.tracing.recorder.writing import Writing
from depgraph.tracing.rows.steps import Steps

aten = torch.ops.aten

_LITERAL = aten.lift_fresh.default

#: Operators whose results hold whatever was in their memory.
_BLANK = {
    aten.empty.memory_format, aten.empty_like.default, aten.empty_strided.default, aten.new_empty.default,
    aten.new_empty_strided.default, aten.empty_permuted.default,
}  # fmt: skip

#: Views of the memory under a tensor, which may show more of it than the tensor does.
_OF_MEMORY = {aten.as_strided.default, aten._reshape_alias.default}


class SettleError(Exception):
    """Numbers cannot stay symbolic: something is written to a place that is one."""


class Recorder(Writing):
    """A graph of operations that have run.

    Parameters
    ----------
    before_write : callable
        Told of a tensor whose memory is about to be written to.
    parent : Nodes, optional
        Of the body of a higher-order operator, what records that operator.
    shift : callable, optional
        Changes the numbers and arrays that leave.

    Attributes
    ----------
    literals : set of str
        The names of constants that are made of Python's numbers, as in ``torch.tensor([1, 2])``.
    computed : set of str
        Those of them that may be made of numbers that left the graph before.
    sized : bool
        Whether values have decided how large something is.
    asks : list of Ask
        The tensors whose sizes Python was told since.
    steps : callable, optional
        How many steps loops take over places at which a mask is true, to see what comes of it; see
        `depgraph.tracing.rows.counting`.
    """

    def __init__(
        self, before_write: Callable[[Tensor], None], parent: Nodes | None = None, shift: Shift | None = None
    ) -> None:
        super().__init__(before_write, parent, shift)
        self.literals: set[str] = set()
        self.computed: set[str] = set()
        self.sized = False
        self.asks: list[Ask] = []
        self.steps: Steps | None = None

    @property
    def root(self) -> Recorder:
        """The recorder of the model's own graph."""
        root: Nodes = self
        while root.parent is not None:
            root = root.parent
        assert isinstance(root, Recorder)
        return root

    def ask(self, tensors: Sequence[Tensor], axis: int | None = None, *, walk: bool = False) -> None:
        """Note that Python was told how large tensors are, where values may have decided that.

        Parameters
        ----------
        tensors : sequence of Tensor
        axis : int, optional
            Of which axis it was told; of all without it.
        walk : bool
            Whether it goes through the indices of the first axis.
        """
        for tensor in tensors:
            node = self.seen(tensor) if self.parent is None and not is_wrapped(tensor) else None
            self.root.asks.append(Ask(node, axis, walk))

    def run(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], perform: Callable[..., Any]) -> Any:
        """Perform an operation and write it down.

        Parameters
        ----------
        op : torch._ops.OpOverload
        args, kwargs
        perform : callable
            Runs it.
        """
        if op is _LITERAL and self.memories.find(args[0]) is None:
            self._literal(str(self.read(args[0]).target))
        if op is aten.slice.Tensor and self.root.sized and not _takes_all(*plain(args)):
            self.ask(args[:1], plain(args[1]))  # the first ten of three rows are all of them
        tensors: list[Tensor] = []
        if any(map(is_symbolic, (*args, *kwargs.values()))) or _has_symbolic_sizes(args):
            args, kwargs = self._settled(op, args, kwargs)
            nodes = self._nodes((args, kwargs), tensors)
            args, kwargs = plain((args, kwargs))
        else:
            nodes = self._nodes((args, kwargs), tensors)
        if tensors and any(isinstance(arg, torch.ScriptObject) for arg in args):
            raise NotImplementedError("objects of TorchScript cannot be recorded")
        changed = written(op, args, kwargs) if op._schema.is_mutable else []
        if torch.Tag.inplace_view in op.tags:
            return self._reshaped(op, args, kwargs, perform, tensors[0])
        before = [Geometry.of(one.tensor) for one in changed]
        for one in changed:
            memory = self.memories.find(one.tensor)
            if memory is not None and memory.loose:
                raise SettleError
            if memory is None or not memory.fresh or memory.part_of is not None:
                self.before_write(one.tensor)
        sources = [(self.memories.of(t), Geometry.of(t)) for t in tensors]
        result = perform(*args, **kwargs)
        if not changed and (op in _COLUMNS or (self.root.sized and _is_empty(result))):
            with unrecorded():
                result = _apart(result)
        if changed:
            self._write(op, nodes, changed, before, result)
            return result
        outputs = list(result) if isinstance(result, (tuple, list)) else [result]
        if self._blank and self._are_new(outputs, sources) and self.filled(tensors):
            nodes = self._nodes((args, kwargs), [])
        if any(isinstance(output, Tensor) for output in outputs):
            self._note(op, nodes, args, kwargs, sources, result, outputs)
            if has_sizes_from_values(op, args):
                self._sized(op, args, outputs)
        return result

    def _literal(self, name: str) -> None:
        """Note a tensor that Python made of numbers: those written down in the program, or perhaps others."""
        self.literals.add(name)
        left = any(escape.kind in ("number", "array", "text") for escape in self.escapes)
        if left and not is_literal(current_line()):
            self.computed.add(name)

    def _nodes(self, tree: Any, found: list[Tensor]) -> Any:
        """Return arguments with nodes in place of tensors, which are collected."""
        if isinstance(tree, Tensor):
            if tree.is_nested or tree.is_quantized:
                raise NotImplementedError("Nested and Quantized tensors cannot be recorded")
            found.append(tree)
            return self.read(tree)
        if isinstance(tree, (tuple, list)):
            return type(tree)(self._nodes(item, found) for item in tree) if type(tree) in (tuple, list) else tree
        if isinstance(tree, dict):
            return {key: self._nodes(item, found) for key, item in tree.items()}
        if isinstance(tree, torch.Generator):
            return None
        return self.number_here(tree) if is_symbolic(tree) else tree

    def _settled(self, op: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """End the symbolic numbers that an operator does not take as any number: sizes, axes, and what switches it."""
        takes = {a.name: "SymInt" not in str(a.real_type) and str(a.type) in NUMBERS for a in op._schema.arguments}
        names = [a.name for a in op._schema.arguments]

        def settle(name: str, value: Any) -> Any:
            return value if takes[name] else settled(value)

        positional = tuple(settle(name, value) for name, value in zip(names, args, strict=False))
        return positional, {name: settle(name, value) for name, value in kwargs.items()}

    def _note(
        self, op: Any, nodes: Any, args: Any, kwargs: Any, sources: Sequence[tuple[Memory, Geometry]], result: Any,
        outputs: list[Any],
    ) -> None:  # fmt: skip
        """Write down an operation that writes to nothing: what it returns is new, or a view of an argument."""
        single = isinstance(result, Tensor)
        origin = {id(memory): geometry for memory, geometry in reversed(sources)}
        node: fx.Node | None = None
        made: dict[int, Memory] = {}
        for number, output in enumerate(outputs):
            if not isinstance(output, Tensor):
                continue
            memory, key = self.memories.find(output), memory_of(output)[0]
            if memory is not None and id(memory) in origin:
                self._view(memory, origin[id(memory)], op, args, kwargs, output, single=single)
                continue
            if node is None:
                value = self.form(result) if single else type(result)(map(self.form, outputs))
                node = self.call(op, nodes[0], nodes[1], value)
            own = node if single else self.call(operator.getitem, (node, number), {}, self.form(output))
            if key in made:
                made[key].regions.append((Geometry.of(output), own))
                made[key].views[Geometry.of(output)] = View(0, own)
            else:
                made[key] = self.memories.made(output, own)
                if op in _BLANK and output.numel() and not output.is_meta:
                    self._blank.append(made[key])
                if op._schema.returns[0].alias_info is not None and _are_parted(
                    sources
                ):  # of what has no memory to name
                    made[key].part_of = sources[0][0]

    def _are_new(self, outputs: Sequence[Any], sources: Sequence[tuple[Memory, Geometry]]) -> bool:
        """Return whether an operation has returned something else than views of its arguments."""
        given = {id(memory) for memory, _ in sources}
        return any(isinstance(t, Tensor) and id(self.memories.find(t)) not in given for t in outputs)

    def _view(
        self, memory: Memory, source: Geometry, op: Any, args: Any, kwargs: Any, output: Tensor, *, single: bool
    ) -> None:
        """Note a view; that of one tensor as the operator that made it, which says most about it."""
        geometry = Geometry.of(output)
        if geometry in memory.views:
            return
        call: tuple[Any, ...] | None = None
        if op in _OF_MEMORY:
            pass
        elif single and not any(isinstance(arg, (Tensor, list)) and _has_tensor(arg) for arg in args[1:]):
            call = (op, tuple(args[1:]), dict(kwargs))
        elif (part := piece(source, geometry)) is not None:
            call = (*part, {})
        elif geometry.dtype != source.dtype or geometry[4:] != source[4:]:
            raise TracingError(f"{op} returns a view that cannot be followed.")
        self.memories.view(source, memory, output, call)
        if single and has_strides(output):
            self.memories.value(memory, geometry)

    def _reshaped(self, op: Any, args: Any, kwargs: Any, perform: Callable[..., Any], tensor: Tensor) -> Any:
        """Write down an operation that makes a tensor another view of its memory, or one of another memory."""
        held = self.read(tensor)
        memory, before = self.memories.find(tensor), Geometry.of(tensor)
        assert memory is not None
        if not memory.fresh:
            self.before_write(tensor)
        size = tensor.untyped_storage().nbytes()
        result = perform(*args, **kwargs)
        if self.memories.find(tensor) is not memory or Geometry.of(tensor) == before:
            return result
        more = Geometry.of(tensor).elements - before.elements
        if more > 0 and before.order() is not None and tensor.untyped_storage().nbytes() != size:
            line = self.call(aten.reshape.default, (held, [-1]), {}, self._line(before, 0))
            line = self.call(aten.constant_pad_nd.default, (line, [0, more]), {}, self._line(before, more))
            node = self.call(aten.reshape.default, (line, list(tensor.shape)), {}, self.form(tensor))
            self.memories.replaced(memory, tensor, node)
            return result
        view = functional(op)
        plain = view is not None and not any(isinstance(arg, Tensor) for arg in args[1:]) and "resize" not in op._opname
        self.memories.view(before, memory, tensor, (view, tuple(args[1:]), dict(kwargs)) if plain else None)
        return result

    def _line(self, geometry: Geometry, more: int) -> Tensor:
        """Return the form of the elements of a tensor along one axis, and of some more."""
        return self.laid_out(geometry._replace(size=(geometry.elements + more,), stride=(1,)))

    def _sized(self, op: Any, args: Any, outputs: list[Any]) -> None:
        """Note that values decide how much an operation returns."""
        shapes = [tuple(output.shape) for output in outputs if isinstance(output, Tensor)]
        if op is aten.one_hot.default and len(args) > 1 and args[1] >= 0:
            return  # the number of classes is given
        self.root.sized = True
        deciding = args[_DECIDING[op]] if op in _DECIDING else args
        reads: list[Tensor] = []
        self._nodes(deciding, reads)
        self.left("size", op._opname, shapes[0] if len(shapes) == 1 else shapes, [self.read(t) for t in reads])


@dataclass(eq=False)
class Ask:
    """A tensor whose size Python was told.

    Attributes
    ----------
    node : torch.fx.Node or None
        None for one that is not in the model's own graph.
    axis : int or None
        Of which axis it was told, None for all.
    walk : bool
        Whether it went through the indices of the first axis.
    """

    node: fx.Node | None
    axis: int | None
    walk: bool


#: Types of arguments that are any number.
NUMBERS = ("number", "Optional[number]", "float", "Optional[float]", "Tensor")


#: What they return are columns of one memory.
_COLUMNS = {aten.where.default, aten.nonzero.default, aten.nonzero_numpy.default}


def _apart(result: Any) -> Any:
    """Return the same, tensors without elements in memories of their own: views of them could not be told apart."""
    if isinstance(result, Tensor):
        same = result.numel() or result.requires_grad or not has_strides(result)
        return result if same else result.new_empty(result.shape)
    return type(result)(map(_apart, result)) if type(result) in (tuple, list) else result


def _is_empty(result: Any) -> bool:
    parts = result if isinstance(result, (tuple, list)) else [result]
    return any(isinstance(part, Tensor) and not part.numel() for part in parts)


def _takes_all(tensor: Tensor, dim: int = 0, start: Any = None, stop: Any = None, step: int = 1) -> bool:
    """Return whether a slice takes all of an axis, however long it is."""
    return start in (None, 0) and (stop is None or stop >= torch.iinfo(torch.int64).max) and step == 1


def _are_parted(sources: Sequence[tuple[Memory, Geometry]]) -> bool:
    """Return whether the first of some tensors has its elements in parts, as sparse ones do."""
    return bool(sources) and len(sources[0][1].stride) != len(sources[0][1].size)


def _has_symbolic_sizes(args: Any) -> bool:
    return any(is_symbolic(item) for arg in args if isinstance(arg, (list, tuple)) for item in arg)


#: Which argument decides how large the result is; of other operators all do.
_DECIDING = {
    aten.index.Tensor: 1, aten.masked_select.default: 1, aten._pack_padded_sequence.default: 1,
    aten.repeat_interleave.self_Tensor: 1,
}  # fmt: skip


def _has_tensor(value: Any) -> bool:
    return isinstance(value, Tensor) or any(isinstance(item, Tensor) for item in value)
