"""The models here are tiny: more threads only get in each other's way, and most of the time is PyTorch's."""

import gc

import pytest


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    import torch

    torch.set_num_threads(1)
    # What importing PyTorch makes is not looked through for garbage again at every trace.
    gc.freeze()
