"""One run of a model, recorded."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import get_ident
from typing import Any

from torch import Tensor, fx, nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from depgraph.tracing.program import Kind, Leaf
from depgraph.tracing.python.checks import is_literal
from depgraph.tracing.python.escapes import Escape
from depgraph.tracing.recorder.fakes import Fakes
from depgraph.tracing.recorder.geometry import Geometry, memory_of
from depgraph.tracing.recorder.leaving import Shift
from depgraph.tracing.recorder.modes import Modes
from depgraph.tracing.recorder.recorder import Ask, Recorder
from depgraph.tracing.recorder.threads import noticed
from depgraph.tracing.restoring import Kept
from depgraph.tracing.rows.steps import Steps
from depgraph.tracing.state import State
from depgraph.tracing.wrapper import Call, Move


@dataclass(eq=False)
class Recording:
    """What a model did on its example inputs.

    Attributes
    ----------
    graph : torch.fx.Graph
        The operations in the order in which they ran. Its output node returns nothing yet.
    module : torch.nn.Module
        Owner of the constants and of the bodies of higher-order operators.
    differentiated : bool
        Whether something was differentiated.
    declared : dict
        The placeholder of each input, parameter and buffer, with what kind of thing it is and its name.
    constants : dict
        Name of a ``get_attr`` node to its tensor.
    literals : set of str
        Those of them that are made of Python's numbers.
    computed : set of str
        Those of the literals that may be made of numbers that left the graph before.
    escapes : list of Escape
        The values that left the graph.
    outputs : list of torch.fx.Node
    updates : dict
        Name of a parameter or buffer that was written to or replaced, to what it holds afterwards.
    written : set of str
        The names of constants that were written to.
    overwritten : set of str
        The names of inputs that were written to.
    rewritten : frozenset of int
        Which looks at memory that Python could write to, counted from the first, showed that it had.
    threads : bool
        Whether threads were started.
    asks : list of Ask
        The tensors whose sizes, which values may have decided, Python was told.
    """

    graph: fx.Graph
    module: nn.Module
    differentiated: bool
    declared: dict[fx.Node, tuple[Kind, str]]
    constants: dict[str, Tensor]
    literals: set[str]
    computed: set[str]
    escapes: list[Escape]
    outputs: list[fx.Node]
    updates: dict[str, fx.Node]
    written: set[str]
    overwritten: set[str]
    rewritten: frozenset[int]
    threads: bool
    asks: list[Ask]

    def hold(self) -> None:
        """Let the graph return all that is wanted of it, so that none of it gets lost when it is changed."""
        reads = [escape.read for escape in self.escapes]
        asked = [ask.node for ask in self.asks]
        self.graph.output_node().args = ((self.outputs, list(self.updates.values()), reads, asked),)

    def held(self) -> tuple[list[fx.Node], dict[str, fx.Node], list[fx.Node]]:
        """Return the outputs, the updates, and what each escape was made of, as they are now."""
        returned: Any = self.graph.output_node().args[0]
        outputs, updates, reads, _ = map(list, returned)
        return outputs, dict(zip(self.updates, updates, strict=True)), reads

    def asked(self) -> list[Ask]:
        """Return the tensors whose sizes Python was told, as they are now."""
        returned: Any = self.graph.output_node().args[0]
        return [replace(ask, node=node) for ask, node in zip(self.asks, returned[3], strict=True)]

    def add(self, escape: Escape) -> None:
        """Add an escape to a graph that holds what is wanted of it."""
        outputs, updates, reads = self.held()
        asked = [ask.node for ask in self.asked()]
        self.escapes.append(escape)
        self.graph.output_node().args = ((outputs, list(updates.values()), [*reads, escape.read], asked),)

    def constant(self, tensor: Tensor) -> fx.Node:
        """Add a constant to the graph."""
        name = f"constant_{len(self.constants)}"
        self.constants[name] = tensor
        self.module.register_buffer(name, tensor, persistent=False)
        with self.graph.inserting_before(next(iter(self.graph.nodes))):
            node = self.graph.create_node("get_attr", name)
        node.meta = {"val": tensor.to("meta"), "module": "", "line": None}
        return node

    def strangers(self, known: Collection[int]) -> list[fx.Node]:
        """Return the tensors that no recorded operation made, and that were not there before.

        `torch.from_numpy` returns such tensors, and extensions that bypass PyTorch's dispatcher do.
        """
        found = self._unknown(known)
        return [node for node in found if node.target not in self.literals and self.constants[str(node.target)].dim()]

    def numbers(self, known: Collection[int]) -> list[fx.Node]:
        """Return the tensors made of numbers that are not written down there: of some that left, perhaps."""
        numbers = [node for node in self._unknown(known) if not self.constants[str(node.target)].dim()]
        return [node for node in numbers if node.target not in self.literals and not is_literal(node.meta["line"])] + [
            node for node in self.graph.find_nodes(op="get_attr") if node.target in self.computed
        ]

    def _unknown(self, known: Collection[int]) -> list[fx.Node]:
        nodes = [node for node in self.graph.find_nodes(op="get_attr") if node.users and node.target in self.constants]
        return [node for node in nodes if memory_of(self.constants[str(node.target)])[0] not in known]

    @property
    def inputs(self) -> list[fx.Node]:
        """The placeholders of inputs."""
        return [node for node, (kind, _) in self.declared.items() if kind == "input"]


def record(
    model: nn.Module, call: Call, inputs: Sequence[Leaf], state: State, kept: Kept,
    move: Move = tuple, shift: Shift | None = None,
    numbers: bool = True, whole: bool = True, fake: bool = False,
    rewritten: frozenset[int] = frozenset(), steps: Steps | None = None,
) -> Recording:  # fmt: skip
    """Run a model once on its example inputs and return what it did.

    Parameters
    ----------
    model, call, inputs, state
    kept : Kept
        Told of tensors that are about to be written to.
    move : callable
        Changes the inputs.
    shift : callable, optional
        Changes the values that leave, which are numbered.
    numbers : bool
        Whether numbers read off tensors stay symbolic.
    whole : bool
        Whether composite operators stay whole that could be differentiated.
    fake : bool
        Whether the model runs without data.
    rewritten : frozenset of int
        Which looks at memory that Python could write to count as if they showed that it had.
    steps : callable, optional
        How many steps loops take over places at which a mask is true.
    """
    recorder = Recorder(kept.before_write, shift=shift)
    recorder.memories.expected = rewritten
    recorder.steps = steps
    declared: dict[fx.Node, tuple[Kind, str]] = {}
    names = [name for name in state.values if name not in state.tied]
    for name in names:
        kind: Kind = "parameter" if name in state.parameters else "buffer"
        node = recorder.placeholder(name, state.values[name])
        recorder.memories.given(state.values[name], node)
        declared[node] = kind, name
    given = call.tensors(move)
    memories = []
    for leaf, tensor in zip(inputs, given, strict=True):
        node = recorder.placeholder(leaf.name, tensor)
        memories.append(recorder.memories.given(tensor, node))
        memories[-1].alone = True
        declared[node] = "input", leaf.name
    for memory, twins in zip(memories, call.shared(), strict=True):
        memory.twins = [memories[k] for k in twins]
    versions = {name: recorder.memories.find(state.values[name]) for name in names}
    forms = {name: Geometry.of(state.values[name]) for name in names}
    for tensor in [] if fake else kept.shared():
        recorder.read(tensor)
        recorder.memories.lend(tensor)
    fakes = Fakes(recorder.memories.find, recorder.memories.alias) if fake else None
    modes = Modes(recorder, numbers=numbers, whole=whole, fakes=fakes)
    if fakes is not None:
        given = [fakes.given(tensor) for tensor in given]
    with noticed(recorder.memories.lend_all), _modules_noted(model, modes), modes.watching():
        results = call(model, given)
    recorder.filled(list(results))
    outputs = [recorder.read(tensor) for tensor in results]
    after = State.of(model).values
    updates: dict[str, fx.Node] = {}
    for name in names:
        now, held, form = after.get(name), versions[name], forms[name]
        if now is None or held is None:
            continue
        if recorder.memories.find(now) is not held or held.version or Geometry.of(now) != form:
            node = recorder.read(now)
            if declared.get(node, (kind, ""))[1] != name:
                updates[name] = node
    overwritten = {leaf.name for leaf, memory in zip(inputs, memories, strict=True) if memory.version}
    recorder.graph.output(())
    root = nn.Module()
    for target, tensor in recorder.constants.items():
        root.register_buffer(target, tensor.detach() if tensor.requires_grad else tensor, persistent=False)
    for target, body in recorder.bodies.items():
        root.add_module(target, body)
    recorder.graph.owning_module = root  # type: ignore[assignment]
    return Recording(
        graph=recorder.graph,
        module=root,
        differentiated=modes.differentiated,
        declared=declared,
        constants=recorder.constants,
        literals=recorder.literals,
        computed=recorder.computed,
        escapes=recorder.escapes,
        outputs=outputs,
        updates=updates,
        written=recorder.memories.written_constants(),
        overwritten=overwritten,
        rewritten=frozenset(recorder.memories.rewritten),
        threads=recorder.memories.all_lent,
        asks=recorder.asks,
    )


@contextmanager
def _modules_noted(model: nn.Module, modes: Modes) -> Iterator[None]:
    """Tell the recorder which module of a model is running.

    One that has several names goes by them in turn, each time that what holds it runs.
    """
    names: dict[nn.Module, list[str]] = {}
    for name, module in model.named_modules(remove_duplicate=False):
        names.setdefault(module, []).append(name)
    running: list[tuple[str, dict[nn.Module, int]]] = [("", {})]
    before: list[str] = []
    owner = get_ident()  # hooks on all modules are those of all threads

    def enter(module: nn.Module, args: Any) -> None:
        if get_ident() != owner:
            return
        name = modes.recorder.module
        if module in names:
            holder, calls = running[-1]
            inside = [n for n in names[module] if n.startswith(f"{holder}." if holder else "")] or names[module]
            name = inside[calls.get(module, 0) % len(inside)]
            calls[module] = calls.get(module, 0) + 1
            running.append((name, {}))
        else:
            running.append(running[-1])
        before.append(modes.recorder.module)
        modes.recorder.module = name

    def leave(module: nn.Module, args: Any, result: Any) -> None:
        if get_ident() == owner and before:
            running.pop()
            modes.recorder.module = before.pop()

    hooks = [register_module_forward_pre_hook(enter), register_module_forward_hook(leave, always_call=True)]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
