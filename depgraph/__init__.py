"""How far must information travel through a PyTorch model?"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOME = {
    "DependencyGraph": "depgraph.dag.graph",
    "Node": "depgraph.dag.graph",
    "Operation": "depgraph.dag.graph",
    "Terminal": "depgraph.dag.graph",
    "from_networkx": "depgraph.dag.interop",
    "from_onnx": "depgraph.dag.formats.onnx_in",
    "save": "depgraph.dag.formats.save",
    "load": "depgraph.dag.formats.load",
    "trace": "depgraph.unrolling.trace",
    "register_rule": "depgraph.rules.registration",
    "path_lengths": "depgraph.metrics.paths.lengths",
    "shortest_path": "depgraph.metrics.paths.lengths",
    "critical_path": "depgraph.metrics.paths.lengths",
    "Path": "depgraph.metrics.paths.lengths",
    "count_paths": "depgraph.metrics.paths.counts",
    "path_statistics": "depgraph.metrics.paths.statistics",
    "PathStatistics": "depgraph.metrics.paths.statistics",
    "DistanceStatistics": "depgraph.metrics.paths.statistics",
    "reads": "depgraph.metrics.paths.fields",
    "feeds": "depgraph.metrics.paths.fields",
    "Field": "depgraph.metrics.paths.fields",
    "dependence_matrix": "depgraph.metrics.paths.dependence",
    "parallelism": "depgraph.metrics.work.parallelism",
    "Parallelism": "depgraph.metrics.work.parallelism",
    "width": "depgraph.metrics.flow.width",
    "Width": "depgraph.metrics.flow.width",
    "schedule": "depgraph.metrics.work.schedule",
    "Schedule": "depgraph.metrics.work.schedule",
    "bottleneck": "depgraph.metrics.flow.bottleneck",
    "Cut": "depgraph.metrics.flow.bottleneck",
    "state": "depgraph.metrics.flow.bottleneck",
    "verify": "depgraph.verification.verify",
    "Verdict": "depgraph.verification.verdict",
    "render": "depgraph.rendering.render",
    "DepgraphError": "depgraph.errors",
    "GraphError": "depgraph.errors",
    "LoadError": "depgraph.errors",
    "PositionError": "depgraph.errors",
    "RenderError": "depgraph.errors",
    "RuleError": "depgraph.errors",
    "TracingError": "depgraph.errors",
}


def __getattr__(name: str) -> Any:
    # Names are looked up when first used: PyTorch is imported by those who trace, and by nobody else.
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


__all__ = [*_HOME]
