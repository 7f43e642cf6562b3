"""The way round a model that exporting refuses: run it once on the example inputs, then export what was run.

A condition on a tensor's values, ``.item()``, sizes that depend on values: exporting gives up on them, since it works
without values. Run on real tensors, the model leaves behind the straight line of operations it took. That line can be
exported, which makes it functional, and it reads the same parameters and buffers by the same names.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx, nn
from torch._guards import detect_fake_mode
from torch.export import ExportedProgram, export
from torch.fx.experimental.proxy_tensor import get_proxy_mode, make_fx
from torch.fx.traceback import preserve_node_meta, set_current_meta

from depgraph.tracing.escapes import Escape, Shift, Watch, note_operations
from depgraph.tracing.opaque import StandIns, can_stand_in, has_sizes_from_values, is_number, is_static
from depgraph.tracing.wrapper import Flat


@dataclass(eq=False)
class Recording:
    """What a model did on its example inputs.

    Attributes
    ----------
    line : torch.fx.GraphModule
        The operations in the order in which they ran, from parameters, buffers and inputs to what the wrapper returned
        and the tensors of ``escapes``.
    state : dict
        Names and values of the parameters and buffers it takes.
    escapes : list of Escape
        The values that left the graph.
    watched : int
        How many of them Python asked for: they come first.
    inputs : int
        How many tensors the line takes after parameters and buffers.
    known : set of int
        What `id` gives for the tensors that were there before.
    """

    line: fx.GraphModule
    state: dict[str, torch.Tensor]
    escapes: list[Escape]
    watched: int
    inputs: int
    known: set[int]

    def copies(self) -> list[fx.Node]:
        """Return for each escape the node that holds what it was made of."""
        returned: Any = self.line.graph.output_node().args[0]
        return list(returned[len(returned) - len(self.escapes) :])


def record(flat: Flat, tensors: Sequence[torch.Tensor], shift: Shift | None = None) -> Recording:
    """Run a model on real tensors and return what it did. Its parameters and buffers keep their values.

    Inside `torch.func` transforms composite operations cannot be kept whole, so they are only where there are none.
    With a shift, some of the values that leave the graph are changed on their way.
    """
    recording, transformed = _record(flat, tensors, shift, composite=True)
    return _record(flat, tensors, shift, composite=False)[0] if transformed else recording


def _record(
    flat: Flat, tensors: Sequence[torch.Tensor], shift: Shift | None, *, composite: bool
) -> tuple[Recording, bool]:
    given = dict(flat.named_parameters()) | dict(flat.named_buffers())
    held = {name: value.detach().clone() for name, value in given.items()}
    watch = Watch(shift)

    def run(*values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        state = dict(zip(held, values, strict=False))
        with watch:
            outputs = torch.func.functional_call(flat, state, values[len(held) :])
        if shift is None:
            watch.check_memory()
        return (*outputs, *watch.copies)

    known = {id(thing) for thing in gc.get_objects() if issubclass(type(thing), torch.Tensor)}
    run._orig_mod = flat  # type: ignore[attr-defined]  # makes make_fx note the module and the line of each node
    line = make_fx(
        run, tracing_mode="real", pre_dispatch=composite, record_module_stack=True, _error_on_data_dependent_ops=False
    )(*held.values(), *tensors)
    escapes = watch.escapes + note_operations(line.graph)
    return Recording(line, given, escapes, len(watch.escapes), len(tensors), known), watch.transformed


def exported(line: fx.GraphModule, state: Mapping[str, torch.Tensor], tensors: Sequence[Any]) -> ExportedProgram:
    """Export a straight line with parameters and buffers of these names and values.

    The line takes them as its first arguments or, where it takes only the others, gets them by their names.
    """
    stand_ins = StandIns()
    straight = _Straight(_Replay(line, stand_ins), state, tensors)
    taken = tuple(tensor for tensor in tensors if isinstance(tensor, torch.Tensor))
    program: ExportedProgram = export(straight, taken, strict=False).run_decompositions({})
    stand_ins.put_back(program.graph_module)
    if not all(is_static(node.meta.get("val")) for node in program.graph.nodes if not is_number(node)):
        raise TypeError("sizes in the exported program depend on values")
    return program


class _Straight(nn.Module):
    """The straight line as a module, with parameters and buffers under the names they have in the model."""

    def __init__(self, replay: _Replay, state: Mapping[str, torch.Tensor], inputs: Sequence[Any]) -> None:
        super().__init__()
        self._names = list(state)
        self._fixed = (replay, inputs)
        for name, value in state.items():
            *path, last = name.split(".")
            owner: nn.Module = self
            for step in path:
                if not hasattr(owner, step):
                    owner.add_module(step, nn.Module())
                owner = getattr(owner, step)
            if isinstance(value, nn.Parameter):
                owner.register_parameter(last, value)
            else:
                owner.register_buffer(last, value)

    def forward(self, *tensors: torch.Tensor) -> Any:
        replay, inputs = self._fixed
        for name in self._names:
            owner, _, last = name.rpartition(".")
            replay.state[name] = getattr(self.get_submodule(owner), last)
        given = iter(tensors)
        values = [next(given) if isinstance(value, torch.Tensor) else value for value in inputs]
        if len(replay.graph.find_nodes(op="placeholder")) > len(values):
            values = [*replay.state.values(), *values]
        with preserve_node_meta():
            return replay.run(*values, enable_io_processing=False)


class _Replay(fx.Interpreter):
    """Runs the straight line without values; what cannot run so is not opened."""

    def __init__(self, line: fx.GraphModule, stand_ins: StandIns) -> None:
        super().__init__(line, garbage_collect_values=False)  # numbers are read again by what stays unopened
        self.stand_ins = stand_ins
        self.state: dict[str, torch.Tensor] = {}

    def fetch_attr(self, target: str) -> Any:
        return self.state[target] if target in self.state else super().fetch_attr(target)

    def run_node(self, n: fx.Node) -> Any:
        if n.op != "call_function" or not can_stand_in(n):
            return super().run_node(n)
        if not has_sizes_from_values(n):
            with suppress(Exception), _undone_on_error():
                value = super().run_node(n)
                if not is_static(value):
                    raise TypeError("sizes that depend on values")
                return value
        with set_current_meta(n):
            return self.stand_ins.call(n, self.env.__getitem__)


@contextmanager
def _undone_on_error() -> Iterator[None]:
    """Take back what an operation leaves in the graph before it turns out that it cannot run on shapes alone."""
    mode, proxies = detect_fake_mode(), get_proxy_mode()
    assert mode is not None
    assert mode.shape_env is not None
    assert proxies is not None
    graph = proxies.tracer.graph
    last = next(reversed(graph.nodes))
    try:
        with mode.shape_env.ignore_fresh_unbacked_symbols():
            yield
    except Exception:
        while (node := next(reversed(graph.nodes))) is not last:
            graph.erase_node(node)
        raise
