"""What each operator reads. Importing this package enters every rule into the registry.

`Call`, `Read` and `Value` are what rules are written with, see `depgraph.register_rule`.
"""

from depgraph.rules import (
    attention,
    contraction,
    convolution,
    elementwise,
    indexing,
    linalg,
    movement,
    normalisation,
    quantisation,
    recurrence,
    reduction,
    resampling,
    scattering,
    searching,
    spectral,
    triangular,
)
from depgraph.rules.call import Call, Read
from depgraph.rules.values import Value

__all__ = [
    "Call",
    "Read",
    "Value",
    "attention",
    "contraction",
    "convolution",
    "elementwise",
    "indexing",
    "linalg",
    "movement",
    "normalisation",
    "quantisation",
    "recurrence",
    "reduction",
    "resampling",
    "scattering",
    "searching",
    "spectral",
    "triangular",
]
