"""The command line of depgraph."""
