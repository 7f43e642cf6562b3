"""Operations that move data make no nodes, and every element goes where it should."""

import pytest
import torch
import torch.nn.functional as F

import depgraph
from tests.jacobian import Apply, check

R = torch.randn


def moves(function, *args, **options):
    """Check what is read, and that it costs nothing."""
    graph = check(function, *args, **options)
    assert graph.dag.nodes == graph.dag.inputs
    return graph


def test_shapes():
    moves(
        lambda x: {
            "view": x.view(4, 6),
            "merge": x.reshape(2, 12),
            "split": x.reshape(2, 3, 2, 2),
            "across": x.reshape(3, 2, 4),
            "flatten": x.flatten(),
            "unflatten": x.unflatten(2, (2, 2)),
            "squeeze": x.unsqueeze(1).squeeze(),
            "transpose": x.transpose(0, 2),
            "permute then view": x.permute(1, 0, 2).reshape(2, 12),
            "movedim": x.movedim(0, -1),
            "swap": x.mT,
            "view of a slice": x[:, 1:].reshape(-1, 2),
        },
        R(2, 3, 4),
    )


def test_slices_and_copies():
    moves(
        lambda x: {
            "slice": x[:, 1:],
            "step": x[..., ::2],
            "select": x[1],
            "narrow": x.narrow(1, 0, 2),
            "split": x.split(1, 1)[2],
            "chunk": x.chunk(2, 2)[1],
            "unbind": x.unbind(0)[0],
            "expand": x.unsqueeze(0).expand(2, -1, -1, -1),
            "repeat": x.repeat(2, 1, 1),
            "interleave": x.repeat_interleave(2, 1),
            "tile": x.tile(1, 2, 1),
            "clone": x.clone(),
            "diagonal": x.diagonal(0, 0, 1),
            "unfold": x.unfold(1, 2, 1),
            "as_strided": x.as_strided((2, 2), (12, 1), 3),
            "strided transpose": x.transpose(0, 1).contiguous().as_strided((2, 2), (4, 1), 2),
        },
        R(2, 3, 4),
    )


def test_rearrangements():
    moves(
        lambda x, y: {
            "cat": torch.cat([x, y], 1),
            "stack": torch.stack([x, x.flip(0)], 1),
            "hstack": torch.hstack([x, y]),
            "block_diag": torch.block_diag(x, y),
            "flip": x.flip(0, 1),
            "roll": x.roll(1, 0),
            "roll two": x.roll((1, 2), (0, 1)),
            "rot90": torch.rot90(x),
            "tril": x.tril(),
            "triu": x.triu(1),
            "diag": torch.diag_embed(x),
            "pad": F.pad(y, (1, 2, 0, 1)),
            "crop": F.pad(x, (-1, 0)),
            "pad with ones": F.pad(x, (0, 1), value=1.0),
            "reflect": F.pad(x.unsqueeze(0), (2, 1), mode="reflect"),
            "replicate": F.pad(x.unsqueeze(0), (1, 1), mode="replicate"),
            "meshgrid": torch.meshgrid(x[0], y[0], indexing="ij")[0],
        },
        *(R(3, 3), R(3, 2)),
    )


def test_writes_through_views():
    def slices(x, y):
        z = x.clone()
        z[:, 0] = y
        z[1:, 1:].copy_(y[:2, None])
        z.t()[2] = 0
        return z

    def rows(x, y):
        z = torch.zeros(3, 3, dtype=x.dtype)
        for k in range(3):
            z[k] = x[2 - k]
        z.view(-1)[4] = y[0]
        z.diagonal().mul_(2)
        return z

    def swapped(x, y):
        z = x.clone()
        first, last = z[:, 0], z.select(1, 2)
        first.copy_(last)
        last.copy_(y)
        return z.reshape(-1)[1:]

    check(lambda x, y: {"slices": slices(x, y), "rows": rows(x, y), "swapped": swapped(x, y)}, R(3, 3), R(3))
    graph = check(lambda x, y: {"slices": slices(x, y), "swapped": swapped(x, y)}, R(3, 3), R(3))
    assert graph.dag.nodes == graph.dag.inputs


def test_functional_writes():
    moves(
        lambda x, y: {
            "select_scatter": x.select_scatter(y, 0, 1),
            "slice_scatter": x.slice_scatter(y[None], 0, 2),
            "diagonal_scatter": x.diagonal_scatter(y),
            "index_fill": x.index_fill(1, torch.tensor([0, 2]), 1.0),
        },
        *(R(3, 3), R(3)),
    )


def test_complex_numbers():
    check(
        lambda x: {
            "there and back": torch.view_as_real(torch.view_as_complex(x)),
            "rotated": torch.view_as_real(torch.view_as_complex(x) * torch.polar(torch.ones(2), torch.ones(2))),
            "real": torch.view_as_complex(x).real.exp(),
            "conjugate": torch.view_as_complex(x).conj().imag * 2,
        },
        R(3, 2, 2),
        axes={0: (0, 1)},
        out_axes={"there and back": (0, 1), "rotated": (0, 1)},
    )


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_factories_read_nothing(shape):
    def function(x):
        return {
            "zeros": torch.zeros_like(x),
            "ones": x.new_ones(x.shape) * 2,
            "full": torch.full_like(x, 3.0),
            "arange": torch.arange(3) + 0.5,
            "empty": torch.empty_like(x).fill_(1.0),
        }

    graph = check(function, R(shape))
    assert graph.dag.nodes == graph.dag.inputs
    assert graph.unused_inputs == ["args.0"]


def test_random_numbers_are_constants():
    graph = depgraph.trace(Apply(lambda x: x + torch.randn_like(x) * torch.rand(3)), (R(1, 3),), positions={0: 1})
    assert depgraph.parallelism(graph).work == 3
    assert depgraph.path_lengths(graph).tolist() == [[1, -1, -1], [-1, 1, -1], [-1, -1, 1]]
