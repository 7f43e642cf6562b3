"""Coordinates without a layout engine: columns are positions, rows are depths, and every edge leads down.

General layout engines take minutes on a recurrence unrolled over a hundred steps, and scatter what belongs together.
Here a node's place follows from what it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import isotonic_regression

from depgraph.dag.runs import IntArray

FloatArray = npt.NDArray[np.float64]

GAP = 14.0  # between columns, and between neighbours in a row that has none
STEP = 46.0  # between rows whose edges lead straight down; more where they lead far to the side
STEEPEST, FURTHEST = 0.2, 200.0


@dataclass(frozen=True)
class Layered:
    """What is to be placed.

    Attributes
    ----------
    row : (nodes,) int
        The row of each node, from 0 at the top.
    column : (nodes,) float
        The column of each node; NaN where it has none and stands beneath the middle of what it reads.
    group : (nodes,) int
        Nodes of one group keep to one side of their columns. Ascending within a row.
    width : (nodes,) float
        In points.
    read, reader : (edges,) int
        Each edge leads from a row to a lower one.
    """

    row: IntArray
    column: FloatArray
    group: IntArray
    width: FloatArray
    read: IntArray
    reader: IntArray


def place(given: Layered) -> tuple[FloatArray, FloatArray, float]:
    """Return the x and the y of each node in points, y growing upwards, and the distance between two columns."""
    fixed = ~np.isnan(given.column)
    slot, slots = _slots(given, fixed)
    unit = float(given.width[fixed].max(initial=0.0)) + 4
    pitch = unit * int(slots.max(initial=1)) + GAP
    x = given.column * pitch + (slot - (slots[given.row] - 1) / 2) * unit
    rows = len(slots)
    by_row = np.argsort(given.row, kind="stable")
    bounds = np.searchsorted(given.row[by_row], np.arange(rows + 1))
    edge_by_row = np.argsort(given.row[given.reader], kind="stable")
    edge_bounds = np.searchsorted(given.row[given.reader][edge_by_row], np.arange(rows + 1))
    centre = float(np.nanmax(given.column, initial=0.0)) * pitch / 2
    y, height = np.zeros(len(x)), 0.0
    for r in range(rows):
        nodes = by_row[bounds[r] : bounds[r + 1]]
        edges = edge_by_row[edge_bounds[r] : edge_bounds[r + 1]]
        read, reader = given.read[edges], given.reader[edges]
        free = nodes[~fixed[nodes]]
        if len(free):
            wish = _middle(x, read, reader, free, centre)
            if len(free) == len(nodes):
                x[free] = _side_by_side(wish, given.width[free])
            else:
                x[free] = _nearest_columns(wish / pitch) * pitch + (slots[r] - 1) / 2 * unit
        if r:
            aside = np.abs(x[reader] - x[read])[given.row[read] == r - 1].max(initial=0.0)
            height += float(np.clip(STEEPEST * aside, STEP, FURTHEST))
        y[nodes] = -height
    return x, y, pitch


def _slots(given: Layered, fixed: npt.NDArray[np.bool_]) -> tuple[IntArray, IntArray]:
    """Return each node's place within its column, and the number of places in each row.

    In a row, groups that would stand on each other stand side by side; others share a place. Nodes without a column
    take the last place of a row that also has nodes with one.
    """
    slot = np.zeros(len(given.row), np.int64)
    slots = np.ones(int(given.row.max(initial=-1)) + 1, np.int64)
    nodes = np.flatnonzero(fixed)
    nodes = nodes[np.lexsort((given.group[nodes], given.row[nodes]))]
    row, group = given.row[nodes], given.group[nodes]
    cuts = np.flatnonzero((np.diff(row) != 0) | (np.diff(group) != 0)) + 1
    taken: list[set[float]] = []
    here = -1
    for members in np.split(nodes, cuts) if len(nodes) else ():
        if given.row[members[0]] != here:
            here, taken = int(given.row[members[0]]), []
        columns = set(given.column[members].tolist())
        free = next((s for s, held in enumerate(taken) if held.isdisjoint(columns)), len(taken))
        taken[free:] = [taken[free] | columns] if free < len(taken) else [columns]
        slot[members], slots[here] = free, max(slots[here], free + 1)
    loose = np.zeros(len(slots), bool)
    loose[given.row[~fixed]] = True
    loose[np.setdiff1d(given.row, row)] = False
    return slot, slots + loose


def _middle(x: FloatArray, read: IntArray, reader: IntArray, nodes: IntArray, centre: float) -> FloatArray:
    """Return the middle of what each node reads; the nodes that read nothing go from left to right."""
    count = np.bincount(reader, minlength=len(x))[nodes]
    total = np.bincount(reader, x[read], minlength=len(x))[nodes]
    order = np.cumsum(count == 0) - 1.0
    return np.where(count > 0, total / np.maximum(count, 1), centre + order - order.max() / 2)


def _side_by_side(wish: FloatArray, width: FloatArray) -> FloatArray:
    """Return the places nearest to the wished ones (in least squares) at which neighbours do not touch."""
    order = np.argsort(wish, kind="stable")
    apart = np.append(0.0, np.cumsum((width[order][1:] + width[order][:-1]) / 2 + GAP))
    placed = np.empty(len(wish))
    placed[order] = isotonic_regression(wish[order] - apart).x + apart
    return placed


def _nearest_columns(wish: FloatArray) -> FloatArray:
    """Return a column of its own for each node, the nearest one that those before it left free."""
    taken: dict[int, None] = {}
    for wished in wish.tolist():
        nearest, away = round(wished), 0
        while nearest + away in taken:
            away = -away if away > 0 else 1 - away
        taken[nearest + away] = None
    return np.array([*taken], np.float64)


def splines(
    given: Layered, x: FloatArray, y: FloatArray, radius: tuple[FloatArray, FloatArray], bulge: float
) -> FloatArray:
    """Return each edge as the four control points of a Bézier curve, (edges, 4, 2).

    Edges between neighbouring rows are straight. Those that pass rows bulge sideways, so as not to run through the
    nodes beneath the one they come from.

    Parameters
    ----------
    given : Layered
    x, y : (nodes,) float
    radius : two (nodes,) float
        Half the width and half the height of each node, taken for an ellipse.
    bulge : float
    """
    start = np.stack([x[given.read], y[given.read]], 1)
    stop = np.stack([x[given.reader], y[given.reader]], 1)
    passing = given.row[given.reader] - given.row[given.read] > 1
    aside = np.stack([np.where(passing, bulge, 0.0), np.zeros(len(passing))], 1)
    first, second = start + (stop - start) / 3 + aside, stop - (stop - start) / 3 + aside
    points = np.stack([start, first, second, stop], 1)
    points[:, 0] += _rim(first - start, radius, given.read)
    points[:, 3] += _rim(second - stop, radius, given.reader)
    return points


def _rim(towards: FloatArray, radius: tuple[FloatArray, FloatArray], nodes: IntArray) -> FloatArray:
    """Return the way from a node's middle to its rim in that direction."""
    scale = np.hypot(towards[:, 0] / radius[0][nodes], towards[:, 1] / radius[1][nodes])
    return towards / np.maximum(scale, 1e-9)[:, None]
