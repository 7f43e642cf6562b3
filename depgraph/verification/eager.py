"""Models run as they are written: nothing in them is compiled."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
from torch._higher_order_ops import utils


@contextmanager
def eager() -> Iterator[None]:
    """Run operators that take functions, and what was given to `torch.compile`, without compiling anything.

    `torch.cond` and its like compile their functions where they are called by a model that is not itself compiled.
    """
    flex: Any = sys.modules.get("torch.nn.attention.flex_attention")
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(utils, "_hop_compile_and_call", _called))
        if flex is not None:
            stack.enter_context(mock.patch.object(flex, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True))
        if "torch._dynamo" in sys.modules:
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        yield


def _called(function: Callable[..., Any], args: Any, kwargs: Any = None) -> Any:
    return function(*args, **(kwargs or {}))
