"""`depgraph render`: drawings, whole or not at all."""

import xml.etree.ElementTree as ET

import pytest


def test_svg(run, fixtures, tmp_path):
    result = run("render", fixtures / "rnn.py", "-o", tmp_path / "rnn.svg", "--n", 4)
    assert (result.exit_code, result.stdout) == (0, f"Wrote {tmp_path / 'rnn.svg'}\n"), result.output
    assert ET.parse(tmp_path / "rnn.svg").getroot().tag.endswith("svg")
    assert [file.name for file in tmp_path.iterdir()] == ["rnn.svg"]


@pytest.mark.parametrize("name", ["rnn.dot", "rnn.gv", "RNN.DOT"])
def test_dot(run, fixtures, tmp_path, name):
    assert run("render", fixtures / "rnn.py", "-o", tmp_path / name, "--n", 4).exit_code == 0
    assert "digraph" in (tmp_path / name).read_text()


def test_dot_on_standard_output(run, fixtures):
    assert "digraph" in run("render", fixtures / "rnn.py", "--n", 4).stdout


def test_granularity(run, fixtures):
    drawn = {
        choice: run("render", fixtures / "rnn.py", "--n", 4, "--granularity", choice).stdout
        for choice in ("operation", "position")
    }
    assert drawn["operation"].count("->") < drawn["position"].count("->")


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("graph.txt", "graph.txt cannot be written: its name must end in .svg, .png, .dot or .gv."),
        ("missing/graph.svg", "missing/graph.svg cannot be written: there is no folder missing."),
        ("folder.svg", "folder.svg cannot be written: it exists and is no file."),
    ],
)
def test_refused_before_any_work(refusal, write, tmp_path, output, message):
    write("raise RuntimeError('never run')")
    (tmp_path / "folder.svg").mkdir()
    assert refusal("render", "mymodel.py", "-o", output) == message
    assert not (tmp_path / "graph.txt").exists()


def test_what_was_there_stays_where_drawing_fails(refusal, write, tmp_path, monkeypatch):
    import depgraph

    def fail(graph, path, **options):
        path.write_text("half")
        raise depgraph.RenderError("no ink")

    monkeypatch.setattr(depgraph, "render", fail)
    write("model = nn.Linear(2, 2)\nexample_inputs = torch.ones(1, 3, 2)")
    (tmp_path / "graph.svg").write_text("before")
    assert refusal("render", "mymodel.py", "-o", "graph.svg") == "no ink"
    assert (tmp_path / "graph.svg").read_text() == "before"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["graph.svg", "mymodel.py"]
