"""Programs in which values leave PyTorch and come back, each with what it is given: tensors of four elements.

`SEEN` is followed exactly; of `MORE`, no dependence is missed, but some are found that there are not.
"""

import copy
import ctypes
import io
import math
import pickle
import statistics
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch.nn.functional import one_hot, pad
from torch.utils._python_dispatch import TorchDispatchMode

SEEN = {}
MORE = {}


def program(found):
    def add(body):
        found[body.__name__] = body
        return body

    return add


def zeros(n=4):
    return torch.zeros(n, dtype=torch.float64)


# Inside of the transforms of torch.func.


@program(SEEN)
def inside_transforms_1(x, y):
    return torch.vmap(lambda t: t * y[0].item())(x)


@program(SEEN)
def inside_transforms_2(x, y):
    return torch.vmap(lambda t: t * float(y[0]))(x)


@program(MORE)
def inside_transforms_3(x, y):
    return torch.vmap(lambda t: t * y[int(y[0] > 0)])(x)


@program(SEEN)
def inside_transforms_4(x, y):
    return torch.vmap(lambda t: t * torch.from_numpy(y.numpy() * 2).sum())(x)


@program(SEEN)
def inside_transforms_5(x, y):
    return torch.func.jvp(lambda t: t * float(y[0]), (x,), (x.flip(0),))[1]


@program(SEEN)
def inside_transforms_6(x, y):
    return torch.func.vjp(lambda t: t * y[1].item(), x)[1](x)[0]


@program(SEEN)
def inside_transforms_7(x):
    return torch.func.grad(lambda t: (t * t * float(t[1])).sum())(x)


@program(SEEN)
def inside_transforms_8(x):
    return torch.func.grad(lambda t: (t * t * t[1].item()).sum())(x)


@program(MORE)
def inside_transforms_9(x, y):
    return torch.func.vjp(lambda t: t * t, x)[1](torch.from_numpy(y.numpy() * 2))[0]


@program(SEEN)
def inside_transforms_10(x):
    return torch.func.jvp(lambda t: t * t[1].item(), (x,), (torch.ones_like(x),))[1]


@program(SEEN)
def inside_transforms_11(x, y):
    return torch.vmap(lambda t: t * torch.tensor(y.tolist()).sum())(x)


@program(SEEN)
def inside_transforms_12(x, y):
    return torch.func.functional_call(
        torch.nn.Linear(4, 4, bias=False).double(), {"weight": x.outer(y)}, (y * float(x[0]),)
    )


@program(SEEN)
def inside_transforms_13(x, y):
    return torch.func.jacrev(lambda t: t * t * float(y[0]))(x)[0]


@program(SEEN)
def inside_transforms_14(x, y):
    return torch.vmap(lambda t: t * y[y.argmax().item()])(x)


# Memory that NumPy holds, or that has two names.


@program(MORE)
def shared_memory_1(x, y):
    c = x * 1
    n = c.numpy()
    n += y.numpy()
    return c * 2


@program(MORE)
def shared_memory_2(x):
    b = zeros()
    a = b[:2].numpy()
    b[2:].numpy()
    a[:] = x[:2].numpy()
    return b * 2


@program(MORE)
def shared_memory_3(x):
    b = zeros()
    b[:2].numpy()
    c = b[2:].numpy()
    c[:] = x[:2].numpy()
    return b * 2


@program(MORE)
def shared_memory_4(x):
    b = zeros()
    a = b.numpy()
    a[:] = np.where(x.numpy() > 1.9, 1.0, 0.0)
    return b * 2


@program(MORE)
def shared_memory_5(x):
    b = zeros()
    a = b.numpy()
    a[:] = np.where(x.numpy() > 1.9, 1.0, np.nan)
    return b * 2


@program(SEEN)
def shared_memory_6(x):
    arr = np.zeros(4)
    t = torch.from_numpy(arr)
    t2 = torch.from_numpy(arr)
    t.add_(x)
    return t2 * 2


@program(SEEN)
def shared_memory_7(x):
    arr = np.zeros(4)
    t = torch.from_numpy(arr)
    t2 = torch.from_numpy(arr)
    c = t2 + 1
    t.add_(x)
    return t2 * 2 + c


@program(SEEN)
def shared_memory_8(x):
    a = zeros()
    b = torch.from_numpy(a.numpy())
    b.copy_(x)
    return a * 2


@program(SEEN)
def shared_memory_9(x):
    a = zeros()
    b = torch.from_numpy(a.numpy())
    c = b + 0
    a.copy_(x)
    return b * 2 + c


@program(MORE)
def shared_memory_10(x):
    arr = np.zeros(4)
    t = torch.from_numpy(arr)
    c = t + 1
    arr[:] = x.numpy()
    return t * 2 + c


@program(SEEN)
def shared_memory_11(x):
    a = zeros()
    b = torch.from_dlpack(a)
    b.copy_(x)
    return a * 2


@program(SEEN)
def shared_memory_12(x):
    a = zeros()
    a.untyped_storage().copy_(x.untyped_storage())
    return a * 2


@program(SEEN)
def shared_memory_13(x):
    a = zeros()
    s = a.storage()
    s[0] = x[1].item()
    return a * 2


@program(SEEN)
def shared_memory_14(x):
    s = x.storage()
    return torch.ones(4, dtype=x.dtype) * s[0]


@program(SEEN)
def shared_memory_15(x):
    s = x.storage().tolist()
    return torch.tensor(s) * 2


@program(MORE)
def shared_memory_16(x):
    b = zeros()
    n = b.numpy()
    n[1] = float(x[0])
    return b * 2


@program(SEEN)
def shared_memory_17(x, y):
    m = zeros()
    a = m.numpy()
    a[2:] = -np.inf
    y.numpy().sum()
    return (x + m).softmax(0)


@program(MORE)
def shared_memory_18(x):
    arr = np.zeros(4)
    t = torch.from_numpy(arr[1:])
    t2 = torch.from_numpy(arr)
    t.add_(x[1:])
    return t2 * 2


@program(MORE)
def shared_memory_19(x):
    c = x * 1
    n = c.numpy()
    n[0] = n[3] * 2
    return c + 1


# Lines that check something, and do something else.


@program(SEEN)
def checks_1(x):
    assert (n := float(x[0])) > -1e9  # noqa: RUF018 - it is what the program is about
    return x * n


@program(SEEN)
def checks_2(x):
    assert x.shape[0] == 4
    n = float(x[0])
    return x * n


@program(SEEN)
def checks_3(x):
    assert True, float(x[0])
    torch._assert(True, "")
    n = x[1].item()
    return x * n


@program(SEEN)
def checks_4(x):
    torch._check(x.shape[0] == 4)
    n = float(x[0])
    return x * n


# Places, sizes and switches.


@program(MORE)
def places_1(x, y):
    n = int(x[0] > 0)
    return y[n : n + 2] * 1


@program(MORE)
def places_2(x, y):
    n = (x[0] > 0).long().item()
    return y[n : n + 2] * 1


@program(MORE)
def places_3(x, y):
    n = (x[0] > 0).long().item()
    return y[n + 0 : n + 3] * 1


@program(MORE)
def places_4(x, y):
    b = zeros()
    n = (x[0] > 0).long().item()
    b[n : n + 2] = y[:2]
    return b


@program(MORE)
def places_5(x, y):
    b = zeros()
    n = int(x[0] > 0)
    b[n : n + 2] = y[:2]
    return b


@program(MORE)
def places_6(x, y):
    i = (x[0] > 0).long()
    return y[i : i + 2] * 1


@program(MORE)
def places_7(x, y):
    n = (x[0] > 0).long().item()
    return y.narrow(0, n, 2) * 1


@program(MORE)
def places_8(x, y):
    n = (x[0] > 0).long()
    return y.narrow(0, n, 2) * 1


@program(MORE)
def places_9(x, y):
    n = (x[0] > 0).long().item()
    return y.roll(n)


@program(MORE)
def places_10(x, y):
    n = int(x[0] > 0)
    return y.roll(n)


@program(MORE)
def places_11(x, y):
    n = int(x[0] > 0)
    return torch.tril(y.view(2, 2), n - 1)


@program(MORE)
def places_12(x, y):
    n = (x[0] > 0).long().item()
    return torch.tril(y.view(2, 2), n - 1)


@program(MORE)
def places_13(x, y):
    b = zeros()
    n = (x[0] > 0).long().item()
    b[n] = y[0]
    return b


@program(MORE)
def places_14(x, y):
    b = zeros()
    n = (x[0] > 0).long().item()
    b.narrow(0, n, 2).add_(y[:2])
    return b


@program(MORE)
def places_15(x, y):
    b = zeros()
    i = (x[0] > 0).long()
    b[i : i + 2] = y[:2]
    return b


@program(MORE)
def places_16(x, y):
    n = int(x[0] > 0)
    return torch.diagonal(y.view(2, 2), n).sum() * zeros(1).add(1)


@program(SEEN)
def places_17(x, y):
    b = y.clone().view(2, 2)
    n = int(x[0] > 0)
    b[:, n] = 0.0
    return b.view(-1)


@program(SEEN)
def places_18(x, y):
    n = (x[0] > 0).long().item()
    return y.view(2, 2)[:, n : n + 1] * 1


@program(MORE)
def places_19(x, y):
    n = int(x[0] > 0)
    return torch.rot90(y.view(2, 2), n).reshape(-1)


@program(MORE)
def places_20(x, y):
    n = (x[0] > 0).long().item()
    return pad(y, (n, 1 - n))


@program(MORE)
def places_21(x, y):
    n = int(x[0] > 0)
    return one_hot(torch.arange(2) + n, 4).double() @ y


@program(MORE)
def places_22(x, y):
    n = int(x[0] > 0)
    return torch.cat([y[:n], x[:1] * 0 + 1, y[n:]])


@program(MORE)
def places_23(x, y):
    n = int(x[0] > 0)
    found = [y * 2, y.flip(0)]
    return found[n]


@program(SEEN)
def places_24(x, y):
    n = int(x[0] > 0)
    return torch.stack([y * 2, y.flip(0)])[n]


@program(MORE)
def places_25(x, y):
    n = (x[0] > 0).long().item()
    b = y.clone()
    b[n : n + 2] += x[2:]
    return b


@program(MORE)
def places_26(x, y):
    n = (x[0] > 0).long().item()
    b = y.clone()
    b[n] *= 2
    return b


@program(SEEN)
def places_27(x, y):
    n = (x[0] > 0).long().item()
    return y.view(2, 2).select(1, n) * 1


@program(MORE)
def places_28(x, y):
    n = int(x[0] > 0)
    return y.view(2, 2).sum(n)


@program(MORE)
def places_29(x, y):
    n = (x[0] > 0).long().item()
    return y.view(2, 2).sum(n)


@program(SEEN)
def places_30(x, y):
    n = int(x[0] > 0)
    return y.kthvalue(n + 1).values * zeros(1).add(1)


# Steps and thresholds.


@program(SEEN)
def steps_1(x):
    return x * int(float(x[0]))


@program(SEEN)
def steps_2(x):
    return x * int(x[0].item())


@program(SEEN)
def steps_3(x):
    return x * round(float(x[0]) * 0.3)


@program(SEEN)
def steps_4(x, y):
    return y + int((x.numpy() > 1.5).sum())


@program(SEEN)
def steps_5(x, y):
    return y * float((x.numpy() > 1.9).sum())


@program(SEEN)
def steps_6(x, y):
    return y * float(int(float(x[0]) * 3))


@program(SEEN)
def steps_7(x, y):
    return y + math.floor(x[0].item() / 7)


@program(SEEN)
def steps_8(x, y):
    return y + math.copysign(1.0, float(x[1]))


@program(SEEN)
def steps_9(x, y):
    return y + {0: 1.0, 1: 2.0, -1: 3.0}.get(int(x[0]), 5.0)


@program(SEEN)
def steps_10(x, y):
    return y + (1.0 if float(x[0]) > 3 else 2.0)


@program(SEEN)
def steps_11(x, y):
    return y + len([v for v in x.tolist() if v > 1.2])


@program(SEEN)
def steps_12(x, y):
    return y + sum(v > 1.2 for v in x.tolist())


@program(SEEN)
def steps_13(x, y):
    return y + float(np.sign(x.numpy()).sum())


@program(MORE)
def steps_14(x, y):
    return y + torch.tensor(np.sign(x.numpy()))


@program(MORE)
def steps_15(x, y):
    return y + torch.tensor((x.numpy() > 2).astype(float))


@program(SEEN)
def steps_16(x, y):
    return y + float(np.median(x.numpy()))


@program(MORE)
def steps_17(x, y):
    return y * (x.numpy()[1] > 2)


# What is chosen among several numbers.


@program(SEEN)
def chosen_1(x):
    return x * max(x[0].item(), x[1].item(), x[2].item())


@program(SEEN)
def chosen_2(x):
    return x * max(x.tolist())


@program(SEEN)
def chosen_3(x):
    return x * max(float(x[0]), float(x[1]))


@program(SEEN)
def chosen_4(x):
    return x * statistics.median(x.tolist())


@program(SEEN)
def chosen_5(x):
    return x * torch.tensor(sorted(x.tolist()))


@program(MORE)
def chosen_6(x, y):
    found = x.tolist()
    return y[max(range(4), key=lambda k: found[k])] * zeros().add(1)


@program(SEEN)
def chosen_7(x):
    return x * min(x[k].item() for k in range(4))


@program(SEEN)
def chosen_8(x):
    return x * sorted(x.tolist())[0]


@program(SEEN)
def chosen_9(x):
    return x * sum(sorted(x.tolist())[:2])


@program(SEEN)
def chosen_10(x):
    return x * max(float(x[0]), float(x[1]), float(x[2]))


@program(SEEN)
def chosen_11(x):
    return x * min(max(x[0].item(), -0.5), 0.5)


@program(SEEN)
def chosen_12(x, y):
    return y * statistics.mean(x.tolist())


@program(SEEN)
def chosen_13(x, y):
    return y * math.fsum(x.tolist())


@program(SEEN)
def chosen_14(x, y):
    return y * math.hypot(*x.tolist())


@program(SEEN)
def chosen_15(x, y):
    return y * np.mean(x.tolist())


# TorchScript.


@torch.jit.script
def g1(x):
    return torch.tensor([float(x[0]), float(x[1]) * 2, 1.0, 2.0])


@torch.jit.script
def g2(x):
    n = float(x[0])
    return x * n


@torch.jit.script
def g3(x):
    n = int(x[0] > 0)
    return x[n : n + 2]


@program(MORE)
def scripted_1(x):
    return g1(x) * 2


@program(SEEN)
def scripted_2(x):
    return g2(x)


@program(MORE)
def scripted_3(x):
    return g3(x) * 1


# Texts, threads, copies of memory.


@program(SEEN)
def unseen_1(x):
    return torch.ones(4) * float(repr(x[0])[7:13])


@program(SEEN)
def unseen_2(x):
    return torch.ones(4) * float(str(x[0])[7:13])


@program(MORE)
def unseen_3(x):
    b = zeros()
    t = threading.Thread(target=lambda: b.copy_(x))
    t.start()
    t.join()
    return b * 2


@program(MORE)
def unseen_4(x):
    with ThreadPoolExecutor(1) as e:
        r = e.submit(lambda: x * 2).result()
    return r + 1


@program(MORE)
def unseen_5(x):
    b = zeros()
    ctypes.memmove(b.data_ptr(), x.data_ptr(), 32)
    return b * 2


@program(MORE)
def unseen_6(x):
    f = io.BytesIO()
    torch.save(x, f)
    f.seek(0)
    return torch.load(f) * 2


@program(MORE)
def unseen_7(x):
    return pickle.loads(pickle.dumps(x)) * 2


@program(SEEN)
def unseen_8(x):
    return copy.deepcopy(x) * 2


# More memory with several names.


@program(MORE)
def an_array_written_by_pytorch_and_read_by_numpy(x):
    a = np.zeros(4)
    torch.from_numpy(a).copy_(x)
    return torch.from_numpy(np.sin(a))


@program(MORE)
def a_part_of_an_array_written_by_pytorch(x, y):
    a = np.zeros(4)
    torch.from_numpy(a[1:3]).copy_(x[:2])
    return y * float(a.sum())


@program(MORE)
def every_other_element_of_an_array(x):
    a = np.zeros(4)
    torch.from_numpy(a[::2]).copy_(x[:2])
    return torch.from_numpy(a) * 1


@program(MORE)
def a_part_of_a_buffer(x):
    held = bytearray(32)
    torch.frombuffer(held, dtype=torch.float64, offset=8, count=2).copy_(x[:2])
    return torch.frombuffer(held, dtype=torch.float64) * 1


@program(MORE)
def arrays_of_several_views(x):
    return torch.from_numpy(np.array([x[0], x[2], x[1], x[3]])) * 1


@program(SEEN)
def numbers_of_several_views(x, y):
    return torch.tensor([float(a) * float(b) for a, b in zip(x, y, strict=True)])


@program(SEEN)
def copied_with_a_view(x, y):
    b = x.clone()
    a, c = copy.deepcopy([b, b[1:]])
    a.mul_(y[0])
    return c * 1


@program(SEEN)
def smaller_and_larger_again(x, y):
    b = y.clone()
    b.resize_(2)
    b.resize_(4)
    return b * x[0]


@program(SEEN)
def out_is_made_smaller(x, y):
    b = y.clone()
    torch.add(x[:2], 1, out=b.resize_(2))
    return b.as_strided((4,), (1,)) * 1


@program(SEEN)
def memory_shared_with_processes(x):
    b = x.clone()
    b.share_memory_()
    return b * 2


@program(MORE)
def elements_by_a_python_function(x, y):
    b = y.clone()
    k = float(x[0])
    b.apply_(lambda p: p * k)
    return b


@program(MORE)
def elements_of_two_by_a_python_function(x, y):
    b = x.clone()
    b.map_(y, lambda p, q: p * q + 1)
    return b


@program(MORE)
def an_address_that_is_read(x, y):
    return y * (ctypes.c_double * 4).from_address(x.data_ptr())[1]


# Conditions that come back as values, and what else chooses.


@program(SEEN)
def a_condition_as_a_factor(x, y):
    return y * bool(x[0] > 0)


@program(SEEN)
def whether_all_are_close(x, y):
    return y * float(torch.allclose(x, y, atol=1.0))


@program(SEEN)
def the_largest_of_tensors(x, y):
    return y * max(x)


@program(SEEN)
def tensors_in_order(x, y):
    return torch.stack(sorted(x.unbind())) + y


@program(SEEN)
def how_many_are_not_zero(x, y):
    return y * x.relu().to_sparse()._nnz()


@program(SEEN)
def the_mean_of_random_numbers(x, y):
    return torch.normal(x[0].item(), 1.0, (4,), dtype=torch.float64, generator=torch.Generator().manual_seed(0)) + y


# Numbers in functions that operators are given, in backward, under modes.


@program(SEEN)
def a_number_in_a_condition(x, y):
    k = x[1].item()
    return torch.cond(torch.tensor(True), lambda t: t * k, lambda t: t * 3, (y,))


@program(MORE)
def a_plain_number_in_a_condition(x, y):
    k = float(x[1])
    return torch.cond(torch.tensor(True), lambda t: t * k, lambda t: t * 3, (y,))


@program(SEEN)
def a_number_through_backward(x, y):
    z = y.clone().requires_grad_()
    with torch.enable_grad():
        return torch.autograd.grad((z * z * x[0].item()).sum(), z)[0]


class Scaled(TorchDispatchMode):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        return result * self.factor if func is torch.ops.aten.sin.default else result


@program(SEEN)
def a_mode_of_the_models_own(x, y):
    with Scaled(x):
        return torch.sin(y)


@program(SEEN)
def lists_of_tensors(x, y):
    z = [zeros(), zeros()]
    torch._foreach_add_(z, [x, y])
    torch._foreach_mul_(z, [2.0, 3.0])
    return z[0] + z[1].flip(0)


@program(SEEN)
def a_copy_in_another_order(x, y):
    a = y.clone().view(2, 2).t()
    c = a.contiguous()
    c[0] = x[:2]
    return a.reshape(-1)
