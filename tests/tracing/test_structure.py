"""Tensors in containers: found, and put back."""

import dataclasses
from collections import OrderedDict, UserDict, defaultdict, deque, namedtuple

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given

from depgraph.tracing.structure import replaced, tensors_in

Pair = namedtuple("Pair", "left right")


@dataclasses.dataclass(frozen=True)
class Frozen:
    value: object


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


leaves = st.builds(torch.tensor, st.integers(0, 9)) | st.none() | st.integers() | st.text(max_size=3) | st.booleans()
nests = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.lists(inner, max_size=3).map(deque)
        | st.dictionaries(st.text(max_size=2) | st.integers(0, 3), inner, max_size=3)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3).map(OrderedDict)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3).map(UserDict)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3).map(lambda d: defaultdict(list, d))
        | st.builds(Pair, inner, inner)
        | st.builds(Frozen, inner)
        | st.builds(Slotted, inner)
    ),
    max_leaves=10,
)


def follow(value, path):
    for key in path:
        value = getattr(value, key) if isinstance(value, (Pair, Frozen, Slotted)) else value[key]
    return value


@given(nests)
def test_each_tensor_is_found_where_its_path_leads(nest):
    for path, tensor in tensors_in(nest):
        assert follow(nest, path) is tensor


@given(nests)
def test_replacing_keeps_paths_and_leaves_the_original_alone(nest):
    before = tensors_in(nest)
    fresh = [torch.tensor(-k) for k in range(len(before))]
    new = replaced(nest, fresh)
    assert type(new) is type(nest)
    assert [path for path, _ in tensors_in(new)] == [path for path, _ in before]
    assert all(found.tensor is tensor for found, tensor in zip(tensors_in(new), fresh, strict=True))
    assert all(a.tensor is b.tensor for a, b in zip(tensors_in(nest), before, strict=True))


def test_one_container_in_two_places():
    inner = [torch.ones(1)]
    nest = {"a": inner, "b": inner}
    assert [path for path, _ in tensors_in(nest)] == [("a", 0), ("b", 0)]
    new = replaced(nest, [torch.zeros(1), torch.ones(1)])
    assert [float(found.tensor) for found in tensors_in(new)] == [0.0, 1.0]


def test_objects_that_refer_back():
    class Node:
        pass

    parent, child = Node(), Node()
    parent.child, child.parent = child, parent
    child.value = torch.ones(1)
    assert [path for path, _ in tensors_in(parent)] == [("child", "value")]
    new = replaced(parent, [torch.zeros(1)])
    assert new is not parent
    assert float(new.child.value) == 0
    assert float(child.value) == 1
    assert new.child.parent is new


def test_many_references_to_one_object_are_walked_once():
    nest = [torch.ones(1)]
    for _ in range(60):
        nest = [nest[0]] if len(nest) == 1 and isinstance(nest[0], list) else [nest]
    empty = []
    for _ in range(60):
        empty = [empty, empty]
    assert len(tensors_in([nest, empty])) == 1


@pytest.mark.parametrize("value", [torch.nn.Linear(1, 1), torch.float32, range(10**12), "text", torch.Size([3])])
def test_what_is_no_container(value):
    assert tensors_in([value]) == []
    nest = [value, torch.ones(1)]
    assert replaced(nest, [torch.zeros(1)])[0] is value


def test_private_attributes():
    class Output:
        def __init__(self):
            self.shown, self._hidden = torch.ones(1), torch.ones(1)

    assert [path for path, _ in tensors_in(Output())] == [("shown",), ("_hidden",)]
    assert [path for path, _ in tensors_in(Output(), private=False)] == [("shown",)]
