"""Entering rules and finding them."""

from pathlib import Path
from types import ModuleType

import pytest
import torch

from depgraph import rules
from depgraph.rules import registry
from depgraph.rules.registry import find, is_random, name_of, rule

aten = torch.ops.aten


@pytest.fixture
def empty(monkeypatch):
    """An empty registry, for one test."""
    monkeypatch.setattr(registry, "RULES", {})
    monkeypatch.setattr(registry, "CONTRACTIONS", set())
    monkeypatch.setattr(registry, "VALUELESS", set())


def first(call, x):
    return x


def second(call, x):
    return x


@pytest.mark.usefixtures("empty")
def test_a_name_stands_for_every_overload():
    assert rule("max", "min")(first) is first
    assert find(aten.max.default) is find(aten.max.dim) is find(aten.min.default) is first
    assert find(aten.amax.default) is None


@pytest.mark.usefixtures("empty")
@pytest.mark.parametrize("order", [1, -1])
def test_an_overload_goes_before_its_packet(order):
    for name, function in [("max", first), ("max.dim", second)][::order]:
        rule(name)(function)
    assert find(aten.max.dim) is second
    assert find(aten.max.default) is first


@pytest.mark.usefixtures("empty")
def test_a_name_is_entered_once():
    rule("max")(first)
    with pytest.raises(ValueError, match="max has a rule already: first"):
        rule("min", "max")(second)


@pytest.mark.usefixtures("empty")
def test_other_namespaces_are_named_in_full():
    with torch.library._scoped_library("depgraph_test_registry", "FRAGMENT") as library:
        library.define("max(Tensor x) -> Tensor")
        op = torch.ops.depgraph_test_registry.max.default
        rule("max")(first)
        assert find(op) is None
        rule("depgraph_test_registry::max")(second)
        assert find(op) is second
        assert find(aten.max.default) is first


@pytest.mark.usefixtures("empty")
def test_what_else_is_noted():
    rule("max.dim", contraction=True)(first)
    rule("min", valueless=True)(second)
    assert "max" in registry.CONTRACTIONS
    assert len(registry.CONTRACTIONS) == 1
    assert second in registry.VALUELESS
    assert first not in registry.VALUELESS


def test_names_as_shown_to_users():
    assert name_of(aten._softmax.default) == "softmax"
    assert name_of(aten.add.Tensor) == "add"
    assert name_of(aten._scaled_dot_product_flash_attention.default) == "scaled_dot_product_flash_attention"


def test_random_operators():
    assert is_random(aten.rand_like.default)
    assert is_random(aten.bernoulli.p)
    assert not is_random(aten.zeros_like.default)


def test_all_families_are_entered():
    files = Path(rules.__file__).parent.glob("*.py")
    families = {name for name in rules.__all__ if isinstance(getattr(rules, name), ModuleType)}
    assert families == {file.stem for file in files if "\n@rule(" in file.read_text(encoding="utf-8")}
    for family in families:
        assert "\nReads:" in getattr(rules, family).__doc__, family


def exists(name):
    packet, _, overload = name.rpartition("::")[2].partition(".")
    for space in ("aten", "prims"):
        found = getattr(getattr(torch.ops, name.rpartition("::")[0] or space), packet, None)
        if found is not None:
            return not overload or overload in found.overloads()
    return False


def test_every_rule_is_for_an_operator_that_exists():
    # Some exist once the module that defines them has been imported.
    for module in ("depgraph.tracing.python.opaque", "torch.ao.quantization.fx._decomposed"):
        pytest.importorskip(module)
    assert [name for name in registry.RULES if not exists(name)] == []
