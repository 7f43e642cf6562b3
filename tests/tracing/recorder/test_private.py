"""The private names of PyTorch that recording needs: each is there, and does what it is needed for."""

import torch
from torch import nn

from depgraph.tracing.recorder import private

VERSIONS = "depgraph records with private parts of PyTorch that it knows from 2.9 to 2.13"
NAMES = {
    torch._C: """_EnablePythonDispatcher _DisablePythonDispatcher _current_graph_task_id _disabled_torch_dispatch_impl
        _dispatch_has_kernel_for_dispatch_key _dispatch_tls_is_dispatch_key_excluded TensorBase DispatchKey""",
    torch._C._functorch: """get_dynamic_layer_stack_depth peek_interpreter_stack
        pop_dynamic_layer_stack_and_undo_to_depth""",
    torch.utils._python_dispatch: "TorchDispatchMode _disable_current_modes _pop_mode_temporarily",
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
