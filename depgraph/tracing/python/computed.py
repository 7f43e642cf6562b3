"""What Python computes from values that left the graph, led back to the tensors they were taken from.

``x / float(x.abs().max())`` leaves a division by a number behind, ``torch.from_numpy(f(x.numpy()))`` a tensor from
nowhere, ``y.roll(int(n))`` an operation that does something else for another ``n``. What Python computed that from is
found out by trying: the model is run again with one of the values that left changed, and whatever then is another
number, another tensor or another choice in the line of operations came of it. A tensor of which nothing is found that
way is taken to be made of all that left before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, fx

from depgraph.tracing.python.escapes import Escape
from depgraph.tracing.python.leading import lead_index, lead_number, lead_parts, lead_result, lead_tensor
from depgraph.tracing.python.shifting import FAR, NEAR
from depgraph.tracing.python.trials import (
    CHOSEN,
    INDICES,
    TENSOR,
    Place,
    Run,
    Trial,
    arguments_of,
    attempt,
    differ,
)

if TYPE_CHECKING:
    from depgraph.tracing.recorder.record import Recording

_GROUPS = 8  # of values that left; beyond, several are changed at once


class RewrittenError(Exception):
    """Python wrote to memory that it was handed, which shows only when other values leave.

    Attributes
    ----------
    looks : frozenset of int
        Where that showed.
    """

    def __init__(self, looks: frozenset[int]) -> None:
        super().__init__()
        self.looks = looks


def lead_back(recording: Recording, run: Run, known: Collection[int]) -> None:
    """Make the numbers and tensors in a line that Python computed read what they were computed from.

    Parameters
    ----------
    recording : Recording
        Its line is changed; each escape is marked as followed if all that was computed from it is known.
    run : callable
        Records the model again, some of the values that left changed; without any, the inputs.
    known : collection of int
        The addresses of memories that were there before the model ran.

    Raises
    ------
    RewrittenError
        Where the line has to be recorded again first.
    """
    escapes = recording.escapes
    left = list(_changeable(recording))
    strange = recording.strangers(known)
    if not left and not strange:
        return
    trials = list(_trials(recording, run, left))
    unwatched: Trial | None = None
    if strange or any(escapes[k].kind == "array" for k in left):  # there may be ways that nobody watches
        unwatched = attempt(recording, run, (), "nudged")
    tried = [*trials, unwatched] if unwatched is not None else trials
    if looks := frozenset().union(*(trial.rewritten for trial in tried)) - recording.rewritten:
        raise RewrittenError(looks)
    for k in left:
        if any(k in trial.changed and trial.complete for trial in trials):
            escapes[k].followed = escapes[k].kind != "condition"
    for escape in escapes:  # a number that stayed symbolic for a while
        if escape.number is not None and escape.kind == "number":
            escape.followed = all(escapes[k].followed for k in _symbols(recording, escape.number))
    _Leading(recording, left, trials, unwatched, strange, recording.numbers(known)).lead()


def _changeable(recording: Recording) -> Iterator[int]:
    """Yield the values that may be changed on their way and that Python made something of."""
    ended = {k for escape in recording.escapes if escape.number is not None and escape.kind == "number"
             for k in _symbols(recording, escape.number)}  # fmt: skip
    for k, escape in enumerate(recording.escapes):
        if escape.movable and (escape.kind != "symbol" or k in ended):
            yield k


def _symbols(recording: Recording, number: fx.Node) -> set[int]:
    """Return the symbolic numbers, as they were read off tensors, that one was computed from."""
    taken = {e.number: k for k, e in enumerate(recording.escapes) if e.kind == "symbol"}
    found: set[int] = set()
    waiting, seen = [number], {number}
    while waiting:
        node = waiting.pop()
        if node in taken:
            found.add(taken[node])
            continue
        new = set(node.all_input_nodes) - seen
        seen |= new
        waiting += new
    return found


def _trials(recording: Recording, run: Run, left: list[int]) -> Iterator[Trial]:
    """Run again with each of the values that left changed in several ways."""
    kinds = [recording.escapes[k].kind for k in left]
    conditions = [k for k, kind in zip(left, kinds, strict=True) if kind == "condition"]
    values = [k for k, kind in zip(left, kinds, strict=True) if kind != "condition"]
    for group in _groups(conditions):
        yield attempt(recording, run, group, "nudged")
    apart = False
    for group in _groups(values):
        arrays = any(recording.escapes[k].kind == "array" for k in group)
        near = [attempt(recording, run, group, change) for change in NEAR]
        yield from near
        if arrays:
            yield attempt(recording, run, group, "turned")
        if all(trial.complete for trial in near):
            yield from (attempt(recording, run, group, change) for change in FAR)
        else:
            apart = True
    if apart and len(values) > 1:  # what goes together only if all change
        yield from (attempt(recording, run, values, change, together=True) for change in NEAR)


def _groups(numbers: list[int]) -> list[list[int]]:
    if not numbers:
        return []
    return [group.tolist() for group in np.array_split(numbers, min(len(numbers), _GROUPS))]


class _Leading:
    """What was found by trying, and the line that is changed accordingly."""

    def __init__(
        self, recording: Recording, left: list[int], trials: list[Trial], unwatched: Trial | None,
        strange: list[fx.Node], perhaps: list[fx.Node],
    ) -> None:  # fmt: skip
        self.recording, self.left, self.trials, self.unwatched = recording, left, trials, unwatched
        self.nodes = [node for node in recording.graph.nodes if node.op != "output"]
        self.order = {node: k for k, node in enumerate(self.nodes)}
        self.strange, self.perhaps = strange, perhaps
        self.asked: dict[int, set[int]] = {}
        for trial in trials:
            for e in trial.asked:
                self.asked.setdefault(e, set()).update(trial.changed)
        self.found: dict[Place, set[int]] = {}
        reached: dict[int, int] = {}
        for trial in trials:
            for e in () if trial.together else trial.changed:
                reached[e] = max(reached.get(e, 0), trial.reached)
        for trial in trials:
            for place in trial.places:
                changed = trial.changed
                if trial.together and place in self.found:  # known better, but of those whose own runs ended before
                    changed = tuple(e for e in changed if reached[e] <= place[0])
                self.found.setdefault(place, set()).update(self._behind(changed))

    def _behind(self, changed: Collection[int]) -> set[int]:
        """Return values that left, and those that decided what they were taken out of."""
        found, waiting = set(changed), list(changed)
        while waiting:
            new = self.asked.get(waiting.pop(), set()) - found
            found |= new
            waiting += new
        return found

    def lead(self) -> None:
        """Change the line."""
        somehow = {*self.found, *((self.order[node], TENSOR) for node in (*self.strange, *self.perhaps))}
        if self.unwatched is not None:
            somehow |= set(self.unwatched.places)
        by_node: dict[int, list[Any]] = {}
        for k, at in somehow:
            by_node.setdefault(k, []).append(at)
        for k in sorted(by_node):
            places = sorted(by_node[k], key=lambda at: (at == CHOSEN, str(at)))
            if k == len(self.nodes):
                for at in places:
                    self._result(at)
            elif self.nodes[k].target in INDICES and set(places) - {CHOSEN}:
                self._index(k, places)
            else:
                for at in places:
                    self._one(k, at)

    def _reads(self, place: Place) -> tuple[list[int], list[fx.Node]]:
        """Return the values that left which something was made of, and the tensors that they were taken from."""
        k = place[0]
        found = sorted(e for e in self.found.get(place, ()) if self.recording.escapes[e].at <= k)
        if not found and (self.unwatched is None or place not in self.unwatched.places):
            escapes = self.recording.escapes
            found = [e for e in self.left if escapes[e].at <= k and escapes[e].kind != "condition"]
            if not found:
                return [], []
        return found, self._tensors(found) if found else self.recording.inputs

    def _tensors(self, found: Sequence[int]) -> list[fx.Node]:
        """Return the tensors that values were taken from, as they are now."""
        _, _, held = self.recording.held()
        return list(dict.fromkeys(held[e] for e in found))

    def _one(self, k: int, at: Any) -> None:
        node = self.nodes[k]
        found, sources = self._reads((k, at))
        told = bool(sources) or (self.unwatched is not None and not self.unwatched.complete)
        if node in self.strange and at == TENSOR and not found and told:
            self._say(node, followed=bool(sources))
        if not sources:
            return
        if at == TENSOR:
            parts = self._parts((k, at), found)
            if parts is None:
                lead_tensor(node, sources)
            else:
                lead_parts(node, [(self.recording.constant(mask), self._tensors(read)) for mask, read in parts])
        elif at == CHOSEN:
            lead_result(node, [*sources, *self._others((k, at), before=k)])
        else:
            value = arguments_of(node)[at]
            same = self._same((k, at), value) if found else None
            lead_number(node, at, value, self._tensors([same]) if same is not None else sources, same=same is not None)

    def _parts(self, place: Place, found: Sequence[int]) -> list[tuple[Tensor, list[int]]] | None:
        """Return for sets of values that left which elements of a tensor each was made of, if that could be told.

        An array may have been put in order, of which a few other orders tell nothing about single elements.
        """
        escapes = self.recording.escapes
        trials = [trial for trial in self.trials if trial.reached > place[0]]
        single = {trial.changed[0] for trial in trials if len(trial.changed) == 1}
        if not found or any(escapes[e].kind == "array" or e not in single for e in found):
            return None
        if any(escapes[e].kind == "array" and escapes[e].at <= place[0] for e in self.left):
            return None
        masks: dict[int, Tensor] = {}
        for trial in trials:
            if len(trial.changed) == 1 and place in trial.places:
                (e,) = trial.changed
                masks[e] = masks[e] | trial.places[place] if e in masks else trial.places[place]
        if not masks.keys() >= set(found):
            return None
        read = list(found)
        codes = sum((masks[e].long() << bit for bit, e in enumerate(read)), torch.zeros_like(masks[read[0]]).long())
        return [
            (codes == code, [e for bit, e in enumerate(read) if code >> bit & 1])
            for code in codes.unique().tolist() if code
        ]  # fmt: skip

    def _index(self, k: int, places: list[Any]) -> None:
        """Lead back both ends of a slice at once."""
        found = {e for at in places for e in self._reads((k, at))[0]}
        sources = self._tensors(sorted(found)) or self.recording.inputs
        node = self.nodes[k]
        self.nodes[k] = lead_index(node, sources)
        for escape in self.recording.escapes:
            if escape.read is node:
                escape.read = self.nodes[k]
        if CHOSEN in places:
            self._one(k, CHOSEN)

    def _result(self, at: int) -> None:
        """Lead back which tensor is returned."""
        outputs, updates, reads = self.recording.held()
        results = [*outputs, *updates.values()]
        place = (len(self.nodes), at)
        _, sources = self._reads(place)
        if not sources:
            return
        read = [*sources, results[at], *self._others(place, before=len(self.nodes))]
        results[at] = lead_tensor(results[at], read, users=())
        asked = [ask.node for ask in self.recording.asked()]
        held = (results[: len(outputs)], results[len(outputs) :], reads, asked)
        self.recording.graph.output_node().args = (held,)

    def _others(self, place: Place, before: int) -> list[fx.Node]:
        """Return what an operation is applied to in other runs."""
        every = [*self.trials, *([self.unwatched] if self.unwatched is not None else [])]
        numbers = {k for trial in every for k in trial.places.get(place) or () if k < before}
        return [self.nodes[k] for k in sorted(numbers) if hasattr(self.nodes[k].meta.get("val"), "dtype")]

    def _same(self, place: Place, value: Any) -> int | None:
        """Return the value that left which a number is in all runs, None where there is no such."""
        escapes = self.recording.escapes
        for e, escape in enumerate(escapes):
            if escape.kind not in ("number", "symbol") or escape.at > place[0] or differ(escape.value, value):
                continue
            runs = [trial for trial in self.trials if trial.reached > place[0] and e < len(trial.values)]
            if runs and not any(differ(trial.at(place, value), trial.values[e]) for trial in runs):
                return e
        return None

    def _say(self, node: fx.Node, *, followed: bool) -> None:
        """Note a tensor that came from nowhere among what is to be said."""
        shape = tuple(self.recording.constants[str(node.target)].shape)
        self.recording.add(Escape("stranger", "", shape, node.meta["line"], node, len(self.nodes), followed))
