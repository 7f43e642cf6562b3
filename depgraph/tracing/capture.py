"""From a model and example arguments to a `Program`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import RLock
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.export import ExportedProgram
from torch.nn.modules.lazy import LazyModuleMixin

from depgraph.errors import TracingError
from depgraph.tracing import loaded
from depgraph.tracing.given import given
from depgraph.tracing.names import arguments_of, input_leaves, output_leaves, tensors_of
from depgraph.tracing.private import levels_kept
from depgraph.tracing.program import Leaf, Program, Source
from depgraph.tracing.python.computed import RewrittenError, lead_back
from depgraph.tracing.python.findings import DREW, THREADS, Findings, failure, no_values
from depgraph.tracing.python.shifting import Change, shifted
from depgraph.tracing.recorder.fakes import NoValuesError
from depgraph.tracing.recorder.geometry import memory_of
from depgraph.tracing.recorder.leaving import Shift
from depgraph.tracing.recorder.record import Recording, record
from depgraph.tracing.restoring import Kept, kept
from depgraph.tracing.rows.counting import OTHERS, same_but_for_steps
from depgraph.tracing.rows.leaks import told
from depgraph.tracing.rows.spaces import Told
from depgraph.tracing.rows.steps import Steps
from depgraph.tracing.settings import SEED, as_if_compiled, quiet, start_random, tracing_settings
from depgraph.tracing.state import State
from depgraph.tracing.structure import Found, held_by
from depgraph.tracing.unsupported import reason, refuse_nested
from depgraph.tracing.wrapper import Call, Move
from depgraph.tracing.writes import Writes

_LOCK = RLock()


def capture(
    model: nn.Module | ExportedProgram,
    args: tuple[Any, ...] | Tensor = (),
    kwargs: dict[str, Any] | None = None,
    *,
    fake: bool = False,
) -> Program:
    """Return the functional graph of a model for example arguments, with names.

    Parameters
    ----------
    model : torch.nn.Module or torch.export.ExportedProgram
        A module is run once, in the mode it is in, and then put back to what it was.
    args, kwargs
        Example arguments, as the model would be called; a tensor stands for one argument. An exported program has its
        own, where none are given.
    fake : bool
        Whether the model runs without data. It does anyway where it, or an input, has none.

    Raises
    ------
    TracingError
        Where the model cannot be followed, or the arguments are nothing to call it with.

    Examples
    --------
    >>> import torch
    >>> program = capture(torch.nn.Linear(3, 2), (torch.zeros(5, 3),))
    >>> [(leaf.name, tuple(leaf.value.shape)) for leaf in program.inputs + program.outputs]
    [('input', (5, 3)), ('output', (5, 2))]
    >>> [str(node.target) for node in program.graph.nodes if node.op == "call_function"]
    ['aten.linear.default']
    """
    args, kwargs = given(args, kwargs)
    if isinstance(model, ExportedProgram):
        args, kwargs = loaded.example_inputs(model, args, kwargs)
        opened, mode = loaded.opened(model), loaded.mode_of(model)
        inputs = input_leaves(loaded.inputs_of(model, args, kwargs))
        with _LOCK, tracing_settings(), kept(opened) as keeping:
            subject = _Subject(opened, Call(args, kwargs), inputs, loaded.state_of(opened), keeping.tensors, fake)
            return subject.program(mode)
    if not isinstance(model, nn.Module):
        raise TracingError(f"A model is a torch.nn.Module; got {type(model).__name__}.")
    call = Call(args, kwargs)
    inputs = input_leaves(tensors_of(arguments_of(model, args, kwargs)))
    refuse_nested(model, inputs)
    with _LOCK, tracing_settings(), kept(model) as keeping:
        if lazy := _is_lazy(model):
            _initialise(model, call, inputs, keeping)
        state = State.of(model)
        subject = _Subject(model, call, inputs, state.detached() if lazy else state, keeping.tensors, fake)
        return subject.program("train" if model.training else "eval")


@dataclass(eq=False)
class _Subject:
    """A model with its example arguments."""

    model: nn.Module
    call: Call
    inputs: list[Leaf]
    state: State
    held: list[Tensor]
    fake: bool = False
    numbers: bool = True
    whole: bool = True
    compiled: bool = True
    rewritten: frozenset[int] = frozenset()

    def program(self, mode: str) -> Program:
        """Record the model, and say what each node stands for."""
        recording, known = self._led()
        found = self.call.found
        sources = self._sources(recording, known)
        results, updates, reads = recording.held()
        sizes = told(recording.graph, recording.asked())
        more = [text for text, so in ((DREW, self.call.drew), (THREADS, recording.threads)) if so]
        findings = Findings.of(recording.escapes, reads, sources, more)
        recording.graph.output_node().args = ((*results, *updates.values()),)
        recording.graph.eliminate_dead_code(lambda node: node.op in ("placeholder", "output"))
        if sizes.walked and not self._uncounted(recording, sources):
            sizes = Told(True)
        return Program(
            graph=recording.graph,
            module=recording.module,
            sources=sources,
            inputs=self.inputs,
            outputs=output_leaves([Found(p, node.meta["val"]) for p, node in zip(found, results, strict=True)]),
            results=results,
            updates=updates,
            parameters=self.state.parameters,
            tied=self.state.tied,
            findings=findings,
            told=sizes,
            mode=mode,
        )

    def _uncounted(self, recording: Recording, sources: dict[str, Source]) -> bool:
        """Tell whether Python made nothing of how many steps its loops took."""
        found = self.call.found
        for steps in OTHERS:
            try:
                other = self._record(steps=steps)
            except Exception:  # the model counts them, or does not run with others
                return False
            finally:
                self.call.found = found
            if not self._agrees(recording, sources, other):
                return False
        return True

    def _agrees(self, recording: Recording, sources: dict[str, Source], other: Recording) -> bool:
        """Tell whether another recording differs in nothing but how many steps its loops took."""
        graph, constants = other.graph, other.constants

        def alike(one: fx.Node, twin: fx.Node) -> bool:
            if twin.op != "get_attr" or twin.target not in constants:
                return one.name == twin.name
            value, again = sources[one.name].value if one.name in sources else None, constants[str(twin.target)]
            return value is not None and value.shape == again.shape and bool(torch.equal(value, again))

        graph.output_node().args = ((*other.outputs, *other.updates.values()),)
        graph.eliminate_dead_code(lambda node: node.op in ("placeholder", "output"))
        return same_but_for_steps(recording.graph, graph, alike)

    def _led(self) -> tuple[Recording, set[int]]:
        """Record the model, with what Python computed led back; return the memories that were there before, too."""
        while True:
            recording = self._tried()
            recording.hold()
            known = self._known(recording)
            try:
                lead_back(recording, self._again, known)
            except RewrittenError as found:
                self.rewritten |= found.looks
            else:
                return recording, known

    def _known(self, recording: Recording) -> set[int]:
        """Return the addresses of memories that were there before the model ran.

        What cannot be reached from the model, as a global variable is not, was there if it is there in a second run.
        """
        known = {memory_of(tensor)[0] for tensor in self.held}
        if recording.strangers(known):
            with suppress(Exception):
                known |= {memory_of(tensor)[0] for tensor in self._again(None, "nudged").constants.values()}
        return known

    def __post_init__(self) -> None:
        held = [*self.state.values.values(), *(leaf.value for leaf in self.inputs)]
        self.fake = self.fake or any(tensor.is_meta for tensor in held)

    def _tried(self) -> Recording:
        """Record the model as if it were compiled or, where it fails so, as it is."""
        try:
            return self._recorded()
        except TracingError:
            self.compiled = False
            with suppress(TracingError):
                return self._recorded()
            raise

    def _recorded(self) -> Recording:
        """Record the model; with plain numbers where it does not take symbolic ones, without data where there is none.

        That is also where an operator does not run on the device at hand, and where there is not enough memory.
        """
        error: Exception | None = None
        for fake in (True,) if self.fake else (False, True):
            self.fake = fake
            for self.numbers in (True, False):
                try:
                    return self._record()
                except TracingError:
                    raise
                except NoValuesError as missing:
                    raise no_values(self.model, missing) from missing
                except Exception as problem:
                    own = problem
            if error is None:
                error = own
            if not _needs_no_data(own):
                break
        assert error is not None
        raise self._failure(error) from error

    def _failure(self, error: Exception) -> TracingError:
        """Say whose error it is: the model's own, or one of following it."""
        if any(tensor.is_meta for tensor in self.state.values.values()):
            return failure(self.model, self.inputs, error, runs=False)
        try:
            with kept(self.model) as keeping, Writes(keeping), quiet():
                start_random(SEED)
                self.call(self.model, self.call.tensors())
        except Exception as own:
            return failure(self.model, self.inputs, own, runs=False)
        with kept(self.model) as keeping, Writes(keeping), quiet():
            known = reason(self.model, self.call, self.call.tensors(), self.inputs, str(error))
        return TracingError(known) if known else failure(self.model, self.inputs, error, runs=True)

    def _again(self, changed: Collection[int] | None, change: Change) -> Recording:
        """Record the model once more, with something changed: see `lead_back`."""

        def move(tensors: Sequence[Tensor]) -> Sequence[Tensor]:
            by = 2.0**-10
            return [t + by * torch.rand_like(t) * t.abs().clamp(by) if t.is_floating_point() else t for t in tensors]

        found = self.call.found
        try:
            return self._record(
                move if changed is not None and not changed else tuple,
                lambda k, value: shifted(value, change) if k in (changed or ()) else value,
            )
        finally:
            self.call.found = found

    def _record(self, move: Move = tuple, shift: Shift | None = None, *, steps: Steps | None = None) -> Recording:
        with as_if_compiled(self.compiled), kept(self.model) as keeping, levels_kept(), quiet():
            start_random(SEED)
            recording = record(
                self.model, self.call, self.inputs, self.state, keeping, move, shift,
                numbers=self.numbers, whole=self.whole, fake=self.fake, rewritten=self.rewritten,
                steps=steps,
            )  # fmt: skip
        if recording.differentiated and self.whole:  # what operators are made of is read again
            self.whole = False
            return self._record(move, shift, steps=steps)
        return recording

    def _sources(self, recording: Recording, known: Collection[int]) -> dict[str, Source]:
        """Return what the placeholders stand for; constants become placeholders too."""
        graph = recording.graph
        sources: dict[str, Source] = {}
        leaves = {leaf.name: leaf.value for leaf in self.inputs}
        for node, (kind, name) in recording.declared.items():
            value = leaves[name] if kind == "input" else self.state.values[name]
            sources[node.name] = Source(kind, name, value, name in recording.updates or name in recording.overwritten)
        names = _attribute_names(self.model)
        for node in graph.find_nodes(op="get_attr"):
            if node.target not in recording.constants:
                continue
            tensor = recording.constants[node.target]
            with graph.inserting_before(next(iter(graph.nodes))):
                placeholder = graph.placeholder(node.target)
            placeholder.meta = dict(node.meta)
            node.replace_all_uses_with(placeholder)
            graph.erase_node(node)
            key = memory_of(tensor)[0]
            name, parameter = names.get(key, ("", False))
            written = node.target in recording.written and key in known
            sources[placeholder.name] = Source("parameter" if parameter else "constant", name, tensor, written)
        return sources


def _needs_no_data(error: Exception) -> bool:
    """Return whether an error would not come up without data."""
    text = str(error)
    return isinstance(error, (NotImplementedError, MemoryError, torch.OutOfMemoryError)) or "allocate memory" in text


def _attribute_names(model: nn.Module) -> dict[int, tuple[str, bool]]:
    """Return for the memories of tensors in attributes of a model their names, and whether parameters are there."""
    names: dict[int, tuple[str, bool]] = {}
    for kind, name, tensor in held_by(model):
        if kind == "attribute":
            names.setdefault(memory_of(tensor)[0], (name, isinstance(tensor, nn.Parameter)))
    return names


def _initialise(model: nn.Module, call: Call, inputs: list[Leaf], keeping: Kept) -> None:
    """Run a model once, for its lazy modules to learn their shapes."""
    modes = [(module, module.training) for module in model.modules()]
    try:
        with Writes(keeping), quiet():
            call(model.eval(), call.tensors())
    except Exception as error:
        raise failure(model, inputs, error, runs=False) from error
    for module, training in modes:
        module.training = training


def _is_lazy(model: nn.Module) -> bool:
    return any(isinstance(m, LazyModuleMixin) and m.has_uninitialized_params() for m in model.modules())
