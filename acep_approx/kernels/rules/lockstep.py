"""Rules that write what they and others read, event by event in one loop: tests of the store, detection, writes.

Each event is seen by all rules, which find the tables as they were before it; then the rules that it completes a match
of write, in their order. All else was made before, over columns: what the event says by itself (its *joint class*), the
rows that it names, and what each rule would write.

Source: SEI, Wang, Rundensteiner and Ellison, PVLDB 4(10) 2011, section 5.1: one event at a time. The recurrence is that
of ``kernels.cells.detect``, which is ours. Deviations: conditions on the store choose among classes of the event, so
that detection knows nothing of them; matches are not made here, they are listed afterwards. Oracle:
``tests/naive_rules.py``.
"""

from __future__ import annotations

from typing import NamedTuple

from acep_approx.arrays import Bools, Floats, Ints
from acep_approx.jit.kernel import kernel
from acep_approx.jit.marks import inline
from acep_approx.kernels.cells.detect import CLEARED, FEW_LANES, STRIDE
from acep_approx.kernels.cells.step import part, step
from acep_approx.kernels.rules.rows import (
    Rows,
    Scratch,
    Statements,
    Undo,
    Writes,
    undo_all,
    write_row,
)

OFFSETS = CLEARED + 1
"""Numbers of a rule in ``Detection.offsets``."""

# a rule: which column of slots and of ticks it has, its window; where its detection tables, its offsets and its cells
# begin; its first statement; its column of classes, -1 where none is wanted
SLOTS, CLOCK, WINDOW, DETECTION, OFFSET, CELLS, STATEMENTS, CLASSES, RULE = range(9)

# what a joint class says to a rule: which, the first of its tests, and of those of WHEN; where its classes begin, and
# whether it acts, by their outcomes; whether a match may end
OF_RULE, FIRST_TEST, FIRST_WHEN, LOOKUP, ACTS, FINISHES, ENTRY = range(7)

# a test: which column of rows; where the column of the table begins, -1 for EXISTS; where its rows begin; what an
# absent row reads as, and whether that is not NULL; how values are compared, and the outcomes that hold; the column of
# what it is compared with, -1 for a constant; this, or the first and the last of a list of constants
ROWS_OF, COLUMN, THERE, ABSENT, ABSENT_OK, COMPARED, OUTCOMES, OPERAND, CONSTANT, LAST, TEST = range(11)

LESS, EQUAL, GREATER = 1, 2, 4
"""Outcomes of a comparison; those that hold are added up."""
IS_NULL, IS_VALUE, IN, NOT_IN = 8, 9, 10, 11
AS_WORDS, AS_FLOATS, WHOLE_AS_FLOATS, MICROSECONDS_AS_NANOSECONDS = 0, 1, 2, 3
LARGEST = (2**63 - 1) // 1000

# a statement of a rule: where the sizes of its table begin, and its first write
TABLE, FIRST_WRITE, STATEMENT = range(3)

# a hit: event, rule, least errors, latest start, the number of the event among those that may complete a match, whether
# the rule acts
HIT_EVENT, HIT_RULE, HIT_ERRORS, HIT_START, HIT_PLACE, HIT_ACTS, HIT = range(7)


class Events(NamedTuple):
    """A batch, columns one after the other: joint classes (by panel), slots (by key), ticks (by clock), rows of tables.

    ``values`` are those that the store is compared with, ``floats`` the same as floats.
    """

    joint: Ints
    slot: Ints
    clock: Ints
    row: Ints
    values: Ints
    floats: Floats
    ok: Bools
    size: int
    panels: int


class Circle(NamedTuple):
    """The rules: records of ``RULE``, ``STATEMENT``, ``ENTRY`` (those of class ``j`` are ``first[j] : first[j + 1]``).

    ``which`` are the tests of entries, ``lookup`` the classes by their outcomes; ``lists`` constants of IN, ``shown``
    the tests whose values are asked for.
    """

    rules: Ints
    statements: Ints
    first: Ints
    entries: Ints
    which: Ints
    lookup: Ints
    tests: Ints
    lists: Ints
    shown: Ints


class Detection(NamedTuple):
    """The automata: tables and offsets as ``Cells`` makes them, cells of all slots, scratch."""

    words: Ints
    offsets: Ints
    cells: Ints
    fresh: Ints


class Store(NamedTuple):
    """Tables as ``Rows``, which columns are written, how, and room to take it back; two words, also as floats."""

    rows: Rows
    wanted: Bools
    statements: Statements
    writes: Writes
    undo: Undo
    scratch: Scratch


class Out(NamedTuple):
    """Hits, how many, and per rule the next event that may complete a match; classes and values by event."""

    hits: Ints
    made: Ints
    places: Ints
    classes: Ints
    words: Ints
    ok: Bools


@inline
def look(test: int, i: int, of: Circle, events: Events, rows: Rows) -> tuple[int, bool]:
    """What the table holds for a test of event ``i``, and whether it is not NULL."""
    at = test * TEST
    row = events.row[of.tests[at + ROWS_OF] * events.size + i]
    is_there = False
    if row >= 0:
        is_there = rows.present[of.tests[at + THERE] + row]
    column = of.tests[at + COLUMN]
    if column < 0:
        return int(is_there), True
    if is_there:
        return rows.words[column + row], rows.ok[column + row]
    return of.tests[at + ABSENT], row >= 0 and of.tests[at + ABSENT_OK] != 0


@inline
def compared(kind: int, word: int, other: int, s: Scratch) -> int:
    """Which outcome the comparison of two words has."""
    if kind == AS_FLOATS or kind == WHOLE_AS_FLOATS:
        s.stack[0] = word
        s.stack[1] = other
        x = s.stack_floats[0] if kind == AS_FLOATS else float(word)
        y = s.stack_floats[1]
        return LESS if x < y else EQUAL if x == y else GREATER
    if kind == MICROSECONDS_AS_NANOSECONDS:
        word = max(-LARGEST, min(LARGEST, word)) * 1000
    return LESS if word < other else EQUAL if word == other else GREATER


@inline
def holds(test: int, i: int, of: Circle, events: Events, store: Store) -> bool:
    """Whether a test holds on event ``i``; on NULL it does not."""
    at = test * TEST
    word, is_ok = look(test, i, of, events, store.rows)
    outcomes = of.tests[at + OUTCOMES]
    if outcomes >= IS_NULL:
        if outcomes <= IS_VALUE:
            return bool(is_ok == (outcomes == IS_VALUE))
        if not is_ok:
            return False
        for x in range(of.tests[at + CONSTANT], of.tests[at + LAST]):
            if compared(of.tests[at + COMPARED], word, of.lists[x], store.scratch) == EQUAL:
                return bool(outcomes == IN)
        return bool(outcomes == NOT_IN)
    other, operand = of.tests[at + CONSTANT], of.tests[at + OPERAND]
    if operand >= 0:
        is_ok = is_ok and events.ok[operand * events.size + i]
        other = events.values[operand * events.size + i]
    return is_ok and (outcomes & compared(of.tests[at + COMPARED], word, other, store.scratch)) != 0


@inline
def outcome(first: int, last: int, i: int, of: Circle, events: Events, store: Store) -> int:
    """Which of some tests hold on event ``i``, as bits."""
    found = 0
    for x in range(first, last):
        found |= int(holds(of.which[x], i, of, events, store)) << (x - first)
    return found


@kernel
def lockstep(events: Events, of: Circle, detection: Detection, store: Store, out: Out) -> None:
    """Run a batch; the tables are afterwards what they were before, the cells are not.

    A write that cannot be done does nothing, as in ``sweep``. ``out.hits`` has room for a hit of each rule on each
    event that may complete a match.

    Complexity: O(n x (tests and arcs of the classes that the events have)).
    """
    size, hits = events.size, 0
    for i in range(size):
        for x in range(len(of.shown)):
            word, is_ok = look(of.shown[x], i, of, events, store.rows)
            out.words[x * size + i] = word
            out.ok[x * size + i] = is_ok
        before = hits
        for p in range(events.panels):
            joint = events.joint[p * size + i]
            for e in range(of.first[joint], of.first[joint + 1]):
                entry = e * ENTRY
                r = of.entries[entry + OF_RULE]
                rule = r * RULE
                place = out.places[r]
                out.places[r] = place + of.entries[entry + FINISHES]
                slot = events.slot[of.rules[rule + SLOTS] * size + i]
                if slot < 0:
                    continue
                first, last = of.entries[entry + FIRST_TEST], of.entries[entry + FIRST_WHEN]
                c = of.lookup[of.entries[entry + LOOKUP] + outcome(first, last, i, of, events, store)]
                if c == 0:
                    continue
                if of.rules[rule + CLASSES] >= 0:
                    out.classes[of.rules[rule + CLASSES] * size + i] = c
                offset = of.rules[rule + OFFSET]
                automaton = part(detection.offsets, offset, of.rules[rule + DETECTION])
                base = of.rules[rule + CELLS] + slot * detection.offsets[offset + STRIDE]
                tick = events.clock[of.rules[rule + CLOCK] * size + i]
                low = tick - of.rules[rule + WINDOW]
                err, start = step(
                    FEW_LANES, detection.words, automaton, detection.cells, base, tick, c, low, detection.fresh
                )
                if err <= automaton.errors:
                    hit = hits * HIT
                    out.hits[hit + HIT_EVENT] = i
                    out.hits[hit + HIT_RULE] = r
                    out.hits[hit + HIT_ERRORS] = err
                    out.hits[hit + HIT_START] = start
                    out.hits[hit + HIT_PLACE] = place
                    first, last = last, of.entries[entry + ENTRY + FIRST_TEST]
                    acts = of.entries[entry + ACTS] + outcome(first, last, i, of, events, store)
                    out.hits[hit + HIT_ACTS] = of.lookup[acts]
                    hits += 1
        for h in range(before, hits):
            if out.hits[h * HIT + HIT_ACTS] == 0:
                continue
            r, place = out.hits[h * HIT + HIT_RULE], out.hits[h * HIT + HIT_PLACE]
            for q in range(of.rules[r * RULE + STATEMENTS], of.rules[(r + 1) * RULE + STATEMENTS]):
                write = of.statements[q * STATEMENT + FIRST_WRITE] + place
                table = of.statements[q * STATEMENT + TABLE]
                rows = store.rows
                rows = Rows(rows.words, rows.ok, rows.present, rows.sizes, rows.default_words, rows.default_ok, table)
                write_row(write, store.writes, store.statements, rows, store.wanted, store.undo, store.scratch)
    undo_all(store.undo, store.rows)
    out.made[0] = hits


@kernel
def number_events(slot: Ints, seen: Ints, number: Ints) -> None:
    """Number events within their slots, from how many were ``seen`` of each on: as ``kernels.group`` does.

    Complexity: O(n).
    """
    for i in range(len(slot)):
        s = slot[i]
        if s >= 0:
            number[i] = seen[s]
            seen[s] += 1
