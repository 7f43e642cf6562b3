"""Operators that write to their arguments, and those that return the same as new tensors."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils import _pytree as pytree


class Written(NamedTuple):
    """An argument that an operator writes to."""

    name: str
    tensor: Tensor
    out: bool


def written(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Written]:
    """Return the tensors that a call writes to, in the order of the operator's schema."""
    found: list[Written] = []
    for place, argument in enumerate(op._schema.arguments):
        if argument.alias_info is None or not argument.alias_info.is_write:
            continue
        value = kwargs.get(argument.name, args[place] if place < len(args) else None)
        tensors = [value] if isinstance(value, Tensor) else value or []
        found += [Written(argument.name, tensor, argument.is_out) for tensor in tensors]
    return found


@cache
def functional(op: Any) -> Any:
    """Return the overload that returns what an in-place or out= overload writes, None where there is none.

    Examples
    --------
    >>> functional(torch.ops.aten.add_.Tensor), functional(torch.ops.aten.add.out)
    (<OpOverload(op='aten.add', overload='Tensor')>, <OpOverload(op='aten.add', overload='Tensor')>)
    """
    namespace, name = getattr(torch.ops, op.namespace), op._opname
    if name.startswith("__i"):
        name = "__" + name[3:]
    elif name.endswith("_") and not name.endswith("__"):
        name = name[:-1]
    wanted = [str(a.type) for a in op._schema.arguments if not a.is_out]
    for packet in (name, op._opname + "functional", name + "_functional"):
        for overload in _overloads(namespace, packet):
            schema = overload._schema
            if not schema.is_mutable and [str(a.type) for a in schema.arguments] == wanted:
                return overload
    return None


def _overloads(namespace: Any, packet: str) -> list[Any]:
    found = getattr(namespace, packet, None)
    return [getattr(found, name) for name in found.overloads()] if found is not None else []


@cache
def kept_whole(op: Any) -> bool:
    """Return whether a composite operator is one node: whether it neither writes nor returns views.

    One that does is followed into what it is made of, where each part says what it writes to and what it is a view of.
    """
    schema = op._schema
    views = any(result.alias_info is not None for result in schema.returns)
    return not (schema.is_mutable or views) or not op._can_decompose()


def one_by_one(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[], Any] | None:
    """Return a function that does to each tensor of lists what an operator on lists does; None where it is another.

    Examples
    --------
    >>> x = torch.ones(2)
    >>> one_by_one(torch.ops.aten._foreach_mul.Scalar, ([x, x + 1], 3), {})()
    [tensor([3., 3.]), tensor([6., 6.])]
    """
    name = op._opname.removeprefix("_foreach_")
    function = getattr(torch.Tensor, name, None) or getattr(torch, name, None)
    names = [a.name for a in op._schema.arguments]
    lists = {a.name for a in op._schema.arguments if str(a.type) in ("List[Tensor]", "List[number]")}
    given = dict(zip(names, args, strict=False)) | kwargs
    count = len(args[0])
    if function is None or name in _NOT_ALIKE or any(a.is_out for a in op._schema.arguments):
        return None

    def each() -> Any:
        results = [
            function(*(value[k] if key in lists else value for key, value in given.items() if key not in kwargs),
                     **{key: value[k] if key in lists else value for key, value in kwargs.items()})
            for k in range(count)
        ]  # fmt: skip
        return results if op._schema.returns else None

    return each


#: Operators on lists that are not the ones on tensors by their name.
_NOT_ALIKE = {"norm", "powsum", "max"}


class InPlace:
    """An operator that has no functional overload, as a function that returns what it returns and what it writes."""

    def __init__(self, op: Any) -> None:
        self.op = op
        self.__name__ = self.__qualname__ = op._schema.name.partition("::")[2]
        self.__module__ = "depgraph"

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Run the operator on copies."""
        args, kwargs = pytree.tree_map_only(Tensor, Tensor.clone, (args, kwargs))
        result = self.op(*args, **kwargs)
        results = list(result) if isinstance(result, (tuple, list)) else [result]
        own = [
            value
            for value, form in zip(results, self.op._schema.returns, strict=False)
            if form.alias_info is None and isinstance(value, Tensor)
        ]
        return (*own, *(one.tensor for one in written(self.op, args, kwargs)))

    def __repr__(self) -> str:
        return f"in_place({self.op})"


@cache
def in_place(op: Any) -> InPlace:
    """Return an operator that writes to its arguments as a function that returns them anew."""
    return InPlace(op)
