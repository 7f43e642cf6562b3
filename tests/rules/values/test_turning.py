"""Every entry of the tables about elementwise operators, against the operators themselves."""

import math

import pytest
import torch

from depgraph.rules.values import FIRST, ORDINARY, Value, known, uniform
from depgraph.rules.values.intervals import bounded
from depgraph.rules.values.pointwise import judge
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

INFINITE = (-math.inf, math.inf, math.nan)


def overload(packet):
    """Return the overload that takes tensors alone, and the numbers of tensors and of further numbers it takes."""
    ops = [getattr(packet, name) for name in packet.overloads() if not name.endswith("out")]
    pointwise = [op for op in ops if torch.Tag.pointwise in op.tags and not op._schema.is_mutable]
    given = [
        [
            "Tensor" if "Tensor" in str(a.type) else str(a.type)
            for a in op._schema.arguments
            if not a.has_default_value() or "Tensor" in str(a.type)
        ]
        for op in pointwise
    ]
    most = max(range(len(given)), key=lambda k: given[k].count("Tensor"))
    return pointwise[most], given[most]


def arguments(op, kinds, drawn):
    """Return what to call it with: tensors as they are drawn, 0.75 wherever a number is needed."""
    rest = iter(drawn)
    return tuple(next(rest) if kind == "Tensor" else (0.75 if kind == "number" else 1) for kind in kinds)


def ordered(packets):
    return sorted(packets, key=str)


def ids(packets):
    return [str(packet) for packet in packets]


@pytest.mark.parametrize("packet", TURNS, ids=ids(TURNS))
@pytest.mark.parametrize("scale", [1.0, 3.0, 2e4])
def test_what_comes_of_intervals_lies_in_the_interval_that_is_found(packet, scale):
    op, kinds = overload(packet)
    count = kinds.count("Tensor")
    generator = torch.Generator().manual_seed(count + int(scale))
    ends = torch.rand(2, count, 40, dtype=torch.float64, generator=generator) * 2 * scale - scale
    ends = torch.where(torch.rand(ends.shape, generator=generator) < 0.2, ends.round(), ends)
    low, high = ends.amin(0), ends.amax(0)
    for fixed in range(2 ** (count - 1)):  # some of the arguments may be known
        tops = [torch.where(torch.tensor(bool(fixed >> k & 1)), low[k], high[k]) for k in range(count)]
        if packet in POWERS:
            low[0] = low[0].abs().minimum(high[0].abs())
            tops[0] = tops[0].maximum(low[0])
        values = [bounded(uniform(FIRST, (40,)), low[k], tops[k], torch.float64) for k in range(count)]
        args = arguments(op, kinds, values)
        sample = op(*arguments(op, kinds, [v.low if v.low is not None else v.bounds[0] for v in values]))
        found = judge(op, args, {}, values, torch.Size((40,)), sample.dtype)
        least, most = found.low.expand(40), found.high.expand(40)
        for _ in range(25):
            share = torch.rand(count, 40, dtype=torch.float64, generator=generator)
            drawn = [low[k] + (tops[k] - low[k]) * share[k] for k in range(count)]
            result = op(*arguments(op, kinds, drawn))
            inside = (result >= least) & (result <= most) | (result != result)
            # What is taken to be ordinary, or not to vanish, is the assumption and no claim about the operator.
            assumed = (result.double().abs() > ORDINARY) | (result.double().abs() < 1e-20)
            assert bool((inside | assumed).all()), (result[~inside], least[~inside], most[~inside])
            for k in range(count):
                other = [*drawn]
                other[k] = low[k] + (tops[k] - low[k]) * torch.rand(40, dtype=torch.float64, generator=generator)
                again = op(*arguments(op, kinds, other))
                changed = (again != result) & (again == again) & (result == result)
                assert not bool((changed & found.dead[k].expand(40)).any())


@pytest.mark.parametrize("packet", ordered(LINEAR), ids=str)
def test_linear_operators_grow_no_faster_than_their_arguments(packet):
    op, kinds = overload(packet)
    x = torch.linspace(-1, 1, 41, dtype=torch.float64) * 1e6
    other = torch.full((41,), 0.5, dtype=torch.float64)
    results = [op(*arguments(op, kinds, [x * factor, other, other])) for factor in (1, 10)]
    assert bool((results[1].abs() <= 10 * results[0].abs() + 100).all())


@pytest.mark.parametrize("packet", ordered(PRODUCTS), ids=str)
def test_products_are_as_many_times_larger_as_their_factors(packet):
    x, y = torch.tensor([3.0, -7.0]), torch.tensor([0.5, -0.25])
    assert packet in LINEAR
    torch.testing.assert_close(packet(x * 1024, y), 1024 * packet(x, y))


@pytest.mark.parametrize("packet", ordered(DIVISIONS), ids=str)
def test_divisions_divide_by_their_second_argument(packet):
    assert packet(torch.tensor(3.0), torch.tensor(4.0)) == 0.75


@pytest.mark.parametrize("packet", ordered(POWERS), ids=str)
def test_powers_turn_with_the_sign_of_their_base_and_the_parity_of_their_exponent(packet):
    assert packet(torch.tensor([-2.0, 2.0]), torch.tensor([3.0, 2.0])).tolist() == [-8.0, 4.0]
    assert bool(packet(torch.tensor(-2.0), torch.tensor(0.5)).isnan())


@pytest.mark.parametrize("packet", ordered(LOOKS), ids=str)
def test_what_looks_at_infinities_tells_them_from_numbers(packet):
    top = torch.finfo(torch.float64).max
    finite = packet(torch.tensor([1.0, top / 2], dtype=torch.float64)).double().tolist()
    assert any(packet(torch.tensor(x, dtype=torch.float64)).double() != finite[0] for x in INFINITE)
    assert packet in TURNS


@pytest.mark.parametrize("packet", IMAGES, ids=ids(IMAGES))
def test_images_hold_all_results_and_are_reached(packet):
    x = torch.cat([torch.linspace(-1, 1, 2001), torch.linspace(-50, 50, 20001)]).double()
    y = torch.linspace(-1, 1, 7, dtype=torch.float64)[:, None]
    result = packet(x, y) if "other" in str(packet.default._schema) else packet(x)
    result = result[~result.isnan()]
    low, high = IMAGES[packet]
    assert bool((result >= low).all())
    assert bool((result <= high).all())
    assert float(result.max()) > high - 1e-2
    assert float(result.min()) < low + 1e-2


@pytest.mark.parametrize(
    ("packet", "place"),
    [(packet, place) for packet, tests in SETTLED_BY.items() for place, test in enumerate(tests) if test is not None],
    ids=str,
)
@pytest.mark.parametrize("dtype", [torch.int64, torch.int8, torch.uint8, torch.bool, torch.complex128])
def test_what_settles_a_result_does_so_whatever_the_other_argument_is(packet, place, dtype):
    test = SETTLED_BY[packet][place]
    assert test is not None
    candidates = torch.tensor([0, 1, -1, 2, 7, 100, 127]).to(dtype)
    others = torch.arange(1, 120) if dtype != torch.bool else torch.tensor([0, 1])
    others = others.to(dtype)
    if "shift" in str(packet):
        others = others[others.abs() < 7] if dtype != torch.bool else others
    elif dtype not in (torch.bool, torch.complex128) and dtype.is_signed:
        others = torch.cat([others, -others])
    if packet in PRODUCTS and place == 0 and packet in DIVISIONS:  # 0 divided by 0 is no number
        others = others[others != 0]
    settling = [c for c in candidates if bool(test(c))]
    assert settling or dtype == torch.complex128
    tried = 0
    for c in settling:
        one = torch.ones((), dtype=dtype)
        try:
            expected = packet(*((c, one), (one, c))[place])
            results = packet(*((c.expand(len(others)), others), (others, c.expand(len(others))))[place])
        except (NotImplementedError, RuntimeError):  # there is no such operator for the dtype
            continue
        tried += 1
        assert bool((results == expected).all())
    assert tried or dtype in (torch.complex128, torch.bool)


@pytest.mark.parametrize("packet", [*TURNS, *IMAGES, *SETTLED_BY], ids=ids([*TURNS, *IMAGES, *SETTLED_BY]))
def test_every_entry_is_an_elementwise_operator(packet):
    overloads = [getattr(packet, name) for name in packet.overloads()]
    assert any(torch.Tag.pointwise in op.tags for op in overloads)
    assert packet_of(overloads[0]) is packet


def test_a_primitive_is_the_operator_that_it_is_named_after():
    assert packet_of(torch.ops.prims.mul.default) is torch.ops.aten.mul


def test_known_arguments_give_what_the_operator_gives():
    x = torch.tensor([-2.0, 0.0, math.inf, math.nan])
    for packet in (torch.ops.aten.exp, torch.ops.aten.sin, torch.ops.aten.digamma):
        found = judge(packet.default, (known(x),), {}, [known(x)], x.shape, x.dtype)
        torch.testing.assert_close(found.low, packet(x), equal_nan=True)
        torch.testing.assert_close(found.high, packet(x), equal_nan=True)


def test_unknown_arguments_of_an_unknown_operator_are_ordinary_or_of_any_size():
    plain = Value(uniform(FIRST, (2,)), None, torch.float32)
    far = bounded(uniform(FIRST, (2,)), torch.tensor(-1e6), torch.tensor(1e6), torch.float32)
    for value, top in ((plain, ORDINARY), (far, torch.finfo(torch.float32).max)):
        found = judge(torch.ops.aten.digamma.default, (value,), {}, [value], value.shape, value.dtype)
        assert float(found.high.max()) == top
