"""What an operator reads, found by trying: elements are changed one at a time, and gradients looked at."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from tests.conformance.samples import Sample, results

LATER = 4  # after the first draw of values, so many others are tried for each element

Bools = npt.NDArray[np.bool_]
Arrays = list[npt.NDArray[Any]]


@dataclass
class Measured:
    """For one input tensor: which of its elements (rows, those in ``picked``) each output element depends on.

    Attributes
    ----------
    picked : int array
        The elements that are tried, row-major numbers.
    shown : bool array (picked, outputs)
        A finite result changed to another finite one.
    possible : bool array (picked, outputs)
        The result changed in any way, or a derivative is not zero.
    """

    picked: npt.NDArray[np.int64]
    shown: Bools
    possible: Bools


def start(sample: Sample, most: int) -> list[Measured]:
    """Return what is known before anything was tried; at most so many elements of each tensor will be."""
    with steady():
        outs = sum(t.numel() for t in sample.run(sample.tensors))
    found = []
    for tensor in sample.tensors:
        picked = np.sort(np.random.default_rng(0).permutation(tensor.numel())[:most])
        found.append(Measured(picked, np.zeros((len(picked), outs), bool), np.zeros((len(picked), outs), bool)))
    return found


def perturb(
    sample: Sample, tensors: list[torch.Tensor], found: list[Measured], seed: int, want: list[Bools], budget: int
) -> int:
    """Change elements of the tensors one at a time and add what that changes in the results.

    Elements of which all that is wanted has been seen are passed over.

    Returns
    -------
    int
        How often the operator may still be run, of ``budget`` times.
    """
    with steady():
        try:
            base = _arrays(sample, tensors, seed)
        except Exception:  # values that the operator does not take
            return budget - 1
        drawn = torch.default_generator.get_state()
        truths = np.concatenate([np.full(a.size, a.dtype == bool) for a in base])
        if [a.shape for a in base] != [tuple(t.shape) for t in sample.run(sample.tensors)]:
            return budget - 1  # sizes are those of the example
        largest = max(min(t.numel(), 64) for t in tensors)
        pool = np.concatenate([t.double().numpy().ravel() for t in tensors if t.is_floating_point()] or [np.zeros(1)])
        for place, (tensor, seen) in enumerate(zip(tensors, found, strict=True)):
            rng = np.random.default_rng(seed)
            for row, element in enumerate(seen.picked.tolist()):
                if seed and not (want[place][row] & ~seen.possible[row]).any():
                    continue
                tries = probes(tensor, element, rng, largest, pool)
                if seed and len(tries) > LATER:
                    tries = [tries[k] for k in rng.choice(len(tries), LATER, replace=False)]
                for special, value in tries:
                    if budget <= 0:
                        return 0
                    if special and not truths.any():
                        continue
                    budget -= 1
                    differs, finite = _difference(sample, tensors, place, element, value, seed, base, drawn)
                    if special:
                        seen.possible[row] |= differs & truths
                    else:
                        seen.possible[row] |= differs
                        seen.shown[row] |= differs & finite
    return budget


def _difference(
    sample: Sample, tensors: list[torch.Tensor], place: int, element: int, value: Any, seed: int, base: Arrays,
    drawn: torch.Tensor,
) -> tuple[Any, Any]:  # fmt: skip
    """Return which results change with one element, and which are finite before and after."""
    changed = tensors[place].clone()
    changed[np.unravel_index(element, tuple(changed.shape))] = value
    try:
        after = _arrays(sample, [*tensors[:place], changed, *tensors[place + 1 :]], seed)
    except Exception:  # outside of the operator's domain: nothing is learnt
        return False, False
    if not torch.equal(torch.default_generator.get_state(), drawn):
        return False, False  # it drew other random numbers: no fault of the element's value
    if [a.shape for a in after] != [b.shape for b in base]:
        return True, True  # whether elements exist depends on it
    differs = [(a != b) & ~((a != a) & (b != b)) for a, b in zip(after, base, strict=True)]
    finite = [np.isfinite(a) & np.isfinite(b) for a, b in zip(after, base, strict=True)]
    return np.concatenate([d.ravel() for d in differs]), np.concatenate([f.ravel() for f in finite])


def probes(
    tensor: torch.Tensor, element: int, rng: np.random.Generator, largest: int, pool: npt.NDArray[Any]
) -> list[tuple[bool, Any]]:
    """Return other values for an element, each with whether it is no ordinary number."""
    flat = tensor.reshape(-1)
    if tensor.is_complex():
        z = complex(flat[element])
        other = complex(flat[int(rng.integers(len(flat)))])
        values = [z * 1.001 + 1e-3, z * 0.7, 0, z + 1e4, other, -z, z * 1.1j, z + 0.01j]
        return [(False, v) for v in values if v != z]
    if tensor.dtype == torch.bool:
        return [(False, not bool(flat[element]))]
    flat = flat.double() if tensor.is_floating_point() else flat
    low, high, old = flat.min().item(), flat.max().item(), flat[element].item()
    if tensor.is_floating_point():
        values = [old * 1.001 + 1e-3, old * 0.7, 0.0, old + 1e4, -old, high + 0.5, low - 0.5, *rng.choice(pool, 3)]
        return [(False, v) for v in values if v != old] + [(True, float(v)) for v in ("inf", "-inf", "nan")]
    values = list(range(low, high + 1)) if high - low <= 6 else [low, high, *rng.integers(low, high + 1, 3).tolist()]
    if low >= 0:
        values += rng.integers(0, max(high + 2, largest), 4).tolist()
    else:
        values += [0, high + 1, low - 1]
    return [(False, v) for v in values if v != old]


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
        if out.layout != torch.strided or not out.requires_grad or not (out.is_floating_point() or out.is_complex()):
            continue
        for element in np.random.default_rng(1).permutation(out.numel())[:most].tolist():
            flat = out.reshape(-1)[element]
            flat = flat.real if flat.is_complex() else flat
            try:
                grads = torch.autograd.grad(flat, [variables[i] for i in wanted], retain_graph=True, allow_unused=True)
            except RuntimeError:  # no derivative after all
                return slopes
            for place, grad in zip(wanted, grads, strict=True):
                if grad is not None:
                    size = np.nan_to_num(grad.to_dense().abs().reshape(-1).numpy(), posinf=0)
                    hit = size > 1e-9 * max(1.0, size.max(initial=0))
                    slopes[place][:, first + element] = hit[found[place].picked]
    for seen, slope in zip(found, slopes, strict=True):
        seen.possible |= slope
    return slopes


def confirm(sample: Sample, found: list[Measured], suspects: list[Bools]) -> None:
    """Look again at pairs that only a derivative speaks for: PyTorch's own derivatives are not all right."""
    with steady():
        base = _arrays(sample, sample.tensors, 0)
        drawn = torch.default_generator.get_state()
        for place, (seen, suspect) in enumerate(zip(found, suspects, strict=True)):
            for row in np.flatnonzero((suspect & ~seen.shown).any(1)):
                element = int(seen.picked[row])
                old = sample.tensors[place].reshape(-1)[element]
                for step in (1e-6, 1e-3, 1.0, -1.0, 1e3):
                    differs, finite = _difference(sample, sample.tensors, place, element, old + step, 0, base, drawn)
                    seen.shown[row] |= differs & finite


@contextlib.contextmanager
def steady() -> Iterator[None]:
    """Run without derivatives, and with memory that nobody writes to filled alike."""
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        with torch.no_grad():
            yield
    finally:
        torch.use_deterministic_algorithms(False)


def _arrays(sample: Sample, tensors: list[torch.Tensor], seed: int) -> Arrays:
    torch.default_generator.manual_seed(seed)  # torch.manual_seed looks for accelerators, slowly
    arrays = []
    for out in sample.run(tensors):
        if out.layout != torch.strided:
            out = out.to_dense()
        if out.is_complex() or out.is_neg():
            out = out.resolve_conj().resolve_neg()
        if out.is_floating_point() and out.dtype.itemsize < 4:
            out = out.float()
        if out.dtype == torch.complex32:
            out = out.to(torch.complex64)
        arrays.append(out.numpy())
    return arrays
