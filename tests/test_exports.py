"""The public names, all of them and no others."""

import importlib
import subprocess
import sys

import depgraph

PUBLIC = {
    "Cut",
    "DistanceStatistics",
    "Field",
    "PathStatistics",
    "count_paths",
    "dependence_matrix",
    "feeds",
    "path_statistics",
    "reads",
    "DependencyGraph",
    "DepgraphError",
    "GraphError",
    "LoadError",
    "Node",
    "Operation",
    "Parallelism",
    "Path",
    "PositionError",
    "RenderError",
    "RuleError",
    "Schedule",
    "Terminal",
    "TracingError",
    "Verdict",
    "Width",
    "bottleneck",
    "critical_path",
    "from_networkx",
    "from_onnx",
    "load",
    "parallelism",
    "path_lengths",
    "register_rule",
    "render",
    "save",
    "schedule",
    "shortest_path",
    "state",
    "trace",
    "verify",
    "width",
}


def test_the_names():
    assert set(depgraph.__all__) == PUBLIC
    assert set(dir(depgraph)) == PUBLIC


def test_each_is_there_and_documented():
    for name in PUBLIC:
        assert getattr(depgraph, name).__doc__, name


def test_each_comes_from_the_library_itself():
    for name in PUBLIC:
        value = getattr(depgraph, name)
        assert value.__module__.startswith("depgraph."), name
        assert getattr(importlib.import_module(value.__module__), name) is value


def test_errors_have_one_root():
    for name in PUBLIC:
        if name.endswith("Error"):
            assert issubclass(getattr(depgraph, name), depgraph.DepgraphError)


def test_importing_the_package_imports_nothing_heavy():
    code = "import sys, depgraph; print(*{name.split('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "depgraph" in loaded
    assert not {"torch", "numpy", "scipy", "networkx"} & set(loaded)
