"""Walking through a model's graph: every operator is handed to its rule.

An operator is followed by the first of these that applies: it is run, where all its arguments are known; its own rule;
the rule of its class, by PyTorch's own metadata (views by the aliasing in their schema, elementwise operators and
reductions by tag); PyTorch's decomposition of it; and failing all, it is taken to read everything, with a warning.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, fx

from depgraph.dag.reach import ancestors
from depgraph.errors import DepgraphError, TracingError
from depgraph.rules import registry
from depgraph.rules.arguments import swap, tensors_in
from depgraph.rules.elementwise import elementwise
from depgraph.rules.movement import view
from depgraph.rules.reduction import everything, reduction
from depgraph.rules.registration import UserRule
from depgraph.rules.values import FIRST, GENERIC, Value, core, generic, known
from depgraph.rules.values.intervals import spoilt
from depgraph.tracing.recorder.functional import InPlace
from depgraph.tracing.rows.writing import called
from depgraph.unrolling.builder import Builder, Label
from depgraph.unrolling.calls import note
from depgraph.unrolling.custom import follow_rule, in_place
from depgraph.unrolling.decomposition import UndecomposableError, decompose
from depgraph.unrolling.invocation import HoldInputsError, Invocation, NotKnownError, run
from depgraph.unrolling.repetition import Repetition
from depgraph.unrolling.scalars import arithmetic, number_of, reads_a_number, unknown_numbers, with_numbers

Where = Callable[[fx.Node], tuple[str, str]]

#: How a warning about a rule that failed begins.
FAULT = "please report this fault of depgraph in following"


class Interpreter:
    """Follows graphs of ATen operators; see the module's docstring.

    Parameters
    ----------
    builder : Builder
        Collects the nodes.
    may_hold : callable
        Told the numbers of input nodes, says whether those inputs may be held at their example values.

    Attributes
    ----------
    warnings : dict
        Its keys are sentences.
    user_rules : dict
        Its keys are the operators that a user's rule was asked about.
    """

    def __init__(self, builder: Builder, may_hold: Callable[[np.ndarray], bool]) -> None:
        self.builder = builder
        self.may_hold = may_hold
        self.warnings: dict[str, None] = {}
        self.user_rules: dict[str, None] = {}
        self.references: dict[Any, Any] = {}
        self.site: fx.Node | None = None

    def warn(self, text: str) -> None:
        """Add a sentence to the warnings, once."""
        self.warnings[text] = None

    def run(
        self, module: torch.nn.Module, graph: fx.Graph, placeholders: Mapping[str, Any], where: Where
    ) -> dict[fx.Node, Any]:
        """Follow a graph.

        Parameters
        ----------
        module : torch.nn.Module
            Owner of the constants and subgraphs that ``get_attr`` nodes name.
        graph : torch.fx.Graph
        placeholders : mapping
            Name of each placeholder to its `Value`.
        where : callable
            Gives the module path and the ``file:line`` of a node.

        Returns
        -------
        dict
            What the nodes read by the output are.
        """
        values: dict[fx.Node, Any] = {}
        last_use: dict[fx.Node, fx.Node] = {}
        for node in graph.nodes:
            for read in node.all_input_nodes:
                last_use[read] = node
        nodes = list(graph.nodes)
        layers = Repetition(nodes, placeholders) if self.site is None else None
        copied: set[fx.Node] = set()
        for node in nodes:
            if layers is not None and node not in copied:
                said = len(self.warnings) + len(self.user_rules)
                copied.update(layers.before(node, values, self.builder, said, where))
            if node in copied:
                continue
            if node.op == "placeholder":
                values[node] = placeholders[node.name]
            elif node.op == "get_attr":
                found = operator.attrgetter(node.target)(module)
                values[node] = constant(found) if isinstance(found, Tensor) else found
            elif node.op == "call_function":
                args, kwargs = fx.node.map_arg((node.args, node.kwargs), lambda n: values[n])
                values[node] = self.call(node, args, kwargs, where)
                for read in node.all_input_nodes:
                    if last_use[read] is node and (layers is None or read not in layers.kept):
                        values.pop(read, None)
        return values

    def call(self, node: fx.Node, args: tuple[Any, ...], kwargs: dict[str, Any], where: Where) -> Any:
        """Follow one node of a graph, and note what it became."""
        mark, outermost = self.builder.mark(), self.site is None
        if outermost:
            self.site = node
        try:
            result = self.follow(node, args, kwargs, where)
            assert self.site is not None
            note(self.builder, mark, node, self.site, result)
            return result
        finally:
            if outermost:
                self.site = None

    def follow(self, node: fx.Node, args: tuple[Any, ...], kwargs: dict[str, Any], where: Where) -> Any:
        """Follow one node of a graph."""
        if not isinstance(node.target, torch._ops.OpOverload):
            if isinstance(node.target, torch._ops.HigherOrderOperator):
                from depgraph.unrolling import higher_order

                return higher_order.follow(self, node, args, kwargs, where)
            if isinstance(node.target, InPlace):
                op = node.target.op
                contracts = op._schema.name.partition("::")[2] in registry.CONTRACTIONS
                label = Label(registry.name_of(op), *where(node), contracts)
                return in_place(self, op, args, kwargs, node.meta["val"], label)
            if node.target is not operator.getitem and (numbers := tensors_in(args, kwargs)):
                name = getattr(node.target, "__name__", str(node.target))
                return arithmetic(self, numbers, Label(name, *where(node), False))
            return node.target(*args, **kwargs)  # type: ignore[operator]
        module, source = where(node)
        op = node.target
        contracts = op._schema.name.partition("::")[2] in registry.CONTRACTIONS
        label = Label(registry.name_of(called(node)), module, source, contracts)
        meta = node.meta.get("val")
        layouts = [a.meta.get("val") if isinstance(a, fx.Node) else None for a in node.args]
        return self.apply(op, args, kwargs, meta, label, layouts)

    def apply(
        self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], meta: Any, label: Label, layouts: Any = ()
    ) -> Any:
        """Follow one call of an operator."""
        tensors = tensors_in(args, kwargs)
        rule = registry.find(op)
        pointwise = rule is elementwise or (rule is None and torch.Tag.pointwise in op.tags)
        call = Invocation(self, op, args, kwargs, meta, label, layouts, pointwise)
        if meta is None or (isinstance(meta, (tuple, list)) and not meta):
            return None
        if reads_a_number(op):
            return number_of(args[0])
        if not isinstance(meta, (Tensor, tuple, list)):
            return meta
        if numbers := unknown_numbers(op, args, kwargs):
            return with_numbers(call, numbers)
        mark, first = self.builder.mark(), self.builder.count + FIRST
        for way in self.ways(call, rule, tensors):
            try:
                result = way(call, *args, **kwargs)
                check_shapes(op, result, meta)
                result = result if way in registry.SIZED or way == self.opened else unsized(result, tensors, first)
                return result
            except NotKnownError as reason:
                call.warn(f"{label.name} is taken to read everything it is given: {reason}, and they are not known")
                break
            except UndecomposableError:
                pass
            except (HoldInputsError, DepgraphError):
                raise
            except MemoryError:
                raise TracingError(
                    f"{label.source}: {label.name} does not fit into memory. Use a shorter input, or track fewer axes."
                ) from None
            except Exception as error:  # a fault of ours: say so, and claim too much rather than too little
                call.warn(f"{FAULT} {op}: {type(error).__name__}: {error}")
            self.builder.rewind(mark)
        else:
            if all(t.is_constant for t in tensors):
                return _like(meta, lambda m: generic(m.shape, m.dtype) if isinstance(m, Tensor) else m)
            call.warn(f"{op} has no rule and does not decompose; it is taken to read everything it is given")
        self.builder.rewind(mark)
        return unsized(everything(call, *args, **kwargs), tensors, first)

    def ways(self, call: Invocation, rule: registry.Rule | None, tensors: list[Value]) -> Iterator[registry.Rule]:
        """Yield how an operator can be followed, best first."""
        runs = rule not in registry.VALUELESS and not registry.is_random(call.op)
        if runs and all(t.is_known for t in tensors):
            yield lambda call, *_, **__: self.fold(call)
        if isinstance(rule, UserRule):
            yield lambda call, *_, **__: follow_rule(rule, call)
        elif rule is not None:
            yield rule
        elif registry.is_view(call.op):
            yield view
        elif torch.Tag.pointwise in call.op.tags:
            yield elementwise
        elif torch.Tag.reduction in call.op.tags and tensors:
            yield reduction
        yield self.opened

    def fold(self, call: Invocation) -> Any:
        """Run an operator all of whose arguments are known."""
        if call.pointwise and isinstance(call.meta, Tensor):
            values = call.values(torch.zeros((), dtype=torch.int64), everywhere=True)
            assert values is not None
            return known(values)
        args, kwargs = swap(call.args, lambda v: v.values()), swap(call.kwargs, lambda v: v.values())
        try:
            result = run(call.op, args, kwargs)
        except Exception as error:
            if registry.is_custom(call.op):  # it may not run without its own device
                raise UndecomposableError(str(error)) from error
            raise
        return _like(result, lambda r: constant(r) if isinstance(r, Tensor) else r)

    def opened(self, call: Invocation, *_: Any, **__: Any) -> Any:
        """Follow an operator through PyTorch's decomposition of it."""
        return self.decomposed(call)

    def decomposed(self, call: Invocation) -> Any:
        """Follow an operator through PyTorch's decomposition of it."""
        module = decompose(call.op, call.args, call.kwargs, (Value,))
        tensors = tensors_in(call.args, call.kwargs)
        names = [node.name for node in module.graph.nodes if node.op == "placeholder"]
        place = (call.label.module, call.label.source)
        values = self.run(module, module.graph, dict(zip(names, tensors, strict=True)), lambda _: place)
        (output,) = module.graph.output_node().args
        return fx.node.map_arg(output, lambda n: values[n])

    def hold(self, value: Value, why: str, label: Label) -> None:
        """Ask for the inputs that a value comes from to be held at their example values, if they may be."""
        codes = core(value.codes).unique().numpy()
        if (codes == GENERIC).any():
            return
        ids = codes[codes >= FIRST] - FIRST
        dag = self.builder.finish()
        found = np.flatnonzero(ancestors(dag, ids, ids + 1)[: dag.inputs])
        if self.may_hold(found):
            raise HoldInputsError(found, why, label)


def constant(tensor: Tensor) -> Value:
    """Return a constant tensor: known where it has data."""
    if tensor.device.type == "meta":
        return generic(tensor.shape, tensor.dtype)
    tensor = tensor.detach()
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    return known(tensor.cpu())


def check_shapes(op: Any, result: Any, meta: Any) -> None:
    """Raise where a rule returns something else than the operator does."""
    shapes = [
        [tuple(t.shape) for t in (tree if isinstance(tree, (tuple, list)) else [tree]) if hasattr(t, "shape")]
        for tree in (result, meta)
    ]
    if shapes[0] != shapes[1]:
        raise ValueError(f"{op} returns tensors of shapes {shapes[1]}, its rule {shapes[0]}")


def unsized(result: Any, tensors: list[Value], first: int) -> Any:
    """Mark what nodes from the code ``first`` on return as being of any size, if some of what they read is."""
    return _like(result, lambda r: spoilt(r, tensors, first) if isinstance(r, Value) else r)


def _like(tree: Any, change: Callable[[Any], Any]) -> Any:
    return type(tree)(change(t) for t in tree) if isinstance(tree, (tuple, list)) else change(tree)
