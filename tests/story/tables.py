"""The numbers in docs/from-rnn-to-transformer.md, all measured."""

from __future__ import annotations

import numpy as np
import torch

import depgraph
from tests.gallery.files import traced
from tests.oracles.stacks import per_layer


def span(graph):
    return depgraph.critical_path(graph).length


def lengths(graph, source=None):
    return depgraph.path_lengths(graph, source)


def reached(graph):
    """Return the lengths of the paths there are."""
    found = lengths(graph)
    return found[found >= 0]


def extent(values):
    low, high = int(values.min()), int(values.max())
    return f"{low}" if low == high else f"{low} – {high}"


def percent(share):
    return f"{share:.1%}"


def recurrent():
    """Gates do not shorten the road."""
    layers = [(name, n) for name in ("rnn", "gru", "lstm") for n in (25, 100)]
    for name, n in (*layers, ("stacked_lstm", 100), ("bidirectional_lstm", 100)):
        graph = traced(name, n)
        found = depgraph.parallelism(graph)
        yield {
            "model": name,
            "n": n,
            "path x₁ → hₙ": int(lengths(graph)[0, -1]),
            "critical path": found.span,
            "work": found.work,
            "width": found.width,
        }


def fixed_vector():
    """All through one vector, and what reading backwards changes."""
    for n in (5, 50):
        row = {"n": n}
        for name, words in (("seq2seq", "forwards"), ("seq2seq_reversed", "backwards")):
            graph = traced(name, n)
            matched = np.diag(lengths(graph))
            row[f"matched words, {words}"] = extent(matched)
            row[f"their mean, {words}"] = f"{matched.mean():g}"
            row[f"bottleneck, {words}"] = depgraph.bottleneck(graph).size
        yield row


def alignment():
    """Attention removes the fixed vector; the decoder still walks."""
    for n in (4, 8):
        for name in ("bahdanau", "luong"):
            graph = traced(name, n)
            yield {
                "model": name,
                "n = m": n,
                "path, any pair": extent(lengths(graph)),
                "bottleneck": depgraph.bottleneck(graph).size,
                "critical path": span(graph),
            }


def short_paths():
    """A short path is not parallelism."""
    for name in ("lstmn", "rnn_self_attention", "decomposable_attention", "self_attention"):
        for n in (4, 8):
            graph = traced(name, n)
            found = depgraph.parallelism(graph)
            apart = lengths(graph)
            if apart.shape == (n, n):
                apart = apart[np.triu_indices(n, 1)]
            yield {
                "model": name,
                "n": n,
                "path i < j": extent(apart),
                "critical path": found.span,
                "average parallelism": round(found.average, 1),
            }


def attention():
    """Any pair in one read, and a bill of n² pairs."""
    for n in (8, 16, 32):
        fused, eager = traced("self_attention", n), traced("self_attention_eager", n)
        found = depgraph.parallelism(fused)
        yield {
            "n": n,
            "path, any pair": extent(lengths(fused)),
            "critical path": found.span,
            "work, fused": found.work,
            "work, every score an operation": depgraph.parallelism(eager).work,
            "n²": n * n,
        }


def sparse():
    """Reading less of the sequence at once."""
    n = 64
    for name, sizes in (
        ("causal_attention", {}),
        ("window_attention", {"layers": 1}),
        ("window_attention", {"layers": 3}),
        ("global_attention", {"layers": 1}),
        ("global_attention", {"layers": 2}),
        ("strided_attention", {"layers": 2}),
        ("fixed_attention", {"layers": 2}),
    ):
        graph = traced(name, n, **sizes)
        found = lengths(graph) >= 0
        pairs = found.size if name == "global_attention" else n * (n + 1) // 2
        yield {
            "model": name,
            "layers": sizes.get("layers", 1),
            "pairs connected": percent(found.sum() / pairs),
            "read by the last position": int(found[:, -1].sum()),
        }


def convolutions():
    """Contiguous and dilated kernels."""
    for name, words, most, sizes in (
        ("cnn", "contiguous, kernel 3, causal", 32, {"kernel": 3, "causal": True}),
        ("cnn", "contiguous, kernel 7, causal", 16, {"kernel": 7, "causal": True}),
        ("dilated_cnn", "kernel 2, dilation 2ˡ, causal", 8, {"kernel": 2, "base": 2, "causal": True}),
        ("dilated_cnn", "kernel 3, dilation 3ˡ, causal", 8, {"kernel": 3, "base": 3, "causal": True}),
        ("dilated_cnn_centred", "kernel 3, dilation 3ˡ, centred", 8, {}),
    ):
        row = {"stack": words}
        for n in (16, 64):
            wanted = n * (n + 1) // 2 if sizes.get("causal") else n * n
            found = [
                layer.sum()
                for layer in per_layer(name, torch.zeros(1, 4, n), features=4, channels=4, layers=most, **sizes)
            ]
            row[f"layers to connect n = {n}"] = 1 + found.index(wanted) if wanted in found else "never"
        row["connected in the end, n = 64"] = percent(found[-1] / wanted)
        yield row


def transformer():
    """Training is parallel, generating is not."""
    for n in (2, 4, 8):
        learning, writing = traced("training", n), traced("generation", 1, n)
        yield {
            "tokens": n,
            "critical path, training": span(learning),
            "critical path, generating": span(writing),
            "average parallelism, training": round(depgraph.parallelism(learning).average, 1),
            "average parallelism, generating": round(depgraph.parallelism(writing).average, 1),
        }


def scans():
    """What a linear recurrence can do and one with a tanh cannot."""
    for n in (16, 64):
        for name, sizes in (
            ("sequential_scan", {}),
            ("chunked_scan", {"chunk": 4 if n == 16 else 8}),
            ("scan", {}),
            ("rnn", {}),
        ):
            graph = traced(name, n, **sizes)
            found = depgraph.parallelism(graph)
            words = {
                "sequential_scan": "linear, one after the other",
                "chunked_scan": f"linear, in chunks of {sizes.get('chunk')}",
                "scan": "linear, Kogge–Stone",
                "rnn": "tanh, one after the other",
            }
            yield {"recurrence": words[name], "n": n, "work": found.work, "critical path": found.span}


TABLES = {
    function.__name__: function
    for function in (
        recurrent, fixed_vector, alignment, short_paths, attention, sparse, convolutions, transformer, scans,
    )
}  # fmt: skip


def markdown(rows):
    """Return rows as a table, numbers flush right."""
    rows = list(rows)
    headings = list(rows[0])
    numeric = [all(str(row[h])[0].isdigit() or row[h] == "never" for row in rows) for h in headings]
    lines = [headings, ["--:" if right else "---" for right in numeric]]
    lines += [[f"{row[h]:,}" if isinstance(row[h], int) else str(row[h]) for h in headings] for row in rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
