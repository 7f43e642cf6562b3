"""One module a command. They import the engine only inside functions, so that `depgraph --help` is instant."""
