"""`depgraph.verify`: a dependency graph compared with the running model."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from depgraph.dag.graph import DependencyGraph, check_graph
from depgraph.errors import GraphError
from depgraph.tracing.given import given
from depgraph.verification.measurement import Measurement
from depgraph.verification.preparation import prepared
from depgraph.verification.subject import Subject
from depgraph.verification.tables import extra, missed
from depgraph.verification.verdict import Verdict

if TYPE_CHECKING:
    from torch.export import ExportedProgram


def verify(
    graph: DependencyGraph,
    model: torch.nn.Module | ExportedProgram,
    args: tuple[Any, ...] | torch.Tensor = (),
    kwargs: dict[str, Any] | None = None,
    *,
    draws: int = 4,
    limit: int = 64,
    progress: Callable[[int, int], None] | None = None,
) -> Verdict:
    """Compare a model's dependency graph with what the model does when it runs.

    The values at one input position are changed, and the output positions that change with them are noted; where there
    are derivatives, those that are not zero are noted as well. That is repeated with other parameters and other inputs,
    since a graph holds for all of them. Every pair of an input and an output position that depend on each other must
    have a path in the graph. The model runs in float64 where it can, then in its own precision, which is what the graph
    speaks of; with the same random numbers each time and in the mode in which it was traced. Known inputs keep their
    values, and what is on the meta device gets some. Afterwards the model and the arguments are as they were.

    Parameters
    ----------
    graph : DependencyGraph
        Made by `trace`.
    model, args, kwargs
        What it was made of.
    draws : int
        How often to repeat. Dependences that show for few values only need more.
    limit : int
        Most positions to try of each input and each output; where there are more, a random choice of them.
    progress : callable, optional
        Called with the number of steps done and their number in all.

    Returns
    -------
    Verdict
        Its attributes ``sound`` and ``exact`` say whether the graph has every dependence that was measured, and no
        other; ``missed`` and ``extra`` hold the pairs of positions that disagree.

    Raises
    ------
    GraphError
        Where the graph is not one of this model and these arguments, or ``draws`` or ``limit`` is less than 1.
    TracingError
        Where the model does not run.

    Examples
    --------
    >>> import torch, depgraph
    >>> model = torch.nn.LSTM(2, 3).eval()
    >>> x = torch.randn(5, 1, 2)
    >>> graph = depgraph.trace(model, (x,), positions={"input": 0, "output.0": 0})
    >>> verdict = depgraph.verify(graph, model, (x,))
    >>> print(verdict)
    Exact: of 35 pairs, the 25 with a path are those that measuring shows.
    >>> verdict.sound, verdict.exact, verdict.missed, verdict.compared
    (True, True, [], 35)
    """
    check_graph(graph)
    for name, number in (("draws", draws), ("limit", limit)):
        if not isinstance(number, int) or number < 1:
            raise GraphError(f"verify() needs {name} of at least 1; got {number!r}.")
    args, kwargs = given(args, kwargs)
    with prepared(graph, model, args, kwargs) as ready:
        runs, example = ready.best()
        narrowed = ready.narrowed
        measurement = Measurement(runs, graph, example, draws, limit, progress or (lambda done, total: None))
        measurement.run()
        passes = [runs]
        if not runs.own and (own := ready.own()) is not None:
            passes.append(own[0])
            measurement.narrow(*own)
    return _verdict(measurement, passes, narrowed)


def _verdict(measurement: Measurement, passes: list[Subject], narrowed: str) -> Verdict:
    tables = [table for row in measurement.tables for table in row]
    if not passes[-1].own:  # there is nothing better to go by
        for table in tables:
            table.certain |= table.moved
    return Verdict(
        compared=sum(int(table.compared.sum()) for table in tables),
        pairs=sum(int((table.structure & table.compared).sum()) for table in tables),
        missed=missed(tables),
        extra=extra(tables),
        draws=measurement.draws,
        dtype=" and ".join(dict.fromkeys(map(_precision, passes))),
        notes=_notes(measurement, passes, narrowed),
        left_out=sum(int((~table.compared).sum()) for table in tables),
        strayed=sum(runs.strayed for runs in passes),
        refused=sum(runs.refused for runs in passes),
    )


def _precision(runs: Subject) -> str:
    """Return the precision a model was run in: where that is its own, that of the first real numbers in it."""
    held = [*runs.model.parameters(), *runs.model.buffers(), *(source.value for source in runs.sources)]
    own = next((tensor.dtype for tensor in held if tensor.is_floating_point()), torch.get_default_dtype())
    return str(runs.dtype or own).removeprefix("torch.")


def _notes(measurement: Measurement, passes: list[Subject], narrowed: str) -> list[str]:
    notes = [
        f"{tables[0].source.name}: at {count:,} position(s) the model takes no other values, so they were left out"
        for tables, taken in zip(measurement.tables, measurement.taken, strict=True)
        if (count := int((~taken).sum()))
    ]
    notes += [
        f"{target.name}: {count:,} positions differ from run to run by themselves, so they were left out"
        for target, steady in zip(measurement.targets, measurement.steady, strict=True)
        if (count := int((~steady).sum()))
    ]
    notes += [
        f"{target.name}: {count:,} of {output.numel():,} elements are NaN on the example inputs, and what they depend "
        "on may not show"
        for target, output in zip(measurement.targets, measurement.example, strict=True)
        if (count := int(output.isnan().sum()))
    ]
    compared = [sum(int(table.compared.sum()) for table in tables) for tables in measurement.tables]
    notes += [
        f"{tables[0].source.name}: nothing that changes with it could be compared"
        for tables, count in zip(measurement.tables, compared, strict=True)
        if not count and any(compared)
    ]
    notes += [f"no derivatives of {name} ({why})" for name, why in measurement.underived.items()]
    if not measurement.places:
        notes.append("no input can be changed: the model has none, or they are empty or held at their example values")
    if not any(target.count for target in measurement.targets):
        notes.append("the outputs hold no elements")
    if narrowed:
        notes.append(f"{narrowed}, so it ran in {_precision(passes[0])}: weak dependences may not show")
    if not passes[-1].own:
        notes.append("the model does not run in its own precision again, so a wider one had to do")
    if doubtful := sum(int(table.doubtful.sum()) for tables in measurement.tables for table in tables):
        wide, own = _precision(passes[0]), _precision(passes[-1])
        notes.append(
            f"{doubtful:,} pairs without a path change in {wide}, and do not in {own}: see whether they matter"
        )
    if strayed := sum(runs.strayed for runs in passes):
        notes.append(f"{strayed:,} runs went another way than the example inputs do, and were left out")
    return notes
