"""What each operator reads. Importing this package enters every rule into the registry."""

from depgraph.rules import (
    attention,
    contraction,
    convolution,
    elementwise,
    indexing,
    linalg,
    movement,
    normalisation,
    recurrence,
    reduction,
    resampling,
    scattering,
    searching,
    spectral,
)

__all__ = [
    "attention",
    "contraction",
    "convolution",
    "elementwise",
    "indexing",
    "linalg",
    "movement",
    "normalisation",
    "recurrence",
    "reduction",
    "resampling",
    "scattering",
    "searching",
    "spectral",
]
