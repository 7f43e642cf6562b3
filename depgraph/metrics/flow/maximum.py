"""Maximum flow of any size, exact, from one that counts in 32 bits."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

#: The most that scipy's `maximum_flow` is given: it adds a capacity and a flow the other way in 32 bits.
_MOST = 2**30 - 1


def largest_flow(limits: csr_array, source: int, sink: int, bound: int, most: int = _MOST) -> tuple[int, csr_array]:
    """Return the largest flow, and how much more each edge, there and back, could then take.

    Flows beyond 32 bits are found from the leading digits of the capacities to the last ones [1]_: first in large
    units; what is left then is little, and goes on in smaller units through what the flow so far has left.

    Parameters
    ----------
    limits : csr_array of int64
        Entry [u, v] is the capacity of the edge from u to v. There are no edges in both directions.
    source, sink : int
    bound : int
        No flow is larger.
    most : int, optional
        Count to this in one go.

    Returns
    -------
    flow : int
    left : csr_array of int64

    References
    ----------
    .. [1] H. N. Gabow, "Scaling algorithms for network problems", Journal of Computer and System Sciences 31, 1985.
    """
    flow, left = 0, limits
    while bound:
        unit = -(-bound // most)
        sizes = np.minimum(left.data // unit, most).astype(np.int32)
        indices, indptr = left.indices.astype(np.int32), left.indptr.astype(np.int32)
        found = maximum_flow(csr_array((sizes, indices, indptr), shape=left.shape), source, sink)
        flow += unit * int(found.flow_value)
        left = csr_array(left - found.flow.astype(np.int64) * unit)
        # Each edge of a cut has less than a unit left, or the flow has reached the bound.
        bound = min(bound - unit * int(found.flow_value), (unit - 1) * left.nnz)
    left.eliminate_zeros()
    return flow, left
