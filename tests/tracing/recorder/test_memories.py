"""Programs of views and of writes, held against PyTorch: what is read is what is in memory at that moment."""

import copy
from contextlib import suppress

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from depgraph.tracing.capture import capture
from tests.tracing.conftest import assert_well_formed, evaluate

LARGE = 2000
#: What PyTorch raises where a step cannot be taken, which then is left out.
REFUSED = (RuntimeError, IndexError, TypeError, KeyError, ValueError, ZeroDivisionError)

# Each takes a tensor and three numbers, and returns a view or a copy of it; it may raise where there is none.
VIEWS = {
    "select": lambda t, a, b, c: t.select(a % t.ndim, b % t.shape[a % t.ndim]),
    "slice": lambda t, a, b, c: t[(slice(None),) * (a % t.ndim) + (slice(b % 3, None, 1 + c % 3),)],
    "ends": lambda t, a, b, c: t[..., b % 2 : -1],
    "transpose": lambda t, a, b, c: t.transpose(a % t.ndim, b % t.ndim),
    "permute": lambda t, a, b, c: t.permute([(k + a) % t.ndim for k in range(t.ndim)]),
    "view": lambda t, a, b, c: t.view(-1, t.shape[-1 - a % t.ndim]),
    "flat": lambda t, a, b, c: t.view(-1),
    "reshape": lambda t, a, b, c: t.reshape(-1, 2),
    "unsqueeze": lambda t, a, b, c: t.unsqueeze(a % (t.ndim + 1)),
    "squeeze": lambda t, a, b, c: t.squeeze(),
    "diagonal": lambda t, a, b, c: t.diagonal(a % 3 - 1),
    "as_strided": lambda t, a, b, c: t.as_strided((2, 1 + a % 2), (1 + b % 3, 1), t.storage_offset()),
    "narrow": lambda t, a, b, c: t.narrow(a % t.ndim, b % 2, 1 + c % 2),
    "split": lambda t, a, b, c: t.split(1 + a % 3, b % t.ndim)[c % 2],
    "chunk": lambda t, a, b, c: t.chunk(2, b % t.ndim)[c % 2],
    "unbind": lambda t, a, b, c: t.unbind(a % t.ndim)[b % t.shape[a % t.ndim]],
    "expand": lambda t, a, b, c: t.unsqueeze(0).expand(2, *t.shape),
    "unfold": lambda t, a, b, c: t.unfold(a % t.ndim, 2, 1 + b % 2),
    "view_as_real": lambda t, a, b, c: torch.view_as_real(t),
    "view_as_complex": lambda t, a, b, c: torch.view_as_complex(t),
    "real": lambda t, a, b, c: t.real,
    "imag": lambda t, a, b, c: t.imag,
    "conj": lambda t, a, b, c: t.conj(),
    "bits": lambda t, a, b, c: t.view({torch.float32: torch.int32, torch.int32: torch.float32}[t.dtype]),
    "halves": lambda t, a, b, c: t.view(torch.int16),
    "detach": lambda t, a, b, c: t.detach(),
    "data": lambda t, a, b, c: t.data,
    "flip": lambda t, a, b, c: t.flip(a % t.ndim),
    "clone": lambda t, a, b, c: t.clone(),
    "contiguous": lambda t, a, b, c: t.contiguous(),
    "plus": lambda t, a, b, c: t + 1,
}

# Each takes a tensor, another one to read from, and three numbers, and writes to the first.
WRITES = {
    "add_": lambda t, o, a, b, c: t.add_(o),
    "mul_": lambda t, o, a, b, c: t.mul_(2),
    "sub_self": lambda t, o, a, b, c: t.sub_(t.clone().flip(0)),
    "copy_": lambda t, o, a, b, c: t.copy_(o),
    "copy_from_itself": lambda t, o, a, b, c: t.copy_(t.flip(0)),
    "fill_": lambda t, o, a, b, c: t.fill_(a),
    "fill_tensor": lambda t, o, a, b, c: t.fill_(o.reshape(-1)[0]),
    "zero_": lambda t, o, a, b, c: t.zero_(),
    "index_put_": lambda t, o, a, b, c: t.index_put_(
        (torch.tensor([0, t.shape[0] - 1]),), o.reshape(-1)[0], bool(a % 2)
    ),
    "masked_fill_": lambda t, o, a, b, c: t.masked_fill_(t.real > 0.5, a),
    "index_fill_": lambda t, o, a, b, c: t.index_fill_(0, torch.tensor([0]), a),
    "out": lambda t, o, a, b, c: torch.add(t, o.clone().view(t.shape), out=t),
    "out_elsewhere": lambda t, o, a, b, c: torch.mul(o.view(t.shape), 2, out=t),
    "setitem": lambda t, o, a, b, c: t.__setitem__(slice(b % 2, None, 1 + c % 2), a),
    "setitem_tensor": lambda t, o, a, b, c: t.__setitem__((..., 0), o[..., 0]),
    "setitem_mask": lambda t, o, a, b, c: t.__setitem__(t.real > 0, a),
    "setitem_index": lambda t, o, a, b, c: t.__setitem__(torch.tensor([0]), o[:1]),
    "conj_physical_": lambda t, o, a, b, c: t.conj_physical_(),
    "swap": lambda t, o, a, b, c: t.transpose_(0, -1),
    "unsqueeze_": lambda t, o, a, b, c: t.unsqueeze_(0),
    "relu_": lambda t, o, a, b, c: torch.relu_(t.real),  # without data, nothing refuses complex numbers
    "lerp_": lambda t, o, a, b, c: t.lerp_(o, 0.5),
}
STEPS = st.lists(
    st.tuples(
        st.sampled_from([*VIEWS, *WRITES, *WRITES]), st.integers(0, 1000), st.integers(0, 1000), st.integers(0, 5),
        st.integers(0, 5), st.integers(0, 5),
    ),
    min_size=2, max_size=14,
)  # fmt: skip


class Steps(nn.Module):
    """Runs some steps on what it holds and is given, several of which share memory; and returns all of it."""

    def __init__(self, steps):
        super().__init__()
        self.steps = steps
        base, other = torch.randn(6, 4), torch.randn(30)
        self.register_buffer("whole", base)
        self.register_buffer("column", base[:, 1])
        self.register_buffer("own", torch.randn(4, 3))
        self.register_buffer("wave", torch.randn(2, 3, dtype=torch.complex64))
        self.weight = nn.Parameter(torch.randn(3, 4))
        self.rows = base.t()[:, 2:4]
        self.held = [other[2:14].view(3, 4), other.view(torch.int32)[20:].view(2, 5)]
        self.more = {"overlapping": other[8:16].view(2, 4)}
        self.plain = torch.randn(2, 4)

    def pool(self, x, y):
        return [
            x, y, self.whole, self.column, self.own, self.wave, self.weight, self.rows, *self.held,
            self.more["overlapping"], self.plain, x[:, 1:], self.weight.data, self.wave.real,
        ]  # fmt: skip

    def forward(self, x, y):
        pool = self.pool(x, y)
        for step in self.steps:
            if sum(tensor.numel() for tensor in pool) > LARGE:
                break
            with suppress(*REFUSED):
                run(step, pool)
        return [tensor.clone() for tensor in pool]


def run(step, pool):
    name, one, other, *numbers = step
    tensor = pool[one % len(pool)]
    if name in VIEWS:
        pool.append(VIEWS[name](tensor, *numbers))
    else:
        WRITES[name](tensor, pool[other % len(pool)], *numbers)


def bits(tensor):
    """Return the bytes of a tensor: NaN is NaN."""
    return tensor.detach().resolve_conj().contiguous().reshape(-1).numpy().tobytes()


def same(one, other):
    return one.dtype == other.dtype and one.shape == other.shape and bits(one) == bits(other)


@pytest.mark.filterwarnings("ignore::UserWarning")  # of writes that PyTorch will refuse one day
@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(STEPS, st.integers(0, 99))
def test_any_program_of_views_and_writes(steps, seed):
    torch.manual_seed(seed)
    model = Steps(steps)
    args = torch.randn(3, 4), torch.randn(2, 4)
    program = capture(model, args)
    assert str(program.graph) == str(capture(model, args, fake=True).graph)
    assert_well_formed(program)
    for x, y in (args, (torch.randn(3, 4), torch.randn(2, 4))):
        results, updates = evaluate(program, {"x": x.clone(), "y": y.clone()})
        twin = copy.deepcopy(model)
        with torch.no_grad():
            expected = twin(x.clone(), y.clone())
        assert [k for k, pair in enumerate(zip(results, expected, strict=True)) if not same(*pair)] == []
        state = dict(twin.named_buffers()) | dict(twin.named_parameters())
        before = dict(model.named_buffers()) | dict(model.named_parameters())
        assert [name for name, value in updates.items() if not same(value, state[name].detach())] == []
        assert [n for n, v in state.items() if n not in updates and not same(v.detach(), before[n].detach())] == []
