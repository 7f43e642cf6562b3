"""The private names of PyTorch that are needed: each is there, in one module, and does what it is needed for."""

import re
from pathlib import Path

import pytest
import torch
from torch import nn

from depgraph.tracing import private

VERSIONS = "depgraph records with private parts of PyTorch that it knows from 2.13"
NAMES = {
    torch._C: """_EnablePythonDispatcher _DisablePythonDispatcher _current_graph_task_id _disabled_torch_dispatch_impl
        _dispatch_has_kernel_for_dispatch_key _dispatch_tls_is_dispatch_key_excluded TensorBase DispatchKey
        _DisableTorchDispatch DisableTorchFunction _jit_get_schemas_for_operator _swap_tensor_impl""",
    torch._C._functorch: """get_dynamic_layer_stack_depth get_unwrapped is_functorch_wrapped_tensor
        peek_interpreter_stack pop_dynamic_layer_stack_and_undo_to_depth""",
    torch._decomp: "decomposition_table",
    torch._higher_order_ops.utils: "_hop_compile_and_call",
    torch._library.custom_ops: "CustomOpDef",
    torch._ops: "_len_torch_dispatch_stack_pre_dispatch",
    torch._subclasses.fake_tensor: """FakeTensor FakeTensorMode DataDependentOutputException
        DynamicOutputShapeException""",
    torch: "_mkldnn _neg_view",
    torch.utils._python_dispatch: """TorchDispatchMode _disable_current_modes _pop_mode_temporarily
        is_traceable_wrapper_subclass""",
    torch.ops.aten.add.Tensor: "_can_decompose _op_dk decompose _schema _opname tags",
    torch.compiler: "_is_compiling_flag is_dynamo_compiling",
    torch.UntypedStorage: "_new_with_weak_ptr",
}


def test_every_name_is_there():
    missing = [
        f"{getattr(owner, '__name__', owner)}.{name}"
        for owner, names in NAMES.items()
        for name in names.split()
        if not hasattr(owner, name)
    ]
    assert not missing, f"{', '.join(missing)} is gone in PyTorch {torch.__version__}: {VERSIONS}"


PRIVATE = re.compile(r"torch(?:\.[a-z_]+)*\._[A-Za-z]\w*|\b_cdata\b|\b_functorch\b|\b_python_dispatch\b")
#: Types of operators, operators whose names begin so, and names of modules that are only compared.
ALLOWED = re.compile(r"torch\._ops$|torch\.ops\.aten\._\w+")
SOURCES = sorted(Path(private.__file__).parents[1].rglob("*.py"))


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: file.stem)
def test_private_names_are_in_one_module(file):
    if file == Path(private.__file__):
        return
    lines = [line for line in file.read_text().splitlines() if '"torch._' not in line]
    found = {name for line in lines for name in PRIVATE.findall(line)}
    assert not {name for name in found if not ALLOWED.match(name)}


def test_the_upper_mode_sees_composite_operators_whole():
    seen = []

    class Mode(private.UpperMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            with private.natively():
                return func(*args, **(kwargs or {}))

    x, weight = torch.ones(2, 3), torch.ones(4, 3)
    with torch.no_grad(), private.python_dispatcher(), Mode():
        nn.functional.linear(x, weight)
    assert seen == ["aten.linear.default"], VERSIONS


def test_nothing_is_recorded_where_nothing_is_to_be():
    class Mode(private.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            raise AssertionError("this mode is not to be asked")

    with Mode(), private.unrecorded():
        assert torch.ones(2).sum() == 2


def test_casts_that_autocast_makes():
    op = torch.ops.aten.linear.default
    assert private.autocasting(op, "cpu") is None
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert private.autocasting(op, "cpu") is not None
        assert private.autocasting(torch.ops.aten.relu.default, "cpu") is None
    assert private.autocasting(op, "meta") is None


def test_transforms_and_backward_are_known():
    inside = []
    torch.func.vmap(lambda x: inside.append(private.in_transform()) or x)(torch.ones(2))
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(lambda gradient: inside.append(private.is_differentiating()))
    y.sum().backward()
    assert inside == [True, True]
    assert not private.in_transform()
    assert not private.is_differentiating()


def test_subclasses_without_a_constructor_of_their_own():
    class Plain(torch.Tensor):
        pass

    inherited = torch._C.TensorBase.__new__
    with private.plain_constructors():
        assert Plain.__new__ is not inherited
        assert type(Plain(2)) is Plain
    assert Plain.__new__ is inherited
