"""Small models of which the numbers are known, written from the equations of the papers that introduced them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

D = 4


class SelfAttention(nn.Module):
    """Separate query, key, value and output projections around fused attention."""

    def __init__(self, d=D):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(d, d) for _ in range(4))

    def attend(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v)

    def forward(self, x):
        return self.out(self.attend(self.q(x), self.k(x), self.v(x)))


def lower(n):
    """Return the causal mask: True where a query (row) may read a key (column)."""
    return torch.ones(n, n, dtype=torch.bool).tril()


def scores(q, k):
    return q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5


# The same causal attention, said in different ways.
CAUSAL = {
    "bool mask": lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m),
    "-inf mask": lambda q, k, v, m: F.scaled_dot_product_attention(
        q, k, v, attn_mask=torch.zeros(m.shape).masked_fill(~m, float("-inf"))
    ),
    "is_causal": lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, is_causal=True),
    "masked_fill": lambda q, k, v, m: scores(q, k).masked_fill(~m, float("-inf")).softmax(-1) @ v,
    "where": lambda q, k, v, m: torch.where(m, scores(q, k), torch.tensor(float("-inf"))).softmax(-1) @ v,
    "added -1e9": lambda q, k, v, m: (scores(q, k) + (1 - m.float()) * -1e9).softmax(-1) @ v,
}


class CausalAttention(SelfAttention):
    """Self-attention that reads the past, its mask made in forward, held in a buffer or passed in."""

    def __init__(self, form, n=None):
        super().__init__()
        self.form = CAUSAL[form]
        self.register_buffer("mask", None if n is None else lower(n))

    def forward(self, x, mask=None):
        if mask is None:
            mask = torch.ones(x.shape[1], x.shape[1]).tril() > 0 if self.mask is None else self.mask
        return self.out(self.form(self.q(x), self.k(x), self.v(x), mask))


class Attentions(nn.Module):
    """Layers of nothing but attention under one mask; returns what each of them gives."""

    def __init__(self, mask, layers):
        super().__init__()
        self.register_buffer("mask", mask)
        self.layers = layers

    def forward(self, x):
        found = []
        for _ in range(self.layers):
            x = F.scaled_dot_product_attention(x, x, x, attn_mask=self.mask)
            found.append(x)
        return found


class EagerAttention(nn.Module):
    """Attention of which every score is an operation's result."""

    def forward(self, q, k, v):
        return torch.softmax(q @ k.transpose(-2, -1), -1) @ v


class Generation(nn.Module):
    """Greedy decoding with attention: each token is embedded, reads all before it, and decides the next one."""

    def __init__(self, steps, vocabulary=7):
        super().__init__()
        self.steps = steps
        self.embed = nn.Embedding(vocabulary, D)
        self.attention = SelfAttention()
        self.head = nn.Linear(D, vocabulary)

    def forward(self, token):
        read, tokens = [], []
        for _ in range(self.steps):
            read.append(self.embed(token))
            past = torch.stack(read, 1)
            a = self.attention
            h = a.out(a.attend(a.q(past[:, -1:]), a.k(past), a.v(past)))
            token = self.head(h[:, 0]).argmax(-1)
            tokens.append(token)
        return torch.stack(tokens, 1)


class Convolutions(nn.Module):
    """Convolutions along the last axis, one operation a layer; returns what each of them gives.

    Parameters
    ----------
    kernel : int
    dilations : sequence of int
        One a layer.
    causal : bool
        Whether the padding is all in front; else both ends get half of it.
    """

    def __init__(self, kernel, dilations, causal):
        super().__init__()
        self.causal = causal
        self.layers = nn.ModuleList(nn.Conv1d(1, 1, kernel, dilation=d) for d in dilations)

    def forward(self, x):
        found = []
        for layer in self.layers:
            reach = layer.dilation[0] * (layer.kernel_size[0] - 1)
            x = layer(F.pad(x, (reach, 0) if self.causal else (reach // 2, reach - reach // 2)))
            found.append(x)
        return found


class TemporalBlocks(nn.Module):
    """A temporal convolutional network (Bai et al. 2018): two causal convolutions a block, residuals around them."""

    def __init__(self, kernel, blocks):
        super().__init__()
        self.kernel = kernel
        self.blocks = nn.ModuleList(
            nn.ModuleList(nn.Conv1d(1, 1, kernel, dilation=2**b) for _ in range(2)) for b in range(blocks)
        )

    def forward(self, x):
        for b, block in enumerate(self.blocks):
            y = x
            for layer in block:
                y = layer(F.pad(y, (2**b * (self.kernel - 1), 0))).relu()
            x = (x + y).relu()
        return x


def vgg16(channels=1):
    """Return the layers of VGG-16 (Simonyan and Zisserman 2015) before its classifier, all of one width."""
    layers = []
    for convolutions in (2, 2, 3, 3, 3):
        for _ in range(convolutions):
            layers += [nn.Conv2d(channels, channels, 3, padding=1), nn.ReLU()]
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers)


class Sutskever(nn.Module):
    """Sequence to sequence (Sutskever et al. 2014): the decoder starts from the encoder's last state.

    The decoder's inputs are a constant: what the target words would say is left out.
    """

    def __init__(self, layers, targets, reverse=False):
        super().__init__()
        self.encoder = nn.LSTM(D, D, layers, batch_first=True)
        self.decoder = nn.LSTM(D, D, layers, batch_first=True)
        self.out = nn.Linear(D, D)
        self.start = nn.Parameter(torch.randn(1, 1, D))
        self.targets, self.reverse = targets, reverse

    def forward(self, x):
        _, state = self.encoder(x.flip(1) if self.reverse else x)
        h, _ = self.decoder(self.start.expand(x.shape[0], self.targets, D), state)
        return self.out(h)


class Bahdanau(nn.Module):
    """A recurrent decoder that aligns (Bahdanau et al. 2014): c_t = Σ_j softmax_j(v·tanh(W s_{t-1} + U h_j)) h_j."""

    def __init__(self, targets):
        super().__init__()
        self.encoder = nn.GRU(D, D, bidirectional=True, batch_first=True)
        self.query, self.key, self.score = nn.Linear(D, D), nn.Linear(2 * D, D), nn.Linear(D, 1)
        self.cell = nn.GRUCell(2 * D, D)
        self.out = nn.Linear(D, D)
        self.start = nn.Parameter(torch.randn(1, D))
        self.targets = targets

    def forward(self, x):
        h, _ = self.encoder(x)
        keys, state, found = self.key(h), self.start.expand(x.shape[0], D), []
        for _ in range(self.targets):
            energy = self.score(torch.tanh(self.query(state).unsqueeze(1) + keys)).squeeze(-1)
            context = (energy.softmax(-1).unsqueeze(1) @ h).squeeze(1)
            state = self.cell(context, state)
            found.append(self.out(state))
        return torch.stack(found, 1)


class LSTMN(nn.Module):
    """Long short-term memory-network (Cheng et al. 2016): every step attends to the memory of all steps before it."""

    def __init__(self):
        super().__init__()
        self.memory, self.input, self.summary = (nn.Linear(D, D) for _ in range(3))
        self.score = nn.Linear(D, 1)
        self.gates = nn.Linear(2 * D, 4 * D)
        self.start = nn.Parameter(torch.randn(2, 1, D))

    def forward(self, x):
        hidden, cell = self.start.expand(2, x.shape[0], D)
        summary, found = hidden, []
        hidden, cells, keys = [hidden], [cell], [self.memory(hidden)]
        for t in range(x.shape[1]):
            now = self.input(x[:, t]) + self.summary(summary)
            weights = self.score(torch.tanh(torch.stack(keys, 1) + now.unsqueeze(1))).softmax(1).transpose(1, 2)
            summary = (weights @ torch.stack(hidden, 1)).squeeze(1)
            adapted = (weights @ torch.stack(cells, 1)).squeeze(1)
            i, f, o, c = self.gates(torch.cat([summary, x[:, t]], -1)).chunk(4, -1)
            cell = f.sigmoid() * adapted + i.sigmoid() * c.tanh()
            hidden.append(o.sigmoid() * cell.tanh())
            cells.append(cell)
            keys.append(self.memory(hidden[-1]))
            found.append(hidden[-1])
        return torch.stack(found, 1)


class Parikh(nn.Module):
    """Decomposable attention (Parikh et al. 2016): attend, compare, aggregate; no recurrence anywhere."""

    def __init__(self):
        super().__init__()
        self.f, self.g = nn.Linear(D, D), nn.Linear(2 * D, D)

    def forward(self, a, b):
        energy = self.f(a) @ self.f(b).transpose(-2, -1)
        beta = energy.softmax(-1) @ b
        alpha = energy.softmax(-2).transpose(-2, -1) @ a
        one = self.g(torch.cat([a, beta], -1)).relu().sum(1)
        other = self.g(torch.cat([b, alpha], -1)).relu().sum(1)
        return torch.stack([one, other], 1)


class RecurrentAttention(nn.Module):
    """A recurrent layer under causal self-attention."""

    def __init__(self):
        super().__init__()
        self.rnn = nn.RNN(D, D, batch_first=True)
        self.attention = CausalAttention("is_causal")

    def forward(self, x):
        return self.attention(self.rnn(x)[0])


class Scan(nn.Module):
    """The prefix products of 2 × 2 matrices: h_t = a_t h_{t-1} + b_t as affine maps, one matmul a combine."""

    def __init__(self, kind, chunk=None):
        super().__init__()
        self.run = {"sequential": sequential, "kogge-stone": kogge_stone, "chunked": chunked}[kind]
        self.more = () if chunk is None else (chunk,)

    def forward(self, maps):
        return self.run(maps, *self.more)


def sequential(maps):
    found = [maps[0]]
    for t in range(1, len(maps)):
        found.append(maps[t] @ found[-1])
    return torch.stack(found)


def kogge_stone(maps):
    distance = 1
    while distance < len(maps):
        maps = torch.cat([maps[:distance], maps[distance:] @ maps[:-distance]])
        distance *= 2
    return maps


def chunked(maps, size):
    """Scan all chunks side by side, then hand the last product of each chunk to all of the next."""
    chunks = maps.unflatten(0, (-1, size))
    inside = [chunks[:, 0]]
    for t in range(1, size):
        inside.append(chunks[:, t] @ inside[-1])
    inside = torch.stack(inside, 1)
    found = [inside[0]]
    for g in range(1, len(chunks)):
        found.append(inside[g] @ found[-1][-1])
    return torch.cat(found)
