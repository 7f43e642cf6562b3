"""Runs of a model in which values that left are changed, compared with the run as it is."""

from __future__ import annotations

import io
from collections.abc import Callable, Collection
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from depgraph.tracing.python.shifting import Change

if TYPE_CHECKING:
    from depgraph.tracing.recorder.record import Recording

aten = torch.ops.aten

#: Records the model again, some of the values that left changed so; without any, the inputs.
Run = Callable[[Collection[int], Change], "Recording"]

#: What is different in another run: a node by its number, and which of its arguments; or one of the two below.
Place = tuple[int, Any]
#: The tensor that a node holds, and what an operation does or to what it does it.
TENSOR, CHOSEN = "tensor", "chosen"

#: Types of arguments that are any number.
NUMBERS = ("number", "Optional[number]", "float", "Optional[float]", "Tensor")
#: Operators that take a place, or two ends of a stretch: which arguments those are.
INDICES: dict[Any, tuple[int, ...]] = {
    aten.select.int: (2,),
    aten.slice.Tensor: (2, 3),
    aten.select_scatter.default: (3,),
    aten.slice_scatter.default: (3, 4),
}


@dataclass(eq=False)
class Trial:
    """What was different in another run.

    Attributes
    ----------
    changed : tuple of int
        The values that were changed, by their numbers.
    together : bool
        Whether all values were changed at once, which were changed apart before.
    complete : bool
        Whether the same operations ran, to the end.
    reached : int
        How many nodes were compared.
    places : dict
        Where something is different: a number, and what it was there; a tensor, and which of its elements; for what an
        operation is applied to, the numbers of the nodes that it was applied to there.
    values : list
        The values that left there.
    asked : list of int
        Those of them, by their numbers, that were taken out of something else.
    rewritten : frozenset of int
        Looks at memory that Python could write to which showed that it had.
    """

    changed: tuple[int, ...]
    together: bool = False
    complete: bool = False
    reached: int = 0
    places: dict[Place, Any] = field(default_factory=dict)
    values: list[Any] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)
    rewritten: frozenset[int] = frozenset()

    def at(self, place: Place, value: Any) -> Any:
        """Return the number at a place in this run; ``value`` is the one in the run as it is."""
        return self.places.get(place, value)


def attempt(
    recording: Recording, run: Run, changed: Collection[int], change: Change, *, together: bool = False
) -> Trial:
    """Run again with something changed, and compare; a run that fails tells nothing."""
    trial = Trial(tuple(changed), together)
    with suppress(Exception), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        other = run(changed, change)
        trial.values = [escape.value for escape in other.escapes]
        trial.rewritten = frozenset(other.rewritten)
        _Comparison(recording, other, trial).run()
    return trial


class _Comparison:
    """Two runs side by side, operation by operation.

    Views are made where they are read first, and numbers where Python computes them, which is not at the same place in
    both; so they count as what they are made of and how.
    """

    def __init__(self, recording: Recording, other: Recording, trial: Trial) -> None:
        self.recording, self.other, self.trial = recording, other, trial
        self.nodes, self.others = ([n for n in r.graph.nodes if n.op != "output"] for r in (recording, other))
        self.order = {node: k for k, node in enumerate(self.nodes)}
        names: dict[Any, int] = {}
        self.names, self.other_names = (_named(nodes, names) for nodes in (self.nodes, self.others))
        self.known = {name: node for node, name in self.names.items()}
        self.walked: set[tuple[fx.Node, fx.Node]] = set()
        self.bodies: set[fx.Node] = set()

    def run(self) -> None:
        """Note what is different."""
        self._conditions()
        own, others = ([n for n in nodes if not n.meta.get("made")] for nodes in (self.nodes, self.others))
        self.trial.complete = len(own) == len(others)
        for node, twin in zip(own, others, strict=False):
            if not _same_operation(node, twin):
                self.trial.complete = False
                return
            self.trial.complete &= _form(node) == _form(twin)
            self.trial.reached = self.order[node] + 1
            self._operation(node, twin)
        if len(own) != len(others):  # a loop, perhaps, that was run as often as a value says
            return
        results, twins = ([*r.outputs, *r.updates.values()] for r in (self.recording, self.other))
        for k, (node, twin) in enumerate(zip(results, twins, strict=False)):
            self.trial.complete &= _form(node) == _form(twin)
            if self._chosen([(node, twin)]) and _form(node) == _form(twin):
                self.trial.places[len(self.nodes), k] = self._made_of([twin])

    @staticmethod
    def _body(recording: Recording, node: fx.Node) -> str:
        """Return what the body of an operator that takes functions does; nothing for other nodes."""
        if node.op != "get_attr" or str(node.target) in recording.constants:
            return ""
        body = recording.module.get_submodule(str(node.target))
        return str([str(each.graph) for each in body.modules() if isinstance(each, fx.GraphModule)])

    def _conditions(self) -> None:
        """Note the values that left which are others: what took them out was asked of something else."""
        for e, (one, two) in enumerate(zip(self.recording.escapes, self.other.escapes, strict=False)):
            if one.kind != two.kind:
                return
            if self.names.get(one.read) != self.other_names.get(two.read):
                self.trial.asked.append(e)

    def _operation(self, node: fx.Node, twin: fx.Node) -> None:
        k = self.order[node]
        bodies = [self._body(recorded, each) for recorded, each in ((self.recording, node), (self.other, twin))]
        if bodies[0] != bodies[1]:
            self.bodies.add(node)
        if node.op == "get_attr":
            one, two = (r.constants.get(str(n.target)) for r, n in ((self.recording, node), (self.other, twin)))
            if one is not None and two is not None and (different := _different(one, two)) is not None:
                self.trial.places[k, TENSOR] = different
        numbers, twins = numbers_of(node), dict(numbers_of(twin))
        for at, one in numbers:
            two = twins[at]
            chosen = isinstance(one, fx.Node) and self.names[one] != self.other_names.get(two)
            if chosen or (not isinstance(one, fx.Node) and differ(one, two)):
                self.trial.places[k, at] = two
        taken = {at for at, _ in numbers}
        pairs = [(a, b) for a, b in zip(_leaves(node, taken), _leaves(twin, taken), strict=True)
                 if isinstance(a, fx.Node)]  # fmt: skip
        chosen = self._chosen(pairs)
        another = (
            chosen or _plain(node, taken) != _plain(twin, taken) or not self.bodies.isdisjoint(node.all_input_nodes)
        )
        if another and _form(node) == _form(twin):
            self.trial.places[k, CHOSEN] = self._made_of(chosen)

    def _chosen(self, pairs: list[tuple[fx.Node, fx.Node]]) -> list[fx.Node]:
        """Return what is read in the other run and is not the same here; another place in the same is noted."""
        chosen: list[fx.Node] = []
        waiting = [(one, two, two) for one, two in pairs]
        while waiting:
            one, two, read = waiting.pop()
            if self.names[one] == self.other_names[two] or (one, two) in self.walked:
                continue
            if not (one.meta.get("made") and two.meta.get("made") and _same_operation(one, two)):
                chosen.append(read)
                continue
            self.trial.complete &= _form(one) == _form(two)
            if _plain(one, ()) != _plain(two, ()):
                if one.target not in INDICES:
                    chosen.append(read)
                    continue
                first = INDICES[one.target][0]
                if _form(one) == _form(two) or one.args[first] != two.args[first]:
                    self.trial.places[self.order[one], first] = two.args[first]
            self.walked.add((one, two))
            waiting += [(a, b, read) for a, b in zip(_leaves(one, ()), _leaves(two, ()), strict=True)
                        if isinstance(a, fx.Node)]  # fmt: skip
        return chosen

    def _made_of(self, nodes: list[fx.Node]) -> list[int]:
        """Return the numbers of the nodes here of which something is made in the other run."""
        found: set[int] = set()
        waiting, seen = list(nodes), set(nodes)
        while waiting:
            node = waiting.pop()
            here = self.known.get(self.other_names[node])
            if here is not None:
                found.add(self.order[here])
                continue
            new = set(node.all_input_nodes) - seen
            seen |= new
            waiting += new
        return sorted(found)


def _named(nodes: list[fx.Node], names: dict[Any, int]) -> dict[fx.Node, Any]:
    """Name operations by their number, views and numbers by what they are made of: the same in two runs are equal."""
    found: dict[fx.Node, Any] = {}
    count = 0
    for node in nodes:
        if node.meta.get("made"):
            parts = tuple(found[leaf] if isinstance(leaf, fx.Node) else repr(leaf) for leaf in _leaves(node, ()))
            found[node] = names.setdefault((str(node.target), parts), ~len(names))
        else:
            found[node] = count
            count += 1
    return found


def _same_operation(node: fx.Node, twin: fx.Node) -> bool:
    """Return whether two nodes apply the same operation to as many things."""
    if (node.op, str(node.target)) != (twin.op, str(twin.target)):
        return False
    numbers, twins = ({at for at, _ in numbers_of(each)} for each in (node, twin))
    if numbers != twins:
        return False
    forms = [[type(leaf) for leaf in _leaves(each, numbers)] for each in (node, twin)]
    return forms[0] == forms[1] and _words(node, numbers) == _words(twin, numbers)


def _form(node: fx.Node) -> Any:
    return [(v.shape, v.dtype) for v in pytree.tree_leaves(node.meta.get("val")) if isinstance(v, torch.Tensor)]


def _leaves(node: fx.Node, taken: Collection[Any]) -> list[Any]:
    arguments = {at: None if at in taken else value for at, value in arguments_of(node).items()}
    leaves = pytree.tree_leaves(arguments, is_leaf=lambda leaf: isinstance(leaf, slice))
    return [part for leaf in leaves
            for part in ((leaf.start, leaf.stop, leaf.step) if isinstance(leaf, slice) else (leaf,))]  # fmt: skip


def arguments_of(node: fx.Node) -> dict[Any, Any]:
    """Return the arguments of an operation, by their place or name; of an operator also those that are left out."""
    given: dict[Any, Any] = dict(enumerate(node.args))
    if isinstance(node.target, torch._ops.OpOverload):
        for k, argument in enumerate(node.target._schema.arguments[len(given) :], len(given)):
            if argument.name not in node.kwargs and argument.has_default_value():
                given[argument.name if argument.kwarg_only else k] = argument.default_value
    return given | dict(node.kwargs)


def _plain(node: fx.Node, taken: Collection[Any]) -> list[Any]:
    """Return the numbers among the arguments that an operation does not take as any number: places, sizes, switches."""
    return [leaf for leaf in _leaves(node, taken) if isinstance(leaf, (bool, int, float))]


def _words(node: fx.Node, taken: Collection[Any]) -> list[str]:
    return [str(leaf) for leaf in _leaves(node, taken) if not isinstance(leaf, (fx.Node, bool, int, float))]


def _different(one: torch.Tensor, two: torch.Tensor) -> torch.Tensor | None:
    """Return where two tensors of one form differ, None where they do not or cannot be compared."""
    if one.shape != two.shape or one.is_meta or one.layout is not torch.strided or one.is_quantized:
        return None
    different = ~((one == two) | ((one != one) & (two != two)))
    return different if bool(different.any()) else None


def differ(one: Any, two: Any) -> bool:
    """Return whether two numbers are not the same; two that are not numbers are the same."""
    if isinstance(one, fx.Node) or isinstance(two, fx.Node):
        return True
    return type(one) is not type(two) or (one != two and not (one != one and two != two))


def numbers_of(node: fx.Node) -> list[tuple[Any, Any]]:
    """Return place and value of the arguments of an operation that may be any number."""
    if not isinstance(node.target, torch._ops.OpOverload):
        if not callable(node.target):
            return []
        return [(k, v) for k, v in enumerate(node.args) if _is_number(v)] if _is_number(node) else []
    given = arguments_of(node)
    found: list[tuple[Any, Any]] = []
    for k, argument in enumerate(node.target._schema.arguments):
        at: Any = argument.name if argument.name in given else k
        counts = str(argument.type) in NUMBERS or k in INDICES.get(node.target, ())
        if counts and _is_number(given.get(at)):
            found.append((at, given[at]))
    return found


def _is_number(value: Any) -> bool:
    number = value.meta.get("val") if isinstance(value, fx.Node) else value
    return isinstance(number, (bool, int, float, complex))
