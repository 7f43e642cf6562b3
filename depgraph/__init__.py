"""How far must information travel through a PyTorch model?"""

from depgraph.dag.graph import DependencyGraph, Node, Operation, Terminal
from depgraph.dag.interop import from_networkx
