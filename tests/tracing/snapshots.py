"""Everything that hangs on an object, bit for bit: which objects there are, and what is in them."""

import collections
import enum
import functools
import random
import types
import weakref

import numpy as np
import torch

_ATOMS = (str, bytes, int, float, complex, type(None), enum.Enum, type, types.ModuleType, types.BuiltinFunctionType)


def bits(tensor):
    """Return what is in a tensor's memory, and how it lies there."""
    if tensor.layout is torch.sparse_coo:
        return bits(tensor._indices()), bits(tensor._values())
    if tensor.layout is torch.sparse_csr:
        return bits(tensor.crow_indices()), bits(tensor.col_indices()), bits(tensor.values())
    storage = tensor.untyped_storage()
    held = bytes(storage.tolist()) if storage.device.type != "meta" else None
    return storage._cdata, storage.nbytes(), held, tensor.storage_offset(), tensor.stride()


def snapshot(root):
    """Return a list of (path, fact) about everything that can be reached."""
    found, seen = [], {}

    def visit(value, path):
        found.append((path, id(value), type(value).__name__))
        if isinstance(value, _ATOMS):
            found.append((path, repr(value)))
            return
        if id(value) in seen:
            return
        seen[id(value)] = value
        cls = type(value)
        if isinstance(value, torch.Tensor):
            with torch._C.DisableTorchFunction():
                found.append((path, bits(value), value.size(), value.dtype, value.requires_grad, value.is_leaf))
                visit(value.grad if value.is_leaf else None, f"{path}.grad")
                visit(value._backward_hooks, f"{path}.hooks")
        elif isinstance(value, torch.Generator):
            found.append((path, bits(value.get_state())[2]))
        elif isinstance(value, random.Random):
            found.append((path, value.getstate()))
        elif isinstance(value, np.random.Generator):
            found.append((path, str(value.bit_generator.state)))
        elif isinstance(value, np.random.RandomState):
            found.append((path, value.get_state()[1].tobytes(), value.get_state()[2:]))
        elif isinstance(value, np.ndarray):
            found.append((path, value.shape, value.strides, value.dtype, value.tobytes()))
            for number, item in enumerate(value.reshape(-1).tolist() if value.dtype.hasobject else ()):
                visit(item, f"{path}[{number}]")
        elif isinstance(value, collections.OrderedDict):
            mapping(list(collections.OrderedDict.items(value)), path)
        elif isinstance(value, dict):
            mapping(list(dict.items(value)), path)
            if isinstance(value, collections.defaultdict):
                found.append((path, value.default_factory))
        elif isinstance(value, (list, tuple, set, frozenset, collections.deque)):
            base = next(kind for kind in (list, tuple, set, frozenset, collections.deque) if isinstance(value, kind))
            for number, item in enumerate(base.__iter__(value)):
                visit(item, f"{path}[{number}]")
        elif hasattr(value, "tobytes"):
            found.append((path, value.tobytes()))
        elif isinstance(value, bytearray):
            found.append((path, bytes(value)))
        elif isinstance(value, types.MethodType):
            visit(value.__self__, f"{path}.self")
            visit(value.__func__, f"{path}.function")
        elif isinstance(value, functools.partial):
            for number, item in enumerate((value.func, value.args, value.keywords)):
                visit(item, f"{path}.partial{number}")
        elif isinstance(value, types.FunctionType):
            for number, item in enumerate((value.__defaults__, value.__kwdefaults__, value.__code__.co_name)):
                visit(item, f"{path}.function{number}")
            for number, cell in enumerate(value.__closure__ or ()):
                try:
                    visit(cell.cell_contents, f"{path}.cell{number}")
                except ValueError:
                    found.append((f"{path}.cell{number}", "empty"))
        elif isinstance(value, weakref.ref):
            visit(value(), f"{path}.referent")
        for kind in cls.__mro__:
            for name, member in list(vars(kind).items()):
                if isinstance(member, types.MemberDescriptorType) and "__slots__" in vars(kind):
                    try:
                        visit(member.__get__(value), f"{path}.{name}")
                    except AttributeError:
                        found.append((f"{path}.{name}", "empty"))
        if cls.__dictoffset__:
            visit(object.__getattribute__(value, "__dict__"), f"{path}.__dict__")

    def mapping(items, path):
        found.append((path, [repr(key) if isinstance(key, _ATOMS) else id(key) for key, _ in items]))
        for number, (key, item) in enumerate(items):
            visit(item, f"{path}[{key if isinstance(key, _ATOMS) else number}]")

    visit(root, "")
    return found


def difference(before, after):
    """Return what two snapshots do not share, in a few words."""
    return [fact for fact in before if fact not in after][:3], [fact for fact in after if fact not in before][:3]
