"""What each layer of a stack has read."""

from __future__ import annotations

from torch import nn

import depgraph
from tests.gallery.files import built, load
from tests.oracles.pairs import reached


class Stack(nn.Module):
    """The model of a file, with what each of its layers gives as an output."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        self.seen = []
        convolutions = [part for part in model.modules() if isinstance(part, (nn.Conv1d, nn.Conv2d))]
        for layer in convolutions or model.layers:
            layer.register_forward_hook(self.see)

    def see(self, _layer, _args, output):
        self.seen.append(output)

    def forward(self, x):
        self.model(x)
        seen = list(self.seen)
        self.seen.clear()
        return seen


def stacked(name, x, **sizes):
    """Return the graph of the model of a file called with x, an output a layer."""
    (axes,) = load(name).positions.values()
    return depgraph.trace(Stack(built(name, **sizes)), (x,), positions={"x": axes})


def per_layer(name, x, **sizes):
    """Return for each layer which position of x (row) reaches which position of it (column)."""
    graph = stacked(name, x, **sizes)
    return [reached(graph, target=output) for output in graph.outputs]


def layers_to_connect(pairs, name, x, **sizes):
    """Return the number of the first layer by which these pairs are connected; more layers never connect less."""
    return 1 + [found[pairs].all() for found in per_layer(name, x, **sizes)].index(True)
