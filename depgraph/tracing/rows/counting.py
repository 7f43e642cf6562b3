"""Whether Python made anything of how many steps a loop took.

No operator shows that it counted them: ``n += 1``. So the model is recorded again with other numbers of steps in its
loops; what does not belong to the steps has to be the same, number for number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from depgraph.tracing.rows.spaces import NotRowsError
from depgraph.tracing.rows.steps import Step, Steps, is_walk

aten = torch.ops.aten

#: As few as there can be, and more than there can be, between which any threshold lies; and one more than there are.
OTHERS: tuple[Steps, ...] = (lambda count, places: 1, lambda count, places: places + 1, lambda count, places: count + 1)


def same_but_for_steps(one: fx.Graph, other: fx.Graph, alike: Callable[[fx.Node, fx.Node], bool]) -> bool:
    """Tell whether two graphs differ in nothing but how many steps their loops have.

    Parameters
    ----------
    one : torch.fx.Graph
    other : torch.fx.Graph
        Its loops go through copies of their indices, and of the last one several times.
    alike : callable
        Tells whether what is no call in the one is what is none in the other.
    """
    try:
        first, second = _Rest(one, copied=False), _Rest(other, copied=True)
    except NotRowsError:
        return False
    if len(first.calls) != len(second.calls) or len(first.ends) != len(second.ends):
        return False
    pairs: dict[Any, fx.Node] = {}

    def same(a: Any, b: Any) -> bool:
        if isinstance(a, fx.Node):
            if not isinstance(b, fx.Node):
                return False
            a, b = first.ends.get(a, a), second.ends.get(b, b)
            if isinstance(a, int) or isinstance(b, int):
                return bool(a == b)
            return pairs.get(a) is b if a.op == "call_function" else alike(a, b)
        if isinstance(a, (tuple, list)):
            return isinstance(b, (tuple, list)) and len(a) == len(b) and all(map(same, a, b))
        if isinstance(a, dict):
            return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
        return type(a) is type(b) and bool(a == b or a != a)

    for a, b in zip(first.calls, second.calls, strict=True):
        if a.target != b.target or not same((a.args, dict(a.kwargs)), (b.args, dict(b.kwargs))):
            return False
        pairs[a] = b
    return same(one.output_node().args, other.output_node().args)


class _Rest:
    """The calls of a graph that belong to no step, and the number of each loop by the last node of its last step."""

    def __init__(self, graph: fx.Graph, *, copied: bool) -> None:
        self.ends: dict[Any, Any] = {}
        steps: set[fx.Node] = set()
        for walked in graph.find_nodes(op="call_function", target=aten.nonzero.default):
            if not is_walk(walked):
                continue
            rows = [user for user in walked.users if user.target is aten.select.int and user.args[1] == 0]
            steps.update(rows)
            if copied:
                rows = [copy for row in rows for copy in row.users if copy.target is aten.clone.default]
            found = [Step(row) for row in rows]
            for step in found:
                steps.update([step.index, *step.all])
            if found:
                self.ends[max(found, key=lambda step: len(_before(step.end))).end] = len(self.ends)
        self.calls = [node for node in graph.nodes if node.op == "call_function" and node not in steps]


def _before(node: fx.Node) -> list[fx.Node]:
    found: list[fx.Node] = []
    while (node := node.prev).op != "root":
        found.append(node)
    return found
