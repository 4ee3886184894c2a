"""The algorithm of Chandramouli, Goldstein and Maier (PVLDB 3(1), 2010) as it is written: a second oracle. Tests only.

Augmented finite automata over streams in disorder: with each event the partial matches that end there (section 5.1);
insertion by Algorithm 1, deletion and cleanup by appendix C. It shares nothing with the package.

What differs: a window is ``t_last - t_first <= w``, so that a lifetime ends at w + 1; events of one time are ordered by
their ids (the paper takes times to be unique, footnote 1); output of ``PropagateInsert`` is put out, which Algorithm 1
leaves unsaid; a sorted list stands for the red-black tree. Epsilon arcs are left out, as in appendix C.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

Key = tuple[int, Any]
"""Time and id of an event: its LE."""


@dataclass(frozen=True)
class Input:
    """An event; its lifetime begins at ``ts``."""

    ts: int
    id: Any
    value: Any = None

    @property
    def key(self) -> Key:
        """What events are ordered by."""
        return self.ts, self.id


@dataclass(frozen=True)
class Arc:
    """From state to state for events that the fence lets through (Definition 1), which come in its lifetime (2.3)."""

    source: str
    target: str
    fence: Callable[[Any, Any], bool]
    transfer: Callable[[Any, Any], Any]
    since: float = -math.inf
    until: float = math.inf


@dataclass(frozen=True)
class Machine:
    """An automaton with a register (Definition 1); ``register`` is Z, the first one."""

    arcs: tuple[Arc, ...]
    start: str
    finals: frozenset[str]
    register: Any
    window: int

    def following(self, state: str, register: Any, event: Input) -> list[tuple[str, Any]]:
        """The next-ID relation for one event (section 2.2, with lifetimes of arcs: 2.3)."""
        return [
            (arc.target, arc.transfer(event.value, register))
            for arc in self.arcs
            if arc.source == state and arc.since <= event.ts < arc.until and arc.fence(event.value, register)
        ]

    def changed(self, gone: Iterable[Arc], new: Iterable[Arc], now: int) -> Machine:
        """Other arcs for all events after ``now``, which has used the old ones (section 2.3, default mode)."""
        gone = set(gone)
        kept = tuple(replace(arc, until=now + 1) if arc in gone else arc for arc in self.arcs)
        return replace(self, arcs=(*kept, *(replace(arc, since=now + 1) for arc in new)))


@dataclass(frozen=True)
class Partial:
    """A ``pmatch`` node (section 5.1): where its first event begins, when that one's lifetime ends, and an ID."""

    start: Key
    until: int
    state: str
    register: Any


@dataclass(frozen=True)
class Output:
    """An output event (Definition 2): the register, and the lifetime, which is that of all its events."""

    register: Any
    begins: int
    ends: int


@dataclass
class Entry:
    """What the tree holds for one event; after a cleanup the first one has none."""

    key: Key
    event: Input | None
    partials: list[Partial]


class Operator:
    """The operator of section 5: what it has put out and not taken back is ``net``.

    Attributes
    ----------
    entries : list of Entry
        In order of their keys: ``rbtree``.
    net : Counter of Output
    made, removed : int
        Nodes so far.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.entries: list[Entry] = []
        self.net: Counter[Output] = Counter()
        self.made = self.removed = 0

    def insert(self, event: Input) -> None:
        """Algorithm 1, InsertEvent."""
        at = bisect_left(self.entries, event.key, key=lambda entry: entry.key)
        is_late = at < len(self.entries)
        if is_late:
            self.remove_invalidated(at, event.key)
        before = self.entries[at - 1].partials if at else []
        partials = self.transitions(before, event)
        begun = self.machine.following(self.machine.start, self.machine.register, event)
        until = event.ts + self.machine.window + 1
        partials += [Partial(event.key, until, state, register) for state, register in begun]
        self.entries.insert(at, Entry(event.key, event, partials))
        self.made += len(partials)
        self.put_out(partials, event.ts, +1)
        if is_late:
            self.propagate(at)

    def delete(self, event: Input) -> None:
        """Appendix C, Delete Algorithm: what spans the event goes, and the entry before it goes on without it."""
        at = bisect_left(self.entries, event.key, key=lambda entry: entry.key)
        assert self.entries[at].event == event, "only what was inserted can be deleted"
        self.remove_invalidated(at, event.key)
        del self.entries[at]
        if at:
            self.propagate(at - 1)

    def punctuate(self, tick: int) -> None:
        """Appendix C.1: no event before ``tick`` comes any more; of ``cover(tick)`` the list stays, not the event."""
        cover = bisect_left(self.entries, tick, key=lambda entry: entry.key[0]) - 1
        if cover >= 0:
            del self.entries[:cover]
            self.entries[0].event = None

    def transitions(self, partials: Sequence[Partial], event: Input) -> list[Partial]:
        """MakeTransitions: what is derived from some nodes, in their order."""
        return [
            replace(partial, state=state, register=register)
            for partial in partials
            if event.ts < partial.until
            for state, register in self.machine.following(partial.state, partial.register, event)
        ]

    def remove_invalidated(self, at: int, key: Key) -> None:
        """Algorithm 1, RemoveInvalidatedSequences: nodes that began at or before a key, until an entry has none."""
        for entry in self.entries[at:]:
            fine = bisect_right(entry.partials, key, key=lambda partial: partial.start)  # they are in this order
            if fine == 0:  # by invariant Completeness no later one has any
                return
            self.put_out(entry.partials[:fine], entry.key[0], -1)
            self.removed += fine
            del entry.partials[:fine]

    def propagate(self, at: int) -> None:
        """Algorithm 1, PropagateInsert: the nodes of an entry go on, until none is left; they began first."""
        moved = self.entries[at].partials
        for entry in self.entries[at + 1 :]:
            assert entry.event is not None
            moved = self.transitions(moved, entry.event)
            if not moved:
                return
            entry.partials[:0] = moved
            self.made += len(moved)
            self.put_out(moved, entry.key[0], +1)

    def put_out(self, partials: Sequence[Partial], end: int, sign: int) -> None:
        """Output events, or their retractions, for the nodes in final states."""
        for partial in partials:
            if partial.state in self.machine.finals:
                output = Output(partial.register, end, partial.until)
                self.net[output] += sign
                assert self.net[output] >= 0, f"taken back, and was not there: {output}"
        self.net = +self.net


# --- by the definitions -----------------------------------------------------------------------------------------------


def partials_of(machine: Machine, events: Sequence[Input]) -> dict[Key, Counter[Partial]]:
    """Invariant Content (section 5.1), literally: every ID of every contiguous subsequence, by its last event."""
    ordered = sorted(events, key=lambda event: event.key)
    found: dict[Key, Counter[Partial]] = {event.key: Counter() for event in ordered}
    for i, first in enumerate(ordered):
        reached = [(machine.start, machine.register)]
        for event in ordered[i:]:
            if event.ts - first.ts > machine.window:
                break
            reached = [new for state, register in reached for new in machine.following(state, register, event)]
            until = first.ts + machine.window + 1
            found[event.key].update(Partial(first.key, until, state, register) for state, register in reached)
    return found


def outputs_of(machine: Machine, events: Sequence[Input]) -> Counter[Output]:
    """Definition 2: an output event for every way in which the machine accepts a contiguous subsequence."""
    found: Counter[Output] = Counter()
    for (ts, _), partials in partials_of(machine, events).items():
        for partial, times in partials.items():
            if partial.state in machine.finals:
                found[Output(partial.register, ts, partial.until)] += times
    return found


# --- sequences of contiguous events -----------------------------------------------------------------------------------

Bound = tuple[tuple[str, Any], ...]
"""A register that remembers what was bound: variables and events."""
When = Callable[[Any, dict[str, list[Any]]], bool]


@dataclass(frozen=True)
class Step:
    """One part of a SEQ: a variable, the type of its events (None: any), a condition with what was bound before.

    Events are dicts; ``when`` gets one, and per variable the list of those bound before it.
    """

    variable: str
    type: str | None
    when: When = lambda event, bound: True
    repeats: bool = False


@dataclass(frozen=True)
class Contiguous:
    """A query of contiguous steps, and the same as a machine made by hand.

    ``key``: the partitions of ``partition_contiguity``; None for one that reads the whole stream.
    """

    text: str
    window: int
    steps: tuple[Step, ...]
    key: str | None = None

    def machine(self) -> Machine:
        """A state for each step, in which it has been taken, and one before them."""
        arcs = []
        for number, step in enumerate(self.steps):
            sources = [number, number + 1] if step.repeats else [number]
            arcs += [Arc(str(source), str(number + 1), fence_of(step), taking(step.variable)) for source in sources]
        return Machine(tuple(arcs), "0", frozenset({str(len(self.steps))}), (), self.window)


def fence_of(step: Step) -> Callable[[Any, Bound], bool]:
    """The condition of a step, and its type."""

    def fence(event: Any, bound: Bound) -> bool:
        before: dict[str, list[Any]] = {}
        for variable, other in bound:
            before.setdefault(variable, []).append(dict(other))
        values = dict(event)
        return step.type in (None, values["type"]) and step.when(values, before)

    return fence


def taking(variable: str) -> Callable[[Any, Bound], Bound]:
    """The transfer of a step: one more event is bound."""
    return lambda event, bound: (*bound, (variable, event))


class Partitions:
    """The operator once for each key; events without a key are in none."""

    def __init__(self, asked: Contiguous) -> None:
        self.asked, self.machine = asked, asked.machine()
        self.operators: dict[Any, Operator] = {}

    def change(self, sign: int, row: dict[str, Any]) -> None:
        """Insert an event, or delete it: a dict with ``ts``, ``id``, ``type`` and attributes."""
        key = row[self.asked.key] if self.asked.key else "all"
        if key is None:
            return
        operator = self.operators.setdefault(key, Operator(self.machine))
        event = Input(row["ts"], row["id"], tuple((name, value) for name, value in row.items() if value == value))
        (operator.insert if sign > 0 else operator.delete)(event)

    def punctuate(self, tick: int) -> None:
        """Time has passed, for all of them."""
        for operator in self.operators.values():
            operator.punctuate(tick)

    def net(self) -> Counter[tuple[Any, ...]]:
        """The matches: per variable, in the order of the steps, the id of its event, or a tuple of ids."""
        found: Counter[tuple[Any, ...]] = Counter()
        for operator in self.operators.values():
            for output, times in operator.net.items():
                found[self.shown(output.register)] += times
        return found

    def shown(self, bound: Bound) -> tuple[Any, ...]:
        """What was bound, as in a row of matches."""
        ids: dict[str, tuple[Any, ...]] = {}
        for variable, row in bound:
            ids[variable] = (*ids.get(variable, ()), dict(row)["id"])
        return tuple(ids[step.variable] if step.repeats else ids[step.variable][0] for step in self.asked.steps)
