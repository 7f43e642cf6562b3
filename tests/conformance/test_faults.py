"""A rule that misses a single read does not get past the check."""

import pytest
import torch

from depgraph.rules import registry
from depgraph.rules.call import Read
from tests.conformance.outcome import outcome


class Forgetful:
    """A call that passes a rule's reads on, less one."""

    def __init__(self, call, drop):
        self.call, self.drop = call, drop

    def __getattr__(self, name):
        return getattr(self.call, name)

    def nodes(self, shape, *reads):
        return self.call.nodes(shape, *self.drop(list(reads)))


def argument(number):
    """Drop all that is read of one argument."""
    return lambda reads: reads[:number] + reads[number + 1 :]


def last(reads):
    """Drop the last element that is read of the first argument, keep the others."""
    first = reads[0]
    *_, size = first.codes.shape
    gone = torch.arange(size) == size - 1
    return [Read(first.codes, first.inner, gone if first.dead is None else first.dead | gone), *reads[1:]]


@pytest.mark.parametrize(
    ("operator", "rule", "drop"),
    [
        pytest.param("addmm", "addmm", argument(2), id="contraction: what is added"),
        pytest.param("nn.functional.linear", "linear", last, id="contraction: the last feature"),
        pytest.param("nn.functional.conv1d", "conv1d", last, id="convolution: the last tap"),
        pytest.param("nn.functional.layer_norm", "layer_norm", argument(1), id="normalisation: the scale"),
        pytest.param("softmax", "softmax", last, id="normalisation: the last of the group"),
        pytest.param("gather", "gather", argument(1), id="indexing: the index"),
        pytest.param("cumsum", "cumsum", last, id="reduction: the last step"),
        pytest.param("where", "where.self", argument(0), id="elementwise: the condition"),
        pytest.param(
            "nn.functional.scaled_dot_product_attention",
            "scaled_dot_product_attention",
            argument(1),
            id="attention: keys",
        ),
    ],
)
def test_a_dropped_read_is_found(operator, rule, drop, monkeypatch):
    rules = dict(registry.RULES)
    whole = rules[rule]
    rules[rule] = lambda call, *args, **kwargs: whole(Forgetful(call, drop), *args, **kwargs)
    monkeypatch.setattr(registry, "RULES", rules)
    assert outcome(operator, 3).state == "unsound"


def test_a_rule_that_fails_is_found(monkeypatch):
    def broken(call, *args, **kwargs):
        raise IndexError("no such axis")

    monkeypatch.setattr(registry, "RULES", registry.RULES | {"softmax": broken})
    found = outcome("softmax", 3)
    assert found.state == "failed"
    assert "no such axis" in found.detail
