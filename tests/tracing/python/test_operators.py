"""PyTorch's operators on symbolic numbers: which take them as they are, and which settle them first."""

from typing import Any

import pytest
import torch
from torch import fx
from torch._subclasses.schema_check_mode import SchemaCheckMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from depgraph.tracing.python.indexing import getitem
from depgraph.tracing.python.numbers import nodes, plain, symbolic, without_conditions
from tests.tracing.python.book import Book, rows

# PyTorch's operators take them where they take a number.


class Watch(SchemaCheckMode):
    """Note the numbers that operators are given before anything is dispatched, and call them on the plain values."""

    def __init__(self) -> None:
        TorchDispatchMode.__init__(self, torch._C.DispatchKey.PreDispatch)
        self.seen: list[Any] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen += [leaf.name for leaf in pytree.tree_leaves(nodes((args, kwargs))) if isinstance(leaf, fx.Node)]
        with torch._C._DisablePythonDispatcher():
            return func(*plain(args), **plain(kwargs or {}))


def dispatch(source: str) -> tuple[list[str], list[tuple[str, Any]], Any, Any]:
    def call(m: Any, n: Any, b: Any) -> Any:
        names = {
            "torch": torch,
            "F": torch.nn.functional,
            "getitem": lambda tensor, index: getitem(tensor, index, torch.Tensor.select),
            "without_conditions": without_conditions,
        }
        return eval(source, names | {"x": torch.tensor([1.5, 2.5, -3.0]), "y": torch.eye(4), "m": m, "n": n, "b": b})

    book = Book()
    numbers = []
    for name, value in {"m": 2.5, "n": 2, "b": True}.items():
        node = book.graph.placeholder(name)
        node.meta["val"] = value
        numbers.append(symbolic(value, node, book))
    with torch._C._EnablePythonDispatcher(), Watch() as watch:
        result = call(*numbers)
    return watch.seen, list(book.settled), result, call(2.5, 2, True)


TAKEN = {
    "m": """x / m | m / x | x * m | m - x | x ** m | m ** x | x < m | m == x | x.clamp(max=m) | torch.full((3,), m)
torch.add(x, x, alpha=m) | x.clone().mul_(m) | x.clone().fill_(m) | x.clone().__setitem__(0, m)
torch.where(x > 0, x, m) | x.masked_fill(x > 0, m) | torch.lerp(x, x, m) | torch.addcmul(x, x, x, value=m)
F.leaky_relu(x, m) | x.norm(m) | torch.linspace(0, m, 3) | torch.full_like(x, m) | torch.arange(m)
torch.ops.aten.mul.Tensor(x, m) | torch.scalar_tensor(m)""",
    "n": """x[:n] | x[n:] | y[:, :n] | torch.arange(n) | torch.arange(0, n, 1) | torch.zeros(n, 3)
torch.zeros([n, 3]) | torch.zeros(torch.Size([n, 3])) | y.view(n, -1) | y.reshape(-1, n) | x.expand(n, 3) | x.repeat(n)
x.roll(n) | x.topk(n) | x.split(n) | x.narrow(0, 0, n) | x.select(0, n) | y.tril(n) | torch.eye(n) | F.pad(x, (n, 0))
x.repeat_interleave(n) | x.new_ones(n) | x.clone().__setitem__(n, 1.0) | x.clone().__setitem__(slice(n, None), 1.0)
getitem(x, n) | getitem(y, (0, n)) | getitem(y, (n, slice(None, 3))) | getitem(y, (..., n)) | getitem(y, (..., n, None))
getitem(y, (None, n, ..., 1)) | getitem(y, (slice(1, 3), None, n))""",
    "b": "x * b | (x > 0) & b | torch.where(x > 0, b, b)",
}


@pytest.mark.parametrize(
    ("name", "source"), [(name, source) for name, table in TAKEN.items() for source in rows(table)]
)
def test_operators_take_them(name: str, source: str) -> None:
    seen, settled, result, expected = dispatch(source)
    assert set(seen) == {name}
    assert not settled
    for value, other in zip(pytree.tree_leaves(result), pytree.tree_leaves(expected), strict=True):
        assert (value is None and other is None) or torch.equal(value.nan_to_num(), other.nan_to_num())


# Where PyTorch makes a plain value of a number before it dispatches: the contents of torch.tensor, places in an index
# (which is why there is getitem), axes, and parameters that its C++ declares as plain int, float or bool.
NOT_TAKEN = """
torch.tensor(m) | torch.tensor([m, 1.0]) | torch.as_tensor(n) | x.new_tensor([m]) | x[n] | y[0, n] | x[[n, 0]]
getitem(y, (n, [0, 1])) | x.softmax(n - 2) | x.sum(n - 2) | x.unsqueeze(n - 1) | torch.chunk(x, n) | x.unfold(0, n, 1)
F.layer_norm(x, (3,), eps=m) | F.pad(x, (1, 0), value=m) | x.quantile(m / 5) | torch.linspace(0, 1, n)
x.sum(0, keepdim=without_conditions(b)) | torch.tensor(without_conditions(b))
"""


@pytest.mark.parametrize("source", rows(NOT_TAKEN))
def test_operators_that_settle_them(source: str) -> None:
    seen, settled, result, expected = dispatch(source)
    assert not seen
    assert len(settled) == 1
    for value, other in zip(pytree.tree_leaves(result), pytree.tree_leaves(expected), strict=True):
        assert torch.equal(value, other)


def test_a_step_is_checked_and_stays() -> None:
    seen, settled, result, expected = dispatch("x[::n]")
    assert seen == ["n"]
    assert set(settled) == {("condition", False)}  # is it negative?
    assert torch.equal(result, expected)


def test_an_assertion_that_holds_settles_nothing() -> None:
    book = Book()
    (book.read(3) > 2).node.expect_true("", 0)
    assert not book.settled
    (book.read(3) > 4).node.expect_true("", 0)
    assert book.settled == [("condition", False)]
