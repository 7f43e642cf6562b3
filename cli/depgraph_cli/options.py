"""The options that every command about one model shares."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import update_wrapper
from typing import Any

import click

from depgraph_cli.failures import reported

DTYPES = (
    *("bool", "uint8", "int8", "int16", "int32", "int64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
)


@dataclass(frozen=True)
class InputSpec:
    """A tensor described on the command line: ``ids=1,64:int64``. Without a dtype, the model's own."""

    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Request:
    """Which model, on which inputs, and what to tell apart in them."""

    target: str
    positions: dict[str | int, tuple[int, ...]] | None
    known: tuple[str, ...]
    inputs: tuple[InputSpec, ...]
    n: int | None
    train: bool
    fake: bool = False


def tracked_axes(text: str) -> tuple[str | int, tuple[int, ...]]:
    """Return the name (a number where it is one) and the axes that ``x=1`` or ``img=2,3`` speaks of."""
    name, equals, axes = text.rpartition("=")
    if not (equals and name and re.fullmatch(r"-?\d+(,-?\d+)*", axes)):
        raise click.BadParameter(f"{text!r} is not NAME=AXIS or NAME=AXIS,AXIS, such as x=1 or img=2,3.")
    return int(name) if name.isdecimal() else name, tuple(map(int, axes.split(",")))


def input_spec(text: str) -> InputSpec:
    """Return what ``x=1,64,512`` or ``ids=1,64:int64`` describes."""
    match = re.fullmatch(r"(?P<name>[^=:]+)=(?P<shape>\d+(,\d+)*)(:(?P<dtype>[\w.]+))?", text)
    if match is None:
        raise click.BadParameter(
            f"{text!r} is not NAME=SIZES or NAME=SIZES:DTYPE, such as x=1,64,512 or ids=1,64:int64."
        )
    dtype = (match["dtype"] or "").removeprefix("torch.")
    if dtype and dtype not in DTYPES:
        raise click.BadParameter(f"there is no dtype {dtype!r}. The dtypes are: {', '.join(DTYPES)}.")
    return InputSpec(match["name"], tuple(map(int, match["shape"].split(","))), dtype)


_POSITION = r"-?\d+(,-?\d+)*"


class TakesPositions(click.Command):
    """A command among whose arguments are positions, which may be negative: they are not options for that."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse a command line; one without negative positions as strictly as any other."""
        ctx.ignore_unknown_options = any(arg.startswith("-") and re.fullmatch(_POSITION, arg) for arg in args)
        return super().parse_args(ctx, args)


def position(text: str) -> tuple[int, ...]:
    """Return the indices that ``7`` or ``3,4`` stands for, one for each tracked axis."""
    if not re.fullmatch(_POSITION, text):
        if text.startswith("--"):  # a misspelled option beside a negative position
            raise click.NoSuchOption(text)
        raise click.BadParameter(f"{text!r} is no position: give an integer, or one for each tracked axis, as in 3,4.")
    return tuple(map(int, text.split(",")))


_SHARED = (
    click.argument("model", metavar="TARGET"),
    click.option(
        "--positions",
        type=tracked_axes,
        metavar="NAME=AXIS[,AXIS]",
        multiple=True,
        help="Axes whose indices are told apart, as in x=1 or img=2,3. Instead of the file's own `positions`; inferred "
        "where there are none. Repeatable.",
    ),
    click.option(
        "--known", metavar="NAME", multiple=True, help="Hold this input at its example value (a mask). Repeatable."
    ),
    click.option(
        "--input",
        "inputs",
        type=input_spec,
        metavar="NAME=SIZES[:DTYPE]",
        multiple=True,
        help="A random tensor for this argument of forward, as in x=1,64,512 or ids=1,64:int64. Instead of the file's "
        "`example_inputs`. Repeatable.",
    ),
    click.option("--n", type=click.IntRange(min=1), help="Call the file's `example_inputs` with this size."),
    click.option("--train", is_flag=True, help="Analyse the model in train mode (default: eval mode)."),
    click.option(
        "--fake",
        is_flag=True,
        help="Trace without computing: for models and inputs too large to be run. Small tensors keep their values.",
    ),
    click.option("--traceback", is_flag=True, help="On an error, show where it came from."),
)

weight_option = click.option(
    "--weight",
    type=click.Choice(["ops", "contractions", "flops", "bytes", "seconds", "scalars"]),
    default="ops",
    show_default=True,
    help="What a node costs: 1 each; 1 for those that multiply and sum and 0 for the rest; its floating-point "
    "operations as PyTorch counts them; bytes read and written; seconds measured on the example inputs; or the numbers "
    "that it stands for.",
)

exact_width_option = click.option(
    "--exact-width",
    type=click.Choice(["never", "auto", "always"]),
    default="auto",
    show_default=True,
    help="Whether to find the exact width where its bounds do not meet: never, if it takes no more than a few "
    "gigabytes, or whatever it costs.",
)

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")


def model_command(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command TARGET and the shared options, as one `Request`, and report its errors."""

    def callback(
        model: str,
        positions: tuple[tuple[str | int, tuple[int, ...]], ...],
        known: tuple[str, ...],
        inputs: tuple[InputSpec, ...],
        n: int | None,
        train: bool,
        fake: bool,
        traceback: bool,
        **rest: Any,
    ) -> None:
        _refuse_repeats("--positions", [str(name) for name, _ in positions])
        _refuse_repeats("--input", [spec.name for spec in inputs])
        request = Request(model, dict(positions) or None, known, inputs, n, train, fake)
        reported(function, traceback)(request, **rest)

    update_wrapper(callback, function)
    for option in reversed(_SHARED):
        callback = option(callback)
    return callback


def _refuse_repeats(option: str, names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise click.UsageError(f"{option} names {name!r} more than once.")
