"""Models at real sizes: what their graphs take, beside what exporting and running the models takes."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

import depgraph
from benchmarks.apart import Outcome, apart, peak_memory
from benchmarks.graphs import gpt2_model
from depgraph.tracing.capture import capture
from depgraph.unrolling.positions import plan
from depgraph.unrolling.trace import unroll


@dataclass(frozen=True)
class Figure:
    """Something that takes time, what it is compared with, and what may be at most."""

    what: str
    seconds: float
    against: str
    peer: float
    memory: float
    remark: str = ""

    @property
    def ratio(self) -> float:
        """Ours, as a share of the other."""
        return self.seconds / self.peer


def timed(function: Callable, *args):
    """Return the seconds that a call takes, and what it returns."""
    start = time.perf_counter()
    result = function(*args)
    return time.perf_counter() - start, result


def of_gpt2(tokens: int) -> list[Figure]:
    """Unroll GPT-2 small, and find its exact width."""
    model, ids = gpt2_model(tokens)
    torch.export.export(model, (ids,), strict=False)  # the first one also pays for imports
    export, _ = timed(lambda: torch.export.export(model, (ids,), strict=False))
    program = capture(model, (ids,))
    choice = plan(program, None, None)
    before = peak_memory()
    unrolling, graph = timed(unroll, program, choice)
    memory = peak_memory() - before
    name = f"GPT-2 small, {tokens:,} tokens"
    with torch.no_grad():
        forward, _ = timed(model, ids)
    width, found = timed(depgraph.width, graph)
    assert found.is_exact
    assert len(set(found.numbers.tolist())) == found.size == found.upper
    dag = graph.dag
    size = f"{dag.nodes:,} nodes, {dag.edges:,} edges in {dag.runs:,} runs"
    return [
        Figure(f"{name}: unrolling", unrolling, "torch.export of it", export, memory, size),
        Figure(f"{name}: unrolling", unrolling, "running it on one thread", forward, memory),
        Figure(f"{name}: exact width", width, "torch.export of it", export, peak_memory() - before, f"{found.size:,}"),
    ]


def of_eager_gpt2(tokens: int) -> list[Figure]:
    """Analyse GPT-2 small with its attention written out, whose scores have n² nodes, as `depgraph analyze` does."""
    model, ids = gpt2_model(tokens, "eager")
    export, _ = timed(lambda: torch.export.export(model, (ids,), strict=False))
    before, start = peak_memory(), time.perf_counter()
    graph = depgraph.trace(model, (ids,))
    longest = depgraph.critical_path(graph).length
    lengths = depgraph.path_lengths(graph)
    found = depgraph.parallelism(graph)
    cut = depgraph.bottleneck(graph)
    seconds = time.perf_counter() - start
    assert (found.span, cut.size) == (longest, tokens)
    assert ((lengths >= 0).sum(), lengths.max() <= longest) == (tokens * (tokens + 1) // 2, True)
    remark = f"{graph.dag.nodes:,} nodes; width {found.width:,}" + ("" if found.width_is_exact else " at least")
    what = f"GPT-2 small, attention written out, {tokens} tokens: all of `analyze`"
    return [Figure(what, seconds, "60 s, which it may take", 60.0, peak_memory() - before, remark)]


def of_llama(layers: int = 80, tokens: int = 4096) -> list[Figure]:
    """Measure the shape of Llama 70B on the meta device."""
    from transformers import LlamaConfig, LlamaModel

    config = LlamaConfig(
        **{"vocab_size": 128256, "hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": layers},
        **{"num_attention_heads": 64, "num_key_value_heads": 8, "max_position_embeddings": 8192, "use_cache": False},
        attn_implementation="sdpa",
    )
    with torch.device("meta"):
        model = LlamaModel(config).eval()
        ids = torch.zeros(1, tokens, dtype=torch.int64)
    plain, _ = timed(lambda: torch.export.export(model, (ids,), strict=False))
    export, program = timed(capture, model, (ids,))
    before, start = peak_memory(), time.perf_counter()
    graph = unroll(program, plan(program, None, None))
    longest = depgraph.critical_path(graph).length
    bounds = depgraph.width(graph, "never")
    lengths = depgraph.path_lengths(graph)
    seconds = time.perf_counter() - start
    memory = peak_memory() - before
    causal = torch.ones(tokens, tokens, dtype=torch.bool).triu().numpy()
    assert ((lengths >= 0) == causal).all()
    assert lengths.max() <= longest
    name = f"Llama 70B's shape, {layers} layers, {tokens:,} tokens, on the meta device"
    what = f"{name}: unrolling, critical path, bounds of the width, all path lengths"
    remark = f"{graph.dag.nodes:,} nodes; critical path {longest:,}; width {bounds.size:,} to {bounds.upper:,}"
    return [
        Figure(what, seconds, "its export, decomposed to one functional graph", export, memory, remark),
        Figure("the same", seconds, "torch.export.export alone", plain, memory),
    ]


def figures() -> Iterator[Figure]:
    """Yield all figures, each model measured in a process of its own."""
    for measure in (lambda: of_gpt2(256), lambda: of_gpt2(1024), lambda: of_eager_gpt2(512), of_llama):
        outcome: Outcome = apart(lambda measure=measure: (0.0, measure()), 600, 16)
        assert not outcome.reason, outcome.reason
        yield from outcome.answer
