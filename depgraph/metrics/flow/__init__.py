"""How much can pass through a graph: cuts, and covers by chains."""
