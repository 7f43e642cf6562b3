"""`depgraph.trace`: from a model to its dependency graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch

from depgraph.dag.graph import DependencyGraph, Terminal, Terminals
from depgraph.dag.reach import ancestors
from depgraph.dag.runs import Runs
from depgraph.rules.call import Read
from depgraph.rules.values import FIRST, Value, core, generic
from depgraph.tracing.capture import capture
from depgraph.tracing.program import Leaf, Program
from depgraph.tracing.rows.widening import Widened, widened
from depgraph.unrolling.builder import Builder
from depgraph.unrolling.costs import Costs
from depgraph.unrolling.footprints import footprint
from depgraph.unrolling.interpreter import Interpreter, constant
from depgraph.unrolling.invocation import HoldInputsError
from depgraph.unrolling.positions import Plan, check, plan


def trace(
    model: torch.nn.Module,
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    *,
    positions: Mapping[Any, Any] | None = None,
    known: Iterable[Any] | None = None,
    fake: bool = False,
) -> DependencyGraph:
    """Return the dependency graph of a model: which input positions reach which output positions, and through what.

    Parameters
    ----------
    model : torch.nn.Module or torch.export.ExportedProgram
        Run once, in the mode it is in (``model.eval()`` or ``model.train()``), on any device, and put back to what it
        was: parameters, buffers, attributes, containers, closures, generators. Two threads may trace at once.
    args : tuple
        Example arguments of forward. Their shapes matter; of their values, only those of known inputs do, and of inputs
        that decide which way the code goes.
    kwargs : dict, optional
        Example keyword arguments.
    positions : mapping, optional
        Tensor to the axis, or tuple of axes, whose indices are told apart: ``{"x": 1}``, ``{"image": (2, 3)}``,
        ``{"output": 1}``. A key is the name of an argument, a dotted path into a container (``"batch.ids"``), the index
        of a tensor among the flattened inputs, the dotted name of a parameter or buffer, or the name of an output
        (``"output"``, ``"output.1"``, ``"output.logits"``). Chosen by the first operation that reads the input where no
        input is named, and by where the result differs for an output that is not named.
    known : iterable, optional
        Inputs to be held at their example values, such as a mask. Boolean inputs that are not tracked are held anyway.
    fake : bool
        Whether to trace without computing, as is done anyway for what is on the meta device or does not fit into
        memory. Only small tensors that are made of constants, buffers and example inputs have values then.

    Returns
    -------
    DependencyGraph

    Raises
    ------
    PositionError
        Where a name or an axis does not exist.
    TracingError
        Where the model cannot be followed.

    Examples
    --------
    >>> import torch, depgraph
    >>> model = torch.nn.LSTM(4, 4, batch_first=True).eval()
    >>> graph = depgraph.trace(model, (torch.randn(1, 10, 4),))
    >>> depgraph.path_lengths(graph)[0, 9]
    np.int64(10)
    """
    known = list(known) if isinstance(known, Iterator) else known
    check(positions, known)
    program = capture(model, args, kwargs, fake=fake)
    return unroll(program, plan(program, positions, known))


def unroll(program: Program, choice: Plan) -> DependencyGraph:
    """Return the dependency graph of a traced model."""
    held: dict[str, str] = {}
    followed = widened(program.graph, program.results, program.told)
    # Codes and known values live on the CPU, wherever the caller makes new tensors.
    elsewhere = torch.get_default_device().type != "cpu"
    while True:
        try:
            with torch.device("cpu") if elsewhere else nullcontext():
                return _Unrolling(program, followed, choice, held).graph()
        except HoldInputsError as request:
            names = request.nodes.tolist()
            for name in names:
                where = f"{request.label.source}: " if request.label.source else ""
                held[name] = f"{where}{name} is held at its example value: {request.why}"


class _Unrolling:
    """One pass over a program."""

    def __init__(
        self, program: Program, followed: Widened, choice: Plan, held: Mapping[str, str], weights: bool = False
    ) -> None:
        self.program, self.followed, self.choice, self.held = program, followed, choice, dict(held)
        self.builder = Builder()
        self.inputs: list[Terminal] = []
        self.starts: dict[str, int] = {}
        self.track_weights = weights
        self.interpreter = Interpreter(self.builder, self.may_hold)

    def add_input(self, name: str, shape: torch.Size, axes: tuple[int, ...]) -> torch.Tensor:
        """Make the nodes of an input and return its codes."""
        sizes = [shape[axis] for axis in axes]
        count = int(np.prod(sizes, dtype=np.int64))
        start = self.builder.add_input(count)
        self.starts[name] = start
        ids = np.arange(start, start + count)
        self.inputs.append(Terminal(name, tuple(shape), axes, Runs.singletons(ids)))
        codes = torch.from_numpy(ids + FIRST).reshape(sizes)
        order = sorted(range(len(axes)), key=lambda k: axes[k])
        codes = codes.permute(order)
        return codes.reshape([shape[a] if a in axes else 1 for a in range(len(shape))]).expand(shape)

    def may_hold(self, nodes: np.ndarray) -> bool:
        """Tell whether the inputs that own these nodes are plain inputs that nobody tracks."""
        names = {self.owner(int(node)) for node in nodes}
        real = {leaf.name for leaf in self.program.inputs if leaf.value.device.type != "meta"}
        return names <= real and not any(self.choice.tracked.get(name) for name in names)

    def owner(self, node: int) -> str:
        """Return the name of the input that a node belongs to."""
        return max((start, name) for name, start in self.starts.items() if start <= node)[1]

    def placeholders(self) -> dict[str, Value | None]:
        """Return what is known of everything that goes into the graph."""
        choice, held = self.choice, self.choice.known | self.held
        codes: dict[str, torch.Tensor] = {}
        for leaf in self.program.inputs:
            codes[leaf.name] = self.add_input(leaf.name, leaf.value.shape, choice.tracked.get(leaf.name, ()))
        # What is no tensor, such as a random number generator, has no source.
        values: dict[str, Value | None] = dict.fromkeys(n.name for n in self.program.graph.find_nodes(op="placeholder"))
        as_inputs: dict[str, Value] = {}
        for name, source in self.program.sources.items():
            value = source.value
            if source.kind == "input":
                if source.name in held:
                    values[name] = constant(value)
                else:
                    values[name] = Value(codes[source.name], None, value.dtype)
            elif source.name in as_inputs:
                values[name] = as_inputs[source.name]
            elif source.name in choice.parameters or (self.track_weights and source.kind == "parameter"):
                axes = choice.parameters.get(source.name, ()) if not self.track_weights else ()
                as_inputs[source.name] = values[name] = Value(
                    self.add_input(source.name, value.shape, axes), None, value.dtype
                )
            elif source.kind == "parameter" or source.mutated:
                values[name] = generic(value.shape, value.dtype)
            else:
                values[name] = constant(value)
        return values

    def graph(self) -> DependencyGraph:
        """Run the pass."""
        program = self.program
        try:
            env = self.interpreter.run(program.module, self.followed.graph, self.placeholders(), program.where)
        except HoldInputsError as request:
            request.nodes = np.array(sorted({self.owner(int(node)) for node in request.nodes}), object)
            raise
        values = [env[r] for r in self.followed.results]
        dag = self.builder.finish()
        outputs = [self.output(leaf, value) for leaf, value in zip(program.outputs, values, strict=True)]
        starts = np.concatenate([t.nodes.starts for t in outputs] or [np.zeros(0, np.int64)])
        stops = np.concatenate([t.nodes.stops for t in outputs] or [np.zeros(0, np.int64)])
        self.alive = ancestors(dag, starts, stops)
        unused = [t.name for t in self.inputs if not self.alive[t.nodes.starts].any()]
        aliases = [
            {a: leaf.name for leaf in leaves for a in leaf.aliases} for leaves in (program.inputs, program.outputs)
        ]
        given = [leaf.name for leaf in program.inputs]
        return DependencyGraph(
            dag,
            self.builder.operations,
            Terminals("input", self.inputs, aliases[0]),
            Terminals("output", outputs, aliases[1]),
            [*self.said(), *self.choice.notes, *self.held.values(), *self.interpreter.warnings],
            [name for name in given if name in unused and name not in self.choice.known and name not in self.held],
            program.mode,
            find_unused_parameters=self.unused_parameters,
            known_inputs=[name for name in given if name in self.choice.known or name in self.held],
            user_rules=list(self.interpreter.user_rules),
            find_costs=Costs.of(program, self.builder, self.inputs),
        )

    def said(self) -> list[str]:
        """Return what is to be said of values that left the graph, where no held inputs decide them."""
        held = self.choice.known | self.held
        names = {source.name for source in self.program.sources.values() if source.name in held}
        return self.program.findings.sentences(names)

    def output(self, leaf: Leaf, value: Value) -> Terminal:
        """Gather the nodes behind each position of an output."""
        axes = self.choice.outputs.get(leaf.name)
        if axes is None:
            axes = self.varying(value)
        rest = [axis for axis in range(value.ndim) if axis not in axes]
        grid = tuple(value.shape[axis] for axis in axes)
        sets = footprint(Read(value.codes.permute((*axes, *rest)), len(rest)), len(axes), self.builder.boundaries)
        everyone = np.arange(int(np.prod(grid, dtype=np.int64)))
        return Terminal(leaf.name, tuple(value.shape), axes, sets.of(everyone, grid))

    def varying(self, value: Value) -> tuple[int, ...]:
        """Choose the position axes of an output: those along which its nodes differ."""
        codes = core(value.codes)
        if not codes.numel():
            return ()
        axes = [a for a, n in enumerate(codes.shape) if n > 1 and bool((codes != codes.narrow(a, 0, 1)).any())]
        tracked = [(t.shape, t.positions) for t in self.inputs if t.positions]
        if len(axes) > 1 and tracked and len(tracked[0][1]) == 1:
            size = tracked[0][0][tracked[0][1][0]]
            same = [axis for axis in axes if value.shape[axis] == size]
            axes = same if len(same) == 1 else axes
        return tuple(axes)

    def unused_parameters(self) -> list[str]:
        """Return the parameters that reach no output: each is made an input of its own and looked for."""
        program, bare = self.program, Plan(known=self.choice.known)
        held = dict(self.held)
        while True:
            again = _Unrolling(program, self.followed, bare, held, weights=True)
            try:
                graph = again.graph()
                break
            except HoldInputsError as request:
                held |= dict.fromkeys(request.nodes.tolist(), "")
        reached = {name for name, start in again.starts.items() if again.alive[start]}
        del graph
        return sorted(name for name in program.parameters if program.tied.get(name, name) not in reached)
