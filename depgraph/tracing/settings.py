"""How PyTorch is set up while a model is traced, and put back afterwards."""

from __future__ import annotations

import contextlib
import io
import logging
import random
import sys
import warnings
from collections.abc import Iterator

import numpy as np
import torch

from depgraph.tracing.private import looks_compiled

#: What random numbers start from: what they decide is the same each time, and the same where the model is measured.
SEED = 0


@contextlib.contextmanager
def tracing_settings() -> Iterator[None]:
    """Keep operations whole, keep quiet, and leave nothing changed.

    The fused encoder path and oneDNN hide masks and recurrences in operations of their own; what was given to
    ``torch.compile`` is followed as it was written. What the model prints goes to stderr, so that output made for
    machines stays readable. PyTorch's warnings speak of exporting, not of the model. Random numbers go on afterwards
    from where they were.
    """
    fused = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    logger = logging.getLogger("torch")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    drawn = random.getstate(), np.random.get_state()  # noqa: NPY002 - a model may draw from the old generator
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with (
                torch.no_grad(),
                torch.random.fork_rng(devices=()),
                torch.backends.mkldnn.flags(enabled=False),
                contextlib.redirect_stdout(sys.stderr),
                looks_compiled(tracing=True),
                as_if_compiled(True),
            ):
                yield
    finally:
        random.setstate(drawn[0])
        np.random.set_state(drawn[1])  # noqa: NPY002
        logger.setLevel(level)
        torch.backends.mha.set_fastpath_enabled(fused)


def start_random(seed: int, *, cuda: bool = False) -> None:
    """Let the random numbers of Python, of NumPy and of PyTorch start anew."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - the one that all share
    torch.default_generator.manual_seed(seed)  # torch.manual_seed asks for every accelerator, which takes longer
    if cuda:
        torch.cuda.manual_seed_all(seed)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Hold back what is printed, and drop it after an error: the model may be run once more."""
    held = io.StringIO()
    with contextlib.redirect_stderr(held), contextlib.redirect_stdout(held):
        yield
    sys.stderr.write(held.getvalue())


@contextlib.contextmanager
def as_if_compiled(compiled: bool) -> Iterator[None]:
    """Let a model that asks think that it is compiled, or not.

    Compiled, models leave out looks at values that only save time, such as whether a mask hides anything: what is said
    of them then holds for all values.
    """
    with looks_compiled(compiling=compiled):
        yield
