"""Writing symbolic numbers as JSON, whose encoder looks at the type of a number and never asks for its value."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from depgraph.tracing.python.operators import number_of


@contextmanager
def json_takes_numbers() -> Iterator[None]:
    """Let ``json.dumps`` and ``json.dump`` settle the symbolic numbers in what they write, until this is left."""
    original = json.JSONEncoder.iterencode

    def iterencode(self: json.JSONEncoder, o: Any, *args: Any, **kwargs: Any) -> Iterator[str]:
        return original(self, settled(o), *args, **kwargs)

    json.JSONEncoder.iterencode = iterencode  # type: ignore[method-assign]
    try:
        yield
    finally:
        json.JSONEncoder.iterencode = original  # type: ignore[method-assign]


def settled(tree: Any) -> Any:
    """Settle the symbolic numbers in lists, tuples and dictionaries, among the keys too."""
    if (number := number_of(tree)) is not None:
        return number.settle("number")
    if type(tree) is dict:
        return {settled(key): settled(value) for key, value in tree.items()}
    return type(tree)(map(settled, tree)) if type(tree) in (list, tuple) else tree
