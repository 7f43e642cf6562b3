"""What all tests share."""

import os

import pytest
from hypothesis import settings

# Timings differ between machines; on a server the examples are the same every time.
settings.register_profile("depgraph", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("depgraph")


@pytest.fixture(autouse=True)
def _one_seed():
    import torch

    torch.manual_seed(0)
