"""What an operator reads, found by trying: elements are changed one at a time, and gradients looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from tests.conformance.samples import Sample, results

Bools = npt.NDArray[np.bool_]


@dataclass
class Measured:
    """For one input tensor: which of its elements (rows, those in ``picked``) each output element depends on.

    Attributes
    ----------
    picked : int array
        The elements that were tried, row-major numbers.
    shown : bool array (picked, outputs)
        A finite result changed to another finite one, or the gradient is not zero.
    possible : bool array (picked, outputs)
        The result changed in any way.
    """

    picked: npt.NDArray[np.int64]
    shown: Bools
    possible: Bools


def start(sample: Sample, most: int) -> list[Measured]:
    """Return what is known before anything was tried; at most so many elements of each tensor will be."""
    outs = sum(t.numel() for t in sample.run(sample.tensors))
    found = []
    for tensor in sample.tensors:
        size = tensor.numel()
        picked = np.random.default_rng(0).permutation(size)[:most] if size > most else np.arange(size)
        picked = np.sort(picked)
        found.append(Measured(picked, np.zeros((len(picked), outs), bool), np.zeros((len(picked), outs), bool)))
    return found


def perturb(sample: Sample, tensors: list[torch.Tensor], found: list[Measured], seed: int, want: list[Bools]) -> None:
    """Change elements of the tensors one at a time and add what that changes in the results.

    Elements whose row holds all that is wanted already are passed over.
    """
    try:
        base = _flat(sample.run(tensors, seed))
    except Exception:  # values that the operator does not take
        return
    if base is None or len(base) != found[0].shown.shape[1]:
        return
    truths = _is_bool(sample.run(tensors, seed))
    largest = max((min(t.numel(), 64) for t in tensors), default=1)
    state = torch.default_generator.get_state()
    for place, (tensor, seen) in enumerate(zip(tensors, found, strict=True)):
        rng = np.random.default_rng(seed)
        for row, element in enumerate(seen.picked):
            if not (want[place][row] & ~seen.shown[row]).any() and seed > 0:
                continue
            for special, value in probes(tensor, int(element), rng, largest):
                if special and not truths.any():
                    continue
                changed = tensor.clone()
                changed[np.unravel_index(int(element), tuple(tensor.shape))] = value
                given = [*tensors[:place], changed, *tensors[place + 1 :]]
                try:
                    after = _flat(sample.run(given, seed))
                except Exception:  # outside of the operator's domain: nothing is learnt
                    continue
                if not torch.equal(torch.default_generator.get_state(), state):
                    continue  # it drew other random numbers: no fault of the element's value
                if after is None or len(after) != len(base):
                    seen.shown[row] = seen.possible[row] = True  # whether elements exist depends on it
                    continue
                differs = (after != base) & ~(np.isnan(after) & np.isnan(base))
                if special:
                    seen.possible[row] |= differs & truths
                    continue
                seen.possible[row] |= differs
                seen.shown[row] |= differs & np.isfinite(after) & np.isfinite(base)


def probes(tensor: torch.Tensor, element: int, rng: np.random.Generator, largest: int) -> list[tuple[bool, Any]]:
    """Return other values for an element, each with whether it is no ordinary number."""
    flat = tensor.reshape(-1)
    if tensor.is_floating_point() and tensor.dtype.itemsize < 4:
        flat = flat.float()
    old = flat[element]
    if tensor.dtype == torch.bool:
        return [(False, not bool(old))]
    if tensor.is_floating_point() or tensor.is_complex():
        ordinary = [old * 1.001 + 1e-3, old * 0.7, old * 0, old + 1e4, flat[int(rng.integers(len(flat)))], -old]
        if tensor.is_complex():
            ordinary += [old * 1.1j, old + 0.01j]
        else:
            ordinary += [flat.max() + 0.5, flat.min() - 0.5]
        return [(False, v) for v in ordinary if v != old] + [(True, float(v)) for v in ("inf", "-inf", "nan")]
    low, high = int(flat.min()), int(flat.max())
    if high - low <= 6:
        values = list(range(low, high + 1))
    else:
        values = [low, high, *(int(v) for v in rng.integers(low, high + 1, 3))]
    if low >= 0:
        values += [int(v) for v in rng.integers(0, max(high + 2, largest), 4)]
    else:
        values += [0, high + 1, low - 1]
    return [(False, v) for v in values if v != int(old)]


def differentiate(sample: Sample, found: list[Measured], most: int) -> list[Bools]:
    """Return where the Jacobian is not zero, looking at so many elements of the output."""
    slopes = [np.zeros_like(seen.shown) for seen in found]
    variables = [t.clone().requires_grad_(t.is_floating_point() or t.is_complex()) for t in sample.tensors]
    wanted = [place for place, v in enumerate(variables) if v.requires_grad]
    torch.default_generator.manual_seed(0)
    try:
        outs = results(sample(*(v.clone() for v in variables))) if wanted else []
    except Exception:  # no derivative
        return slopes
    start = 0
    for out in outs:
        first, start = start, start + out.numel()
        if not out.requires_grad or not (out.is_floating_point() or out.is_complex()):
            continue
        picks = np.random.default_rng(1).permutation(out.numel())[:most]
        for element in picks:
            flat = out.reshape(-1)[int(element)]
            flat = flat.real if flat.is_complex() else flat
            try:
                grads = torch.autograd.grad(flat, [variables[i] for i in wanted], retain_graph=True, allow_unused=True)
            except RuntimeError:
                return slopes
            for place, grad in zip(wanted, grads, strict=True):
                if grad is not None:
                    size = np.nan_to_num(grad.abs().reshape(-1).numpy(), posinf=0)
                    hit = size > 1e-9 * max(1.0, size.max(initial=0))
                    slopes[place][:, first + int(element)] = hit[found[place].picked]
    for seen, slope in zip(found, slopes, strict=True):
        seen.possible |= slope
    return slopes


def confirm(sample: Sample, found: list[Measured], suspects: list[Bools]) -> None:
    """Look again at pairs that only a derivative speaks for: PyTorch's own derivatives are not all right."""
    base = _flat(sample.run(sample.tensors))
    for place, (tensor, seen, suspect) in enumerate(zip(sample.tensors, found, suspects, strict=True)):
        for row in np.flatnonzero((suspect & ~seen.shown).any(1)):
            for step in (1e-6, 1e-3, 1.0, -1.0, 1e3):
                changed = tensor.clone()
                changed[np.unravel_index(int(seen.picked[row]), tuple(tensor.shape))] += step
                try:
                    after = _flat(sample.run([*sample.tensors[:place], changed, *sample.tensors[place + 1 :]]))
                except Exception:
                    continue
                if after is not None and base is not None and len(after) == len(base):
                    seen.shown[row] |= (after != base) & np.isfinite(after) & np.isfinite(base)


def _flat(outs: list[torch.Tensor]) -> npt.NDArray[Any] | None:
    if any(o.layout != torch.strided for o in outs):
        outs = [o.to_dense() if o.layout != torch.strided else o for o in outs]
    parts = [o.resolve_conj().resolve_neg().reshape(-1) for o in outs]
    parts = [p.to(torch.complex128) if p.is_complex() else p.to(torch.float64) for p in parts]
    return np.concatenate([p.numpy() for p in parts]) if parts else None


def _is_bool(outs: list[torch.Tensor]) -> Bools:
    return np.concatenate([np.full(o.numel(), o.dtype == torch.bool) for o in outs])
