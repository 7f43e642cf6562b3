"""Commands on graphs alone: saved ones, and ONNX files."""

import json
import subprocess
import sys
from pathlib import Path

import networkx as nx
import onnx
import pytest
from onnx import TensorProto, helper


@pytest.fixture
def saved(run, fixtures, tmp_path, monkeypatch):
    """Return a name of a saved graph in the working directory."""
    monkeypatch.chdir(tmp_path)
    assert run("export", fixtures / "lstm.py", "-o", "lstm.json", "--n", 5).exit_code == 0
    return "lstm.json"


@pytest.fixture
def network(tmp_path, monkeypatch):
    """Return a name of an ONNX file in the working directory, of two branches."""
    monkeypatch.chdir(tmp_path)
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 4]) for name in "xy")
    w = helper.make_tensor("w", TensorProto.FLOAT, [4, 4], [0.5] * 16)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], name="/layers.0/MatMul"),
        helper.make_node("Sigmoid", ["x"], ["gate"], name="/gate/Sigmoid"),
        helper.make_node("Mul", ["h", "gate"], ["y"], name="/Mul"),
    ]
    onnx.save(helper.make_model(helper.make_graph(nodes, "net", [x], [y], [w])), "net.onnx")
    return "net.onnx"


def test_a_saved_graph_says_what_the_model_says(answer, fixtures, saved):
    for command in (["analyze"], ["path"]):
        rest = ["0", "-1"] if command == ["path"] else []
        model = answer(*command, fixtures / "lstm.py", *rest, "--n", 5)
        graph = answer(*command, saved, *rest)
        assert graph.pop("model") == saved
        model.pop("model")
        assert graph == model


def test_analyze_tells_of_a_saved_graph(run, saved):
    out = run("analyze", saved).stdout
    assert out.startswith("lstm.json: saved graph, in eval mode\n")
    assert "--positions" not in out


def test_analyze_an_onnx_file(run, answer, network):
    found = answer("analyze", network)
    assert found["inputs"] == {"x": {"shape": [-1, 4], "positions": [], "count": 1}}
    assert (found["work"], found["critical_path"]["length"], found["parallelism"]["width"]) == (3, 2, 2)
    assert found["critical_path"]["nodes"][0] == {
        "op": "MatMul",
        "position": [],
        "module": "layers.0",
        "source": "net.onnx",
    }
    out = run("analyze", network).stdout
    assert out.startswith("net.onnx: ONNX model\nTracked: no axis of any input.\n")
    assert "?×4" in out


def test_path_through_an_onnx_file(answer, network):
    found = answer("path", network, 0, 0, "--weight", "contractions")
    assert (found["length"], [node["op"] for node in found["nodes"]]) == (0, ["Sigmoid", "Mul"])


@pytest.mark.parametrize("granularity", ["auto", "position", "operation"])
def test_render(run, saved, network, granularity):
    for file in (saved, network):
        result = run("render", file, "--granularity", granularity)
        assert result.exit_code == 0, result.output
        assert "digraph" in result.stdout


def test_export_again(run, saved, network):
    assert run("export", saved, "-o", "again.json").exit_code == 0
    assert Path("again.json").read_text() == Path(saved).read_text()
    assert run("export", network, "-o", "net.graphml").exit_code == 0
    assert set(nx.read_graphml("net.graphml").edges) == {
        ("x", "/layers.0/MatMul"),
        ("x", "/gate/Sigmoid"),
        ("/layers.0/MatMul", "/Mul"),
        ("/gate/Sigmoid", "/Mul"),
    }


def test_a_graph_of_others_without_inputs_and_outputs(run, answer, refusal, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    dag = nx.DiGraph([("a", "b"), ("b", "c")])
    Path("other.json").write_text(json.dumps(nx.node_link_data(dag, edges="links")))
    found = answer("analyze", "other.json")
    assert (found["work"], found["critical_path"]["length"], found["paths"]) == (3, 3, [])
    assert found["bottleneck"] == {"source": None, "target": None, "size": 0, "nodes": []}
    out = run("analyze", "other.json").stdout
    assert "Bottleneck" not in out
    assert "Path lengths" not in out
    assert refusal("path", "other.json", 0, 0) == "This graph has no inputs; name some when building it."


@pytest.mark.parametrize(
    ("options", "option"),
    [
        (["--positions", "x=1"], "--positions"),
        (["--known", "x"], "--known"),
        (["--input", "x=1,2"], "--input"),
        (["--n", "3"], "--n"),
        (["--train"], "--train"),
    ],
)
def test_options_for_models(refusal, saved, network, options, option):
    assert refusal("analyze", saved, *options) == (
        f"{option} needs a model file: lstm.json is a saved graph, whose graph is fixed."
    )
    assert refusal("render", network, *options) == (
        f"{option} needs a model file: net.onnx is an ONNX model, whose graph is fixed."
    )


def test_verify_needs_a_model(refusal, saved, network):
    for file, kind in ((saved, "saved graph"), (network, "ONNX model")):
        assert refusal("verify", file) == (
            f"This needs a model to run, and {file} ({kind}) is a graph alone. Give the model file."
        )


def test_files_that_hold_no_graph(refusal, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("graph.json", "net.onnx"):
        Path(name).write_text("no graph")
    assert refusal("analyze", "graph.json").startswith("'graph.json' holds no graph to be read: it is no JSON: ")
    assert refusal("analyze", "net.onnx").startswith("'net.onnx' is no ONNX model: ")


def test_pytorch_is_not_imported(saved):
    code = (
        "import sys; from depgraph_cli.main import main; main(['analyze', 'lstm.json'], standalone_mode=False); "
        "sys.exit('torch' in sys.modules)"
    )
    paths = [str(Path(__file__).parents[2] / part) for part in ("", "cli")]
    code = f"import sys; sys.path[:0] = {paths!r}\n{code}"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0
