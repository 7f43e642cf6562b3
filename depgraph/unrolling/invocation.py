"""One call of an operator: what `depgraph.rules.call.Call` promises to rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from depgraph.rules.arguments import swap, tensors_in
from depgraph.rules.call import Read
from depgraph.rules.registry import is_custom
from depgraph.rules.values import KNOWN, Value, core, forget, together
from depgraph.unrolling.builder import Label
from depgraph.unrolling.reference import like

if TYPE_CHECKING:
    from depgraph.unrolling.interpreter import Interpreter


class NotKnownError(Exception):
    """A rule needs values that are not known."""


class HoldInputsError(Exception):
    """Some inputs must be held at their example values for the model to be followed."""

    def __init__(self, nodes: np.ndarray, why: str, label: Label) -> None:
        super().__init__(why)
        self.nodes, self.why, self.label = nodes, why, label


class Invocation:
    """A call of ``op`` in the model.

    Attributes
    ----------
    op : torch._ops.OpOverload
    meta
        Its result without data: shapes and dtypes.
    """

    def __init__(
        self, interpreter: Interpreter, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], meta: Any, label: Label,
        layouts: Sequence[Any] = (), pointwise: bool = False,
    ) -> None:  # fmt: skip
        self.interpreter = interpreter
        self.op = op
        self.args, self.kwargs = args, kwargs
        self.meta = meta
        self.label = label
        self.layouts = layouts
        self.pointwise = pointwise
        self.chains = 0

    @property
    def _first(self) -> Any:
        return self.meta[0] if isinstance(self.meta, (tuple, list)) else self.meta

    @property
    def shape(self) -> torch.Size:
        """Shape of the (first) output."""
        return torch.Size(self._first.shape)

    @property
    def dtype(self) -> torch.dtype:
        """Dtype of the (first) output."""
        dtype: torch.dtype = self._first.dtype
        return dtype

    def layout(self, place: int) -> Tensor:
        """Return an argument without data, to learn how it is laid out in memory."""
        layout = self.layouts[place] if place < len(self.layouts) else None
        if layout is None:
            layout = torch.empty(self.args[place].shape, device="meta")
        return layout

    def nodes(self, shape: Sequence[int], *reads: Read) -> Tensor:
        """Make the nodes of one operation and return the codes of its output."""
        return self.interpreter.builder.add(self.label, shape, reads)

    def steps(
        self, inputs: Read, state: Sequence[Read], active: Tensor | None = None, backwards: bool = False
    ) -> Tensor:
        """Make a chain of nodes along the first axis and return the codes."""
        number, self.chains = self.chains, self.chains + 1
        return self.interpreter.builder.add_steps(
            self.label, inputs, state, None if active is None else active.numpy(), backwards, number
        )

    def values(self, codes: Tensor, everywhere: bool = False) -> Tensor | None:
        """Return the operator's values, by running it on what is known, where any of ``codes`` is KNOWN."""
        if not codes.numel() or not (everywhere or int(core(codes).min()) == KNOWN):
            return None
        if self.pointwise:
            tensors = tensors_in(self.args, self.kwargs)
            thin = iter(together(*(t.values() for t in tensors), torch.empty(()).expand(self.shape))[:-1])
            # Arguments come in the same order as `tensors_in` found them.
            args, kwargs = swap(self.args, lambda v: next(thin)), swap(self.kwargs, lambda v: next(thin))
        else:
            args, kwargs = swap(self.args, Value.values), swap(self.kwargs, Value.values)
        if self.op._schema.is_mutable:
            raise TypeError(f"{self.op} writes to its arguments")
        result = run(self.op, args, kwargs)
        first = result[0] if isinstance(result, (tuple, list)) else result
        values: Tensor = first.to(self.dtype).expand(self.shape)
        if everywhere or int(core(codes).max()) == KNOWN:
            return values
        # What comes out where arguments are not known means nothing.
        thin_codes, thin_values = together(codes, values)
        return torch.where(thin_codes == KNOWN, thin_values, 0).expand(self.shape)

    def result(self, codes: Tensor, dtype: torch.dtype | None = None, output: int = 0) -> Value:
        """Return an output with those codes, values filled in where KNOWN."""
        if output:
            return Value(forget(codes), None, dtype or self.meta[output].dtype)
        try:
            return Value(codes, self.values(codes), dtype or self.dtype)
        except Exception:
            if is_custom(self.op):  # it may not run without its own device
                return Value(forget(codes), None, dtype or self.dtype)
            raise

    def need_known(self, value: Value, why: str) -> None:
        """Ask for a value that must be known; see `depgraph.rules.call.Call.need_known`."""
        if not value.is_known:
            self.interpreter.hold(value, why, self.label)
            raise NotKnownError(why)

    def decompose(self) -> Any:
        """Follow the operator through PyTorch's own decomposition of it."""
        return self.interpreter.decomposed(self)

    def like(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Follow the operator as if it were that function of those arguments."""
        return like(self, function, args, kwargs)

    def warn(self, text: str) -> None:
        """Add a sentence to the graph's warnings, with the place in the user's code."""
        self.interpreter.warn(f"{self.label.source}: {text}" if self.label.source else text)


def run(op: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Run an operator on known values, on the CPU."""
    kwargs = {k: (torch.device("cpu") if k == "device" and v is not None else v) for k, v in kwargs.items()}
    kwargs.pop("pin_memory", None)
    args = [torch.device("cpu") if isinstance(a, torch.device) else a for a in args]
    with torch.no_grad():
        try:
            return op(*args, **kwargs)
        except RuntimeError:  # known values may be laid out in memory in ways that the model's own tensors are not
            args, kwargs = pytree.tree_map_only(Tensor, Tensor.contiguous, (args, kwargs))
            return op(*args, **kwargs)
