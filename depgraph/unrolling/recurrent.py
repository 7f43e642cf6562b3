"""What recurrent layers cost: an operator call is several layers and directions, each an operation of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import fx

from depgraph.unrolling.traffic import size_of, tensors_of

#: Where the states and the parameters stand among the arguments, by overload.
_PLACES = {"input": (1, 2), "data": (2, 3)}


@dataclass(frozen=True)
class Chain:
    """One layer in one direction: what all of its steps together cost."""

    flops: int
    bytes: int


def chains(node: fx.Node) -> list[Chain]:
    """Return what each layer and direction of a recurrent layer costs, in the order in which they run.

    A step multiplies what it reads with each matrix of its layer once. Read are the sequence, the first state and the
    parameters, written the sequence of hidden states and the last state.
    """
    op: Any = node.target
    at_states, at_parameters = _PLACES[op._overloadname]
    given: Any = node.args[at_states]
    parameters: Any = node.args[at_parameters]
    (x,) = tensors_of(node.args[0])
    states, count = tensors_of(given), int(tensors_of(given)[0].shape[0])
    size = len(parameters) // count
    steps = x.numel() // max(1, x.shape[-1])  # of all examples
    carried = sum(size_of(state[0]) for state in states)
    found = []
    for first in range(0, count * size, size):
        own = tensors_of(parameters[first : first + size])
        matrices = [p for p in own if p.ndim == 2]
        moved = steps * (matrices[0].shape[1] + states[0].shape[-1]) * x.itemsize
        held = sum(map(size_of, tensors_of(list(dict.fromkeys(parameters[first : first + size])))))
        found.append(Chain(2 * steps * sum(p.numel() for p in matrices), moved + 2 * carried + held))
    return found
