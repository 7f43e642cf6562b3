"""What all tests share."""

import gc
import os

import pytest
from hypothesis import settings

# Timings differ between machines; on a server the examples are the same every time.
settings.register_profile("depgraph", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("depgraph")


@pytest.fixture(autouse=True, scope="session")
def _small_models():
    """Most of the time of a small model is PyTorch's own: it is imported once, and not looked through for garbage."""
    import torch
    import torch.export._trace

    torch.set_num_threads(1)
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


@pytest.fixture(autouse=True)
def _one_seed():
    import torch

    torch.manual_seed(0)
