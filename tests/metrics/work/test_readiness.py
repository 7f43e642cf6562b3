from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from depgraph.dag.graph import DependencyGraph
from depgraph.metrics.work import readiness
from depgraph.metrics.work.readiness import Countdown, Successions
from tests.metrics.strategies import as_networkx, graphs


@given(graphs(width=9), st.data())
@settings(deadline=None)
@pytest.mark.parametrize("few", [0, 3, 24])
def test_jobs_become_ready_with_the_last_that_they_wait_for(
    few: int, graph: DependencyGraph, data: st.DataObject
) -> None:
    executed = range(graph.dag.inputs, graph.dag.nodes)
    nodes = [v for v in data.draw(st.permutations(executed)) if data.draw(st.booleans())]
    dag = as_networkx(graph).subgraph(range(graph.dag.nodes))
    # What a job waits for: jobs from which a way leads to it through what is no job.
    waits: dict[int, set[int]] = {}
    for v in sorted(dag):
        waits[v] = set().union(*({u} if u in nodes else waits[u] for u in dag.predecessors(v)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(readiness, "FEW", few)
        successions = Successions.of(graph.dag, np.array(nodes, np.int64))
        ready, waiting = successions.at_first
        count = Countdown(successions, waiting)
        done: set[int] = set()
        left = [nodes[job] for job in ready.tolist()]
        assert left == [v for v in nodes if not waits[v]]
        while left:
            batch = data.draw(st.lists(st.sampled_from(left), min_size=1, unique=True))
            before, done = done, done | set(batch)
            found = [nodes[job] for job in count.finish([nodes.index(v) for v in batch])]
            assert found == [v for v in nodes if waits[v] <= done and not waits[v] <= before]
            left = [v for v in left if v not in done] + found
    assert done == set(nodes)
