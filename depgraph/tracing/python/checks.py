"""What a line of code says of the values in it: that they are only checked, or that they are written down there."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from functools import lru_cache

from depgraph.tracing.origin import Line

_CHECKS = ("_assert", "_assert_async", "_check", "_check_with", "_check_value", "_check_type", "_check_index")


def is_check(line: Line | None) -> bool:
    """Return whether all that a line does is check values: the model either goes on as it does, or not at all."""
    if line is None:
        return False
    statements = _statements(line.file).get(line.number, [])
    return bool(statements) and all(map(_only_checks, statements))


def _only_checks(statement: ast.stmt) -> bool:
    keeps = any(isinstance(node, ast.NamedExpr) for node in ast.walk(statement))
    call = statement.value if isinstance(statement, ast.Expr) else None
    return not keeps and (
        isinstance(statement, ast.Assert) or (isinstance(call, ast.Call) and _name(call.func) in _CHECKS)
    )


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
def _tree(file: str) -> ast.AST | None:
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return None


@lru_cache(maxsize=64)
def _statements(file: str) -> dict[int, list[ast.stmt]]:
    """Return the statements of a file by each line that they are on; of one that holds others, by those of its head."""
    tree = _tree(file)
    found: dict[int, list[ast.stmt]] = {}
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if body else node.end_lineno
            for number in range(node.lineno, max(last or 0, node.lineno) + 1):
                found.setdefault(number, []).append(node)
    return found


@lru_cache(maxsize=64)
def _values(file: str) -> dict[int, list[ast.expr | None]]:
    """Return what tensors are made of in a file, or what is written to places in them, by each line that it is on."""
    tree = _tree(file)
    found: dict[int, list[ast.expr | None]] = {}
    for node, value in _made(tree) if tree is not None else ():
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1):
            found.setdefault(number, []).append(value)
    return found


def _made(tree: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, ast.expr | None]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _name(node.func) in _BUILDERS:
            yield node, node.args[0] if node.args else None
        elif isinstance(node, ast.Assign) and any(isinstance(target, ast.Subscript) for target in node.targets):
            yield node, node.value


def _name(function: ast.expr) -> str:
    return str(getattr(function, "attr", getattr(function, "id", "")))
