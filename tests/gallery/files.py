"""The model files in `fixtures/`, of any size."""

from __future__ import annotations

import runpy
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import torch

import depgraph

FOLDER = Path(__file__).parents[2] / "fixtures"
NAMES = sorted(file.stem for file in FOLDER.glob("*.py"))


@cache
def load(name):
    """Return what a file defines; its own lines are what a graph's sources name."""
    return SimpleNamespace(**runpy.run_path(str(FOLDER / f"{name}.py")))


def built(name, **sizes):
    """Return the model of a file with other sizes, ready to be traced."""
    torch.manual_seed(0)
    return type(load(name).model)(**sizes).eval()


def traced(name, n, *more, positions=None, **sizes):
    """Return the graph of the model of a file, called with the example inputs for n.

    Parameters
    ----------
    more
        What to give in place of the further arguments, such as the number of words to generate.
    """
    file = load(name)
    given = file.example_inputs(n)
    args = given if isinstance(given, tuple) else (given,)
    args = (*args[: len(args) - len(more)], *more)
    return depgraph.trace(built(name, **sizes), args, positions=positions or file.positions)
