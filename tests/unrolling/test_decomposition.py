"""Operators without a rule: decomposed where PyTorch can, else taken to read everything, and said so."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import depgraph
from depgraph.rules import registry
from depgraph.unrolling import decomposition
from depgraph.unrolling.decomposition import UndecomposableError, decompose
from tests.jacobian import Apply, check

R = torch.randn
aten = torch.ops.aten
TENSOR = (torch.Tensor,)


@pytest.fixture
def library():
    with torch.library._scoped_library("depgraph_test", "FRAGMENT") as found:
        yield found


def define(library, name, function, signature="(Tensor x) -> Tensor"):
    library.define(name + signature)
    library.impl(name, function, "CPU")
    library.impl(name, function, "Meta")
    return getattr(torch.ops.depgraph_test, name)


def test_equal_calls_are_decomposed_once():
    decomposition._decompose.cache_clear()
    one = decompose(aten.logit.default, (R(2, 3),), {"eps": 0.1}, TENSOR)
    assert decompose(aten.logit.default, (torch.zeros(2, 3),), {"eps": 0.1}, TENSOR) is one
    others = [
        decompose(aten.logit.default, (R(3, 2),), {"eps": 0.1}, TENSOR),
        decompose(aten.logit.default, (R(2, 3).double(),), {"eps": 0.1}, TENSOR),
        decompose(aten.logit.default, (R(2, 3),), {"eps": 0.2}, TENSOR),
        decompose(aten.logit.default, (R(2, 3),), {}, TENSOR),
    ]
    assert len({id(module) for module in [one, *others]}) == 5
    info = decomposition._decompose.cache_info()
    assert (info.hits, info.misses) == (1, 5)


def test_equal_numbers_of_different_types_are_different_arguments():
    found = [decompose(aten.xlogy.Scalar_Self, (n, torch.ones(2)), {}, TENSOR) for n in (1, 1.0, True, 1)]
    assert len({id(module) for module in found}) == 3
    assert found[0] is found[3]


def test_the_same_numbers_come_out():
    x, target = R(3, 4), torch.tensor([1, 0, 3])
    for op, args in [
        (aten.nll_loss_forward.default, (x, target, None, 1, -100)),
        (aten.log_sigmoid_forward.default, (x,)),
        (aten.hardswish.default, (x,)),
    ]:
        module = decompose(op, args, {}, TENSOR)
        assert all(node.target is not op for node in module.graph.nodes)
        found = module(*(a for a in args if isinstance(a, torch.Tensor)))
        expected = op(*args)
        for a, b in zip(*(r if isinstance(r, (tuple, list)) else [r] for r in (found, expected)), strict=True):
            assert torch.allclose(a, b)


def test_what_does_not_decompose(library):
    define(library, "opaque", torch.clone)
    with pytest.raises(UndecomposableError, match="opaque"):
        decompose(torch.ops.depgraph_test.opaque.default, (R(2),), {}, TENSOR)


def test_operators_that_are_decomposed():
    check(
        lambda x, y: {
            "huber": F.huber_loss(x, y, reduction="none"),
            "mish": F.mish(x),
            "cosine": F.cosine_similarity(x, y, dim=-1),
            "kl": F.kl_div(x, y.exp(), reduction="none"),
            "cross": torch.linalg.cross(x, y),
            "std": torch.std(x, dim=1),
            "renorm": x.renorm(2, 0, 0.1),
            "glu": F.glu(x[:, :2]),
            "logaddexp": torch.logaddexp(x, y),
            "trapezoid": torch.trapezoid(x, dim=1),
            "diff": x.diff(dim=0),
        },
        *(R(2, 3), R(2, 3)),
    )


def test_an_operator_nothing_is_known_of_reads_everything(library):
    op = define(library, "reversed", lambda x: x.flip(0) * 2.0)
    graph = depgraph.trace(Apply(lambda x: op(x.sin())), (R(3, 2),), positions={0: 0, "output": 0})
    assert (depgraph.path_lengths(graph) == 2).all()
    (warning,) = graph.warnings
    assert "depgraph_test.reversed" in warning
    assert "taken to read everything" in warning
    assert "test_decomposition.py:" in warning
    assert [operation.name for operation in graph.operations] == ["sin", "reversed"]
    assert depgraph.parallelism(graph).work == 3 + 1


def test_several_results_of_an_unknown_operator(library):
    op = define(library, "both", lambda x, y: (x + 1.0, y * 2.0), "(Tensor x, Tensor y) -> (Tensor, Tensor)")
    graph = depgraph.trace(Apply(op), (R(3, 2), R(2)), positions={0: 0, 1: 0, "output.0": 0, "output.1": 0})
    for source in (0, 1):
        for target in ("output.0", "output.1"):
            assert (depgraph.path_lengths(graph, source, target) == 1).all()


def test_an_unknown_operator_on_constants_is_run(library):
    calls = []

    def kernel(x):
        calls.append(x.device.type)
        return x > 1

    op = define(library, "decides", kernel)
    table = torch.arange(3.0)
    graph = depgraph.trace(Apply(lambda x: x * op(table)), (R(1, 3),), positions={0: 1, "output": 1})
    assert depgraph.path_lengths(graph).tolist() == [[-1, -1, -1], [-1, -1, -1], [-1, -1, 1]]
    assert "cpu" in calls
    assert graph.warnings == []


def test_a_rule_for_an_operator_of_ones_own(library, monkeypatch):
    monkeypatch.setattr(registry, "RULES", dict(registry.RULES))
    op = define(library, "reversed", lambda x: x.flip(0) * 2.0)

    @registry.rule("depgraph_test::reversed")
    def reversed_rule(call, x):
        return call.result(call.nodes(call.shape, depgraph.rules.call.Read(x.codes.flip(0))))

    graph = depgraph.trace(Apply(op), (R(3, 2),), positions={0: 0, "output": 0})
    assert np.array_equal(depgraph.path_lengths(graph) >= 0, np.eye(3, dtype=bool)[::-1])
    assert graph.warnings == []


def test_a_composite_of_ones_own_is_looked_into(library):
    library.define("gate(Tensor x) -> Tensor")
    library.impl("gate", lambda x: x * x.roll(1, 0).sigmoid(), "CompositeImplicitAutograd")
    graph = depgraph.trace(Apply(torch.ops.depgraph_test.gate), (R(4, 2),), positions={0: 0, "output": 0})
    expected = np.eye(4, dtype=bool)
    assert np.array_equal(depgraph.path_lengths(graph) >= 0, expected | np.roll(expected, 1, 1))
    assert graph.warnings == []
