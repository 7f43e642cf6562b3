"""A measurement in a process of its own, forked from this one: it shares the graph, and its time and memory end."""

import multiprocessing
import resource
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

#: Runs shorter than this many seconds are repeated, up to so many times, and the fastest counts.
_SHORT, _REPEATS = 1.0, 5


@dataclass(frozen=True)
class Outcome:
    """What came of a measurement: an answer, or the reason why there is none."""

    seconds: float = 0.0
    answer: Any = None
    memory: float = 0.0
    reason: str = ""


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds that a call takes, the fastest of some if it is short, and what it returns."""
    best, answer = float("inf"), None
    for _ in range(_REPEATS):
        start = time.perf_counter()
        answer = function()
        seconds = time.perf_counter() - start
        best = min(best, seconds)
        if seconds > _SHORT:
            break
    return best, answer


def peak_memory() -> float:
    """Return the most memory this process has held, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def apart(function: Callable[[], tuple[float, Any]], seconds: float, gigabytes: float) -> Outcome:
    """Run a function that returns (seconds, answer) in a child; its memory is what it takes on top of this one's."""
    context = multiprocessing.get_context("fork")
    mine, its = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(function, its, gigabytes))
    child.start()
    its.close()
    try:
        if not mine.poll(seconds):
            return Outcome(reason=f"over {seconds:.0f} s")
        return mine.recv()
    except EOFError:
        return Outcome(reason=f"over {gigabytes:.0f} GB")
    finally:
        child.kill()
        child.join()


def _child(function: Callable[[], tuple[float, Any]], pipe: Any, gigabytes: float) -> None:
    size = int(gigabytes * 1e9) + _held()
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    before = peak_memory()
    try:
        seconds, answer = function()
        pipe.send(Outcome(seconds, answer, peak_memory() - before))
    except MemoryError:
        pipe.send(Outcome(reason=f"over {gigabytes:.0f} GB"))
    except NotImplementedError as reason:
        pipe.send(Outcome(reason=str(reason)))
    except Exception:
        traceback.print_exc()
        pipe.send(Outcome(reason="failed"))


def _held() -> int:
    """Return the address space that this process takes already, in bytes."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()
