"""Rounding to few numbers and back.

Reads: quantised     out[i] ← x[i] and the scale and the zero point that go with it: one for all, one a channel, one a
                     token or one a group of elements of the last axis
       scales        by tensor ← all of x; by token ← x[…, all along the last axis]
"""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.utils import _pytree as pytree

from depgraph.rules.arguments import tensors_in
from depgraph.rules.call import Call, Read
from depgraph.rules.elementwise import outputs
from depgraph.rules.reduction import argument, everything
from depgraph.rules.registry import rule
from depgraph.rules.values import Value, forget


def decomposed(*names: str) -> tuple[str, ...]:
    """Return names in the namespace of operators that quantised models are exported with."""
    return tuple(f"quantized_decomposed::{name}" for name in names)


@rule("fake_quantize_per_tensor_affine", "fake_quantize_per_tensor_affine_cachemask")
@rule("_fake_quantize_per_tensor_affine_cachemask_tensor_qparams", "_fake_quantize_learnable_per_tensor_affine")
@rule("fake_quantize_per_channel_affine", "fake_quantize_per_channel_affine_cachemask")
@rule("_fake_quantize_learnable_per_channel_affine")
@rule(*decomposed("quantize_per_tensor", "quantize_per_channel", "quantize_per_token", "quantize_per_channel_group"))
@rule(*decomposed("dequantize_per_tensor", "dequantize_per_channel", "dequantize_per_token"))
@rule(*decomposed("dequantize_per_channel_group", "fake_quant_per_channel", "convert_element_type"))
def quantised(call: Call, x: Value, *args: Any, **kwargs: Any) -> Any:
    """Read each element and the scale and zero point that go with it."""
    axis = argument(call, "axis", (x, *args), kwargs)
    reads = [Read(x.codes), *(Read(beside(t.codes, x, axis)) for t in tensors_in(args, kwargs))]
    return outputs(call, call.nodes(call.shape, *reads))


def beside(codes: Tensor, x: Value, axis: int | None) -> Tensor:
    """Arrange a scale, or one for each part of a tensor, to broadcast against it."""
    if codes.numel() == 1:
        return codes.reshape(())
    if axis is not None:
        return codes.reshape([-1 if a == axis % x.ndim else 1 for a in range(x.ndim)])
    if codes.shape[-1] not in (1, x.shape[-1]):
        return codes.repeat_interleave(x.shape[-1] // codes.shape[-1], -1)
    return codes


@rule(*decomposed("choose_qparams", "choose_qparams_symmetric"))
def scale_of_all(call: Call, x: Value, *args: Any, **kwargs: Any) -> Any:
    """Read the whole tensor."""
    return everything(call, x, *args, **kwargs)


@rule(*decomposed("choose_qparams_per_token", "choose_qparams_per_token_asymmetric"))
@rule(*decomposed("_choose_qparams_per_token_asymmetric_impl"))
def scale_of_each(call: Call, x: Value, *_: Any, **__: Any) -> Any:
    """Read along the last axis."""
    codes = forget(call.nodes(call.shape, Read(x.codes.unsqueeze(-2), 1)))
    return pytree.tree_map_only(Tensor, lambda m: Value(codes, None, m.dtype), call.meta)
