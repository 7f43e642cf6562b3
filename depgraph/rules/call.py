"""What a rule is given, and how it says what is read.

A rule is a small function ``rule(call, *args, **kwargs)``: it gets an operator's own arguments, tensors replaced by
`Value`, and returns the `Value` (or several) that the operator returns. What an output element reads is written as
views: a `Read` is an argument's codes, arranged (by expand, permute, unfold: no copies) so that its leading axes are
those of the output and its trailing axes run over all that one output element reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from depgraph.rules.values import Value


@dataclass(frozen=True, eq=False)
class Read:
    """What the elements of an output read of one argument.

    Attributes
    ----------
    codes : tensor
        Leading axes broadcast against the output's; the last ``inner`` axes run over what one element reads.
    inner : int
        Number of those trailing axes.
    dead : bool tensor or None
        True where an element is not read after all, broadcast against ``codes``.
    """

    codes: Tensor
    inner: int = 0
    dead: Tensor | None = None


class Call(Protocol):
    """One call of an operator, as its rule sees it."""

    op: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    meta: Any

    @property
    def shape(self) -> torch.Size:
        """Shape of the (first) output."""

    @property
    def dtype(self) -> torch.dtype:
        """Dtype of the (first) output."""

    def layout(self, place: int) -> Tensor:
        """Return an argument without data, to learn how it is laid out in memory."""

    def nodes(self, shape: Sequence[int], *reads: Read) -> Tensor:
        """Make the nodes of one operation and return the codes of its output.

        Elements that read the same nodes in the same arguments become one node. An element that reads no node is
        GENERIC if it reads anything generic, else KNOWN.
        """

    def steps(
        self, inputs: Read, state: Sequence[Read], active: Tensor | None = None, backwards: bool = False
    ) -> Tensor:
        """Make a chain of nodes along the first axis and return the codes, (steps, batch).

        Parameters
        ----------
        inputs : Read
            (steps, batch, …): what each step reads.
        state : sequence of Read
            (1, batch, …): what the first step reads besides.
        active : (steps, batch) bool tensor, optional
            False where a step is passed over: the next one reads the one before.
        backwards : bool
            Whether the first step is at the last position.
        """

    def values(self, codes: Tensor, everywhere: bool = False) -> Tensor | None:
        """Return the operator's values, by running it on what is known, where any of ``codes`` is KNOWN; else None."""

    def result(self, codes: Tensor, dtype: torch.dtype | None = None, output: int = 0) -> Value:
        """Return the output of that number with those codes; of the first, values are filled in where KNOWN."""

    def need_known(self, value: Value, why: str) -> None:
        """Say that the operator can only be followed if that argument's values are known.

        Raises
        ------
        Exception
            Where they are not. The inputs that they come from are then held at their example values, if that may be,
            else the operator is taken to read everything.
        """

    def decompose(self) -> Any:
        """Follow the operator through PyTorch's own decomposition of it."""

    def like(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Follow the operator as if it were that function, written in PyTorch's operations, of those arguments."""

    def warn(self, text: str) -> None:
        """Add a sentence to the graph's warnings, with the place in the user's code."""
