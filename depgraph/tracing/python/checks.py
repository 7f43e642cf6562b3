"""What a line of code says of the values in it: that they are only checked, or that they are written down there."""

from __future__ import annotations

import ast
import linecache
from functools import lru_cache

from depgraph.tracing.origin import Line

_CHECKS = ("assert ", "assert(", "torch._assert", "torch._check")


def is_check(line: Line | None) -> bool:
    """Return whether a line only checks a value: the model either goes on as it does, or not at all."""
    return line is not None and linecache.getline(line.file, line.number).lstrip().startswith(_CHECKS)


_BUILDERS = {"tensor", "as_tensor", "asarray", "new_tensor", "scalar_tensor"}


def is_literal(line: Line | None) -> bool:
    """Return whether all tensors that a line makes of numbers are made of numbers written down there."""
    calls = _calls(line.file).get(line.number, []) if line is not None else []
    return bool(calls) and all(call.args and _is_written_down(call.args[0]) for call in calls)


def _is_written_down(value: ast.expr) -> bool:
    try:
        ast.literal_eval(value)
    except (ValueError, TypeError):
        return False
    return True


@lru_cache(maxsize=64)
def _calls(file: str) -> dict[int, list[ast.Call]]:
    """Return the calls in a file that make tensors of numbers, by each line that they are on."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return {}
    found: dict[int, list[ast.Call]] = {}
    for node in ast.walk(tree):
        name = getattr(node.func, "attr", getattr(node.func, "id", "")) if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Call) and name in _BUILDERS:
            for number in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                found.setdefault(number, []).append(node)
    return found
