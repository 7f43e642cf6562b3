"""Searching: where values stand among others, and drawing by weights.

Reads: searchsorted   out[…, j] ← value[…, j] and the whole sorted line (and its order) at […]
       isin           out[i] ← element[i] and everything that it is looked for among
       multinomial    out[…, :] ← all weights of the line
       distances      out[k] ← both rows of the k-th pair
"""

from __future__ import annotations

from typing import Any

import torch

from depgraph.rules.call import Call, Read
from depgraph.rules.registry import rule
from depgraph.rules.values import Value


@rule("searchsorted")
def searchsorted(call: Call, line: Value, value: Any, sorter: Value | None = None, **kwargs: Any) -> Value:
    """Find places in sorted lines, one for all values or one a row."""
    sorter = kwargs.get("sorter", sorter)
    reads = []
    for tensor in (line, sorter):
        if isinstance(tensor, Value):
            codes = tensor.codes if tensor.ndim == 1 else tensor.codes.unsqueeze(-2)
            reads.append(Read(codes, 1))
    return call.result(call.nodes(call.shape, *reads, *own(value)))


@rule("bucketize")
def bucketize(call: Call, value: Any, boundaries: Value, **_: Any) -> Value:
    """Find places among boundaries."""
    return call.result(call.nodes(call.shape, Read(boundaries.codes, 1), *own(value)))


@rule("isin")
def isin(call: Call, elements: Any, among: Any, **_: Any) -> Value:
    """Tell whether elements are found among others."""
    reads = [Read(among.codes, among.ndim)] if isinstance(among, Value) else []
    return call.result(call.nodes(call.shape, *reads, *own(elements)))


@rule("multinomial")
def multinomial(call: Call, weights: Value, *_: Any, **__: Any) -> Value:
    """Draw numbers by weights: the draw is random, what it is drawn from is read."""
    return call.result(call.nodes(call.shape, Read(weights.codes.unsqueeze(-2), 1)))


@rule("_pdist_forward")
def pdist(call: Call, rows: Value, *_: Any) -> Value:
    """Return the distances between all pairs of rows."""
    left, right = torch.triu_indices(rows.shape[0], rows.shape[0], 1)
    return call.result(call.nodes(call.shape, Read(rows.codes[left], 1), Read(rows.codes[right], 1)))


def own(value: Any) -> list[Read]:
    """Read a tensor at each element's own place; a number is not read."""
    return [Read(value.codes)] if isinstance(value, Value) else []
