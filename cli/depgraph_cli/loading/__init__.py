"""From a TARGET to a module and inputs to run it on. Imports PyTorch only inside functions."""

from __future__ import annotations

from depgraph_cli.loading.loaded import Loaded, load

__all__ = ["Loaded", "load"]
