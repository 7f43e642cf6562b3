"""Every model file: what stands in it, that it can be analysed as it is, and that the answers are true."""

import ast
import inspect

import numpy as np
import pytest
import torch
from torch import nn

import depgraph
from tests.gallery.files import FOLDER, NAMES, built, load, traced

# Sizes at which running a model again and again takes seconds, where its own are larger.
SMALL = {
    "cnn2d": 6,
    "inception": 6,
    "mlp_mixer": 32,
    "resnet": 8,
    "unet": 8,
    "vgg": 32,
    "vit": 16,
    "chunked_scan": 8,
}
SIZES = {
    "transformer": {"vocabulary": 20, "width": 8, "heads": 2, "feedforward": 16, "layers": 1},
    "vgg": {"width": 2},
    "mlp_mixer": {"width": 4, "patches_hidden": 4, "width_hidden": 8, "layers": 1},
    "vit": {"image": 16, "width": 8, "heads": 2, "hidden": 8, "layers": 1},
    "resnet": {"channels": 2, "blocks": (1, 1)},
    "unet": {"channels": 2},
    "inception": {"channels": 4},
}


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_in_it_but_the_model(name):
    source = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    tree = ast.parse(source)
    assert "What to look at: " in ast.get_docstring(tree)
    assert "depgraph" not in "".join(map(ast.unparse, tree.body[1:]))
    assigned = [node for part in tree.body for node in (part.body if isinstance(part, ast.With) else [part])]
    names = [node.targets[0].id for node in assigned if isinstance(node, ast.Assign)]
    assert names == ["model", "positions"]
    assert [node.name for node in tree.body if isinstance(node, ast.FunctionDef)][-1] == "example_inputs"
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert imported <= {"torch", "math", "torch.nn.functional"}
    file = load(name)
    assert file.positions
    assert isinstance(file.model, nn.Module)
    takes = inspect.signature(type(file.model).__init__).parameters.values()
    assert all(
        p.name == "self" or p.kind is p.VAR_KEYWORD or p.kind is p.VAR_POSITIONAL or p.default is not p.empty
        for p in takes
    )
    assert list(inspect.signature(file.example_inputs).parameters) == ["n"]


@pytest.mark.parametrize("name", NAMES)
def test_it_is_as_measuring_shows(name):
    n = SMALL.get(name, 5)
    file, model = load(name), built(name, **SIZES.get(name, {}))
    given = small_tokens(file.example_inputs(n), SIZES.get(name, {}).get("vocabulary"))
    args = given if isinstance(given, tuple) else (given,)
    graph = depgraph.trace(model, args, positions=file.positions)
    assert graph.warnings == []
    assert graph.unused_inputs == []
    verdict = depgraph.verify(graph, model, args, limit=24)
    assert verdict.sound
    assert verdict.exact


def small_tokens(given, vocabulary):
    """Return arguments whose tokens are in a small vocabulary."""
    if isinstance(given, tuple):
        return tuple(small_tokens(value, vocabulary) for value in given)
    return given % vocabulary if vocabulary and isinstance(given, torch.Tensor) else given


@pytest.mark.parametrize("name", ["rnn", "lstm", "gru"])
@pytest.mark.parametrize("n", [1, 2, 7])
def test_a_loop_reads_what_the_library_layer_reads(name, n):
    loop = traced(f"{name}_loop", n)
    args = load(f"{name}_loop").example_inputs(n)
    whole = depgraph.trace(built(name, features=args.shape[-1]), (args,), positions={"x": 1})
    assert np.array_equal(depgraph.path_lengths(whole) >= 0, depgraph.path_lengths(loop) >= 0)


def test_linear_attention_reads_the_same_either_way():
    for n in (2, 7):
        found = [depgraph.path_lengths(traced(name, n)) >= 0 for name in ("linear_attention", "linear_attention_loop")]
        assert np.array_equal(*found)
