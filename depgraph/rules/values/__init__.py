"""What is known of a tensor while a model is unrolled: codes, and an interval for each element's value."""

from depgraph.rules.values.codes import (
    FIRST,
    GENERIC,
    KNOWN,
    compress,
    core,
    forget,
    groups,
    reshape,
    together,
    uniform,
)
from depgraph.rules.values.value import ORDINARY, RANGED, Value, generic, known, swap, usual, widest

__all__ = [
    "FIRST",
    "GENERIC",
    "KNOWN",
    "ORDINARY",
    "RANGED",
    "Value",
    "compress",
    "core",
    "forget",
    "generic",
    "groups",
    "known",
    "reshape",
    "swap",
    "together",
    "uniform",
    "usual",
    "widest",
]
