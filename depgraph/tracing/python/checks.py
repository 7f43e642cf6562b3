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
    """Return whether all numbers that a line makes a tensor of, or writes to a place in one, are written down there."""
    values = _values(line.file).get(line.number, []) if line is not None else []
    return bool(values) and all(map(_is_written_down, values))


def _is_written_down(value: ast.expr | None) -> bool:
    try:
        ast.literal_eval(value)  # type: ignore[arg-type]
    except (ValueError, TypeError):
        return False
    return True


@lru_cache(maxsize=64)
def _values(file: str) -> dict[int, list[ast.expr | None]]:
    """Return what tensors are made of in a file, or what is written to places in them, by each line that it is on."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return {}
    found: dict[int, list[ast.expr | None]] = {}
    for node in ast.walk(tree):
        value: ast.expr | None
        if isinstance(node, ast.Call) and _name(node.func) in _BUILDERS:
            value = node.args[0] if node.args else None
        elif isinstance(node, ast.Assign) and any(isinstance(target, ast.Subscript) for target in node.targets):
            value = node.value
        else:
            continue
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1):
            found.setdefault(number, []).append(value)
    return found


def _name(function: ast.expr) -> str:
    return str(getattr(function, "attr", getattr(function, "id", "")))
