"""What the nodes of a traced model cost, found out when somebody asks: flops, bytes, seconds, scalars.

A call's cost is shared out over the operations that it became and, within each, over its nodes, in proportion to the
elements of the result that they stand for; flops and bytes in whole numbers that add up. A recurrent layer's are those
of each layer and direction.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import fx

from depgraph.dag.costs import TOO_MUCH
from depgraph.dag.graph import Operation, Terminal
from depgraph.dag.levels import NumberArray
from depgraph.errors import GraphError
from depgraph.tracing.program import Program
from depgraph.tracing.rows.writing import stands_for
from depgraph.unrolling.builder import Builder
from depgraph.unrolling.calls import Elements, Made
from depgraph.unrolling.flops import count
from depgraph.unrolling.recurrent import Chain, chains
from depgraph.unrolling.timing import Clock, measure
from depgraph.unrolling.traffic import UncountableError, signature, tensors_of, traffic

Number = int | float


@dataclass(eq=False)
class Costs:
    """The costs of a graph's nodes, by name.

    Parameters
    ----------
    program : Program
    builder : Builder
        Of it, only what says which call became which nodes is kept.
    inputs : sequence of Terminal
    clock : callable, optional
        Gives the time for ``"seconds"``.
    """

    program: Program
    operations: Sequence[Operation]
    elements: Sequence[Elements]
    layers: Sequence[int]
    calls: Sequence[Made]
    inputs: Sequence[Terminal]
    clock: Clock = time.perf_counter
    _totals: dict[str, list[Number]] = field(default_factory=dict)
    _counted: dict[tuple[str, str], int] = field(default_factory=dict)

    @classmethod
    def of(cls, program: Program, builder: Builder, inputs: Sequence[Terminal]) -> Costs:
        """Return the costs of what a builder has made."""
        return cls(program, builder.operations, builder.elements, builder.chains, builder.calls, inputs)

    def __call__(self, name: str) -> NumberArray:
        """Return what each node costs; ``"scalars"`` for inputs too, which cost nothing else.

        Raises
        ------
        GraphError
            Where a cost cannot be counted or measured.
        """
        sizes = [operation.stop - operation.start for operation in self.operations]
        if name == "scalars":
            each = [prod(terminal.shape) // max(1, terminal.count) for terminal in self.inputs]
            own = [np.broadcast_to(elements, size) for elements, size in zip(self.elements, sizes, strict=True)]
        else:
            each = [0] * len(self.inputs)
            own = [shared(*one) for one in zip(self.totals(name), self.elements, sizes, strict=True)]
        given = [np.full(terminal.count, number) for terminal, number in zip(self.inputs, each, strict=True)]
        return np.concatenate([np.zeros(0, np.int64), *given, *own])

    def totals(self, name: str) -> list[Number]:
        """Return what each operation costs; measured or counted once."""
        if name not in self._totals:
            totals: list[Number] = [0] * len(self.operations)
            for numbers, costs in self._seconds() if name == "seconds" else map(getattr(self, f"_{name}"), self.calls):
                for number, cost in zip(numbers, costs, strict=True):
                    totals[number] = cost
            if sum(totals) >= TOO_MUCH:
                raise GraphError(f"The {name} of this model add up to 2⁶¹ or more, too much to add exactly.")
            self._totals[name] = totals
        return self._totals[name]

    def _flops(self, call: Made) -> tuple[list[int], list[Number]]:
        if (found := self._chains(call)) is not None:
            return call.operations, [chain.flops for chain in found]
        return self._shared("flops", count, call)

    def _bytes(self, call: Made) -> tuple[list[int], list[Number]]:
        if (found := self._chains(call)) is not None:
            return call.operations, [chain.bytes for chain in found]
        return self._shared("bytes", traffic, call)

    def _seconds(self) -> Iterator[tuple[list[int], list[Number]]]:
        sites: dict[fx.Node, list[Made]] = {}
        for call in self.calls:
            if (site := stands_for(call.site)) is not None:
                sites.setdefault(site, []).append(call)
        seconds = measure(self.program, sites, self.clock)
        for site, calls in sites.items():
            numbers = [number for call in calls for number in call.operations]
            shares = [self.operations[number].stop - self.operations[number].start for number in numbers]
            if len(calls) == 1:
                found = self._chains(calls[0])
                shares = calls[0].shares if found is None else [chain.flops for chain in found]
            shares = shares if any(shares) else [1] * len(shares)
            yield numbers, [seconds[site] * part / sum(shares) for part in shares]

    def _shared(self, name: str, function: Callable[[fx.Node], int], call: Made) -> tuple[list[int], list[Number]]:
        """Share out what a call costs: of a rewritten graph, what the recorded call costs that it stands for."""
        node = stands_for(call.node) if stands_for(call.site) is not None else None
        if node is None or not any(tensor.numel() for tensor in tensors_of(node)):
            return call.operations, [0] * len(call.operations)
        return call.operations, divided(self._once(name, function, node, call), call.shares)

    def _chains(self, call: Made) -> list[Chain] | None:
        """Return the layers and directions that the operations of a call are, None where they are none."""
        layers = [self.layers[number] for number in call.operations]
        if min(layers) < 0:
            return None
        found = chains(call.node)
        return [found[layer] for layer in layers]

    def _once(self, name: str, function: Callable[[fx.Node], int], node: fx.Node, call: Made) -> int:
        """Count for one call; a call in a loop, or of the same shapes as another one, only once."""
        key = name, signature(node)
        if key not in self._counted:
            try:
                self._counted[key] = function(node)
            except UncountableError as reason:
                source = self.operations[call.operations[0]].source
                raise GraphError(
                    f"{source}{': ' if source else ''}{reason}. Take another weight than {name!r}."
                ) from None
        return self._counted[key]


def divided(total: int, shares: Sequence[int]) -> list[Number]:
    """Return whole numbers that add up to a total, as nearly in proportion as whole numbers are (Hamilton's method).

    What is left over after rounding down goes, one each, to those that lost most by it.

    Examples
    --------
    >>> divided(12, [1, 2]), divided(8, [1, 1, 1])
    ([4, 8], [3, 3, 2])
    """
    return [int(part) for part in apportioned(total, np.array(shares, object))]


def apportioned(total: int, shares: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return what `divided` does, as an array."""
    if not shares.any():  # of no elements each has as many
        shares = np.ones_like(shares)
    whole = int(shares.sum())
    if total * int(shares.max(initial=0)) >= 1 << 62:
        shares = shares.astype(object)
    exact = shares * total
    parts, lost = exact // whole, exact % whole
    left = total - int(parts.sum())
    if left:
        parts[np.argsort(-lost, kind="stable")[:left]] += 1
    return parts


def shared(total: Number, elements: Elements, nodes: int) -> NumberArray:
    """Return what each node of an operation costs: whole numbers that add up to a total that is one.

    Examples
    --------
    >>> shared(12, np.array([1, 2, 3]), 3), shared(3, 5, 2), shared(1.0, 5, 2)
    (array([2, 4, 6]), array([2, 1]), array([0.5, 0.5]))
    """
    if not isinstance(total, int):
        parts = np.broadcast_to(elements, nodes)
        return parts * (total / int(parts.sum()))
    if isinstance(elements, int):
        each, left = divmod(total, nodes)
        return np.repeat([each + 1, each], [left, nodes - left])
    return apportioned(total, elements).astype(np.int64)
