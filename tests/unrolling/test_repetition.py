"""Layers that repeat are copied, and the graph is the same as if each had been followed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import depgraph
from depgraph.unrolling import layers, repetition


class Block(nn.Module):
    """Attention over what lies before, and a feed-forward layer; window and a first value to be mixed in, if any."""

    def __init__(self, window: int = 0, mask_buffer: bool = False) -> None:
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(8, 8) for _ in range(4))
        self.norm, self.up, self.down = nn.LayerNorm(8), nn.Linear(8, 16), nn.Linear(16, 8)
        self.window = window
        if mask_buffer:
            self.register_buffer("mask", torch.ones(32, 32).tril().bool())

    def forward(self, x, first=None, memory=None):
        n = x.shape[1]
        h = self.norm(x)
        reach = torch.arange(n)[:, None] - torch.arange(n)
        mask = (reach >= 0) & (reach < self.window) if self.window else reach >= 0
        if hasattr(self, "mask"):
            mask = self.mask[:n, :n]
        values = self.v(h) if first is None else self.v(h) + first
        keys = self.k(h)
        x = x + self.out(nn.functional.scaled_dot_product_attention(self.q(h), keys, values, mask))
        if memory is not None:
            x = x + nn.functional.scaled_dot_product_attention(self.q(x), memory, memory)
        return x + self.down(self.up(x).relu()), keys


class Stack(nn.Module):
    """Equal blocks; what is special about each of these stacks is a keyword."""

    def __init__(self, blocks, carry="", tied=False) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        self.carry = carry
        self.memory = nn.Linear(8, 8)
        if tied:
            for block in self.blocks:
                block.q = self.blocks[0].q

    def forward(self, x):
        first = x if self.carry == "first" else None
        memory = self.memory(x).mean(1, keepdim=True) if self.carry == "memory" else None
        before, all_keys = x, []
        for number, block in enumerate(self.blocks):
            skipped = before
            before = x
            x, keys = block(x, first, memory)
            if self.carry == "two back":
                x = x + skipped
            if self.carry == "every third" and number % 3 == 2:
                x = x.relu()
            if self.carry == "one is different" and number == 5:
                x = x.flip(1)
            if self.carry == "cache":
                all_keys.append(keys)
        return (x, *all_keys) if all_keys else x


class Convolutions(nn.Sequential):
    """Equal convolutions, or of growing dilation."""

    def __init__(self, growing: bool) -> None:
        super().__init__(*(nn.Conv1d(4, 4, 3, padding=1 + k * growing, dilation=1 + k * growing) for k in range(9)))


def blocks(count=5, **options):
    return [Block(**options) for _ in range(count)]


def encoder_layer():
    return nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)


MODELS = {
    "plain": (lambda: Stack(blocks()), True),
    "a first value for all": (lambda: Stack(blocks(), "first"), True),
    "a memory for all": (lambda: Stack(blocks(), "memory"), True),
    "two layers back": (lambda: Stack(blocks(), "two back"), False),
    "keys are handed out": (lambda: Stack(blocks(), "cache"), True),
    "every third one is more": (lambda: Stack(blocks(15), "every third"), True),
    "one is different": (lambda: Stack(blocks(11), "one is different"), True),
    "tied weights": (lambda: Stack(blocks(), tied=True), True),
    "masks of their own": (lambda: Stack(blocks(mask_buffer=True)), True),
    "windows in turn": (lambda: Stack([Block(window) for _ in range(5) for window in (3, 0)]), True),
    "growing windows": (lambda: Stack([Block(window) for window in range(1, 7)]), False),
    "PyTorch's encoder": (
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 9),
        True,
    ),
}


def traced(model: nn.Module, x: torch.Tensor, axis: int = 1) -> tuple[depgraph.DependencyGraph, bool]:
    """Return a graph, and whether layers were copied."""
    copies = []
    copy = repetition.Repetition._copy
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repetition.Repetition, "_copy", lambda *args: copies.append(1) or copy(*args))
        torch.manual_seed(0)
        graph = depgraph.trace(model.eval(), (x,), positions={0: axis})
    return graph, bool(copies)


def check(model: nn.Module, x: torch.Tensor, copied: bool, axis: int = 1) -> None:
    found, repeats = traced(model, x, axis)
    assert repeats == copied
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layers, "FEWEST", 10**6)
        expected, repeats = traced(model, x, axis)
    assert not repeats
    for mine, its in (
        (found.dag.blocks, expected.dag.blocks),
        (found.dag.reads.indptr, expected.dag.reads.indptr),
        (found.dag.reads.starts, expected.dag.reads.starts),
        (found.dag.reads.stops, expected.dag.reads.stops),
    ):
        assert np.array_equal(mine, its)
    for one, other in zip(found.operations, expected.operations, strict=True):
        assert (one.name, one.module, one.source, one.contraction) == (
            other.name,
            other.module,
            other.source,
            other.contraction,
        )
        assert (one.start, one.stop, one.grid) == (other.start, other.stop, other.grid)
        assert np.array_equal(one.coordinates, other.coordinates)
    for name in ("scalars", "flops", "bytes"):
        assert np.array_equal(found.costs(name), expected.costs(name))
    assert found.warnings == expected.warnings
    for name, terminal in found.outputs.items():
        assert terminal.positions == expected.outputs[name].positions
        assert np.array_equal(terminal.nodes.elements(), expected.outputs[name].nodes.elements())


@pytest.mark.parametrize("name", MODELS)
def test_the_same_graph(name: str) -> None:
    build, copied = MODELS[name]
    check(build(), torch.randn(2, 6, 8), copied)


@pytest.mark.parametrize("growing", [False, True])
def test_convolutions(growing: bool) -> None:
    check(Convolutions(growing), torch.randn(1, 4, 20), not growing, axis=2)


def test_several_examples_told_apart() -> None:
    check(Stack(blocks()), torch.randn(3, 5, 8), True, axis=0)


def test_seconds_are_measured_for_every_layer() -> None:
    graph, copied = traced(Stack(blocks()), torch.randn(1, 4, 8))
    assert copied
    assert (graph.costs("seconds")[graph.dag.inputs :] > 0).all()


def test_a_parameter_that_is_told_apart_is_no_other_layer() -> None:
    model = Stack(blocks()).eval()
    graph = depgraph.trace(model, (torch.randn(1, 4, 8),), positions={0: 1, "blocks.4.q.bias": 0})
    reached = depgraph.path_lengths(graph, "blocks.4.q.bias")
    assert reached.shape == (8, 4)
    (first, *_) = depgraph.shortest_path(graph, ("blocks.4.q.bias", 0), ("output", 3)).nodes
    assert first.module == "blocks.4.q"
    assert graph.unused_parameters == ["memory.bias", "memory.weight"]
