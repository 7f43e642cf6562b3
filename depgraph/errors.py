"""Everything depgraph raises on purpose.

::

    DepgraphError
    ├── LoadError       a model file, the model in it or its example inputs; a file with a graph
    ├── TracingError    the model runs, but cannot be followed
    ├── PositionError   an input, an output, an axis or a position that is not there
    ├── GraphError      a graph or a weight that a metric cannot work with; a graph that cannot be saved
    ├── RuleError       a rule for an operator that is not there, or has one already
    └── RenderError     a drawing or a trace that cannot be made

Each message names the value at fault, the place, and what to do about it.
"""

from __future__ import annotations

__all__ = ["DepgraphError", "GraphError", "LoadError", "PositionError", "RenderError", "RuleError", "TracingError"]


class DepgraphError(Exception):
    """Base of every error that depgraph raises on purpose."""


class LoadError(DepgraphError):
    """A model file, the model in it or its example inputs, or a file with a graph, cannot be had."""


class TracingError(DepgraphError):
    """The model cannot be followed, even with its real example inputs."""


class PositionError(DepgraphError, LookupError):
    """A name, an axis or a position that the model does not have."""


class GraphError(DepgraphError, ValueError):
    """A graph or a weight that a metric cannot work with, or a graph that cannot be saved."""


class RuleError(DepgraphError, ValueError):
    """A rule for an operator that does not exist, or has a rule already."""


class RenderError(DepgraphError):
    """A drawing or a trace that cannot be made."""
