"""GPT-2 small (12 layers, fused attention, random weights): unrolling, all path lengths, runs and memory.

Every figure is a ratio to something measured in the same process: unrolling to `torch.export`, path lengths to igraph
on the same graph, the runs stored at 1,024 tokens to those at 256. Needs the ``bench`` extra.
"""

import argparse
import gc
import resource
import time

import igraph
import numpy as np
import torch
from transformers import GPT2Config, GPT2Model

import depgraph
from depgraph.tracing.capture import capture
from depgraph.unrolling.positions import plan
from depgraph.unrolling.trace import unroll


def model() -> torch.nn.Module:
    """Build GPT-2 small with random weights."""
    torch.manual_seed(0)
    return GPT2Model(GPT2Config(attn_implementation="sdpa", use_cache=False)).eval()


def peak_memory() -> float:
    """Return the most memory the process has held so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def timed(function, *args):
    """Return what the function returns, and the seconds it took."""
    gc.collect()
    start = time.perf_counter()
    result = function(*args)
    return result, time.perf_counter() - start


def forward_pass(net: torch.nn.Module, ids: torch.Tensor) -> None:
    """Run the operators themselves, on the same number of threads."""
    with torch.no_grad():
        net(ids)


def distances_by_igraph(graph: depgraph.DependencyGraph) -> tuple[np.ndarray, float]:
    """Return all path lengths by igraph's breadth-first search; building its graph is not counted."""
    read, reader = graph.dag.edge_arrays()
    peer = igraph.Graph(graph.dag.nodes, np.stack([read, reader], 1), directed=True)
    source, target = graph.inputs["input_ids"], next(iter(graph.outputs.values()))
    assert (target.nodes.sizes == 1).all()
    found, seconds = timed(lambda: peer.distances(source.nodes.starts, target.nodes.starts, mode="out"))
    lengths = np.array(found)
    return np.where(np.isinf(lengths), -1, lengths).astype(int), seconds


def main() -> None:
    """Print one line a figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=1024)
    tokens = parser.parse_args().tokens
    torch.set_num_threads(1)
    net = model()
    runs = {}
    for n in (tokens // 4, tokens):
        ids = torch.randint(0, 100, (1, n))
        program = capture(net, (ids,))
        # The second export: the first one also pays for imports.
        _, export = timed(lambda ids=ids: torch.export.export(net, (ids,), strict=False))
        before = peak_memory()
        graph, unrolling = timed(unroll, program, plan(program, None, None))
        lengths, seconds = timed(depgraph.path_lengths, graph)
        runs[n] = graph.dag.runs
        added = peak_memory() - before
        _, forward = timed(forward_pass, net, ids)
        dag = graph.dag
        print(f"{n} tokens: {dag.nodes:,} nodes, {dag.edges:,} edges in {dag.runs:,} runs")
        print(f"  unrolling / torch.export        {unrolling:.2f} s / {export:.2f} s = {unrolling / export:.2f}")
        print(f"  unrolling / running the model    {unrolling:.2f} s / {forward:.2f} s = {unrolling / forward:.2f}")
        print(f"  peak memory above that after export  {added:.2f} GB")
    expected, peer = distances_by_igraph(graph)
    print(f"  all {lengths.size:,} path lengths / igraph  {seconds:.3f} s / {peer:.2f} s = 1/{peer / seconds:.0f}")
    print(f"  pairs on which the two disagree: {int((expected != lengths).sum())}")
    print(f"runs at {tokens} tokens / at {tokens // 4}: {runs[tokens] / runs[tokens // 4]:.2f}")


if __name__ == "__main__":
    main()
