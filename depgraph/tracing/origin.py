"""Where in the user's model, and on which line of the user's code, a node of the graph comes from."""

from __future__ import annotations

import os
import re
import sysconfig
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import torch
from torch import fx

WRAPPED = "model"
"""Attribute under which the user's model hangs in what is exported; no name that leaves this layer shows it."""

_FRAME = re.compile(r'^\s*File "(?P<file>[^"\n]+)", line (?P<line>\d+)', re.MULTILINE)
_TORCH = os.path.dirname(torch.__file__) + os.sep
_OWN = str(Path(__file__).parents[1]) + os.sep
_LIBRARIES = tuple(
    {os.path.realpath(path) + os.sep for path in sysconfig.get_paths().values()}
    | {path + os.sep for path in sysconfig.get_paths().values()}
)


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


def source_of(trace: str) -> str:
    """Return ``"file:line"`` of the frame of a stack trace that says most to the user, ``""`` where there is none."""
    place = _place(trace)
    return f"{shown(place[0])}:{place[1]}" if place else ""


@lru_cache(maxsize=1 << 14)
def _place(trace: str) -> tuple[str, int] | None:
    return innermost([(m["file"], int(m["line"])) for m in _FRAME.finditer(trace)])


def innermost(frames: Sequence[tuple[str, int]]) -> tuple[str, int] | None:
    """Return the innermost of the user's own frames, else of a library's that is not PyTorch, else of PyTorch's."""
    best, found = -1, None
    for frame in frames:
        rank = rank_of(frame[0])
        if rank >= max(best, 0):
            best, found = rank, frame
    return found


@lru_cache(maxsize=1 << 12)
def rank_of(file: str) -> int:
    """Return 2 for the user's own code, 1 for a library's, 0 for PyTorch's, -1 for what is not to be shown at all."""
    if file.startswith(_OWN) or file.startswith("<eval_with_key>"):
        return -1
    if file.startswith(_TORCH):
        return 0
    if "site-packages" in file or "dist-packages" in file or file.startswith(_LIBRARIES):
        return 1
    return 2


def shown(file: str) -> str:
    """Return a path as it is shown: relative to the working directory below it, from the package on in a library."""
    path = Path(file)
    for parent in path.parents:
        if parent.name in ("site-packages", "dist-packages"):
            return path.relative_to(parent).as_posix()
    try:
        return path.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return path.name
