"""Recording leaves everything outside of the model as it was, and other threads alone."""

import logging
import random
import threading
import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.modules import module as hooks

from depgraph.tracing.capture import capture

X = torch.randn(2, 5, 8)


def models():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    return [nn.LSTM(8, 4, batch_first=True), layer, nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5)), nn.GRU(8, 8)]


def form(program):
    return [(str(n.target), program.where(n)) for n in program.graph.nodes if n.op == "call_function"]


def everything():
    numpy = np.random.get_state()  # noqa: NPY002
    return (
        torch.get_rng_state().numpy().tobytes(), random.getstate(), numpy[1].tobytes(), torch.is_grad_enabled(),
        torch.is_autocast_enabled("cpu"), torch.compiler.is_compiling(), torch.compiler.is_dynamo_compiling(),
        list(warnings.filters), logging.getLogger("torch").level, torch.get_default_dtype(),
        len(hooks._global_forward_hooks), len(hooks._global_forward_pre_hooks), torch.backends.mkldnn.enabled,
        torch.backends.mha.get_fastpath_enabled(), [kind.__new__ for kind in torch.Tensor.__subclasses__()],
        torch._C._functorch.get_dynamic_layer_stack_depth(), torch._C._len_torch_dispatch_stack(),
        torch._C._len_torch_function_stack(),
    )  # fmt: skip


class Raises(nn.Module):
    def forward(self, x):
        torch.vmap(lambda row: row.sum())(x)
        raise ValueError("its own")


@pytest.mark.parametrize("fails", [False, True])
def test_nothing_else_is_changed(fails):
    made = models()
    before = everything()
    if fails:
        with pytest.raises(Exception, match="its own"):
            capture(Raises(), (X,))
    else:
        for model in made:
            capture(model, (X,))
    assert everything() == before


def test_two_threads_record_what_each_runs():
    made = models()
    expected = [form(capture(model, (X,))) for model in made]
    found = {}

    def work(number):
        for _ in range(2):
            found[number] = form(capture(made[number], (X,)))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(made))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[number] for number in range(len(made))] == expected


def test_a_model_that_runs_in_another_thread_is_not_recorded():
    model, stop = nn.Linear(8, 8), threading.Event()
    expected = form(capture(model, (X,)))

    def run():
        while not stop.is_set():
            model(X)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert all(form(capture(model, (X,))) == expected for _ in range(5))
    finally:
        stop.set()
        thread.join()
