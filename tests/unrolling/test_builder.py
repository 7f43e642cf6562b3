"""Which elements become one node, and what it reads, against sets in Python."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from depgraph.rules.call import Read
from depgraph.rules.values import FIRST, GENERIC, KNOWN
from depgraph.unrolling.builder import Builder, Label
from depgraph.unrolling.footprints import project, rows, unify

LABEL = Label("op", "module", "file.py:1", False)
BLOCKS = (3, 4, 2)  # inputs that exist before; no run crosses from one to the next


def fresh():
    builder = Builder()
    for count in BLOCKS:
        builder.add_input(count)
    return builder


@st.composite
def arrays(draw, full, values):
    """Draw an array that broadcasts to a shape, some of its axes of stride 0."""
    full = full[draw(st.integers(0, len(full))) :] if draw(st.booleans()) else full
    stored = [size if draw(st.integers(0, 3)) else 1 for size in full]
    count = int(np.prod(stored, dtype=int))
    content = torch.tensor(draw(st.lists(values, min_size=count, max_size=count)), dtype=torch.int64)
    stored_tensor = content.reshape(stored)
    # Axes of length 1 either stay so or are expanded to stride 0.
    return stored_tensor.expand([n if draw(st.booleans()) else s for s, n in zip(stored, full, strict=True)])


def nodes(count):
    return st.one_of(st.just(KNOWN), st.just(GENERIC), st.integers(FIRST, FIRST + count - 1))


@st.composite
def ascending(draw, full, count):
    """Draw codes in row-major order from some node on, as inputs have them."""
    size = int(np.prod(full, dtype=int))
    first = draw(st.integers(0, max(0, count - size)))
    return (torch.arange(size) % count + first % max(1, count)).clamp(max=count - 1).reshape(full) + FIRST


@st.composite
def reads(draw, shape, count):
    """Draw one argument's read: codes with axes to read over, and perhaps a mask of what is not read."""
    inner = [draw(st.integers(1, 3)) for _ in range(draw(st.integers(0, 2)))]
    full = [*shape, *inner]
    codes = draw(st.one_of(arrays(full, nodes(count)), ascending(full, count)))
    # The axes read over have to be there.
    if codes.ndim < len(inner):
        codes = codes.reshape((1,) * (len(inner) - codes.ndim) + codes.shape)
    dead = None
    if draw(st.booleans()):
        dead = draw(arrays(list(codes.shape), st.booleans())).bool()
    return Read(codes, len(inner), dead)


@st.composite
def operations(draw):
    """Draw an output's shape and what it reads of up to three arguments."""
    shape = draw(st.lists(st.integers(1, 3), max_size=3))
    return tuple(shape), draw(st.lists(reads(shape, sum(BLOCKS)), min_size=1, max_size=3))


def brute(read, shape):
    """Return, for each output element, the set of nodes that it reads of an argument and whether anything generic."""
    outer = read.codes.ndim - read.inner
    codes = read.codes.reshape((1,) * (len(shape) - outer) + read.codes.shape)
    dead = torch.zeros((), dtype=torch.bool) if read.dead is None else read.dead
    dead = dead.expand(read.codes.shape).reshape(codes.shape)
    inner = codes.shape[len(shape) :]
    codes, dead = codes.expand((*shape, *inner)), dead.expand((*shape, *inner))
    found = {}
    for where in np.ndindex(*shape):
        alive = codes[where][~dead[where]].reshape(-1).tolist()
        found[where] = frozenset(c - FIRST for c in alive if c >= FIRST), GENERIC in alive
    return found


def check(builder, codes, shape, expected, start):
    """Compare the codes of an output with what each element should read, argument by argument."""
    dag = builder.finish()
    number = {}
    for where in np.ndindex(*shape):
        sets, generic = expected[where]
        code = int(codes[where])
        if not any(sets):
            assert code == (GENERIC if generic else KNOWN)
            continue
        # Nodes are numbered in the order in which they first occur.
        assert code == number.setdefault(sets, FIRST + start + len(number))
        assert dag.reads.row(code - FIRST).tolist() == sorted(frozenset().union(*sets))
    assert dag.nodes == builder.count == start + len(number)
    within(dag)


def within(dag):
    """Check that runs ascend, do not meet within a row, and stay within a block."""
    for row in range(len(dag.reads)):
        low, high = dag.reads.indptr[row : row + 2]
        starts, stops = dag.reads.starts[low:high], dag.reads.stops[low:high]
        assert (starts < stops).all()
        assert (stops[:-1] <= starts[1:]).all()
        assert (stops <= row).all()
    block = np.searchsorted(dag.blocks, dag.reads.starts, side="right")
    assert (block == np.searchsorted(dag.blocks, dag.reads.stops - 1, side="right")).all()


@given(operations())
def test_nodes_are_the_classes_of_equal_reads(case):
    shape, given_reads = case
    builder = fresh()
    codes = builder.add(LABEL, shape, given_reads)
    assert codes.shape == shape
    parts = [brute(read, shape) for read in given_reads]
    expected = {
        where: (tuple(part[where][0] for part in parts), any(part[where][1] for part in parts))
        for where in np.ndindex(*shape)
    }
    check(builder, codes, shape, expected, sum(BLOCKS))


@given(operations(), st.data())
def test_operations_on_operations(case, data):
    shape, given_reads = case
    builder = fresh()
    first = builder.add(LABEL, shape, given_reads)
    start = builder.count
    inner = data.draw(st.integers(0, len(shape)))
    outer = shape[: len(shape) - inner]
    read = Read(first, inner)
    codes = builder.add(LABEL, outer, [read])
    parts = brute(read, outer)
    check(builder, codes, outer, {w: ((parts[w][0],), parts[w][1]) for w in parts}, start)


@given(operations())
def test_an_operation_knows_where_its_nodes_stand(case):
    shape, given_reads = case
    builder = fresh()
    codes = builder.add(LABEL, shape, given_reads)
    if builder.count == sum(BLOCKS):
        assert builder.operations == []
        return
    (operation,) = builder.operations
    assert (operation.start, operation.stop) == (sum(BLOCKS), builder.count)
    first = {}
    for where in np.ndindex(*shape):
        first.setdefault(int(codes[where]) - FIRST, where)
    axes = [axis for axis, size in enumerate(shape) if size > 1 and codes.stride(axis)]
    for node in range(operation.start, operation.stop):
        assert operation.position(node) == tuple(first[node][axis] for axis in axes)


@st.composite
def chains(draw):
    """Draw the reads of a recurrence: its input, up to two states, and perhaps which steps are taken."""
    steps, batch, count = draw(st.integers(1, 5)), draw(st.integers(1, 3)), sum(BLOCKS)
    width = draw(st.integers(1, 2))

    def array(length):
        stored = [length, batch if draw(st.booleans()) else 1, width]
        size = int(np.prod(stored))
        content = torch.tensor(draw(st.lists(nodes(count), min_size=size, max_size=size)))
        return content.reshape(stored).expand(length, batch, width)

    states = [Read(array(1), 1) for _ in range(draw(st.integers(0, 2)))]
    active = None
    if draw(st.booleans()):
        active = torch.tensor(draw(st.lists(st.booleans(), min_size=steps * batch, max_size=steps * batch)))
        active = active.reshape(steps, batch).numpy()
    return Read(array(steps), 1), states, active


@given(chains(), st.booleans())
def test_chains_are_as_a_loop_makes_them(case, backwards):
    read, states, active = case
    steps, batch = read.codes.shape[:2]
    builder = fresh()
    codes = builder.add_steps(LABEL, read, states, active, backwards)
    assert codes.shape == (steps, batch)
    dag = builder.finish()
    inputs = brute(read, (steps, batch))
    begins = [brute(state, (1, batch)) for state in states]
    number: dict = {}
    for step in range(steps):
        for column in range(batch):
            begin = tuple(part[0, column][0] for part in begins)
            taken = [active is None or bool(active[s, column]) for s in range(step + 1)]
            history = tuple(inputs[s, column][0] if taken[s] else None for s in range(step + 1))
            code = int(codes[step, column])
            if not taken[step] or not (any(begin) or any(history)):
                assert code == GENERIC
                continue
            assert code == number.setdefault((step, begin, history), FIRST + sum(BLOCKS) + len(number))
            before = [int(c) for c in codes[:step, column] if c >= FIRST]
            expected = set(inputs[step, column][0])
            expected |= {before[-1] - FIRST} if before else frozenset().union(*begin)
            assert dag.reads.row(code - FIRST).tolist() == sorted(expected)
    assert dag.nodes == sum(BLOCKS) + len(number)
    within(dag)


def test_an_empty_output():
    builder = fresh()
    assert builder.add(LABEL, (2, 0), [Read(torch.zeros(2, 0, dtype=torch.int64))]).shape == (2, 0)
    assert builder.count == sum(BLOCKS)


def test_a_big_mask_is_looked_at_in_parts(monkeypatch):
    n = 12
    codes = torch.arange(n) + FIRST
    later = torch.ones(n, n, dtype=torch.bool).triu(1)
    whole = rows(codes[None].numpy(), later.numpy(), np.array([n]))
    monkeypatch.setattr("depgraph.unrolling.footprints.CHUNK", 30)
    parts = rows(codes[None].numpy(), later.numpy(), np.array([n]))
    for found in (whole, parts):
        assert found.labels.tolist() == list(range(n))
        assert [found.sets.row(r).tolist() for r in range(n)] == [list(range(r + 1)) for r in range(n)]
        assert len(found.sets.starts) == n


@given(st.lists(st.integers(1, 3), max_size=4), st.data())
def test_projection_is_broadcasting(shape, data):
    onto = [size if data.draw(st.booleans()) else 1 for size in shape][data.draw(st.integers(0, len(shape))) :]
    numbers = np.arange(int(np.prod(onto, dtype=int))).reshape(onto)
    elements = np.arange(int(np.prod(shape, dtype=int)))
    assert np.array_equal(project(elements, tuple(shape), tuple(onto)), np.broadcast_to(numbers, shape).reshape(-1))


def test_labels_too_many_for_one_key():
    # The product of the labels' ranges does not fit into 64 bits.
    huge = np.array([1 << 40, 5, 1 << 40, -1])
    group, first, empty = unify([huge, huge[::-1].copy(), huge], (4,))
    assert group.tolist() == [0, 1, 2, 3]
    assert first.tolist() == [0, 1, 2, 3]
    assert not empty.any()


@pytest.mark.parametrize("size", [1, 5])
def test_a_thin_output_stays_thin(size):
    builder = fresh()
    codes = builder.add(LABEL, (2, size, 7), [Read((torch.arange(2) + FIRST)[:, None, None].expand(2, size, 7))])
    assert codes.shape == (2, size, 7)
    assert codes.stride()[-1] == 0
    assert builder.count == sum(BLOCKS) + 2
