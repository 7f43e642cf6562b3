"""What depgraph says an operator reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

import depgraph
from tests.conformance.oracle import Bools, Measured
from tests.conformance.samples import Sample, results


class Calls(nn.Module):
    """A model that is a few calls of one operator, side by side: one trace serves them all."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        super().__init__()
        self.samples = samples

    def forward(self, *tensors: torch.Tensor) -> Any:
        outs, first = [], 0
        for sample in self.samples:
            outs.append(results(sample(*tensors[first : first + len(sample.tensors)])))
            first += len(sample.tensors)
        return outs


def trace(samples: Sequence[Sample]) -> Any:
    """Return the dependency graph of a few calls of one operator, every element told apart."""
    given = [t for sample in samples for t in sample.tensors]
    outs = [t for sample in samples for t in sample.run(sample.tensors)]
    positions: dict[Any, Any] = {i: tuple(range(t.ndim)) for i, t in enumerate(given)}
    positions |= {f"output.{k}": tuple(range(t.ndim)) for k, t in enumerate(outs)}
    torch.default_generator.manual_seed(0)
    return depgraph.trace(Calls(samples), tuple(t.clone() for t in given), positions=positions)


def reach(graph: Any, samples: Sequence[Sample], number: int, found: list[Measured]) -> list[Bools]:
    """Return, for each input of one of the samples, (picked elements, output elements): True where there is a path."""
    inputs = sum(len(sample.tensors) for sample in samples[:number])
    before = sum(len(sample.run(sample.tensors)) for sample in samples[:number])
    outs = samples[number].run(samples[number].tensors)
    answer = []
    for i, seen in enumerate(found):
        parts = [np.zeros((len(seen.picked), 0), bool)]
        for k, out in enumerate(outs):
            if out.numel() and len(seen.picked):
                source = (inputs + i, places(samples[number].tensors[i], seen.picked))
                parts.append(depgraph.path_lengths(graph, source, f"output.{before + k}") >= 0)
            else:
                parts.append(np.zeros((len(seen.picked), out.numel()), bool))
        answer.append(np.concatenate(parts, 1))
    return answer


def places(tensor: torch.Tensor, numbers: Any) -> list[tuple[int, ...]]:
    """Return the elements with those row-major numbers as positions."""
    shape = tuple(tensor.shape)
    return [tuple(int(i) for i in np.unravel_index(number, shape)) for number in numbers]
