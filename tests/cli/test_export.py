"""`depgraph export`: graphs for other tools, whole or not at all."""

import json

import networkx as nx
import pytest

import depgraph
from tests.gallery.files import traced


@pytest.mark.parametrize("name", ["rnn.json", "rnn.graphml", "RNN.GEXF", "rnn.dot", "rnn.gv"])
def test_formats(run, fixtures, tmp_path, name):
    result = run("export", fixtures / "rnn.py", "-o", tmp_path / name, "--n", 4)
    assert (result.exit_code, result.stdout) == (0, f"Wrote {tmp_path / name}\n"), result.output
    assert [file.name for file in tmp_path.iterdir()] == [name]
    depgraph.save(traced("rnn", 4), tmp_path / f"again{name}")
    lines = [
        [line for line in (tmp_path / file).read_text().splitlines() if "model.py" not in line and "rnn.py" not in line]
        for file in (name, f"again{name}")
    ]
    assert lines[0] == lines[1]


@pytest.mark.parametrize(("granularity", "nodes"), [("position", 8), ("operation", 2)])
def test_granularity(run, fixtures, tmp_path, granularity, nodes):
    run("export", fixtures / "rnn.py", "-o", tmp_path / "rnn.json", "--n", 4, "--granularity", granularity)
    dag = nx.node_link_graph(json.loads((tmp_path / "rnn.json").read_text()), edges="edges")
    assert len(dag) == nodes


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("graph.svg", "graph.svg cannot be written: its name must end in .json, .graphml, .gexf, .dot or .gv."),
        ("missing/graph.json", "missing/graph.json cannot be written: there is no folder missing."),
    ],
)
def test_refused_before_any_work(refusal, write, output, message):
    write("raise RuntimeError('never run')")
    assert refusal("export", "mymodel.py", "-o", output) == message


def test_an_output_is_needed(run, fixtures):
    result = run("export", fixtures / "rnn.py")
    assert result.exit_code == 2
    assert "Missing option '-o'" in result.stderr
