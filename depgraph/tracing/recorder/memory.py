"""One memory, the views of it that have been seen, and the nodes that hold them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from torch import Tensor, fx

from depgraph.tracing.recorder.geometry import Geometry


@dataclass(slots=True)
class View:
    """A part of a memory, and the node that holds it.

    Attributes
    ----------
    version : int
        The version of the memory at which the node held it, -1 for none.
    node : torch.fx.Node or None
    parent : Geometry or None
        What it is a view of; None where it is read from the memory as a whole.
    operator, args, kwargs
        How it is made of its parent.
    """

    version: int = -1
    node: fx.Node | None = None
    parent: Geometry | None = None
    operator: Any = None
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)


class Lent(NamedTuple):
    """A memory that may be written to unseen.

    Attributes
    ----------
    storage : torch.UntypedStorage
    held : torch.Tensor
        A copy of its bytes.
    version : int
        The version of the memory then.
    """

    storage: Any
    held: Tensor
    version: int


class Memory:
    """One memory, and what is known of it.

    Attributes
    ----------
    owner
        Keeps the storage alive, or only its address from being used again.
    root : Geometry
        The part that ``node`` holds: all that anybody has read or written.
    version : int
        Number of writes.
    views : dict
    regions : list
        Geometry and node of the tensors known by name that lie in it.
    twins : list of Memory
        Memories that are one in the caller's program, where they are two inputs.
    constants : list of torch.fx.Node
        Nodes that hold what was in it at first, if that was not known by name.
    part_of : Memory or None
        That of a sparse tensor, whose values it holds.
    alone : bool
        Whether nobody has seen more of it than what is known.
    loose : bool
        Whether it is a copy of what the program takes for a view.
    lent : Lent or None
        What was in it when it was handed out, if it was.
    copy_of : tuple or None
        The memory that it is a copy of, and the version of that.
    beside : list of Memory
        Memories that go by another name and are the same bytes in part.
    fresh : bool
        Whether it was made while the model ran.
    whole : torch.Tensor or None
        A tensor over the storage; None where it has none.
    """

    def __init__(self, owner: Any, whole: Tensor | None, root: Geometry, node: fx.Node, *, fresh: bool) -> None:
        self.owner, self.whole, self.root, self.node, self.fresh = owner, whole, root, node, fresh
        self.version = 0
        self.views: dict[Geometry, View] = {root: View(0, node)}
        self.regions = [(root, node)]
        self.twins: list[Memory] = []
        self.constants: list[fx.Node] = []
        self.loose = False
        self.alone = fresh
        self.part_of: Memory | None = None
        self.lent: Lent | None = None
        self.copy_of: tuple[Memory, int] | None = None
        self.beside: list[Memory] = []
