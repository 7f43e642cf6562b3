"""Greedy list scheduling on identical workers, many jobs at a time."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

import numpy as np

from depgraph.dag.levels import NumberArray
from depgraph.dag.runs import IntArray
from depgraph.metrics.work.problem import Problem
from depgraph.metrics.work.queue import Queue
from depgraph.metrics.work.readiness import FEW, Countdown, Jobs

Number = Any  # int or float, as the weights are


class _Running(NamedTuple):
    """Jobs that finish at the same time, or workers that only become free then."""

    finish: Number
    number: int  # tells apart those with the same time
    jobs: Jobs
    workers: int
    tail: Number  # the longest remaining path of what follows any of them


class Simulation:
    """One run of a problem on so many workers.

    Whenever a worker is idle it takes the most urgent job that is ready. Jobs of one class need no such step each: as
    long as nothing more urgent can become ready, every worker that becomes free takes one of them. What could become
    ready is bounded by the remaining paths: whatever follows a job has a shorter one than the job itself. So a class
    is cut short only where something else that runs is followed by a remaining path as long as its own, at the moment
    when that finishes. With unit weights this makes the highest unfinished level one step: all of it is ready, and only
    its last round, which may not need every worker, has to look further down.

    Attributes
    ----------
    starts : (jobs,) array
        When each job starts, in the type of the weights.
    makespan : number
        When the last one finishes.
    waited : bool
        Whether anything that was ready had to wait for a worker. If not, more workers make the same schedule.
    """

    def __init__(self, problem: Problem, workers: int) -> None:
        ready, waiting = problem.successions.at_first
        self._problem = problem
        self._idle = min(workers, problem.jobs)
        self._count = Countdown(problem.successions, waiting.copy())
        self._queue = Queue()
        self._queue.add(ready)
        self._running: list[_Running] = []
        self._finished: list[Jobs] = []
        self._events = 0
        self._kind = problem.kind.data
        self.starts: NumberArray = np.zeros(problem.jobs, problem.dtype)
        self._starts: Any = self.starts.data
        self.makespan: Number = problem.dtype.type(0).item()
        self._time = self.makespan
        self.waited = False
        while self._queue or self._running:
            if self._queue and self._idle:
                self._begin()
            else:
                self.waited |= bool(self._queue)
                self._advance()

    def _begin(self) -> None:
        """Let idle workers begin jobs of the most urgent class."""
        kind = self._kind[self._queue.first]
        jobs = self._queue.head(self._problem.ends[kind])
        if len(jobs) - self._idle > FEW and len(jobs) >= len(self._running) and self._rounds(jobs, kind):
            return
        jobs = jobs[: self._idle]
        if len(jobs) > FEW:
            self.starts[jobs] = self._time
        else:
            for job in jobs:
                self._starts[job] = self._time
        self._queue.drop(len(jobs))
        self._idle -= len(jobs)
        self._run(self._time + self._problem.weights[kind], jobs, len(jobs), self._problem.tails[kind])

    def _run(self, finish: Number, jobs: Jobs, workers: int, tail: Number) -> None:
        self._events += 1
        heappush(self._running, _Running(finish, self._events, jobs, workers, tail))

    def _advance(self) -> None:
        """Go to the next moment at which something finishes, and make ready what then can be."""
        running, finished = self._running, self._finished
        self._time = running[0].finish
        while running and running[0].finish == self._time:
            event = heappop(running)
            finished.append(event.jobs)
            self._idle += event.workers
        self.makespan = self._time
        done = finished[0] if len(finished) == 1 else np.concatenate(finished)
        self._queue.add(self._count.finish(done))
        finished.clear()

    def _rounds(self, jobs: Jobs, kind: int) -> bool:
        """Begin jobs of a class on every worker that becomes free, round by round; return whether any was begun."""
        weight, level, tail = (of[kind] for of in (self._problem.weights, self._problem.levels, self._problem.tails))
        if tail >= level:  # a weight lost in rounding
            return False
        limit = min((event.finish for event in self._running if event.tail >= level), default=None)
        taken = [event for event in self._running if limit is None or event.finish < limit]
        free = np.array([self._time, *(event.finish for event in taken)], self.starts.dtype)
        workers = np.array([self._idle, *(event.workers for event in taken)])
        slots = _slots(free, workers, weight, len(jobs), limit)
        ends = np.cumsum(workers[slots.source])
        if not len(ends):
            return False
        used = min(len(ends), int(np.searchsorted(ends, len(jobs))) + 1)
        starts, ends, sources = slots.start[:used], ends[:used], set(slots.source[:used].tolist())
        ends[-1] = total = min(len(jobs), int(ends[-1]))
        last = starts[-1]
        begun = np.asarray(jobs[:total], np.int64)
        self._queue.drop(total)
        self.starts[begun] = starts[np.searchsorted(ends, np.arange(total), side="right")]
        self._take(taken, sources)
        # Jobs whose worker goes on to another one finish before the last one starts, and are looked at after that.
        finishes = starts + weight
        over = int(np.searchsorted(finishes, last, side="right"))
        done = int(ends[over - 1]) if over else 0
        self._finished.append(begun[:done])
        spare = int(workers[sorted(sources)].sum()) - (total - done)
        for finish in sorted(set(finishes[over:].tolist())):
            stop = int(ends[int(np.searchsorted(finishes, finish, side="right")) - 1])
            self._run(finish, begun[done:stop], stop - done, tail)
            done = stop
        if spare:  # workers that are free again at the moment when the last one starts
            self._run(last.item(), [], spare, -1)
        self.waited = True
        return True

    def _take(self, taken: list[_Running], sources: set[int]) -> None:
        """Note that the idle workers (source 0) and those of some of the running jobs have gone on to others."""
        gone = {event.number for source, event in enumerate(taken, 1) if source in sources}
        self._finished += [event.jobs for event in taken if event.number in gone]
        self._running = [event for event in self._running if event.number not in gone]
        heapify(self._running)
        self._idle = 0


class _Slots(NamedTuple):
    """Times at which workers could start a job, in order, and from which group of workers each comes."""

    start: NumberArray
    source: IntArray


def _slots(free: NumberArray, workers: IntArray, weight: Number, jobs: int, limit: Number | None) -> _Slots:
    """Return the first times at which groups of workers could start jobs of one weight, enough of them for the jobs.

    Group g has ``workers[g]`` workers, free from ``free[g]`` on, each of whose jobs starts when the one before ends.
    All times before the limit are returned, or at least all before some time; none at or after either.
    """
    after = (free - free[0]).astype(np.float64)
    order = np.argsort(after, kind="stable")
    crew = np.cumsum(workers[order])
    # By this time the first groups alone could have started all the jobs, if workers could start parts of jobs.
    enough = ((jobs * float(weight) + np.cumsum(after[order] * workers[order])) / crew).min()
    if limit is not None:
        enough = min(enough, float(limit - free[0]))
    with np.errstate(over="ignore"):  # rounds without end are cut
        rounds = np.floor(np.clip((enough - after) / weight, -2, jobs)) + 2
    starts, sources = [], []
    horizon: Any = limit
    for group in range(len(free)):
        count = int(rounds[group])
        times = np.full(count + 1, weight, free.dtype)
        times[0] = free[group]
        np.add.accumulate(times, out=times)  # one job after the other, rounded as they would be
        starts.append(times[:-1])
        sources.append(np.full(count, group))
        horizon = times[-1] if horizon is None else min(horizon, times[-1])
    start, source = np.concatenate(starts), np.concatenate(sources)
    order = np.argsort(start, kind="stable")
    order = order[: np.searchsorted(start[order], horizon)]
    return _Slots(start[order], source[order])
