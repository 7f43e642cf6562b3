"""Imports run downwards only, and nothing sideways."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# What a layer may import from the project besides itself.
BELOW = {
    "errors": set(),
    "dag": {"errors"},
    "tracing": {"errors", "dag"},
    "rules": {"errors", "dag", "tracing"},
    "unrolling": {"errors", "dag", "tracing", "rules"},
    "metrics": {"errors", "dag"},
    "rendering": {"errors", "dag"},
    "verification": {"errors", "dag", "tracing", "metrics"},
}
HEAVY = {"torch", "numpy", "scipy", "networkx", "graphviz", "rich", "depgraph"}


def imported(tree, package):
    """Yield (dotted name, names, whether it runs when the module is imported) of every import."""

    def visit(node, at_import):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, [], at_import
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            yield ".".join([*base, *filter(None, [node.module])]), [alias.name for alias in node.names], at_import
        else:
            typing_only = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
            inner = at_import and not typing_only and not isinstance(node, (ast.FunctionDef, ast.Lambda))
            for child in ast.iter_child_nodes(node):
                yield from visit(child, inner)

    yield from visit(tree, True)


def modules(folder, package):
    """Return (file, its dotted name, the package that relative imports in it start from) of every module."""
    found = []
    for file in sorted((ROOT / folder).rglob("*.py")):
        parts = [package, *file.relative_to(ROOT / folder).with_suffix("").parts]
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        found.append(pytest.param(file, name, name if is_package else name.rpartition(".")[0], id=name))
    return found


def layer_of(name):
    return name.split(".")[1] if name.startswith("depgraph.") else None


@pytest.mark.parametrize(("file", "name", "package"), modules("depgraph", "depgraph"))
def test_the_library(file, name, package):
    layer = layer_of(name)
    if layer is None:  # depgraph/__init__.py names everything.
        return
    for target, names, _ in imported(ast.parse(file.read_text()), package):
        assert target.split(".")[0] != "depgraph_cli", f"{name} imports {target}"
        used = {f"depgraph.{n}" for n in names} if target == "depgraph" else {target}
        for other in map(layer_of, used):
            assert other in (None, layer) or other in BELOW[layer], (
                f"{name} imports {target}: {layer} is not above {other}"
            )


def test_every_layer_has_its_rule():
    parts = {p.stem for p in (ROOT / "depgraph").iterdir() if p.suffix == ".py" or (p.is_dir() and any(p.glob("*.py")))}
    assert parts - {"__init__"} == set(BELOW)


@pytest.mark.parametrize("layer", ["dag", "metrics", "rendering"])
def test_what_works_on_any_graph_knows_no_pytorch(layer):
    for file in (ROOT / "depgraph" / layer).rglob("*.py"):
        assert "torch" not in {target.split(".")[0] for target, _, _ in imported(ast.parse(file.read_text()), "")}, file


@pytest.mark.parametrize(("file", "name", "package"), modules("cli/depgraph_cli", "depgraph_cli"))
def test_the_command_line(file, name, package):
    import depgraph

    for target, names, at_import in imported(ast.parse(file.read_text()), package):
        top = target.split(".")[0]
        if top == "depgraph":
            assert target == "depgraph", f"{name} imports {target}: only public names of depgraph are its business"
            assert set(names) <= set(depgraph.__all__), f"{name} imports {names}"
        light = set(names) <= {"DepgraphError", "LoadError", "PositionError"}
        if at_import and top in HEAVY and not (top == "depgraph" and light):
            pytest.fail(f"{name} imports {target} at once, not when it is needed")
