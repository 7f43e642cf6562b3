"""`depgraph.register_rule`: custom operators with a rule of the user's, and without."""

import re

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import depgraph
from depgraph.rules import Read, Value
from depgraph.rules.registry import CONTRACTIONS, RULES
from tests.jacobian import Apply

LIBRARY = torch.library.Library("userlib", "DEF")


@pytest.fixture(autouse=True)
def _own_rules():
    """What a test registers is gone afterwards."""
    before, contractions = dict(RULES), set(CONTRACTIONS)
    yield
    RULES.clear()
    RULES.update(before)
    CONTRACTIONS.clear()
    CONTRACTIONS.update(contractions)


@torch.library.custom_op("userlib::window_mean", mutates_args=())
def window_mean(x: torch.Tensor, size: int = 3) -> torch.Tensor:
    """Mean over axis 1 of an element and the ``size - 1`` before it, in a way that nothing can look into."""
    padded = np.pad(x.numpy(), ((0, 0), (size - 1, 0), (0, 0)))
    return torch.from_numpy(np.lib.stride_tricks.sliding_window_view(padded, size, 1).mean(-1))


@window_mean.register_fake
def _(x, size=3):
    return torch.empty_like(x)


@torch.library.custom_op("userlib::halves", mutates_args=())
def halves(x: torch.Tensor, *, swap: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """The two halves of axis 1, by way of NumPy."""
    first, second = np.split(x.numpy().copy(), 2, 1)
    return torch.from_numpy(second.copy() if swap else first.copy()), torch.from_numpy(second.copy())


@halves.register_fake
def _(x, *, swap=False):
    half = x.new_empty(x.shape[0], x.shape[1] // 2, *x.shape[2:])
    return half, torch.empty_like(half)


@torch.library.custom_op("userlib::accumulate_", mutates_args=("total",))
def accumulate_(total: torch.Tensor, x: torch.Tensor) -> None:
    total.add_(torch.from_numpy(x.numpy().cumsum(1)))


@torch.library.custom_op("userlib::add_and_count_", mutates_args=("total", "count"))
def add_and_count_(total: torch.Tensor, x: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
    total.add_(x)
    count.add_(1)
    return torch.from_numpy(x.numpy().sum(1))


@add_and_count_.register_fake
def _(total, x, count):
    return x.new_empty(x.shape[0], *x.shape[2:])


@torch.library.custom_op("userlib::elsewhere", mutates_args=(), device_types="cuda")
def elsewhere(x: torch.Tensor) -> torch.Tensor:
    raise NotImplementedError


@elsewhere.register_fake
def _(x):
    return torch.empty_like(x)


LIBRARY.define("running(Tensor x, int dim) -> Tensor")
LIBRARY.impl("running", lambda x, dim: x.cumsum(dim) * 2, "CompositeImplicitAutograd")
LIBRARY.define("pick(Tensor x) -> Tensor")
LIBRARY.define("pick.place(Tensor x, int place) -> Tensor")
LIBRARY.impl("pick", lambda x: x[:, :1].clone(), "CompositeExplicitAutograd")
LIBRARY.impl("pick.place", lambda x, place: x[:, place : place + 1].clone(), "CompositeExplicitAutograd")

X = torch.randn(1, 6, 2)


def traced(function, *args, known=None, **positions):
    model = Apply(function)
    names = {k: 1 for k, a in enumerate(args or (X,)) if k not in (known or ())}
    return depgraph.trace(model, args or (X,), positions=names | positions, known=known), model


def reach(graph, source=0, target="output.0"):
    return depgraph.path_lengths(graph, source, target) >= 0


def banded(n, width):
    i, j = np.indices((n, n))
    return (i <= j) & (j - i < width)


def window_rule(call, x, size):
    before = F.pad(x.codes, (0, 0, size - 1, 0))
    return call.result(call.nodes(call.shape, Read(before.unfold(1, size, 1), inner=1)))


def test_without_a_rule_everything_is_read():
    graph, model = traced(lambda x: window_mean(x), output=1)
    assert reach(graph).all()
    assert any("userlib.window_mean.default has no rule and does not decompose" in w for w in graph.warnings)
    assert depgraph.verify(graph, model, (X,)).sound


def test_what_decomposes_needs_no_rule():
    graph, model = traced(lambda x: torch.ops.userlib.running(x, 1), output=1)
    assert (reach(graph) == np.triu(np.ones((6, 6), bool))).all()
    assert not graph.warnings
    assert depgraph.verify(graph, model, (X,)).exact


def test_functions_with_their_own_derivative_need_no_rule():
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.cumsum(1)

        @staticmethod
        def backward(ctx, gradient):
            return gradient

    graph, _ = traced(lambda x: Doubled.apply(x), output=1)
    assert (reach(graph) == np.triu(np.ones((6, 6), bool))).all()
    assert not graph.warnings


@pytest.mark.parametrize(
    "op", ["userlib::window_mean", "userlib::window_mean.default", window_mean, "packet", "overload"]
)
def test_named_in_any_way(op):
    packet = torch.ops.userlib.window_mean
    depgraph.register_rule({"packet": packet, "overload": packet.default}.get(op, op) if isinstance(op, str) else op)(
        window_rule
    )
    graph, model = traced(lambda x: window_mean(x, 2), output=1)
    assert (reach(graph) == banded(6, 2)).all()
    assert not graph.warnings
    assert depgraph.verify(graph, model, (X,)).exact


def test_one_node_an_output_position():
    depgraph.register_rule(window_mean)(window_rule)
    graph, _ = traced(lambda x: window_mean(x), output=1)
    assert [(o.name, o.stop - o.start, o.contraction) for o in graph.operations] == [("window_mean", 6, False)]
    assert (reach(graph) == banded(6, 3)).all()  # the default of size, 3, is among the arguments


def test_as_another_function():
    @depgraph.register_rule(window_mean)
    def rule(call, x, size):
        return call.like(lambda x: F.avg_pool1d(F.pad(x, (0, 0, size - 1, 0)).mT, size, 1).mT, x)

    assert callable(rule)
    graph, model = traced(lambda x: window_mean(window_mean(x, 2), 3), output=1)
    assert (reach(graph) == banded(6, 4)).all()
    assert {o.source.rpartition("/")[2].partition(":")[0] for o in graph.operations} == {"test_registration.py"}
    assert not graph.warnings
    assert depgraph.verify(graph, model, (X,)).exact


def test_as_another_function_with_masks_and_constants():
    """Known values are carried into the function, and so are constants that it makes."""

    @depgraph.register_rule(window_mean)
    def rule(call, x, size):
        def masked(x):
            steps = torch.arange(x.shape[1])
            mask = (steps[:, None] >= steps) & (steps[:, None] - steps < size)
            return F.scaled_dot_product_attention(x, x, x, attn_mask=mask)

        return call.like(masked, x)

    assert callable(rule)
    graph, _ = traced(lambda x: window_mean(x), output=1)
    assert (reach(graph) == banded(6, 3)).all()
    assert [o.name for o in graph.operations] == ["scaled_dot_product_attention"]


def test_contractions():
    depgraph.register_rule(window_mean, contraction=True)(window_rule)
    graph, _ = traced(lambda x: window_mean(x) + 1, output=1)
    assert depgraph.critical_path(graph, weight="contractions").length == 1


def test_several_outputs_and_keywords():
    @depgraph.register_rule(halves)
    def rule(call, x, *, swap):
        first, second = x.codes.chunk(2, 1)
        return call.result(second if swap else first), call.result(second, output=1)

    assert callable(rule)
    for swap in (False, True):
        graph, model = traced(lambda x, swap=swap: halves(x, swap=swap), **{"output.0": 1, "output.1": 1})
        assert (reach(graph) == np.eye(6, 3, k=-3 if swap else 0, dtype=bool)).all()
        assert (reach(graph, target="output.1") == np.eye(6, 3, k=-3, dtype=bool)).all()
        assert not graph.operations  # data that only moves
        assert depgraph.verify(graph, model, (X,)).exact


def test_an_operator_that_writes_to_an_argument():
    def model(x):
        total = torch.zeros_like(x)
        accumulate_(total, x)
        return total

    graph, module = traced(model, output=1)
    assert reach(graph).all()
    assert any("userlib.accumulate_.default has no rule; it is taken to read everything" in w for w in graph.warnings)

    @depgraph.register_rule(accumulate_)
    def rule(call, total, x):
        return call.like(lambda total, x: total + x.cumsum(1), total, x)

    assert callable(rule)
    graph, module = traced(model, output=1)
    assert (reach(graph) == np.triu(np.ones((6, 6), bool))).all()
    assert not graph.warnings
    assert depgraph.verify(graph, module, (X,)).exact


def test_an_operator_that_writes_and_returns():
    def model(total, x, count):
        total, count = total.clone(), count.clone()
        return add_and_count_(total, x, count), total, count

    @depgraph.register_rule(add_and_count_)
    def rule(call, total, x, count):
        return call.like(lambda total, x, count: (x.sum(1), total + x, count + 1), total, x, count)

    assert callable(rule)
    args = (torch.randn(1, 3, 2), torch.randn(1, 3, 2), torch.zeros(1, 1))
    where = {"output.0": (), "output.1": 1, "output.2": 1}
    graph, module = traced(model, *args, **where)
    assert not graph.warnings
    assert reach(graph, 1, "output.0").all()
    assert (reach(graph, 1, "output.1") == np.eye(3, dtype=bool)).all()
    assert (reach(graph, 0, "output.1") == np.eye(3, dtype=bool)).all()
    assert not reach(graph, 0, "output.0").any()
    assert depgraph.verify(graph, module, args).exact


def test_writing_to_a_part_of_a_tensor():
    @depgraph.register_rule(accumulate_)
    def rule(call, total, x):
        return call.like(lambda total, x: total + x.cumsum(1), total, x)

    def model(x):
        total = torch.zeros(1, 8, 2, dtype=x.dtype)
        accumulate_(total[:, 1:7], x)
        return total

    assert callable(rule)
    graph, module = traced(model, output=1)
    assert not graph.warnings
    assert depgraph.verify(graph, module, (X,)).exact


def test_overloads():
    @depgraph.register_rule("userlib::pick.place")
    def rule(call, x, place):
        return call.result(x.codes[:, place : place + 1])

    assert callable(rule)
    graph, _ = traced(lambda x: torch.ops.userlib.pick(x, 4), output=1)
    assert np.flatnonzero(reach(graph)[:, 0]).tolist() == [4]
    graph, _ = traced(lambda x: torch.ops.userlib.pick(x), output=1)
    assert reach(graph).all()
    assert graph.warnings


def test_known_values_run_the_operator():
    calls = []

    @depgraph.register_rule(window_mean)
    def rule(call, x, size):
        calls.append(x)
        return window_rule(call, x, size)

    def model(x):
        mask = window_mean(torch.tensor([0.0, 0, 0, 1, 0, 0], dtype=x.dtype).reshape(1, 6, 1), 2)
        return x * mask

    assert callable(rule)
    graph, module = traced(model, output=1)
    assert reach(graph).sum(1).tolist() == [0, 0, 0, 1, 1, 0]
    assert not calls
    assert depgraph.verify(graph, module, (X,)).exact


def test_an_operator_that_does_not_run_here():
    @depgraph.register_rule(elsewhere)
    def rule(call, x):
        return call.result(call.nodes(call.shape, Read(x.codes)))

    assert callable(rule)

    class Model(nn.Module):
        def forward(self, x):
            known = elsewhere(torch.zeros(1, 6, 1))
            return x * known + elsewhere(F.pad(x, (0, 0, 1, 0)))[:, 1:]

    graph = depgraph.trace(Model(), (X,), positions={"x": 1, "output": 1})
    assert (reach(graph) == np.eye(6, dtype=bool)).all()
    assert not graph.warnings


def test_a_rule_may_ask_for_known_values():
    @depgraph.register_rule("userlib::pick.place")
    def rule(call, x, place):
        call.need_known(x, "its values decide")
        raise AssertionError("unreachable")

    assert callable(rule)
    graph, _ = traced(lambda x: torch.ops.userlib.pick(x, 4), output=1)
    assert reach(graph).all()
    assert any("its values decide, and they are not known" in w for w in graph.warnings)


def test_registered_twice():
    depgraph.register_rule(window_mean)(window_rule)
    with pytest.raises(depgraph.RuleError, match=r"userlib::window_mean.default has a rule already: window_rule"):
        depgraph.register_rule(torch.ops.userlib.window_mean.default)(window_rule)
    message = r"userlib::window_mean has a rule already: window_rule \(.*test_registration.py:\d+\). Pass replace=True"
    with pytest.raises(depgraph.RuleError, match=message):
        depgraph.register_rule("userlib::window_mean")(window_rule)

    @depgraph.register_rule(window_mean, replace=True)
    def rule(call, x, size):
        return call.result(x.codes)

    assert callable(rule)
    graph, _ = traced(lambda x: window_mean(x), output=1)
    assert (reach(graph) == np.eye(6, dtype=bool)).all()


def test_the_rules_of_depgraph_may_be_replaced():
    for op, own in (
        ("aten::cumsum", "cumulative"),
        ("aten::add", "for operators of its kind"),
        (torch.ops.aten.add.Tensor, "for operators of its kind"),
        ("aten::transpose", "for operators of its kind"),
        ("aten::frexp", "for operators of its kind"),
        ("aten::max", ""),
    ):
        with pytest.raises(depgraph.RuleError, match=rf"aten::\S+ has a rule already: depgraph's own, {own}"):
            depgraph.register_rule(op)(window_rule)

    @depgraph.register_rule(torch.ops.aten.cumsum, replace=True)
    def rule(call, x, dim, *, dtype):
        return call.result(x.codes)

    assert callable(rule)
    graph, _ = traced(lambda x: x.cumsum(1), output=1)
    assert (reach(graph) == np.eye(6, dtype=bool)).all()


def test_a_rule_for_all_overloads_takes_the_place_of_those_for_single_ones():
    depgraph.register_rule("aten::max", replace=True)(lambda call, x, *_, **__: (call.result(x.codes[:, 0]),) * 2)
    graph, _ = traced(lambda x: x.max(1).values, output=())
    assert graph.user_rules == ["aten::max"]
    assert reach(graph).ravel().tolist() == [True, False, False, False, False, False]


def test_rules_for_single_overloads_go_before():
    depgraph.register_rule("userlib::pick.place")(lambda call, x, place: call.result(x.codes[:, place : place + 1]))
    depgraph.register_rule("userlib::pick")(lambda call, x: call.result(x.codes[:, :1]))
    graph, _ = traced(lambda x: torch.ops.userlib.pick(x, 4) + torch.ops.userlib.pick(x), output=1)
    assert reach(graph).ravel().tolist() == [True, False, False, False, True, False]
    assert graph.user_rules == ["userlib::pick.place", "userlib::pick"]


@pytest.mark.parametrize(
    ("op", "message"),
    [
        ("userlib::nothing", "There is no operator 'userlib::nothing'"),
        ("window_mean", "There is no operator 'window_mean'. Names are given as namespace::name"),
        ("userlib::pick.other", "userlib::pick has no overload 'other'. It has: default, place."),
        (window_rule, "A rule is registered for an operator, such as .* got <function window_rule"),
    ],
)
def test_no_such_operator(op, message):
    with pytest.raises(depgraph.RuleError, match=message):
        depgraph.register_rule(op)


def test_no_function():
    with pytest.raises(
        depgraph.RuleError, match=r"A rule is a function rule\(call, \*args\); for userlib::pick it is 3"
    ):
        depgraph.register_rule("userlib::pick")(3)


WRONG = [
    (lambda call, x, size: call.result(x.codes[:, 1:]), r"returns shape \(1, 5, 2\); the operator returns \(1, 6, 2\)"),
    (lambda call, x, size: x.codes, "returns a Tensor, not a Value: see call.result"),
    (lambda call, x, size: None, "returns a NoneType, not a Value"),
    (lambda call, x, size: Value(x.codes + 100, None, x.dtype), "returns codes that stand for no node"),
    (lambda call, x, size: Value(x.codes.int(), None, x.dtype), "returns codes that stand for no node"),
]


@pytest.mark.parametrize(("rule", "message"), WRONG)
def test_a_rule_that_returns_something_else(rule, message):
    depgraph.register_rule(window_mean)(rule)
    place = r"test_registration.py:\d+: the rule <lambda> \(.*test_registration.py:\d+\) for userlib::window_mean "
    with pytest.raises(depgraph.TracingError, match=place + message):
        traced(lambda x: window_mean(x), output=1)


def test_a_rule_that_returns_too_few():
    depgraph.register_rule(halves)(lambda call, x, *, swap: call.result(x.codes.chunk(2, 1)[0]))
    with pytest.raises(depgraph.TracingError, match="returns one Value; the operator returns 2 tensors"):
        traced(lambda x: halves(x))
    depgraph.register_rule(halves, replace=True)(lambda call, x, *, swap: (call.result(x.codes.chunk(2, 1)[0]),))
    with pytest.raises(depgraph.TracingError, match="returns 1 values; the operator returns 2 tensors"):
        traced(lambda x: halves(x))


def test_a_rule_that_fails():
    def inner():
        raise KeyError("lost")

    def rule(call, x, size):
        inner()

    depgraph.register_rule(window_mean)(rule)
    with pytest.raises(depgraph.TracingError) as caught:
        traced(lambda x: window_mean(x), output=1)
    line = inner.__code__.co_firstlineno + 1
    assert re.search(
        rf"the rule \S*rule for userlib::window_mean fails \(\S*test_registration.py:{line}\): KeyError: 'lost'",
        str(caught.value),
    )
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_rule_with_other_parameters():
    depgraph.register_rule(window_mean)(lambda call, x: call.result(x.codes))
    with pytest.raises(depgraph.TracingError, match=r"TypeError.*takes 2 positional arguments but 3 were given"):
        traced(lambda x: window_mean(x), output=1)


def test_a_reference_that_fails():
    depgraph.register_rule(window_mean)(lambda call, x, size: call.like(lambda x: x[:, 99], x))
    with pytest.raises(depgraph.TracingError, match=r"userlib::window_mean fails .* index 99 is out of bounds"):
        traced(lambda x: window_mean(x), output=1)
