"""How PyTorch is set up while a model is traced, and put back afterwards."""

from __future__ import annotations

import contextlib
import logging
import sys
import warnings
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def tracing_settings() -> Iterator[None]:
    """Keep operations whole, keep quiet, and leave nothing changed.

    The fused encoder path and oneDNN hide masks and recurrences in operations of their own. What the model prints goes
    to stderr, so that output made for machines stays readable. PyTorch's warnings speak of exporting, not of the model.
    """
    fused = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    logger = logging.getLogger("torch")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with (
                torch.no_grad(),
                torch.backends.mkldnn.flags(enabled=False),
                contextlib.redirect_stdout(sys.stderr),
            ):
                yield
    finally:
        logger.setLevel(level)
        torch.backends.mha.set_fastpath_enabled(fused)
