"""What the clairvoyant shedder needs of the runs engine.

Which events a run is tested with follows from its state: those of its partition that a letter of a leaving arc holds
on; and, where the engine finds runs by an index, only those that agree in the indexed register.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep_approx.automaton.automaton import START
from acep_approx.automaton.registers import RegisterAutomaton, Step
from acep_approx.automaton.resolve import Held, Own, Resolved
from acep_approx.events import open_source, read_events
from acep_approx.events.columns import to_numpy
from acep_approx.matching.pipeline import Pipeline
from acep_approx.query.syntax import Attribute, Binary
from experiments.shedding.clairvoyant import ROW_BITS, Meets, Prefixes

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Join:
    """An equality that the engine has an index for: attribute of the event, variable and attribute of the run."""

    own: str
    variable: str
    of: str


def states(automaton: RegisterAutomaton, trie: Prefixes) -> tuple[Ints, Ints]:
    """State and last arc of each prefix, by the steps with the fewest errors.

    Complexity: O(prefixes · steps) in plain Python.
    """
    arcs = automaton.automaton.arcs
    ways: dict[tuple[int, int], Step] = {}
    for step in sorted(automaton.steps, key=lambda step: arcs[step.arc].cost, reverse=True):
        ways[step.source, arcs[step.arc].label] = step
    state, arc = np.zeros(len(trie), np.int64), np.zeros(len(trie), np.int64)
    for prefix, (parent, label) in enumerate(zip(trie.parent.tolist(), trie.arc.tolist(), strict=True)):
        step = ways[int(state[parent]) if parent >= 0 else START, label]
        state[prefix], arc[prefix] = step.target, step.arc
    return state, arc


def join(automaton: RegisterAutomaton, state: int) -> Join | None:
    """The first equality that all steps from a state test; None where runs are not found by an index."""
    leaving = [step for step in automaton.steps if step.source == state]
    found = [[one for check in step.checks if (one := _equality(check))] for step in leaving]
    common = [one for one in (found[0] if found else []) if all(one in some for some in found)]
    return common[0] if common else None


def _equality(check: Resolved) -> Join | None:
    """An equality between an attribute of the event and one of an event that is bound."""
    if not isinstance(check, Binary) or check.op != "=":
        return None
    sides: tuple[Resolved, Resolved] = (check.left, check.right)
    own = [side.value for side in sides if isinstance(side, Own)]
    held = [side.register for side in sides if isinstance(side, Held)]
    if len(own) != 1 or len(held) != 1 or not isinstance(own[0], Attribute):
        return None
    register = held[0]
    if register.kind not in ("value", "first", "last") or not isinstance(register.of, Attribute):
        return None
    return Join(own[0].name, register.variable, register.of.name)


def meets(
    pipeline: Pipeline, automaton: RegisterAutomaton, events: pa.Table, trie: Prefixes, *, indexed: bool = True
) -> Meets:
    """Which events each prefix is tested with.

    Parameters
    ----------
    pipeline : Pipeline
        New, bound to the schema of the events.
    automaton : RegisterAutomaton
        Of the query.
    events : pyarrow.Table
        The whole stream.
    trie : Prefixes
        Of matches in it.
    indexed : bool, default True
        Whether the engine finds runs by an index (merging "chain").

    Complexity: O(n log n) in events, for each state.
    """
    rows, slots, masks = _letters(pipeline, events)
    slot_of = np.zeros(len(events), np.int64)
    slot_of[rows] = slots
    state, _ = states(automaton, trie)
    group, keys = np.zeros(len(trie), np.int64), [np.zeros(0, np.int64)]
    first = 0
    for number in np.unique(state).tolist():
        mine = np.flatnonzero(state == number)
        wanted = sum(1 << letter for letter in {step.letter for step in automaton.steps if step.source == number})
        at = rows[(masks & np.uint64(wanted)) != 0]
        ours, theirs = slot_of[trie.row[mine]], slot_of[at]
        index = join(automaton, number) if indexed else None
        if index is not None:
            held, own = _values(pipeline, automaton, events, trie, mine, index)
            size = int(own.max(initial=0)) + 1
            ours, theirs = ours * size + held, theirs * size + own[at]
        both, code = np.unique(np.concatenate((ours, theirs)), return_inverse=True)
        group[mine] = first + code[: len(mine)]
        keys.append((first + code[len(mine) :]) << ROW_BITS | at)
        first += len(both)
    return Meets(group, np.sort(np.concatenate(keys)))


def _letters(pipeline: Pipeline, events: pa.Table) -> tuple[Ints, Ints, npt.NDArray[np.uint64]]:
    """Rows on which a letter holds, their partitions, and which letters."""
    found = [(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))]
    preparer = pipeline.preparer
    for events_of_batch in read_events(open_source(events), pipeline.roles, columns=pipeline.columns):
        batch = pipeline.stream.batch(events_of_batch)
        preparer.read(batch)
        grouped = preparer.grouped(batch)
        found.append((grouped.row, grouped.slot, grouped.cls))
    row, slot, cls = (np.concatenate(column) for column in zip(*found, strict=True))
    return row, slot, np.array(preparer.classes, np.uint64)[cls]


def _values(
    pipeline: Pipeline, automaton: RegisterAutomaton, events: pa.Table, trie: Prefixes, some: Ints, index: Join
) -> tuple[Ints, Ints]:
    """Codes of the values that prefixes hold, and of those of all events, in which an index compares them."""
    columns = [events.column(pipeline.roles.column(name)).combine_chunks() for name in (index.of, index.own)]
    codes = pa.concat_arrays(columns).dictionary_encode(null_encoding="encode")
    code = to_numpy(codes.indices).astype(np.int64)
    label = automaton.automaton.variables.index(index.variable)
    row = np.zeros(len(some), np.int64)
    for i, prefix in enumerate(some.tolist()):
        row[i] = [at for at, variable in trie.path(prefix) if variable == label][-1]
    return code[: len(events)][row], code[len(events) :]
