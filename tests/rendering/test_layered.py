from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from depgraph.rendering.layered import GAP, STEP, Layered, place, splines

NOTHING = np.zeros(0, np.int64)


def layered(
    row: list[int],
    column: list[float],
    group: list[int] | None = None,
    edges: list[tuple[int, int]] | None = None,
    width: float = 18.0,
) -> Layered:
    pairs = np.array(edges or [], np.int64).reshape(-1, 2)
    return Layered(
        np.array(row),
        np.array(column, float),
        np.array(group or list(range(len(row)))),
        np.full(len(row), width),
        pairs[:, 0],
        pairs[:, 1],
    )


@st.composite
def pictures(draw: st.DrawFn) -> Layered:
    count = draw(st.integers(1, 12))
    row = sorted(draw(st.lists(st.integers(0, 4), min_size=count, max_size=count)))
    ranks = {r: i for i, r in enumerate(sorted(set(row)))}
    row = [ranks[r] for r in row]
    column, group, here = [], [], {}
    for node in range(count):
        fixed = draw(st.booleans())
        column.append(float(draw(st.integers(0, 3))) if fixed else np.nan)
        # A group has at most one node in each place of the grid.
        key = (row[node], column[-1])
        here[key] = here.get(key, -1) + 1
        group.append(here[key] if fixed else 100 + node)
    pairs = [(u, v) for v in range(count) for u in range(count) if row[u] < row[v]]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return layered(row, column, group, edges, draw(st.sampled_from([18.0, 60.0])))


@given(pictures())
def test_no_two_nodes_touch_and_rows_go_down(given_picture: Layered) -> None:
    x, y, _ = place(given_picture)
    assert np.isfinite(x).all()
    for a in range(len(x)):
        for b in range(a):
            if given_picture.row[a] == given_picture.row[b]:
                assert y[a] == y[b]
                assert abs(x[a] - x[b]) >= given_picture.width[a] + 3.99
            else:
                assert y[b] - y[a] >= STEP - 1e-6


@given(pictures())
def test_columns_do_not_overlap(given_picture: Layered) -> None:
    x, _, pitch = place(given_picture)
    fixed = ~np.isnan(given_picture.column)
    away = np.abs(x - given_picture.column * pitch)[fixed] + given_picture.width[fixed] / 2
    assert (away <= (pitch - GAP) / 2 + 1e-9).all()


@given(pictures())
def test_edges_end_on_the_rims(given_picture: Layered) -> None:
    x, y, pitch = place(given_picture)
    radius = given_picture.width / 2, np.full(len(x), 9.0)
    curves = splines(given_picture, x, y, radius, pitch / 2)
    for end, nodes in ((0, given_picture.read), (3, given_picture.reader)):
        dx, dy = curves[:, end, 0] - x[nodes], curves[:, end, 1] - y[nodes]
        np.testing.assert_allclose((dx / radius[0][nodes]) ** 2 + (dy / radius[1][nodes]) ** 2, 1)


def test_one_column_a_position() -> None:
    x, y, pitch = place(layered([0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2], [0, 0, 0, 1, 1, 1]))
    assert pitch == 36
    assert x.tolist() == [0, 36, 72, 0, 36, 72]
    assert y.tolist() == [0, 0, 0, -STEP, -STEP, -STEP]


def test_groups_at_the_same_place_stand_side_by_side() -> None:
    x, _, pitch = place(layered([0, 0, 1, 1, 1, 1], [0, 1, 0, 1, 0, 1], [0, 0, 1, 1, 2, 2]))
    assert pitch == 2 * 22 + GAP
    assert x.tolist() == [0, pitch, -11, pitch - 11, 11, pitch + 11]


def test_groups_at_different_places_share_a_row() -> None:
    x, _, pitch = place(layered([0, 0], [0, 1], [0, 1]))
    assert (x.tolist(), pitch) == ([0, 36], 36)


def test_a_node_without_a_column_stands_beneath_the_middle_of_what_it_reads() -> None:
    x, _, _ = place(layered([0, 0, 0, 1], [0, 1, 2, np.nan], [0, 0, 0, 1], [(1, 3), (2, 3)]))
    assert x[3] == 54


def test_a_node_without_a_column_among_others_takes_the_nearest_column() -> None:
    row, column = [0, 0, 1, 1, 1], [0, 1, 0, np.nan, np.nan]
    x, _, pitch = place(layered(row, column, [0, 0, 1, 2, 3], [(0, 2), (1, 3), (1, 4)]))
    assert pitch == 2 * 22 + GAP
    assert (x - [0, 0, -11, 11, 11]).tolist() == [0, pitch, 0, pitch, 2 * pitch]


def test_straight_to_the_next_row_and_around_the_nodes_between() -> None:
    given_picture = layered([0, 1, 2], [0, 0, 0], None, [(0, 1), (0, 2)])
    x, y, pitch = place(given_picture)
    straight, around = splines(given_picture, x, y, (np.full(3, 9.0), np.full(3, 9.0)), pitch)
    assert straight[:, 0].tolist() == [0, 0, 0, 0]
    assert around[1:3, 0].tolist() == [pitch, pitch]


def test_rows_with_far_edges_are_further_apart() -> None:
    _, y, _ = place(layered([0] * 31 + [1], [*range(31), 0.0], [0] * 31 + [1], [(30, 31)]))
    assert y[-1] == -200


def test_nothing_to_place() -> None:
    x, y, _ = place(Layered(NOTHING, np.zeros(0), NOTHING, np.zeros(0), NOTHING, NOTHING))
    assert len(x) == len(y) == 0
