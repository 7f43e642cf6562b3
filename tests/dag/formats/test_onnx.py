"""ONNX models as operation graphs: which of their nodes are nodes, and what these read."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper, save_model

import depgraph

node = helper.make_node


def info(name: str, *shape: int | str | None) -> Any:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def constant(name: str, value: Any) -> TensorProto:
    return numpy_helper.from_array(np.array(value), name)


def model(
    nodes: Sequence[NodeProto],
    inputs: Sequence[str] = ("x",),
    outputs: Sequence[str] = ("y",),
    constants: Sequence[str | TensorProto] = (),
    functions: Sequence[FunctionProto] = (),
    domains: Sequence[str] = (),
) -> ModelProto:
    """Return a model of 4 × 4 matrices; constants given by name are matrices as well."""
    tensors = [constant(c, np.ones((4, 4), np.float32)) if isinstance(c, str) else c for c in constants]
    graph = helper.make_graph(
        nodes, "graph", [info(i, 4, 4) for i in inputs], [info(o, 4, 4) for o in outputs], tensors
    )
    imports = [helper.make_opsetid(domain, version) for domain, version in (("", 20), *((d, 1) for d in domains))]
    return helper.make_model(graph, opset_imports=imports, functions=functions)


def edges(graph: depgraph.DependencyGraph) -> set[tuple[str, str]]:
    """Return the edges, and one from each node that an output gathers to the output's name in brackets."""
    found = set(graph.to_networkx().edges)
    for terminal in graph.outputs.values():
        found |= {(graph.node(n).id, f"[{terminal.name}]") for n in terminal.nodes.elements()[1].tolist()}
    return found


def of(*nodes: NodeProto, **options: Any) -> set[tuple[str, str]]:
    return edges(depgraph.from_onnx(model(nodes, **options)))


def test_a_small_network() -> None:
    nodes = [
        node("Gemm", ["x", "W", "b"], ["h"], name="/layers.0/linear/Gemm"),
        node("Relu", ["h"], ["r"], name="/layers.0/act/Relu"),
        node("MatMul", ["r", "W"], ["m"], name="top"),
        node("Add", ["m", "x"], ["y"], name="sum"),
    ]
    graph = depgraph.from_onnx(model(nodes, constants=["W", "b"]))
    assert graph.node(0) == ("x", "input", (), "x", "")
    assert graph.node(1) == ("/layers.0/linear/Gemm", "Gemm", (), "layers.0.linear", "")
    assert graph.node(3) == ("top", "MatMul", (), "", "")
    assert [(o.name, o.contraction) for o in graph.operations] == [
        ("Gemm", True),
        ("Relu", False),
        ("MatMul", True),
        ("Add", False),
    ]
    assert depgraph.path_lengths(graph).tolist() == [[1]]
    assert depgraph.critical_path(graph).length == 4
    assert depgraph.critical_path(graph, "contractions").length == 2
    assert (graph.inputs["x"].shape, graph.inputs["x"].positions, graph.outputs["y"].shape) == ((4, 4), (), (4, 4))
    assert (graph.mode, graph.warnings, graph.unused_inputs) == ("", [], [])
    assert graph.outputs["output"] is graph.outputs[0] is graph.outputs["output.0"] is graph.outputs["y"]


def test_width_is_branch_parallelism() -> None:
    branches = [node("Relu", ["x"], [f"h{i}"]) for i in range(5)]
    graph = depgraph.from_onnx(model([*branches, node("Sum", [f"h{i}" for i in range(5)], ["y"])]))
    assert depgraph.parallelism(graph).width == 5
    assert depgraph.parallelism(graph).level_widths == [5, 1]


def test_what_comes_of_constants_alone_is_constant() -> None:
    found = of(
        node("Constant", [], ["c"], value=constant("", 3.0)),
        node("MatMul", ["W", "W"], ["v"]),
        node("RandomNormal", [], ["noise"], shape=[4, 4]),
        node("Mul", ["v", "c"], ["w"]),
        node("Add", ["w", "noise"], ["z"]),
        node("Add", ["x", "z"], ["y"]),
        constants=["W"],
    )
    assert found == {("x", "y"), ("y", "[y]")}


def test_constant_outputs_and_inputs_without_a_use() -> None:
    graph = depgraph.from_onnx(
        model([node("Relu", ["W"], ["y"]), node("Relu", ["x"], ["z"])], ["x", "u"], ["y", "x"], "W")
    )
    assert edges(graph) == {("x", "z"), ("x", "[x]")}
    assert graph.unused_inputs == ["u"]
    assert depgraph.path_lengths(graph, "x", "y").tolist() == [[-1]]
    assert depgraph.path_lengths(graph, "x", "x").tolist() == [[0]]
    assert depgraph.bottleneck(graph, "x", "y") == (0, [])


def test_initializers_are_no_inputs_even_where_they_are_listed() -> None:
    graph = depgraph.from_onnx(model([node("MatMul", ["x", "W"], ["y"])], inputs=["x", "W"], constants=["W"]))
    assert list(graph.inputs) == ["x"]


INTS = [constant("i", [0, 1]), constant("one", [1]), constant("two", [2]), constant("cond", [True]), constant("z", 0.0)]
MOVES = [
    node("Identity", ["x"], ["y"]),
    node("Cast", ["x"], ["y"], to=TensorProto.DOUBLE),
    node("CastLike", ["x", "u"], ["y"]),
    node("Reshape", ["x", "i"], ["y"]),
    node("Transpose", ["x"], ["y"]),
    node("Squeeze", ["x"], ["y"]),
    node("Unsqueeze", ["x", "one"], ["y"]),
    node("Flatten", ["x"], ["y"]),
    node("Slice", ["x", "one", "two"], ["y"]),
    node("Slice", ["x", "one", "two", "", "one"], ["y"]),
    node("Gather", ["x", "i"], ["y"]),
    node("GatherElements", ["x", "i"], ["y"]),
    node("GatherND", ["x", "i"], ["y"]),
    node("Concat", ["x", "W"], ["y"], axis=0),
    node("Pad", ["x", "i"], ["y"]),
    node("Pad", ["x", "i", "z"], ["y"]),
    node("Expand", ["x", "i"], ["y"]),
    node("Tile", ["x", "i"], ["y"]),
    node("Dropout", ["x"], ["y"]),
    node("Dropout", ["x", "z"], ["y"]),
    node("DepthToSpace", ["x"], ["y"], blocksize=2),
    node("Trilu", ["x"], ["y"]),
    node("Trilu", ["x", "one"], ["y"]),
    node("Where", ["cond", "x", "W"], ["y"]),
    node("Compress", ["x", "cond"], ["y"]),
    node("ScatterND", ["x", "i", "W"], ["y"]),
    node("ScatterElements", ["W", "i", "x"], ["y"], reduction="none"),
    node("Resize", ["x", "", "i"], ["y"]),
    node("Resize", ["x", "", "i"], ["y"], mode="nearest"),
    node("ReverseSequence", ["x", "i"], ["y"]),
]


@pytest.mark.parametrize("moving", MOVES, ids=lambda n: n.op_type)
def test_moving_data_makes_no_node(moving: NodeProto) -> None:
    moving.output[0] = "m"
    found = of(moving, node("Relu", ["m"], ["y"]), inputs=["x", "u"], constants=["W", *INTS])
    assert found == {("x", "y"), ("y", "[y]")}


COMPUTING = [
    node("Dropout", ["x", "z", "cond"], ["y"]),
    node("Resize", ["x", "", "i"], ["y"], mode="linear"),
    node("Resize", ["x", "", "i"], ["y"], antialias=1),
    node("ScatterND", ["x", "i", "W"], ["y"], reduction="add"),
    node("Reshape", ["W", "x"], ["y"]),
    node("Gather", ["W", "x"], ["y"]),
    node("Slice", ["W", "one", "x"], ["y"]),
    node("Pad", ["W", "x"], ["y"]),
    node("Where", ["x", "W", "W"], ["y"]),
    node("Trilu", ["W", "x"], ["y"]),
    node("Identity", ["x"], ["y"], domain="mine"),
]


@pytest.mark.parametrize("computing", COMPUTING, ids=lambda n: n.op_type)
def test_what_does_more_than_move_is_a_node(computing: NodeProto) -> None:
    assert of(computing, constants=["W", *INTS], domains=["mine"]) == {("x", "y"), ("y", "[y]")}


def test_dropout_that_is_told_not_to_train() -> None:
    moving = node("Dropout", ["x", "", "no"], ["y", "mask"])
    graph = depgraph.from_onnx(model([moving], outputs=["y", "mask"], constants=[constant("no", False)]))
    assert edges(graph) == {("x", "[y]")}
    told = node("Constant", [], ["no"], value=constant("", False))
    assert edges(depgraph.from_onnx(model([told, moving]))) == {("x", "[y]")}


def test_data_that_is_moved_by_data_is_read_with_it() -> None:
    found = of(node("Gather", ["x", "u"], ["y"]), inputs=["x", "u"])
    assert found == {("x", "y"), ("u", "y"), ("y", "[y]")}


def test_concatenations_gather() -> None:
    nodes = [
        node("Relu", ["x"], ["a"]),
        node("Tanh", ["x"], ["b"]),
        node("Concat", ["a", "b", "x"], ["c"], axis=0),
        node("Transpose", ["c"], ["t"]),
        node("Exp", ["t"], ["e"]),
    ]
    assert of(*nodes, outputs=["t", "e"]) == {
        *(("x", name) for name in ("a", "b", "e", "[t]")),
        *((name, end) for name in "ab" for end in ("e", "[t]")),
        ("e", "[e]"),
    }


def test_several_outputs_and_inputs_left_out() -> None:
    nodes = [
        node("LSTM", ["x", "W", "W", "", "", "u"], ["", "h", "c"], hidden_size=4),
        node("Split", ["x"], ["s", "t", ""], num_outputs=3),
        node("Add", ["h", "t"], ["y"]),
        node("TopK", ["c", "one"], ["values", "indices"]),
    ]
    found = of(*nodes, inputs=["x", "u"], outputs=["y", "indices", "s"], constants=["W", *INTS])
    assert found == {
        *(("x", "h"), ("u", "h"), ("h", "y"), ("x", "y"), ("h", "values")),
        *(("y", "[y]"), ("values", "[indices]"), ("x", "[s]")),
    }


def test_shapes_are_known() -> None:
    nodes = [
        node("Relu", ["x"], ["r"]),
        node("Shape", ["r"], ["shape"]),
        node("Gather", ["shape", "one"], ["size"]),
        node("Concat", ["size", "one"], ["wanted"], axis=0),
        node("Reshape", ["u", "wanted"], ["v"]),
        node("ConstantOfShape", ["wanted"], ["zeros"]),
        node("EyeLike", ["r"], ["eye"]),
        node("RandomNormalLike", ["r"], ["noise"]),
        node("Sum", ["v", "zeros", "eye", "noise"], ["y"]),
    ]
    assert of(*nodes, inputs=["x", "u"], constants=INTS) == {("x", "r"), ("u", "y"), ("y", "[y]")}


def test_shapes_that_depend_on_data_are_read() -> None:
    nodes = [
        node("NonZero", ["x"], ["where"]),
        node("Cast", ["where"], ["w"], to=TensorProto.FLOAT),
        node("Abs", ["w"], ["a"]),
        node("Shape", ["a"], ["shape"]),
        node("Expand", ["u", "shape"], ["wide"]),
        node("ConstantOfShape", ["shape"], ["zeros"]),
        node("Exp", ["zeros"], ["ones"]),
        node("Size", ["a"], ["size"]),
    ]
    assert of(*nodes, inputs=["x", "u"], outputs=["ones", "size"]) == {
        *(("x", "where"), ("where", "a"), ("where", "wide"), ("u", "wide"), ("where", "ones")),
        *(("ones", "[ones]"), ("where", "[size]")),
    }


def test_a_shape_written_down_depends_on_nothing() -> None:
    nodes = [
        node("Op", ["x"], ["h"], domain="mine"),
        node("Shape", ["h"], ["s"]),
        node("Expand", ["u", "s"], ["e"]),
        node("Relu", ["e"], ["y"]),
    ]
    open_ended = model(nodes, ["x", "u"], domains=["mine"])
    assert ("h", "e") in edges(depgraph.from_onnx(open_ended))
    open_ended.graph.value_info.append(info("h", 4, "n"))
    assert ("h", "e") in edges(depgraph.from_onnx(open_ended))
    open_ended.graph.value_info[0].CopyFrom(info("h", 4, 4))
    assert edges(depgraph.from_onnx(open_ended)) == {("x", "h"), ("u", "y"), ("y", "[y]")}


def body(nodes: Sequence[NodeProto], inputs: Sequence[str] = (), outputs: Sequence[str] = ("out",)) -> GraphProto:
    return helper.make_graph(nodes, "body", [info(i, 4, 4) for i in inputs], [info(o, 4, 4) for o in outputs])


def test_branches_read_what_they_take_from_around_them() -> None:
    then = body([node("MatMul", ["a", "W"], ["out"])])
    inner = body([node("Identity", ["b"], ["out"])])
    other = body([node("If", ["c"], ["out"], then_branch=inner, else_branch=body([], outputs=["d"]))])
    nodes = [
        *(node("Relu", [name], [name.lower()]) for name in "ABCDE"),
        node("ReduceMax", ["x"], ["cond"]),
        node("If", ["cond"], ["y"], name="choice", then_branch=then, else_branch=other),
        node("Identity", ["e"], ["z"]),
    ]
    graph = depgraph.from_onnx(model(nodes, ["x", *"ABCDE"], ["y", "z"], ["W"]))
    assert {u for u, v in edges(graph) if v == "y"} == {"a", "b", "c", "d", "cond"}
    assert [o.contraction for o in graph.operations] == [False] * 6 + [True]


def test_loops_read_what_they_take_from_around_them() -> None:
    inside = body(
        [
            node("Mul", ["state", "gate"], ["h"]),
            node("Add", ["h", "own"], ["next"]),
            node("Identity", ["on"], ["more"]),
        ],
        ["i", "on", "state"],
        ["more", "next", "h"],
    )
    inside.initializer.append(constant("own", 1.0))
    nodes = [node("Sigmoid", ["u"], ["gate"]), node("Loop", ["n", "", "x"], ["last", "all"], body=inside)]
    found = of(*nodes, inputs=["x", "u", "n"], outputs=["last", "all"])
    assert found == {
        *(("u", "gate"), ("x", "last"), ("gate", "last"), ("n", "last"), ("last", "[last]"), ("last", "[all]")),
    }


def test_scans_over_constants_with_something_from_around_them() -> None:
    inside = body([node("MatMul", ["s", "x"], ["t"]), node("Identity", ["t"], ["o"])], ["s", "w"], ["t", "o"])
    graph = depgraph.from_onnx(
        model([node("Scan", ["W", "W"], ["end", "y"], body=inside, num_scan_inputs=1)], constants=["W"])
    )
    assert edges(graph) == {("x", "end"), ("end", "[y]")}
    assert graph.operations[0].contraction


def test_functions_are_written_out() -> None:
    twice = helper.make_function(
        "mine",
        "Twice",
        ["a"],
        ["b"],
        [node("Relu", ["a"], ["r"]), node("Add", ["r", "r"], ["b"])],
        [helper.make_opsetid("", 20)],
    )
    outer = helper.make_function(
        "mine",
        "Four",
        ["a"],
        ["b"],
        [node("Twice", ["a"], ["t"], domain="mine"), node("Twice", ["t"], ["b"], domain="mine")],
        [helper.make_opsetid("mine", 1)],
    )
    given = model([node("Four", ["x"], ["y"], domain="mine")], functions=[twice, outer], domains=["mine"])
    before = given.SerializeToString()
    graph = depgraph.from_onnx(given)
    assert [o.name for o in graph.operations] == ["Relu", "Add", "Relu", "Add"]
    assert depgraph.shortest_path(graph, "x", "y").length == 4
    assert given.SerializeToString() == before


def test_functions_that_call_each_other() -> None:
    calls = [node("Self", ["a"], ["b"], domain="mine")]
    endless = helper.make_function("mine", "Self", ["a"], ["b"], calls, [helper.make_opsetid("mine", 1)])
    given = model([node("Self", ["x"], ["y"], domain="mine")], functions=[endless], domains=["mine"])
    with pytest.raises(depgraph.LoadError, match="its functions cannot be written out"):
        depgraph.from_onnx(given)


def test_operators_outside_onnx_read_everything() -> None:
    nodes = [
        node("MultiHeadAttention", ["x", "u", "", "W"], ["a", "b"], domain="com.microsoft"),
        node("Shape", ["a"], ["y"], domain="mine"),
    ]
    graph = depgraph.from_onnx(model(nodes, ["x", "u"], ["y", "b"], ["W"], domains=["com.microsoft", "mine"]))
    assert edges(graph) == {("x", "a"), ("u", "a"), ("a", "y"), ("y", "[y]"), ("a", "[b]")}
    assert [o.contraction for o in graph.operations] == [True, False]
    assert graph.warnings == [
        "Operators outside ONNX are taken to compute, and to read all their inputs: com.microsoft.MultiHeadAttention, "
        "mine.Shape."
    ]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["first", "second"], ["x", "first", "second"]),
        (["same", "same"], ["x", "h", "y"]),
        (["first", ""], ["x", "h", "y"]),
        (["x", "second"], ["x", "h", "y"]),
    ],
)
def test_names(names: list[str], expected: list[str]) -> None:
    graph = depgraph.from_onnx(
        model([node("Relu", ["x"], ["h"], name=names[0]), node("Relu", ["h"], ["y"], name=names[1])])
    )
    assert list(graph.to_networkx()) == expected


def test_modules_as_pytorch_writes_them_down() -> None:
    part = node("MatMul", ["x", "x"], ["y"], name="node_MatMul_3")
    for value, module in (("['', 'encoder', 'encoder.0', 'linear']", "encoder.0"), ("['', 'add']", ""), ("oops(", "")):
        del part.metadata_props[:]
        part.metadata_props.add(key="pkg.torch.onnx.name_scopes", value=value)
        assert depgraph.from_onnx(model([part])).operations[0].module == module


def test_sizes_that_are_open() -> None:
    graph = helper.make_graph(
        [node("Relu", ["x"], ["y"])], "g", [info("x", "batch", None, 3)], [helper.make_empty_tensor_value_info("y")]
    )
    found = depgraph.from_onnx(helper.make_model(graph))
    assert found.inputs["x"].shape == (-1, -1, 3)
    assert found.outputs["y"].shape == ()


def test_inputs_alone() -> None:
    graph = depgraph.from_onnx(model([], outputs=["x"]))
    assert edges(graph) == {("x", "[x]")}
    assert depgraph.parallelism(graph).work == 0


def test_a_model_of_constants() -> None:
    graph = depgraph.from_onnx(model([node("Relu", ["W"], ["y"])], inputs=[], constants=["W"]))
    assert (graph.dag.nodes, list(graph.inputs), graph.outputs["y"].count) == (0, [], 1)
    assert depgraph.critical_path(graph) == (0, [])
    assert depgraph.parallelism(graph).width == 0
    assert "digraph" in depgraph.render(graph)


def test_files(tmp_path: Path) -> None:
    given = model([node("MatMul", ["x", "W"], ["y"])], constants=["W"])
    file = tmp_path / "model.onnx"
    save_model(given, file, save_as_external_data=True, location="weights.bin", size_threshold=0)
    (tmp_path / "weights.bin").unlink()
    for graph in (depgraph.load(file), depgraph.from_onnx(str(file))):
        assert graph.node(1) == ("y", "MatMul", (), "", str(file))
    depgraph.save(graph, tmp_path / "model.json")
    again = depgraph.load(tmp_path / "model.json")
    assert edges(again) == edges(graph)
    assert again.inputs["x"].shape == (4, 4)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "has no graph: it is empty, or no ONNX model at all."),
        (b"import torch", "is no ONNX model: "),
        (b"\x00" * 100, "is no ONNX model: "),
        (ModelProto(ir_version=8).SerializeToString(), "has no graph: it is empty, or no ONNX model at all."),
        (
            model([node("Relu", ["z"], ["y"])]).SerializeToString(),
            "is not sound: The inputs of node 'y' (Relu) read 'z', which is no input, ",
        ),
        (
            model([node("Relu", ["x"], ["x"])]).SerializeToString(),
            "is not sound: An output of node 'x' (Relu) is called 'x', and so is another ",
        ),
        (
            model([], outputs=["q"]).SerializeToString(),
            "is not sound: The outputs of the graph read 'q', which is no input, ",
        ),
        (
            model([], inputs=["x", "x"], outputs=["x"]).SerializeToString(),
            "is not sound: An input is called 'x', and so is another ",
        ),
        (
            model([node("If", ["x"], ["y"], name="c", then_branch=body([]), else_branch=body([]))]).SerializeToString(),
            "is not sound: The subgraphs of node 'c' (If) read 'out', which is no input, ",
        ),
    ],
)
def test_files_that_hold_no_model(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "model.onnx"
    file.write_bytes(content)
    for read in (depgraph.load, depgraph.from_onnx):
        with pytest.raises(depgraph.LoadError) as caught:
            read(file)
        assert repr(str(file)) in str(caught.value)
        assert message in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(depgraph.LoadError, match=r"missing.onnx' cannot be read: No such file or directory\."):
        depgraph.load(tmp_path / "missing.onnx")
    (tmp_path / "folder.onnx").mkdir()
    with pytest.raises(depgraph.LoadError, match=r"folder.onnx' cannot be read: Is a directory\."):
        depgraph.load(tmp_path / "folder.onnx")


@pytest.mark.parametrize("given", [None, 5, b"onnx", model([], outputs=["x"]).graph])
def test_what_is_no_model(given: Any) -> None:
    with pytest.raises(
        depgraph.LoadError, match=rf"takes an onnx.ModelProto or the name of a file; got a {type(given).__name__}\."
    ):
        depgraph.from_onnx(given)


def test_an_empty_model() -> None:
    with pytest.raises(depgraph.LoadError, match=r"^The ONNX model has no graph: "):
        depgraph.from_onnx(ModelProto())


def test_without_onnx_the_package_to_install_is_named(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['onnx'] = None\n"
        "import depgraph\n"
        "try: depgraph.load('model.onnx')\n"
        "except depgraph.LoadError as error: print(error)"
    )
    said = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[3], capture_output=True, text=True)
    assert said.stdout == "Reading ONNX needs the package onnx: pip install depgraph[onnx].\n", said.stderr
