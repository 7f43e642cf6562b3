"""Elementwise operators over intervals: what comes out, and whether an argument makes a difference to it.

There is one question for all of them: is the result the same, bit for bit, wherever in its interval an argument lies?
It is answered by running the operator itself, in the dtypes that it really computes in, on the ends of the intervals
and on all numbers between them at which it turns (see `turning`).
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from depgraph.rules.values.codes import core
from depgraph.rules.values.intervals import NEARLY, STRETCH, fitted, same, within
from depgraph.rules.values.samples import Span, numbers_in, samples_of, spans_of
from depgraph.rules.values.turning import (
    DIVISIONS,
    IMAGES,
    LINEAR,
    LOOKS,
    POWERS,
    PRODUCTS,
    SETTLED_BY,
    TURNS,
    packet_of,
)
from depgraph.rules.values.value import ORDINARY, RANGED, Value, swap, usual, widest

# What scores are like: what comes of numbers no larger than this has the sign that it shows.
SCORE = 64.0
# Numbers at which operators turn or are degenerate, and two at which none is: 0 and 1 stay the same to any power, and a
# logarithm is 0 of 1.
SPECIAL, GENERIC_ONES = (-1.0, 0.0, 1.0), (-0.61, 0.37)
NOWHERE = torch.zeros((), dtype=torch.bool)


@dataclass(frozen=True)
class Outcome:
    """What an operator makes of intervals; all tensors broadcast to the result's shape.

    Attributes
    ----------
    low, high : tensor
        The interval of the result.
    nan : bool tensor
        Where it may be NaN besides.
    dead : list of bool tensor
        For each tensor argument, where it makes no difference.
    """

    low: Tensor
    high: Tensor
    nan: Tensor
    dead: list[Tensor]

    def spread(self, places: Tensor) -> Outcome:
        """Return it for places of which each is given as the number of one of its own."""

        def at(tensor: Tensor) -> Tensor:
            return tensor.reshape(()) if tensor.numel() == 1 else tensor[places]

        return Outcome(at(self.low), at(self.high), at(self.nan), [at(d) for d in self.dead])


def judge(op: Any, args: Any, kwargs: Any, tensors: list[Value], shape: torch.Size, dtype: torch.dtype) -> Outcome:
    """Return what an elementwise operator makes of its arguments.

    Parameters
    ----------
    op : OpOverload
    args, kwargs
        Its arguments, with `Value` for tensors.
    tensors : list of Value
        These tensors, in the order of the arguments.
    shape, dtype
        Of the result.
    """
    if not all(t.plain for t in tensors):
        return _judge(op, args, kwargs, tensors, shape, dtype)
    # Of plain arguments all that counts is their dtypes, and whether they have axes.
    stand_ins: dict[int, Value] = {id(t): Value(_one(t, shape), None, t.dtype) for t in tensors}
    args, kwargs = (swap(tree, lambda v: stand_ins[id(v)]) for tree in (args, kwargs))
    key = (op, repr(swap((args, kwargs), lambda v: (v.dtype, v.ndim))), bool(shape), dtype)
    if key not in _PLAIN:
        given = [stand_ins[id(t)] for t in tensors]
        found = _judge(op, args, kwargs, given, torch.Size((1,) if shape else ()), dtype)
        low, high, nan = (core(t).reshape(()) for t in (found.low, found.high, found.nan))
        _PLAIN[key] = Outcome(low, high, nan, [core(d).reshape(()) for d in found.dead])
    return _PLAIN[key]


_PLAIN: dict[Any, Outcome] = {}


def _one(value: Value, shape: torch.Size) -> Tensor:
    return torch.ones((1,) if value.ndim and shape else (), dtype=torch.int64)


def _judge(op: Any, args: Any, kwargs: Any, tensors: list[Value], shape: torch.Size, dtype: torch.dtype) -> Outcome:
    """Try the operator, where that tells; else see which arguments settle the result, and whether it is ordinary."""
    packet = packet_of(op)
    turns = TURNS.get(packet, () if all(t.dtype == torch.bool for t in tensors) else None)
    ranged = dtype in RANGED and all(t.dtype in RANGED for t in tensors)
    spans, places = spans_of(tensors, shape, ranged)
    case = Case(op, packet, args, kwargs, spans, dtype, list(numbers_in((args, kwargs))))
    if turns is None or not ranged or len(tensors) > 3 or (packet in POWERS and not _real_power(args, spans)):
        found = _untried(case)
    else:
        found = _tried(case, _lists(case, [*SPECIAL, *GENERIC_ONES, *turns]))
    return found if places is None else found.spread(places)


@dataclass(frozen=True)
class Case:
    """One operator and the intervals of its arguments."""

    op: Any
    packet: Any
    args: Any
    kwargs: Any
    spans: list[Span]
    dtype: torch.dtype
    numbers: list[float]

    @property
    def single(self) -> Tensor:
        """Where all arguments are single numbers."""
        return _all([s.single for s in self.spans])

    def run(self, given: Sequence[Tensor]) -> Tensor:
        """Run the operator on other tensors, in the order in which its own are found."""
        rest = iter(given)
        args, kwargs = (swap(tree, lambda _: next(rest)) for tree in (self.args, self.kwargs))
        with torch.no_grad():
            result: Tensor = self.op(*args, **kwargs)
        return result


def _lists(case: Case, turns: list[float]) -> list[list[Tensor]]:
    """Return where each argument is tried."""
    lists = [samples_of(span, turns, case.numbers) for span in case.spans]
    if len(lists) == 2 and case.packet not in PRODUCTS:  # where one argument may be equal to the other
        ends = [samples[:2] for samples in lists]
        for mine, its, span, other in zip(lists, ends[::-1], case.spans, case.spans[::-1], strict=True):
            if len(mine) > 1 and other.low.dtype == span.low.dtype != torch.bool:
                mine += [end.clamp(span.low, span.high) for end in its]
    if case.packet in LOOKS:
        for samples, span in zip(lists, case.spans, strict=True):
            if len(samples) > 1 and span.low.is_floating_point():
                least, most = widest(span.low.dtype)
                samples += [torch.where(span.high == most, n, span.high) for n in (math.inf, math.nan)]
                samples.append(torch.where(span.low == least, -math.inf, span.low))
    if case.packet in DIVISIONS and case.kwargs.get("rounding_mode") and len(lists) == 2:
        # Whole numbers are not divided by 0.
        lists[1] = [s if s.is_floating_point() else torch.where(s == 0, 1, s) for s in lists[1]]
    return lists


def _real_power(args: Any, spans: list[Span]) -> bool:
    """Tell whether a power can be tried: not of what may be negative, to an exponent that is not known."""
    if not isinstance(args[0], Value):
        return bool(args[0] >= 0)
    return len(spans) < 2 or bool((spans[1].single | (spans[0].low >= 0)).all())


def _tried(case: Case, lists: list[list[Tensor]]) -> Outcome:
    """Run the operator on all combinations of samples."""
    single, spans = case.single, case.spans
    ends = Ends()
    lines: list[defaultdict[tuple[int, ...], Agreement]] = [defaultdict(Agreement) for _ in spans]
    nan = over = NOWHERE
    for where in itertools.product(*(range(len(samples)) for samples in lists)):
        given = [samples[i] for samples, i in zip(lists, where, strict=True)]
        result = case.run(given)
        no = NOWHERE
        if result.is_floating_point():
            # NaN of finite numbers is nothing that a model computes: it takes logarithms of what is not negative.
            finite = _all([g.isfinite() for g in given if g.is_floating_point()])
            no = result.isnan() & finite & ~single & torch.tensor(all(map(math.isfinite, case.numbers)))
            nan = nan | (result.isnan() & ~no)
        elif result.dtype != torch.bool:
            over = over | _runs_over(case, given, result)
        ends.add(result, no)
        if len(spans) > 1:
            for k, line in enumerate(lines):  # along which only that argument changes
                line[where[:k] + where[k + 1 :]].add(result, no)
    low, high = ends.low, ends.high
    settled = ends.settled & (~over | single)
    if low.is_floating_point():
        low, high = _confined(case, lists, low, high, settled)
    elif low.dtype != torch.bool:
        least, most = widest(low.dtype)
        low, high = torch.where(over & ~single, least, low), torch.where(over & ~single, most, high)
    several = sum((~s.single).int() for s in spans) > 1
    dead = [settled | (_all([part.settled for part in line.values()]) & several) for line in lines]
    return Outcome(fitted(low, case.dtype), fitted(high, case.dtype), nan & ~settled, dead)


class Agreement:
    """Whether some results are all the same."""

    def __init__(self) -> None:
        self.settled = ~NOWHERE
        self.first: Tensor | None = None
        self.none = NOWHERE

    def add(self, result: Tensor, no: Tensor) -> None:
        """Count a result in, but for where it does not count."""
        if self.first is None:
            self.first, self.none = result, no
            return
        self.settled = self.settled & (same(self.first, result) | no | self.none)
        if bool(self.none.any()):
            self.first, self.none = torch.where(self.none & ~no, result, self.first), self.none & no


class Ends(Agreement):
    """The least and the largest of some results, besides."""

    low: Tensor
    high: Tensor

    def add(self, result: Tensor, no: Tensor) -> None:
        """Count a result in."""
        if self.first is None:
            self.low = self.high = result
        elif result.is_floating_point():
            self.low, self.high = torch.fmin(self.low, result), torch.fmax(self.high, result)
        elif result.dtype == torch.bool:
            self.low, self.high = self.low & result, self.high | result
        else:
            self.low, self.high = torch.minimum(self.low, result), torch.maximum(self.high, result)
        super().add(result, no)


def _all(masks: Sequence[Tensor]) -> Tensor:
    found = ~NOWHERE
    for mask in masks:
        found = found & mask
    return found


def _runs_over(case: Case, given: list[Tensor], result: Tensor) -> Tensor:
    """Return where whole numbers ran over what their type holds: there, floating-point ones come to something else."""
    try:
        exact = case.run([g.double() for g in given])
    except RuntimeError:  # there is no such operator for floating-point numbers, and it does not run over
        return NOWHERE
    return (result.double() - exact).abs() > 0.5 + 1e-6 * exact.abs()


def _confined(
    case: Case, lists: list[list[Tensor]], low: Tensor, high: Tensor, settled: Tensor
) -> tuple[Tensor, Tensor]:
    """Hold what is made of ordinary numbers for ordinary, unless it is linear in the one that is not known."""
    spans, packet = case.spans, case.packet
    count = sum((~s.single).int() for s in spans)
    calm = _all([s.finite for s in spans]) & ~settled
    # An end that is infinite though all arguments are finite is the largest there is; so is one that is no number.
    least, most = widest(low.dtype)
    low, high = (torch.where(calm & ~end.isfinite() & ~end.isnan(), end.clamp(least, most), end) for end in (low, high))
    low, high = torch.where(low.isnan() & ~settled, least, low), torch.where(high.isnan() & ~settled, most, high)
    sole = count < 2 if packet in LINEAR else count < 1
    if packet in DIVISIONS and len(spans) == 2:
        sole = sole & spans[1].single
    calm = calm & ~sole & ~torch.tensor(any(abs(n) > STRETCH for n in case.numbers))
    calm = calm & _all([~s.single | ((s.size <= STRETCH) & ((s.size >= 1 / STRETCH) | (s.size == 0))) for s in spans])
    limit = torch.tensor(ORDINARY, dtype=torch.float64)
    for place, s in enumerate(spans):
        if packet not in LINEAR or (packet in DIVISIONS and place):
            calm = calm & (s.single | (s.size >= 1 / STRETCH))
        if packet in PRODUCTS and len(spans) == 2:
            if not (packet in DIVISIONS and place):
                limit = limit * torch.where(s.single, 1.0, (s.size / ORDINARY).clamp(min=1.0))
        else:
            calm = calm & (s.single | (s.size <= NEARLY))
    if not bool(calm.any()):
        return low, high
    if packet not in LINEAR:
        low, high = _signed(case, lists, low, high, calm)
    return within((low, high), limit, calm)


def _signed(case: Case, lists: list[list[Tensor]], low: Tensor, high: Tensor, where: Tensor) -> tuple[Tensor, Tensor]:
    """Keep the sign that ordinary scores give: that the exponential of some number is 0 is no matter."""
    mild = Ends()
    for given in itertools.product(*lists):
        scores = [
            torch.where(s.single, g, g.clamp(-SCORE, SCORE)) if g.is_floating_point() else g
            for s, g in zip(case.spans, given, strict=True)
        ]
        mild.add(case.run(scores), NOWHERE)
    low = torch.where(where & (mild.low > 0) & (low <= 0), mild.low.clamp(max=1.0), low)
    return low, torch.where(where & (mild.high < 0) & (high >= 0), mild.high.clamp(min=-1.0), high)


def _untried(case: Case) -> Outcome:
    """Return what is certain of an operator that cannot be tried."""
    spans, dtype, settled = case.spans, case.dtype, NOWHERE
    for test, span, other in zip(SETTLED_BY.get(case.packet, ()), spans, spans[::-1], strict=False):
        if test is not None:
            settled = settled | (span.single & test(span.low.to(dtype)) & (other.finite | ~other.single))
    sure, value = case.single | settled, None
    if bool(sure.any()):
        value = case.run([torch.where(s.single, s.low, torch.ones((), dtype=s.low.dtype)) for s in spans]).to(dtype)
    low, high = usual(dtype)
    nan = NOWHERE
    if case.packet in IMAGES:
        low, high = (torch.tensor(end, dtype=dtype) for end in IMAGES[case.packet])
    if dtype in RANGED and dtype.is_floating_point:
        ranged = [s for s in spans if s.low.dtype in RANGED]
        nan = ~_all([s.finite for s in ranged]) & ~sure
        if case.packet not in IMAGES:
            least, most = widest(dtype)
            ordinary = _all([s.size <= torch.where(s.single, STRETCH, NEARLY) for s in ranged]) & ~nan
            ordinary = ordinary & ~torch.tensor(any(abs(n) > STRETCH for n in case.numbers))
            low, high = torch.where(ordinary, low, least), torch.where(ordinary, high, most)
    if value is not None:
        low, high = torch.where(sure, value, low), torch.where(sure, value, high)
    return Outcome(low, high, nan, [settled for _ in spans])
