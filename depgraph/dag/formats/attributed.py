"""GraphML, GEXF and DOT: nodes by name, with attributes that are strings or numbers."""

from __future__ import annotations

import io
import re
from collections.abc import Hashable
from typing import Any

import graphviz
import networkx as nx
from graphviz.quoting import quote

from depgraph.errors import GraphError

_BROKEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""What XML 1.0 cannot hold, even escaped."""


def graphml(dag: nx.DiGraph[Hashable]) -> bytes:
    """Return a graph as GraphML."""
    file = io.BytesIO()
    nx.write_graphml_xml(_attributed(dag, "GraphML"), file)
    return file.getvalue()


def gexf(dag: nx.DiGraph[Hashable]) -> bytes:
    """Return a graph as GEXF 1.2."""
    file = io.BytesIO()
    nx.write_gexf(_attributed(dag, "GEXF"), file)
    return file.getvalue()


def dot(dag: nx.DiGraph[Hashable]) -> bytes:
    """Return a graph as DOT, its attributes under their own names. Backslashes are doubled, as Graphviz reads them."""
    named = _attributed(dag, "DOT")
    text = graphviz.Digraph("depgraph")
    for name, data in named.nodes(data=True):
        text.node(_literal(name), **{key: _literal(str(value)) for key, value in data.items()})
    # Digraph.edge() would take what follows a colon for a port.
    text.body += [f"\t{quote(_literal(u))} -> {quote(_literal(v))}\n" for u, v in named.edges]
    return str(text.source).encode()


def _literal(text: str) -> str:
    result: str = graphviz.nohtml(graphviz.escape(text))
    return result


def _attributed(dag: nx.DiGraph[Hashable], kind: str) -> nx.DiGraph[str]:
    """Return the graph with its nodes named by strings, and its attributes as these formats can hold them.

    Raises
    ------
    GraphError
        Where two nodes would get the same name, or a character cannot be written.
    """
    names: dict[str, Hashable] = {}
    result: nx.DiGraph[str] = nx.DiGraph()
    for node, data in dag.nodes(data=True):
        name = str(node)
        if name in names:
            raise GraphError(
                f"The nodes {names[name]!r} and {node!r} would both be called {name!r} in {kind}. Rename one of them "
                "(networkx.relabel_nodes), or write .json, which tells them apart."
            )
        names[name] = node
        held = {key: _held(value) for key, value in data.items()}
        for text in (name, *held.values()):
            if isinstance(text, str) and (found := _BROKEN.search(text)):
                raise GraphError(
                    f"The node {node!r} has the character {found[0]!r} in its name or an attribute, which {kind} "
                    "cannot hold. Write .json instead."
                )
        result.add_node(name, **held)
    result.add_edges_from((str(u), str(v)) for u, v in dag.edges)
    _one_type_each(result)
    return result


def _one_type_each(dag: nx.DiGraph[str]) -> None:
    """Make an attribute that is a float somewhere a float everywhere: a column has one type."""
    floats = {key for data in dag.nodes.values() for key, value in data.items() if isinstance(value, float)}
    for data in dag.nodes.values():
        data |= {key: float(data[key]) for key in floats & data.keys() if isinstance(data[key], int)}


def _held(value: Any) -> Any:
    """Return an attribute as a string or a number: a position as ``"3,4"``."""
    return ",".join(map(str, value)) if isinstance(value, (tuple, list)) else value
