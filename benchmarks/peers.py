"""What others do on the same graph: longest paths, and distances from some inputs to all outputs.

Each peer is given the edges as two arrays and builds its own graph of them, which is not counted. A longest path is the
number of nodes on it, inputs left out; a distance the number of nodes on the way, the input left out.
"""

import time
from dataclasses import dataclass

import numpy as np

from depgraph.dag.graph import DependencyGraph

#: Beyond this many edges networkx would need tens of gigabytes.
_NETWORKX_EDGES = 8_000_000
#: rustworkx and SciPy answer for all nodes at once: the largest such table, in bytes.
_TABLE = 4e9
_CHUNK = 1_000_000
#: Sources of a first call, which shows how many more there is time for.
_FEW = 4


@dataclass(frozen=True)
class Task:
    """A graph as peers get it, and what they are asked.

    Attributes
    ----------
    sources : int array
        All inputs, the first few of which stand for all. The targets of output j are ``targets[cuts[j]:cuts[j + 1]]``,
        and its distance is the least of theirs.
    patience : float
        Seconds that finding distances may take.
    """

    graph: DependencyGraph
    sources: np.ndarray
    patience: float

    @property
    def targets(self) -> np.ndarray:
        """Nodes behind the positions of the output."""
        return self.graph.outputs.default().nodes.elements()[1]

    @property
    def cuts(self) -> np.ndarray:
        """Where the targets of each position begin."""
        return self.graph.outputs.default().nodes.indptr

    def by_position(self, distances: np.ndarray) -> np.ndarray:
        """Return the distances to positions, given those to targets; infinite or -1 where there is none."""
        distances = np.where(distances < 0, np.inf, distances)
        least = np.minimum.reduceat(distances, self.cuts[:-1], axis=-1)
        return np.where(np.isinf(least), -1, least).astype(np.int64)

    def one_by_one(self, distances) -> tuple[float, np.ndarray]:
        """Return the seconds for all inputs, going by those for as many as patience allows, and their distances."""
        rows, start = [], time.perf_counter()
        for source in self.sources.tolist():
            rows.append(distances(source))
            seconds = time.perf_counter() - start
            if seconds > self.patience:
                break
        everything = self.graph.inputs.default().count
        return seconds * everything / len(rows), self.by_position(np.array(rows))

    def together(self, distances, most: int) -> tuple[float, np.ndarray]:
        """Do the same for what prepares the graph anew in each call and is best given many sources at once.

        Where they do not all fit into a call, or take longer than patience allows, the seconds are those for preparing
        as often as necessary and those for each source, by the times for a few sources and for as many as possible.
        """
        count = len(self.sources)
        few = min(_FEW, count)
        first, rows = self._called(distances, few)
        many = max(few, min(count, most, int(self.patience * few / max(first, 1e-9))))
        if many == few:
            return first * count / few, rows
        second, rows = self._called(distances, many)
        each = max(0.0, (second - first) / (many - few))
        calls = -(-count // min(count, most))
        return second if many == count else calls * max(0.0, first - each * few) + each * count, rows

    def _called(self, distances, count: int) -> tuple[float, np.ndarray]:
        start = time.perf_counter()
        found = distances(self.sources[:count].tolist())
        return time.perf_counter() - start, self.by_position(np.array(found))


class Peer:
    """A library; what it cannot do raises NotImplementedError with the reason."""

    name = ""

    def longest(self, task: Task) -> tuple[float, int]:
        """Return seconds and the length of a longest path."""
        raise NotImplementedError("has none")

    def distances(self, task: Task) -> tuple[float, np.ndarray]:
        """Return seconds for all inputs, and the (sources, outputs) distances."""
        raise NotImplementedError("has none")


class Networkx(Peer):
    """networkx."""

    name = "networkx"

    def _graph(self, task: Task):
        import networkx as nx

        if task.graph.dag.edges > _NETWORKX_EDGES:
            raise NotImplementedError("too large")
        read, reader = task.graph.dag.edge_arrays()
        graph = nx.DiGraph()
        graph.add_nodes_from(range(task.graph.dag.nodes))
        graph.add_edges_from(zip(read.tolist(), reader.tolist(), strict=True))
        return graph

    def longest(self, task):
        """Return seconds and the length of a longest path."""
        import networkx as nx

        graph, start = self._graph(task), time.perf_counter()
        length = nx.dag_longest_path_length(graph)
        return time.perf_counter() - start, length

    def distances(self, task):
        """Return seconds for all inputs, and the (sources, outputs) distances."""
        import networkx as nx

        graph, targets = self._graph(task), task.targets.tolist()

        def from_one(source: int) -> list[int]:
            found = nx.single_source_shortest_path_length(graph, source)
            return [found.get(target, -1) for target in targets]

        return task.one_by_one(from_one)


class Rustworkx(Peer):
    """rustworkx."""

    name = "rustworkx"

    def _graph(self, task: Task, weighted: bool):
        import rustworkx as rx

        dag = task.graph.dag
        graph = rx.PyDiGraph(multigraph=True, node_count_hint=dag.nodes, edge_count_hint=dag.edges)
        graph.add_nodes_from(range(dag.nodes))
        read, reader = dag.edge_arrays()
        for low in range(0, len(read), _CHUNK):
            part = slice(low, low + _CHUNK)
            pairs = zip(read[part].tolist(), reader[part].tolist(), strict=True)
            if weighted:
                graph.add_edges_from([(u, v, 1.0) for u, v in pairs])
            else:
                graph.add_edges_from_no_data(list(pairs))
        return graph

    def longest(self, task):
        """Return seconds and the length of a longest path."""
        import rustworkx as rx

        from benchmarks.apart import timed

        graph = self._graph(task, weighted=False)
        return timed(lambda: rx.dag_longest_path_length(graph))

    def distances(self, task):
        """Return seconds for all inputs, and the (sources, outputs) distances."""
        import rustworkx as rx

        targets = task.targets
        if 8 * task.graph.dag.nodes**2 < _TABLE:
            graph, start = self._graph(task, weighted=False), time.perf_counter()
            table = rx.distance_matrix(graph, null_value=-1)
            return time.perf_counter() - start, task.by_position(table[np.ix_(task.sources, targets)])
        graph, wanted = self._graph(task, weighted=True), targets.tolist()

        def from_one(source: int) -> list[float]:
            found = rx.dijkstra_shortest_path_lengths(graph, source, float)
            paths = dict(found)
            return [paths.get(target, -1) for target in wanted]

        return task.one_by_one(from_one)


class Igraph(Peer):
    """igraph."""

    name = "igraph"

    def distances(self, task):
        """Return seconds for all inputs, and the (sources, outputs) distances."""
        import igraph

        read, reader = task.graph.dag.edge_arrays()
        graph = igraph.Graph(task.graph.dag.nodes, np.stack([read, reader], 1), directed=True)
        targets = task.targets.tolist()
        return task.together(lambda sources: graph.distances(sources, targets, mode="out"), len(task.sources))


class Scipy(Peer):
    """scipy.sparse.csgraph."""

    name = "scipy"

    def distances(self, task):
        """Return seconds for all inputs, and the (sources, outputs) distances."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import dijkstra

        dag, targets = task.graph.dag, task.targets
        read, reader = (part.astype(np.int32) for part in dag.edge_arrays())
        matrix = csr_array((np.ones(len(read)), (read, reader)), shape=(dag.nodes, dag.nodes))
        del read, reader
        most = max(1, int(_TABLE / (8 * dag.nodes)))
        return task.together(lambda sources: dijkstra(matrix, indices=sources, unweighted=True)[:, targets], most)


PEERS = (Networkx(), Rustworkx(), Igraph(), Scipy())
