"""How many seconds the calls of a program take, measured on its example inputs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, fx
from torch.utils import _pytree as pytree

from depgraph.errors import GraphError
from depgraph.tracing.program import Program

WARM_UPS, FEWEST, MOST, ENOUGH = 2, 5, 100, 5e-3
"""Runs before the clock counts; runs under it, at least and at most; seconds after which there are no further ones."""

Clock = Callable[[], float]


def measure(program: Program, wanted: Collection[fx.Node], clock: Clock = time.perf_counter) -> dict[fx.Node, float]:
    """Run a program once on its example inputs, and some of its calls again and again.

    Parameters
    ----------
    program : Program
    wanted : collection of torch.fx.Node
        The calls to be timed. Each is run twice, then 5 to 100 times under the clock, the more the shorter it takes.
        The shortest time counts, as in `timeit`: what makes a run longer is something else than the call.
    clock : callable, optional
        Returns the time in seconds. On an accelerator, its work is waited for before each look at the clock.

    Returns
    -------
    dict
        Seconds each of them takes.

    Raises
    ------
    GraphError
        Where inputs or parameters have no data, the program does not run on them, or a time is no time.
    """
    placeholders = program.graph.find_nodes(op="placeholder")
    values = [program.sources[n.name].value if n.name in program.sources else None for n in placeholders]
    if any(value is not None and value.is_meta for value in values):
        raise GraphError(
            "The model or its input is on the meta device, where nothing can be timed. Weigh nodes by 'ops', "
            "'contractions', 'flops' or 'bytes' instead, or trace it on a device that computes."
        )
    devices = [value.device for value in values if value is not None and value.device.type != "cpu"]
    device = devices[0] if devices else torch.device("cpu")
    replay = _Replay(program, set(wanted), clock, device)
    with torch.no_grad(), _random_kept(device):
        replay.run(*values, enable_io_processing=False)
    return replay.seconds


class _Replay(fx.Interpreter):
    """Runs a program on real tensors, and times some calls."""

    def __init__(self, program: Program, wanted: set[fx.Node], clock: Clock, device: torch.device) -> None:
        super().__init__(program.module, graph=program.graph)
        self.program, self.wanted, self.clock, self.device = program, wanted, clock, device
        self.seconds: dict[fx.Node, float] = {}
        self.extra_traceback = False

    def run_node(self, n: fx.Node) -> Any:
        """Run one call, again and again if it is to be timed."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        if n.op != "call_function":
            result = getattr(self, n.op)(n.target, args, kwargs)
            return result.to(self.device) if n.op == "get_attr" and isinstance(result, Tensor) else result
        args, kwargs = pytree.tree_map_only(torch.device, lambda _: self.device, (args, kwargs))
        target: Any = n.target
        try:
            result = target(*args, **kwargs)
            if n in self.wanted:
                self.seconds[n] = self.time(n, lambda: target(*args, **kwargs))
        except GraphError:
            raise
        except Exception as error:
            raise GraphError(f"{self.place(n)}{n.target} cannot be timed: {type(error).__name__}: {error}") from error
        return result

    def time(self, node: fx.Node, call: Callable[[], Any]) -> float:
        """Return the shortest of some runs."""
        for _ in range(WARM_UPS):
            call()
        times: list[float] = []
        while len(times) < FEWEST or (len(times) < MOST and sum(times) < ENOUGH):
            self.wait()
            start = self.clock()
            call()
            self.wait()
            times.append(self.clock() - start)
            if not 0 <= times[-1] < math.inf:
                raise GraphError(
                    f"{self.place(node)}{node.target} was measured to take {times[-1]} seconds; a time is a finite "
                    "number of at least 0."
                )
        return min(times)

    def wait(self) -> None:
        """Wait until the device has done all that it was given to do."""
        if self.device.type != "cpu":
            torch.get_device_module(self.device).synchronize()

    def place(self, node: fx.Node) -> str:
        """Return how a message about a call begins."""
        _, source = self.program.where(node)
        return f"{source}: " if source else ""


@contextmanager
def _random_kept(device: torch.device) -> Iterator[None]:
    """Let random numbers go on afterwards from where they were."""
    if device.type == "cpu":
        with torch.random.fork_rng(devices=()):
            yield
    else:
        with torch.random.fork_rng(device_type=device.type):
            yield
