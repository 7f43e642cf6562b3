"""The operator that stands in a graph for what Python computes."""

from __future__ import annotations

import torch

ITEM = torch.ops.aten.item.default


# Tagged as random, lest PyTorch runs it where all that it reads is constant.
@torch.library.custom_op("depgraph::python", mutates_args=(), tags=(torch.Tag.nondeterministic_seeded,))
def python(value: torch.Tensor, read: list[torch.Tensor]) -> torch.Tensor:
    """Return a tensor that Python computed from what it read of others."""
    return value.clone()


@python.register_fake
def _(value: torch.Tensor, read: list[torch.Tensor]) -> torch.Tensor:
    return torch.empty_like(value)


PYTHON = torch.ops.depgraph.python.default
