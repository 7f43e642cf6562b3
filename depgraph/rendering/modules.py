"""Frames around modules: the tree of dotted paths, as nested clusters."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import count

import graphviz

from depgraph.rendering import style
from depgraph.rendering.sheet import Box
from depgraph.rendering.text import label, short

# A number says nothing without the name of the list it counts in: "layers.0" is one step of the path.
_STEP = re.compile(r"\.(?!\d+(?:\.|$))")
LONGEST_NAME = 40


@dataclass
class Frame:
    """A module: the boxes of its own operations and the frames of its children, in the order of their first use."""

    items: dict[str | int, Frame | Box] = field(default_factory=dict)

    def add(self, box: Box) -> None:
        """Put a box into the frame of its module."""
        frame = self
        for step in _STEP.split(box.module) if box.module else ():
            child = frame.items.setdefault(step, Frame())
            assert isinstance(child, Frame)
            frame = child
        frame.items[len(frame.items)] = box

    def draw(self, on: graphviz.Digraph, numbers: Iterable[int] | None = None) -> None:
        """Draw what is in the frame; a frame around a single thing is not drawn, but its name is kept."""
        numbers = count() if numbers is None else numbers
        for key, item in self.items.items():
            name = str(key)
            while isinstance(item, Frame) and len(item.items) == 1:
                ((step, item),) = item.items.items()
                name = name if isinstance(item, Box) else f"{name}.{step}"
            if isinstance(item, Box):
                named = isinstance(key, str) and name != item.label[0]
                (replace(item, label=(*item.label, short(name, LONGEST_NAME))) if named else item).draw(on)
            else:
                with on.subgraph(name=f"cluster{next(iter(numbers))}") as inner:
                    inner.attr("graph", label=label(short(name, LONGEST_NAME), end="\\l"), **style.CLUSTER)
                    item.draw(inner, numbers)
