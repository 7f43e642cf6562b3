"""`depgraph.from_onnx`: an ONNX model as an operation graph."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from depgraph.dag.formats.whole import reason
from depgraph.dag.graph import DependencyGraph
from depgraph.errors import LoadError

if TYPE_CHECKING:
    from onnx import ModelProto


def from_onnx(model: ModelProto | str | os.PathLike[str]) -> DependencyGraph:
    """Return the operation graph of an ONNX model: one node for each of its nodes that depends on an input.

    Needs ``pip install depgraph[onnx]``. Weights are not looked at, and need not be there.

    Initializers and what is computed from them alone are constants and make no nodes. Neither do operators that only
    move data, such as Reshape, Slice, Concat, Cast, Dropout in inference, or Gather by known indices: their results are
    their inputs under another name, and cost nothing on a path. A slice of a concatenation stands for all of it. Shape
    reads no data, unless the shape of a tensor depends on it (as that of NonZero does). Functions are written out. If,
    Loop, Scan and other nodes with subgraphs are one node each, which reads its inputs and all that the subgraphs take
    from around them. Operators that ONNX does not define read all their inputs.

    Parameters
    ----------
    model : onnx.ModelProto or path

    Returns
    -------
    DependencyGraph
        Each input, initializers left out, and each output of the model is one position; sizes that are open are -1 in
        its shape. The name of a node is its name in the model (that of its first output, where names are missing or
        given twice), its module the scope it was exported from, its source the file. Width is branch parallelism.

    Raises
    ------
    LoadError
        Where the package onnx is missing, the file cannot be read, or holds no sound ONNX model.

    Examples
    --------
    >>> import depgraph
    >>> from onnx import TensorProto, helper
    >>> x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 8])
    >>> y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [8, 1])
    >>> nodes = [helper.make_node("Relu", ["x"], ["h"]), helper.make_node("Transpose", ["h"], ["y"])]
    >>> graph = depgraph.from_onnx(helper.make_model(helper.make_graph(nodes, "small", [x], [y])))
    >>> [node.op for node in depgraph.shortest_path(graph, "x", "y").nodes]
    ['Relu']
    """
    try:
        import onnx
    except ImportError as error:
        raise LoadError("Reading ONNX needs the package onnx: pip install depgraph[onnx].") from error
    if isinstance(model, onnx.ModelProto):
        read, source, what = model, "", "The ONNX model"
    elif isinstance(model, (str, os.PathLike)):
        source = str(Path(model))
        read, what = _read(Path(model)), f"The ONNX model in {source!r}"
    else:
        raise LoadError(
            f"from_onnx() takes an onnx.ModelProto or the name of a file; got a {type(model).__name__}. "
            "depgraph.trace takes PyTorch models."
        )
    if not read.HasField("graph") or not (read.graph.node or read.graph.output):
        raise LoadError(f"{what} has no graph: it is empty, or no ONNX model at all.")
    if read.functions:
        from onnx.inliner import inline_local_functions

        try:
            read = inline_local_functions(read)
        except Exception as error:  # of C++, without a common base
            raise LoadError(f"{what} cannot be read: its functions cannot be written out ({error}).") from error
    from depgraph.dag.formats.onnx_graph import operation_graph

    try:
        return operation_graph(read.graph, source)
    except LoadError as error:
        raise LoadError(f"{what} is not sound: {error}.") from error


def _read(file: Path) -> ModelProto:
    """Return a model without the weights that lie in other files."""
    import onnx

    try:
        return onnx.load(file, format="protobuf", load_external_data=False)
    except (OSError, ValueError) as error:
        raise LoadError(f"{str(file)!r} cannot be read: {reason(error)}.") from error
    except Exception as error:  # protobuf's, which comes with onnx alone
        raise LoadError(f"{str(file)!r} is no ONNX model: {str(error).rstrip('.')}.") from error
