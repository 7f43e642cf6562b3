"""Where in the user's model, and on which line of the user's code, a node of the graph comes from."""

from __future__ import annotations

import contextlib
import dis
import os
import sys
import sysconfig
import threading
import traceback
import types
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.overrides
from torch import nn

_TORCH = os.path.dirname(torch.__file__) + os.sep
_MODULES = os.path.join(os.path.dirname(torch.__file__), "nn") + os.sep
_OVERRIDES = torch.overrides.__file__
_CALLING = os.path.join("modules", "module.py")
_TYPED_IN = ("<stdin>", "<ipython-input", "<doctest")
_LIBRARY, _USER = 3, 4
_CALLS = str(Path(__file__).with_name("wrapper.py"))  # what the model does begins there
_OWN = str(Path(__file__).parents[1]) + os.sep
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


def line_of_error(error: BaseException) -> Line | None:
    """Return the line in the user's own code, in a library or in one of PyTorch's modules that raised an exception."""
    stack = traceback.walk_tb(error.__traceback__)
    return telling(Line(frame.f_code.co_filename, number) for frame, number in stack)


def module_of_error(error: BaseException, model: nn.Module) -> str:
    """Return the dotted path of the innermost module of a model that an exception passed through."""
    names = {id(module): name for name, module in model.named_modules()}
    passed = [id(frame.f_locals.get("self")) for frame, _ in traceback.walk_tb(error.__traceback__)]
    return next((names[module] for module in reversed(passed) if module in names), "")


class _Place(threading.local):
    """Where an operation comes from that is run again from a graph, in this thread."""

    current: tuple[str, Line | None] | None = None


_PLACE = _Place()


@contextlib.contextmanager
def placed(module: str, line: Line | None) -> Iterator[None]:
    """Say of what runs that it comes from a module and a line."""
    before, _PLACE.current = _PLACE.current, (module, line)
    try:
        yield
    finally:
        _PLACE.current = before


def current_module() -> str | None:
    """Return the dotted path of the module that an operation comes from which is run again from a graph."""
    return _PLACE.current[0] if _PLACE.current is not None else None


def current_line() -> Line | None:
    """Return the line in the user's own code that is being executed.

    It is the innermost of the user's own code, else of a library's that is not PyTorch, else of PyTorch's modules; only
    what the model calls counts, not who called for the model to be traced.
    """
    if _PLACE.current is not None:
        return _PLACE.current[1]
    best, found = 1, None
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and best < _USER:
        code = frame.f_code
        if code.co_filename == _CALLS and code.co_name == "__call__":
            break
        rank = _rank(code.co_filename)
        if rank > best:
            best, found = rank, frame
        frame = frame.f_back
    return Line(found.f_code.co_filename, found.f_lineno) if found is not None else None


def is_of_the_user(file: str | None, name: str) -> bool:
    """Return whether a module, by its file and name, is the user's own."""
    return name == "__main__" if file is None else _rank(file) == _USER


def called_by_others(function: Any) -> bool:
    """Return whether neither PyTorch nor this package has called a function that the code asking is looking at."""
    caller = _caller_of(function, sys._getframe(1))
    return caller is not None and _rank(caller) >= _LIBRARY


def called_by_us(function: Any) -> bool:
    """Return whether this package has called a function that the code asking is looking at."""
    caller = _caller_of(function, sys._getframe(1))
    return caller is not None and caller.startswith(_OWN)


def _caller_of(function: Any, frame: types.FrameType | None) -> str | None:
    """Return the file whose code called a function that the code in a frame is looking at."""
    own, asking = getattr(function, "__code__", None), frame and frame.f_code.co_filename
    while frame is not None and (frame.f_code.co_filename in (asking, _OVERRIDES) or frame.f_code is own):
        frame = frame.f_back
    return None if frame is None else frame.f_code.co_filename


def asked_by_a_call() -> bool:
    """Return whether code that is not PyTorch's has called a function that asked for a condition: ``bool``, ``any``.

    Then the condition comes back as a value. Elsewhere a jump depends on it: then it chooses a branch.
    """
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and _rank(frame.f_code.co_filename) == 0:
        frame = frame.f_back
    if frame is None or _rank(frame.f_code.co_filename) < _LIBRARY:
        return False
    name = dis.opname[frame.f_code.co_code[frame.f_lasti]]
    return "CALL" in name or name == "UNARY_NOT"


def telling(lines: Iterable[Line]) -> Line | None:
    """Return the line of a stack, outermost first, that says most to the user: see `current_line`."""
    best, found = 2, None
    for line in lines:
        rank = _rank(line.file)
        if rank >= best:
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
    return _USER


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
