"""`depgraph.load`: a graph from a file."""

from __future__ import annotations

import os
from pathlib import Path

from depgraph.dag.formats.reading import from_node_link
from depgraph.dag.formats.whole import reason
from depgraph.dag.graph import DependencyGraph
from depgraph.errors import GraphError, LoadError


def load(path: str | os.PathLike[str]) -> DependencyGraph:
    """Return the graph in a file.

    Parameters
    ----------
    path : path
        ``.json``: node-link JSON. What `depgraph.save` wrote comes back as it was, with its inputs, outputs, operations
        and warnings. Anybody else's, with ``"directed": true``, ``"nodes"`` and ``"edges"`` or ``"links"``, is read
        like `from_networkx` reads a graph: nodes may have the attributes ``op``, ``module``, ``source`` and
        ``contraction``, and the inputs and outputs are what the graph attributes ``"sources"`` and ``"targets"`` list,
        none where there are no such attributes.

        ``.onnx``: see `from_onnx`.

    Returns
    -------
    DependencyGraph
        The weight of a node is what its operation says; what only a model can tell is not in a file.

    Raises
    ------
    LoadError
        Where the file cannot be read, or its suffix is neither of these.
    GraphError
        Where it does not hold a directed acyclic graph, saying what is wrong with it.

    Examples
    --------
    >>> import json, tempfile
    >>> from pathlib import Path
    >>> import depgraph
    >>> foreign = {
    ...     "directed": True,
    ...     "graph": {"sources": ["x"], "targets": ["y"]},
    ...     "nodes": [{"id": "x"}, {"id": "h"}, {"id": "y"}],
    ...     "links": [{"source": "x", "target": "h"}, {"source": "h", "target": "y"}],
    ... }
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "foreign.json"
    ...     _ = file.write_text(json.dumps(foreign))
    ...     depgraph.path_lengths(depgraph.load(file))
    array([[2]])
    """
    if not isinstance(path, (str, os.PathLike)):
        raise LoadError(f"path is the name of a file to read, such as 'graph.json'; got {path!r}.")
    file = Path(path)
    if file.suffix.lower() == ".onnx":
        from depgraph.dag.formats.onnx_in import from_onnx

        return from_onnx(file)
    if file.suffix.lower() != ".json":
        raise LoadError(f"{str(file)!r} is neither .json (node-link, as depgraph.save writes it) nor .onnx.")
    try:
        text = file.read_bytes()
    except (OSError, ValueError) as error:
        raise LoadError(f"{str(file)!r} cannot be read: {reason(error)}.") from error
    try:
        return from_node_link(text)
    except GraphError as error:
        raise GraphError(f"{str(file)!r} holds no graph to be read: {str(error).rstrip('.')}.") from error
