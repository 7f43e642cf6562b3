"""`depgraph.register_rule`: rules of users, for operators that PyTorch does not know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from depgraph.errors import RuleError
from depgraph.rules.registry import CONTRACTIONS, RULES, Rule, is_view
from depgraph.tracing.origin import Line
from depgraph.tracing.private import CustomOpDef, overloads_of

F = TypeVar("F", bound=Rule)


@dataclass(frozen=True)
class UserRule:
    """A rule that a user wrote.

    Attributes
    ----------
    function : callable
    operator : str
        As it was registered: ``"mylib::scan"``.
    """

    function: Rule
    operator: str

    def __call__(self, call: Any, *args: Any, **kwargs: Any) -> Any:
        """Apply the rule."""
        return self.function(call, *args, **kwargs)

    @property
    def name(self) -> str:
        """The function's name."""
        return str(getattr(self.function, "__qualname__", type(self.function).__qualname__))

    @property
    def line(self) -> Line | None:
        """Where it is defined."""
        code = getattr(self.function, "__code__", None)
        return None if code is None else Line(code.co_filename, code.co_firstlineno)

    def __str__(self) -> str:
        return f"{self.name} ({self.line})" if self.line else self.name


def register_rule(op: Any, *, replace: bool = False, contraction: bool = False) -> Callable[[F], F]:
    """Say what a custom operator reads, as a decorator of a function that says it.

    An operator registered with `torch.library`, in Python or in C++, is a closed box. Without a rule it is decomposed
    where PyTorch knows how to, and taken to read everything where it does not, with a warning. Functions made with
    `torch.autograd.Function` need no rule: what they do is followed.

    Parameters
    ----------
    op : str, operator or torch.library.CustomOpDef
        ``"mylib::scan"``, ``torch.ops.mylib.scan``, what `torch.library.custom_op` returned, or one overload:
        ``"mylib::scan.out"``, ``torch.ops.mylib.scan.out``.
    replace : bool
        Whether to take the place of a rule that is there already.
    contraction : bool
        Whether the operator multiplies and sums, so that it counts under the weight ``"contractions"``.

    Returns
    -------
    decorator
        Of a function ``rule(call, *args)``. It is given all arguments of the operator, defaults included, with a
        `depgraph.rules.Value` for each tensor, and returns one for each tensor that the operator returns, followed,
        where it writes to some of its arguments, by one for what is in each of those afterwards. Either
        ``call.like(function, *args)``: the operator reads what that function reads, which is written in PyTorch's
        operations; or ``call.result(call.nodes(call.shape, *reads))``: it is one operation, and each `Read` says what
        the elements of its output read of one argument.

    Raises
    ------
    RuleError
        Where there is no such operator, or it has a rule already.

    Notes
    -----
    A rule is tested with `depgraph.verify`, which runs the operator. A rule that raises, or returns something of
    another form than the operator does, ends tracing with a `TracingError` that names both.

    Examples
    --------
    An operator that sums all elements up to its own place, which is what `torch.cumsum` reads too:

    >>> import torch, depgraph
    >>> @torch.library.custom_op("docs::running_sum", mutates_args=())
    ... def running_sum(x: torch.Tensor) -> torch.Tensor:
    ...     return torch.from_numpy(x.numpy().cumsum(1))
    >>> @running_sum.register_fake
    ... def _(x):
    ...     return torch.empty_like(x)
    >>> @depgraph.register_rule(running_sum)
    ... def reads(call, x):
    ...     return call.like(lambda x: x.cumsum(1), x)
    >>> class Model(torch.nn.Module):
    ...     def forward(self, x):
    ...         return running_sum(x)
    >>> x = torch.randn(1, 4, 2)
    >>> graph = depgraph.trace(Model(), (x,), positions={"x": 1, "output": 1})
    >>> depgraph.path_lengths(graph)
    array([[ 1,  1,  1,  1],
           [-1,  1,  1,  1],
           [-1, -1,  1,  1],
           [-1, -1, -1,  1]])
    >>> depgraph.verify(graph, Model(), (x,)).exact
    True
    """
    operator = _name(op)
    key = operator.removeprefix("aten::").removeprefix("prims::")

    def enter(function: F) -> F:
        if not callable(function):
            raise RuleError(f"A rule is a function rule(call, *args); for {operator} it is {function!r}.")
        before = _described(operator, key)
        if before and not replace:
            raise RuleError(f"{operator} has a rule already: {before}. Pass replace=True to put another in its place.")
        for overload in _overloads_of(key):  # would be found first
            del RULES[overload]
        RULES[key] = UserRule(function, operator)
        if contraction:
            CONTRACTIONS.add(operator.partition("::")[2].partition(".")[0])
        return function

    return enter


def _name(op: Any) -> str:
    """Return an operator's name, with the overload where one is meant."""
    if isinstance(op, str):
        name = op
    elif isinstance(op, torch._ops.OpOverload):
        name = f"{op._schema.name}.{op._overloadname}"
    elif isinstance(op, torch._ops.OpOverloadPacket):
        name = op._qualified_op_name
    elif isinstance(op, CustomOpDef):
        name = op._qualname
    else:
        raise RuleError(
            'A rule is registered for an operator, such as "mylib::scan", torch.ops.mylib.scan or what '
            f"torch.library.custom_op returned; got {op!r}."
        )
    packet, _, overload = name.partition(".")
    overloads = overloads_of(packet) if "::" in packet else set()
    if not overloads:
        raise RuleError(
            f"There is no operator {packet!r}. Names are given as namespace::name; register the operator with "
            "torch.library, or load the library that does, before its rule."
        )
    if overload and overload not in overloads:
        raise RuleError(f"{packet} has no overload {overload!r}. It has: {', '.join(sorted(overloads))}.")
    return name


def _overloads_of(key: str) -> list[str]:
    """Return the names of single overloads that depgraph has rules for; none for the name of an overload."""
    return [name for name, rule in RULES.items() if name.startswith(f"{key}.") and not isinstance(rule, UserRule)]


def _described(operator: str, key: str) -> str:
    """Return what follows an operator already, ``""`` where nothing does but perhaps its decomposition."""
    found = [RULES[name] for name in (key, key.partition(".")[0], *_overloads_of(key)) if name in RULES]
    if found:
        rule = found[0]
        return str(rule) if isinstance(rule, UserRule) else f"depgraph's own, {rule.__qualname__}"
    namespace, _, name = operator.partition("::")
    if namespace not in ("aten", "prims"):
        return ""
    packet, _, overload = name.partition(".")
    operators = getattr(getattr(torch.ops, namespace), packet)
    for each in [overload] if overload else operators.overloads():
        op = getattr(operators, each)
        if is_view(op) or torch.Tag.pointwise in op.tags or torch.Tag.reduction in op.tags:
            return "depgraph's own, for operators of its kind"
    return ""
