"""Models each of which changes something while it runs, and perhaps fails after all the damage is done."""

import array
import collections
import dataclasses
import functools
import random
import types
import weakref

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


class Nasty(nn.Module):
    """A model that does ``harm`` in forward, and raises after that where it is told to ``fail``."""

    def __init__(self, fail=False):
        super().__init__()
        self.fail = fail
        self.linear = nn.Linear(4, 4)
        self.set_up()

    def set_up(self):
        pass

    def forward(self, x):
        y = self.harm(self.linear(x))
        if self.fail:
            raise ValueError("after the damage")
        return y


class WritesBuffer(Nasty):
    def set_up(self):
        self.register_buffer("total", torch.zeros(4))
        self.register_buffer("runs", torch.zeros((), dtype=torch.long))

    def harm(self, y):
        self.total.add_(y[0])
        self.total[1] = 7
        self.runs += 1
        return y + self.total


class WritesThroughViews(Nasty):
    def set_up(self):
        self.register_buffer("memory", torch.zeros(4, 4))
        self.rows = [self.memory[i] for i in range(4)]
        self.turned = self.memory.t()

    def harm(self, y):
        self.rows[0].copy_(y[0])
        self.turned[3] += 1
        return y + self.memory.sum(0)


class Normalises(Nasty):
    def set_up(self):
        self.norm = nn.BatchNorm1d(4)
        self.cumulative = nn.BatchNorm1d(4, momentum=None)
        self.instance = nn.InstanceNorm1d(4, track_running_stats=True)

    def harm(self, y):
        return self.cumulative(self.norm(y)) + self.instance(y.mT[None]).mean(-1)


class AssignsAttributes(Nasty):
    def set_up(self):
        self.state = torch.zeros(4)
        self.count = 0
        self.gone = "here"

    def harm(self, y):
        self.state = self.state + y[0]
        self.count += 1
        self.fresh = y
        del self.gone
        return y + self.state


class Appends(Nasty):
    def set_up(self):
        self.history = [torch.zeros(4)]
        self.window = collections.deque([torch.zeros(4), torch.ones(4)], maxlen=2)

    def harm(self, y):
        self.history.append(y)
        self.history[0] = y[0]
        self.window.append(y[0])
        return y + self.window[0]


class ResizesList(Nasty):
    def set_up(self):
        self.states = [torch.zeros(4), torch.ones(4), torch.ones(4) * 2]

    def harm(self, y):
        first = self.states.pop(0)
        self.states.reverse()
        self.states[:1] = [y[0], y[1]]
        return y + first


class Caches(Nasty):
    def set_up(self):
        self.cache = {"a": torch.zeros(4), "b": 1}
        self.ordered = collections.OrderedDict(a=torch.zeros(4), b=torch.ones(4), c=3)
        self.default = collections.defaultdict(list, {"x": [1]})
        self.counter = collections.Counter("aab")

    def harm(self, y):
        self.cache["a"] = y
        self.cache["c"] = y.sum()
        del self.cache["b"]
        self.ordered.move_to_end("a")
        self.default["y"].append(y)
        self.default["x"].append(2)
        self.default.default_factory = dict
        self.counter.update("bc")
        return y


class Nested(Nasty):
    def set_up(self):
        self.nest = {"x": {"y": [torch.zeros(4), (torch.ones(4), [0])]}}

    def harm(self, y):
        self.nest["x"]["y"][0].fill_(7)
        self.nest["x"]["y"][1][0].mul_(3)
        self.nest["x"]["y"][1][1].append(y)
        self.nest["x"]["z"] = 1
        return y + self.nest["x"]["y"][0]


class Slots:
    """Attributes in slots, one of them empty and one with a private name."""

    __slots__ = ("__hidden", "empty", "number", "tensor")

    def __init__(self):
        self.number, self.tensor, self.__hidden = 0, torch.zeros(4), [1]

    def change(self, y):
        self.number += 1
        self.tensor.add_(1)
        self.empty = y
        self.__hidden = [2]


class MoreSlots(Slots):
    """And a dictionary besides."""

    __slots__ = ("more",)

    def __init__(self):
        super().__init__()
        self.more = "more"


class HoldsSlots(Nasty):
    def set_up(self):
        self.slots, self.others = Slots(), MoreSlots()

    def harm(self, y):
        self.slots.change(y)
        self.others.change(y)
        del self.others.more
        return y + self.slots.tensor


class ClosesOver(Nasty):
    def set_up(self):
        count, last = 0, torch.zeros(4)
        late = None
        del late

        def step(y, memory=[], *, weight={"w": 1}):  # noqa: B006 - that is what is nasty
            nonlocal count, last, late
            count += 1
            last.add_(1)
            last, late = y[0].detach() + last, y
            memory.append(y)
            weight["v"] = y
            step.calls = getattr(step, "calls", 0) + 1
            step.__defaults__ = ([],)
            return last, late

        self.step = step
        self.bound = types.MethodType(lambda me, y: me.step(y), self)

    def harm(self, y):
        return y + self.bound(y)[0]


class Hooks(Nasty):
    def set_up(self):
        seen = {"calls": 0, "last": torch.zeros(4)}

        def hook(module, args, output):
            seen["calls"] += 1
            seen["last"] = output.detach()
            seen.setdefault("sum", torch.zeros(4)).add_(1)

        self.linear.register_forward_hook(hook)
        self.linear.register_forward_pre_hook(lambda module, args: seen.setdefault("args", []).append(args))

    def harm(self, y):
        self.linear.register_forward_hook(lambda *_: None)
        self.register_full_backward_hook(lambda *_: None)
        self.linear._forward_pre_hooks.clear()
        return y


class AssignsData(Nasty):
    def set_up(self):
        self.weight = nn.Parameter(torch.ones(4))
        self.register_buffer("buffer", torch.ones(4, 4))

    def harm(self, y):
        self.weight.data = self.weight.data * 2
        self.linear.weight.data = self.linear.weight.data.t()
        self.linear.bias.data.mul_(2)
        self.buffer.data = torch.zeros(2)
        return y * self.weight


class ResizesTensors(Nasty):
    def set_up(self):
        self.register_buffer("long", torch.ones(4, 4))
        self.register_buffer("other", torch.ones(4))
        self.turned = torch.ones(2, 3)

    def harm(self, y):
        self.long.resize_(8, 8).fill_(2)
        self.other.set_(torch.zeros(9))
        self.turned.t_()
        return y + self.other.sum()


class TogglesGradients(Nasty):
    def set_up(self):
        self.weight = nn.Parameter(torch.ones(4))
        self.free = torch.ones(4)

    def harm(self, y):
        self.weight.requires_grad_(False)
        self.free.requires_grad = True
        for parameter in self.linear.parameters():
            parameter.requires_grad = not parameter.requires_grad
        return y * self.weight


class SwitchesModes(Nasty):
    def set_up(self):
        self.drop = nn.Dropout(0.5)

    def harm(self, y):
        self.eval()
        y = self.drop(y)
        self.drop.train()
        self.linear.training = "neither"
        return y


class Registers(Nasty):
    def set_up(self):
        self.register_buffer("there", torch.zeros(4))

    def harm(self, y):
        self.register_buffer("buffer", torch.ones(4), persistent=False)
        self.linear.register_parameter("extra", nn.Parameter(torch.ones(4)))
        self.add_module("another", nn.Linear(4, 4))
        del self.there
        return self.another(y)


class MakesLazily(Nasty):
    def set_up(self):
        self.inner = None

    def harm(self, y):
        if self.inner is None:
            self.inner = nn.Linear(4, 4)
        self.later = functools.partial(F.linear, weight=self.inner.weight)
        return self.later(self.inner(y))


class SwapsParameters(Nasty):
    def set_up(self):
        self.other = nn.Linear(4, 4)
        self.branches = nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.Tanh()})
        self.listed = nn.ParameterList([torch.ones(4), torch.zeros(4)])

    def harm(self, y):
        self.linear.weight, self.other.weight = self.other.weight, self.linear.weight
        self.branches["a"], self.branches["b"] = self.branches["b"], self.branches["a"]
        self.listed[0] = nn.Parameter(torch.ones(4) * 3)
        return self.branches["a"](self.branches["b"](self.other(y))) + self.listed[0]


class DrawsNumbers(Nasty):
    def set_up(self):
        self.generator = torch.Generator().manual_seed(3)
        self.random = random.Random(3)
        self.numbers = np.random.default_rng(3)
        self.legacy = np.random.RandomState(3)

    def harm(self, y):
        noise = torch.rand(4, generator=self.generator) + self.random.random() + self.numbers.random()
        return y + noise + self.legacy.rand() + random.random() + torch.rand(4) + np.random.rand()  # noqa: NPY002


class WritesArrays(Nasty):
    def set_up(self):
        self.array = np.zeros((2, 3))
        self.part = self.array[1:]
        self.objects = np.array([[1], {"a": 2}], dtype=object)
        self.plain = array.array("d", [1, 2])
        self.bytes = bytearray(b"abc")
        self.shared = torch.from_numpy(np.ones(4, dtype=np.float32))

    def harm(self, y):
        self.part[0, 0] = 7
        self.array.shape = 6
        self.objects[0].append(y)
        self.objects[1] = None
        self.plain.append(3)
        self.bytes[0] = 0
        self.shared.mul_(2)
        self.linear.weight.detach().numpy()[0] = 5
        return y + float(self.array[3])


class Sets(Nasty):
    def set_up(self):
        self.seen = {1, 2}
        self.modules_seen = {self.linear}

    def harm(self, y):
        self.seen.add(3)
        self.seen.discard(1)
        self.modules_seen.clear()
        return y


class ChangesConfiguration(Nasty):
    def set_up(self):
        self.config = types.SimpleNamespace(width=4, inner=types.SimpleNamespace(depth=1))
        self.linear.config = self.config

    def harm(self, y):
        self.linear.config.width = 5
        self.linear.config.inner.depth += 1
        self.linear.config.inner.new = y
        self.linear.config = None
        return y


class Ready(Nasty):
    def harm(self, y):
        return y


class ChangesClass(Nasty):
    def harm(self, y):
        self.__class__ = Ready
        self.linear.__class__ = nn.Identity
        return y


class SetsGradients(Nasty):
    def set_up(self):
        self.linear.weight.grad = torch.ones(4, 4)

    def harm(self, y):
        self.linear.weight.grad.mul_(2)
        self.linear.weight.grad = torch.zeros(4, 4)
        self.linear.bias.grad = torch.ones(4)
        return y


class RunsBackward(Nasty):
    def harm(self, y):
        with torch.enable_grad():
            self.linear(torch.ones(2, 4)).sum().backward()
        return y + self.linear.bias.grad


class TagsTensors(Nasty):
    def set_up(self):
        self.linear.weight.tag = {"runs": 0}

    def harm(self, y):
        self.linear.weight.tag["runs"] += 1
        self.linear.weight.cached = y
        self.linear.bias.tag = 1
        self.linear.bias.register_hook(lambda g: g)
        return y


class Recomputes(Nasty):
    def set_up(self):
        self.direction, self.size = nn.Parameter(torch.randn(4, 4)), nn.Parameter(torch.ones(4, 1))
        del self.linear._parameters["weight"]
        self.compute()

    def compute(self):
        self.linear.weight = self.size * F.normalize(self.direction)

    def forward(self, x):
        self.compute()
        return super().forward(x)

    def harm(self, y):
        return y


class Spectral(Nasty):
    def set_up(self):
        self.normed = nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4))

    def harm(self, y):
        return self.normed(y)


@dataclasses.dataclass
class State:
    """What a model knows of the past."""

    tensor: torch.Tensor
    steps: int = 0
    past: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    """The same, and nobody is to change it."""

    tensor: torch.Tensor
    past: dict


class HoldsDataclasses(Nasty):
    def set_up(self):
        self.state, self.frozen = State(torch.zeros(4)), Frozen(torch.zeros(4), {})

    def harm(self, y):
        self.state.steps += 1
        self.state.past.append(self.state.tensor)
        self.state.tensor = y[0]
        self.frozen.tensor.add_(1)
        self.frozen.past["y"] = y
        object.__setattr__(self.frozen, "past", None)
        return y + self.frozen.tensor


class PatchesMethods(Nasty):
    def harm(self, y):
        self.harm = lambda y: y
        self.linear.forward = lambda x: x
        self.linear.extra_repr = types.MethodType(lambda me: "patched", self.linear)
        return y


class Guarded(dict):
    """A dictionary whose own methods must not run."""

    def _refused(self, *args, **kwargs):
        raise AssertionError("this is not to be called")

    __iter__ = __len__ = __contains__ = items = keys = values = update = clear = get = copy = _refused


class GuardedList(list):
    """A list of the same kind."""

    def _refused(self, *args, **kwargs):
        raise AssertionError("this is not to be called")

    __iter__ = __len__ = __getitem__ = __setitem__ = copy = clear = extend = _refused


class GuardedSet(set):
    """A set of the same kind."""

    def _refused(self, *args, **kwargs):
        raise AssertionError("this is not to be called")

    __iter__ = __len__ = __contains__ = copy = clear = update = _refused


class Overrides(Nasty):
    def set_up(self):
        self.mapping, self.listed, self.some = Guarded(a=torch.zeros(4)), GuardedList([1]), GuardedSet({1})
        self.mapping.note = 1

    @property
    def trap(self):
        raise AssertionError("properties are not to be called")

    def harm(self, y):
        self.mapping["a"].add_(1)
        self.mapping["b"] = y
        self.mapping.note = 2
        list.append(self.listed, y)
        set.add(self.some, 2)
        return y


class RefersWeakly(Nasty):
    def set_up(self):
        self.state = State(torch.zeros(4))
        self.reference = weakref.ref(self.state)
        self.by_module = weakref.WeakKeyDictionary({self.linear: [1]})
        self.cycle = [self]
        self.cycle.append(self.cycle)

    def harm(self, y):
        self.reference().steps += 1
        self.by_module[self.linear].append(y)
        self.by_module[self] = 1
        self.cycle.append(1)
        self.state = None
        return y


class WritesWithGradients(Nasty):
    """Writes something that has a history to a buffer, and to what a view lies on."""

    def set_up(self):
        self.register_buffer("memory", torch.zeros(4))
        self.register_buffer("under", torch.zeros(4))
        self.view = self.under[1:3]

    def harm(self, y):
        with torch.enable_grad():
            self.memory.copy_(self.linear(torch.ones(4)))
            self.under.copy_(self.linear(torch.ones(4)))
        return y + self.memory + self.view.sum()


class WritesSparse(Nasty):
    def set_up(self):
        self.register_buffer("coo", torch.eye(4).to_sparse())
        self.register_buffer("csr", torch.eye(4).to_sparse_csr())

    def harm(self, y):
        self.coo.mul_(2)
        self.coo._values().add_(1)
        self.csr.values().mul_(3)
        self.csr.add_(torch.ones(4, 4).to_sparse_csr())
        return y + (self.coo @ y.mT).mT


class WritesFrozen(Nasty):
    """Writes to tensors that were made in inference mode, and under other tensors' memory."""

    def set_up(self):
        with torch.inference_mode():
            self.frozen = torch.ones(4)
        self.outer = torch.ones(8)
        self.inner = torch.empty(0).set_(self.outer.untyped_storage(), 2, (4,))

    def harm(self, y):
        with torch.inference_mode():
            self.frozen.mul_(2)
        torch._foreach_add_([self.outer], 1)
        torch.add(self.inner, 1, out=self.inner)
        return y + self.inner


class TakesLazily(Nasty):
    """Has parameters whose shape it learns when it runs."""

    def set_up(self):
        self.lazy = nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d())

    def harm(self, y):
        return self.lazy(y)


def _subclasses(cls):
    for kind in cls.__subclasses__():
        yield kind
        yield from _subclasses(kind)


MODELS = [kind for kind in _subclasses(Nasty) if kind is not Ready]
