from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from depgraph.dag.runs import Runs, expand, offsets, ragged_arange, union

SETS = st.lists(st.frozensets(st.integers(0, 25), max_size=12), max_size=8)


def runs_of(sets: list[frozenset[int]]) -> Runs:
    pairs = [(row, element) for row, members in enumerate(sets) for element in members]
    row, element = np.array(pairs, np.int64).reshape(-1, 2).T
    return Runs.from_elements(row, element, len(sets))


def sets_of(runs: Runs) -> list[frozenset[int]]:
    return [frozenset(runs.row(number).tolist()) for number in range(len(runs))]


def assert_well_formed(runs: Runs) -> None:
    assert runs.indptr[0] == 0
    assert runs.indptr[-1] == len(runs.starts) == len(runs.stops)
    assert (runs.starts < runs.stops).all()
    same_row = runs.rows[1:] == runs.rows[:-1]
    assert (np.diff(runs.indptr) >= 0).all()
    assert (runs.starts[1:] >= runs.stops[:-1])[same_row].all()


def fewest_runs(members: frozenset[int]) -> int:
    return sum(element - 1 not in members for element in members)


@given(SETS)
def test_from_elements_keeps_the_sets_in_as_few_runs_as_there_are(sets: list[frozenset[int]]) -> None:
    runs = runs_of(sets)
    assert_well_formed(runs)
    assert sets_of(runs) == sets
    assert len(runs) == len(sets)
    assert runs.counts.tolist() == [fewest_runs(members) for members in sets]
    assert runs.sizes.tolist() == [len(members) for members in sets]
    assert runs.rows.tolist() == [row for row, members in enumerate(sets) for _ in range(fewest_runs(members))]


@given(SETS, st.randoms())
def test_from_elements_takes_any_order_and_repeats(sets: list[frozenset[int]], random) -> None:
    pairs = [(row, element) for row, members in enumerate(sets) for element in members]
    shuffled = pairs + random.sample(pairs, len(pairs) // 2)
    random.shuffle(shuffled)
    row, element = np.array(shuffled, np.int64).reshape(-1, 2).T
    assert sets_of(Runs.from_elements(row, element, len(sets))) == sets


@given(SETS)
def test_elements_lists_every_pair_in_order(sets: list[frozenset[int]]) -> None:
    row, element = runs_of(sets).elements()
    expected = sorted((row, element) for row, members in enumerate(sets) for element in members)
    assert list(zip(row.tolist(), element.tolist(), strict=True)) == expected


@given(st.lists(st.integers(-2, 20), max_size=10))
def test_singletons_hold_one_id_each_and_none_where_it_is_negative(ids: list[int]) -> None:
    runs = Runs.singletons(np.array(ids, np.int64))
    assert_well_formed(runs)
    assert sets_of(runs) == [frozenset({i}) if i >= 0 else frozenset() for i in ids]


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_empty_sets(rows: int) -> None:
    runs = Runs.empty(rows)
    assert sets_of(runs) == [frozenset()] * rows
    assert runs.sizes.tolist() == runs.counts.tolist() == [0] * rows
    assert runs.labels().tolist() == [-1] * rows


@given(SETS.filter(bool), st.data())
def test_take_returns_rows_in_the_order_asked_for(sets: list[frozenset[int]], data: st.DataObject) -> None:
    index = data.draw(st.lists(st.integers(0, len(sets) - 1), max_size=10))
    taken = runs_of(sets).take(np.array(index, np.int64))
    assert_well_formed(taken)
    assert sets_of(taken) == [sets[i] for i in index]


@given(SETS, st.sets(st.integers(1, 26), max_size=6))
def test_split_at_cuts_runs_at_boundaries_and_changes_no_set(sets: list[frozenset[int]], cuts: set[int]) -> None:
    boundaries = np.array([*sorted(cuts), 30], np.int64)
    split = runs_of(sets).split_at(boundaries)
    assert_well_formed(split)
    assert sets_of(split) == sets
    for start, stop in zip(split.starts.tolist(), split.stops.tolist(), strict=True):
        assert not any(start < cut < stop for cut in cuts)
    expected = [
        sum(element - 1 not in members or element in cuts for element in members) for members in sets
    ]  # no more cuts than asked for
    assert split.counts.tolist() == expected


@given(SETS)
def test_labels_are_equal_exactly_where_sets_are(sets: list[frozenset[int]]) -> None:
    labels = runs_of(sets).labels().tolist()
    for one, label in zip(sets, labels, strict=True):
        assert (label == -1) == (not one)
        for other, other_label in zip(sets, labels, strict=True):
            assert (label == other_label) == (one == other)


def test_labels_are_given_in_the_order_of_first_occurrence() -> None:
    sets = [frozenset(), frozenset({7, 8}), frozenset({1}), frozenset({7, 8}), frozenset({0, 2}), frozenset({1})]
    assert runs_of(sets).labels().tolist() == [-1, 0, 1, 0, 2, 1]


@given(SETS)
def test_union_of_one_list_is_that_list(sets: list[frozenset[int]]) -> None:
    assert sets_of(union([runs_of(sets)])) == sets


@given(st.data())
def test_union_unites_row_by_row_and_joins_runs_that_overlap(data: st.DataObject) -> None:
    rows = data.draw(st.integers(0, 6))
    members = st.frozensets(st.integers(0, 25), max_size=8)
    parts = data.draw(st.lists(st.lists(members, min_size=rows, max_size=rows), min_size=1, max_size=4))
    united = union([runs_of(part) for part in parts])
    expected = [frozenset().union(*(part[row] for part in parts)) for row in range(rows)]
    assert_well_formed(united)
    assert sets_of(united) == expected
    assert (united.counts <= np.sum([runs_of(part).counts for part in parts], axis=0)).all()


def test_union_leaves_runs_apart_that_only_touch() -> None:
    left, right = (Runs(np.array([0, 1]), np.array([low]), np.array([low + 3])) for low in (0, 3))
    united = union([right, left])
    assert united.starts.tolist() == [0, 3]
    assert united.stops.tolist() == [3, 6]
    across = Runs(np.array([0, 1]), np.array([2]), np.array([4]))
    assert union([right, left, across]).stops.tolist() == [6]


@given(st.lists(st.integers(0, 6), max_size=10))
def test_counting_helpers(counts: list[int]) -> None:
    sizes = np.array(counts, np.int64)
    assert offsets(sizes).tolist() == [sum(counts[:i]) for i in range(len(counts) + 1)]
    assert ragged_arange(sizes).tolist() == [i for count in counts for i in range(count)]
    starts = np.arange(len(counts), dtype=np.int64) * 3
    assert expand(starts, starts + sizes).tolist() == [
        3 * k + i for k, count in enumerate(counts) for i in range(count)
    ]
