"""`depgraph.save`: a graph as a file for other tools."""

from __future__ import annotations

import os
from pathlib import Path

from depgraph.dag.formats.attributed import dot, gexf, graphml
from depgraph.dag.formats.node_link import node_link
from depgraph.dag.formats.whole import reason, write_whole
from depgraph.dag.graph import DependencyGraph, check_graph
from depgraph.errors import GraphError

SUFFIXES = (".json", ".graphml", ".gexf", ".dot", ".gv")


def save(graph: DependencyGraph, path: str | os.PathLike[str]) -> None:
    """Write a graph to a file, in the format that its suffix stands for.

    ========================  ==========================================================================================
    ``.json``                 Node-link JSON, as `networkx.node_link_data` has it; the only format `depgraph.load` reads
                              back, with inputs, outputs and operations.
    ``.graphml``, ``.gexf``   For Gephi, yEd, Cytoscape, igraph and others.
    ``.dot``, ``.gv``         DOT with the data alone: `depgraph.render` makes drawings.
    ========================  ==========================================================================================

    Nodes are those of `DependencyGraph.to_networkx`, with the same attributes. Positions are lists in JSON and strings
    like ``"3,4"`` in the other formats.

    Files hold edges one by one, where a graph in memory holds runs of them: full attention over n positions makes n²
    edges. Save what has millions of edges as its operation graph, ``graph.collapse()``.

    Parameters
    ----------
    graph : DependencyGraph
    path : path
        What is there already is replaced when the new file is complete.

    Raises
    ------
    GraphError
        Where the suffix is none of these, the file cannot be written, or the format cannot hold the names of the nodes.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import networkx as nx
    >>> import depgraph
    >>> graph = depgraph.from_networkx(nx.DiGraph([("x", "a"), ("a", "b")]), sources=["x"], targets=["b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     depgraph.save(graph, Path(folder) / "graph.json")
    ...     depgraph.load(Path(folder) / "graph.json")
    <DependencyGraph: 2 operations, 3 nodes, 2 edges; inputs input (1); outputs output (1)>
    """
    check_graph(graph)
    if not isinstance(path, (str, os.PathLike)):
        raise GraphError(f"path is the name of a file to write, such as 'graph.json'; got {path!r}.")
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in SUFFIXES:
        raise GraphError(f"{str(target)!r} ends in none of {', '.join(SUFFIXES)}, the formats a graph is saved in.")
    if suffix == ".json":
        content = node_link(graph)
    else:
        write = {".graphml": graphml, ".gexf": gexf}.get(suffix, dot)
        content = write(graph.to_networkx())
    try:
        write_whole(content, target)
    except (OSError, ValueError) as error:
        raise GraphError(f"Cannot write the graph to {str(target)!r}: {reason(error)}.") from error
