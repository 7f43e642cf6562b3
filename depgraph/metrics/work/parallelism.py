"""How much of the work could run side by side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from depgraph.dag.graph import DependencyGraph, check_graph
from depgraph.dag.levels import depths
from depgraph.metrics.flow.width import Effort, bounds, check_effort
from depgraph.metrics.weights import Weight, node_weights


@dataclass(frozen=True)
class Parallelism:
    """Work, span, and what they leave to run side by side.

    Attributes
    ----------
    work : int or float
        T₁: the number of nodes, inputs left out, or their summed weight. The time one worker takes.
    span : int or float
        T∞: the length of the critical path. The time unlimited workers take.
    average : float
        T₁ / T∞, the average parallelism; 0 where there is no work.
    width : int
        The size of the largest antichain: the most nodes that could ever run at the same moment.
    width_is_exact : bool
        Whether that is the largest; else it is the largest that was found.
    width_upper : int
        What the width is at most: the number of chains of the smallest cover found. Equal to it where it is exact.
    level_widths : list of int
        Nodes at each depth, from 1 on: how many run at each step when every node runs as early as it can.
    """

    work: int | float
    span: int | float
    average: float
    width: int
    width_is_exact: bool
    width_upper: int
    level_widths: list[int]


def parallelism(graph: DependencyGraph, weight: Weight = "ops", exact_width: Effort = "auto") -> Parallelism:
    """Return how much of the work could run side by side.

    On p workers any schedule that leaves none idle without need takes from max(T₁ / p, T∞) to (T₁ − T∞) / p + T∞
    steps (Brent's theorem [1]_): more workers than the average parallelism have little to do.

    Parameters
    ----------
    graph : DependencyGraph
    weight : str or callable, optional
        What a node costs; see `node_weights`. It decides work, span and average. Width and level widths count nodes.
    exact_width : {"auto", "never", "always"}, optional
        How much to spend on the exact width; see `width`, which also returns the nodes.

    Returns
    -------
    Parallelism

    Raises
    ------
    GraphError
        Where a weight is negative or no number, or ``exact_width`` is something else.

    References
    ----------
    .. [1] R. P. Brent, "The parallel evaluation of general arithmetic expressions", Journal of the ACM 21, 1974.

    Examples
    --------
    Two recurrent layers of three steps: the second can work on a step while the first is at the next one.

    >>> import networkx as nx
    >>> import depgraph
    >>> dag = nx.DiGraph([("a0", "a1"), ("a1", "a2"), ("b0", "b1"), ("b1", "b2")])
    >>> dag.add_edges_from([("a0", "b0"), ("a1", "b1"), ("a2", "b2")])
    >>> found = depgraph.parallelism(depgraph.from_networkx(dag))
    >>> found.work, found.span, found.average, found.width, found.level_widths
    (6, 4, 1.5, 2, [1, 2, 2, 1])
    """
    check_graph(graph)
    check_effort(exact_width)
    dag = graph.dag
    weights = node_weights(graph, weight)
    steps = depths(dag)
    span = (steps if weight == "ops" else depths(dag, weights)).max(initial=0).item()
    work = weights.sum().item()
    antichain, upper = bounds(dag, steps, exact_width)
    return Parallelism(
        work,
        span,
        work / span if span else 0.0,
        len(antichain),
        len(antichain) == upper,
        upper,
        np.bincount(steps[dag.inputs :])[1:].tolist() if dag.nodes > dag.inputs else [],
    )
