"""Where in the user's model, and on which line of the user's code, a node of the graph comes from."""

from __future__ import annotations

import os
import re
import sys
import sysconfig
import traceback
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import torch
from torch import fx, nn

WRAPPED = "_depgraph_model"
"""Attribute under which the user's model hangs in what is exported; no name that leaves this layer shows it."""

_FRAME = re.compile(r'^\s*File "(?P<file>[^"\n]+)", line (?P<line>\d+)', re.MULTILINE)
_TORCH = os.path.dirname(torch.__file__) + os.sep
_MODULES = os.path.join(os.path.dirname(torch.__file__), "nn") + os.sep
_CALLING = os.path.join("modules", "module.py")
_TYPED_IN = ("<stdin>", "<ipython-input", "<doctest")
_OWN = str(Path(__file__).parents[1]) + os.sep
# The files of ours that PyTorch calls into.
_IN_BETWEEN = {str(Path(__file__).with_name(name)) for name in ("escapes.py", "unsupported.py")}
_LIBRARIES = tuple(
    {
        place + os.sep
        for kind in ("stdlib", "platstdlib", "purelib", "platlib")
        for place in (sysconfig.get_path(kind), os.path.realpath(sysconfig.get_path(kind)))
    }
)


class Line(NamedTuple):
    """A line of a file."""

    file: str
    number: int

    def __str__(self) -> str:
        return f"{_shown(self.file)}:{self.number}"


def unwrapped(name: str) -> str:
    """Return a dotted name of the exported wrapper as it is called in the user's model."""
    return "" if name == WRAPPED else name.removeprefix(WRAPPED + ".")


def module_of(node: fx.Node) -> str:
    """Return the dotted path of the innermost module that ran a node, ``""`` for the user's model itself."""
    stack = node.meta.get("nn_module_stack")
    if not stack:
        return ""
    path: str = next(reversed(stack.values()))[0]
    return unwrapped(path)


def line_of_node(node: fx.Node) -> Line | None:
    """Return the line in the user's own code that a node comes from."""
    return _line_in(node.meta.get("stack_trace") or "")


def line_of_error(error: BaseException) -> Line | None:
    """Return the line in the user's own code, in a library or in one of PyTorch's modules that raised an exception."""
    stack = traceback.walk_tb(error.__traceback__)
    return telling(Line(frame.f_code.co_filename, number) for frame, number in stack)


def module_of_error(error: BaseException, model: nn.Module) -> str:
    """Return the dotted path of the innermost module of a model that an exception passed through."""
    names = {id(module): name for name, module in model.named_modules()}
    passed = [id(frame.f_locals.get("self")) for frame, _ in traceback.walk_tb(error.__traceback__)]
    return next((names[module] for module in reversed(passed) if module in names), "")


def current_line() -> Line | None:
    """Return the line in the user's own code that is being executed."""
    stack = reversed(list(traceback.walk_stack(sys._getframe(1))))
    return telling(Line(frame.f_code.co_filename, number) for frame, number in stack)


@lru_cache(maxsize=1 << 14)
def _line_in(trace: str) -> Line | None:
    return telling(Line(match["file"], int(match["line"])) for match in _FRAME.finditer(trace))


def telling(lines: Iterable[Line]) -> Line | None:
    """Return the line of a stack, outermost first, that says most to the user.

    It is the innermost of the user's own code, else of a library's that is not PyTorch, else of PyTorch's modules; only
    what the model calls counts, not who called for the model to be traced.
    """
    best, found = 2, None
    for line in lines:
        rank = _rank(line.file)
        if not rank and line.file not in _IN_BETWEEN:
            best, found = 2, None
        elif rank >= best:
            best, found = rank, line
    return found


@lru_cache(maxsize=1 << 12)
def _rank(file: str) -> int:
    """Return 4 for the user's code, 3 for a library's, 2 for PyTorch's modules, 1 for its other code, 0 for ours."""
    if file.startswith(_OWN):
        return 0
    if file.startswith(_MODULES) and not file.endswith(_CALLING):
        return 2
    if file.startswith((_TORCH, "<")) and not file.startswith(_TYPED_IN):
        return 1
    if "site-packages" in file or "dist-packages" in file or file.startswith(_LIBRARIES):
        return 3
    return 4


def _shown(file: str) -> str:
    """Return a path as it is shown: relative to the working directory below it, from the package on in a library."""
    path = Path(file)
    for parent in path.parents:
        if parent.name in ("site-packages", "dist-packages"):
            return path.relative_to(parent).as_posix()
    try:
        return path.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return path.name
