"""Finds the pairs of events and queries of a template: tests on constants, the index over them, slots of live queries.

The index says which queries an event may begin a run of, without a look at all others. An equality is looked up in a
hash table. Where a letter asks for none, thresholds are sorted: an event passes a prefix or a suffix of them, and of
several comparisons the one is taken that the event passes the fewest of.

Source: Demers et al., CIDR 2007, section 4.3.3 (indexes over static predicates). Deviation: there a range is looked up
in a tree; sorted arrays are made anew when queries have changed. Oracle: the join of all events with all rows of
constants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from acep_approx.archive import damaged_part
from acep_approx.arrays import Bools, ByKey, Ints, extended
from acep_approx.automaton.automaton import Letter
from acep_approx.engines.runs.event_columns import EventColumns, Kind, Texts
from acep_approx.kernels import pairs as kernel
from acep_approx.matching.keyed_events import Asking, KeyedEvents
from acep_approx.query.syntax import Expression
from acep_approx.subscriptions.templates.query_table import QueryTable
from acep_approx.subscriptions.templates.template import Template, Test, asks_parameter, test_of

AT_ONCE = 1 << 20
"""Pairs that are found before they are run."""
MOST_LATE, LATE_SHARE = 32, 0.01
"""So many queries that have come since the index was made are tried beside it, at most such a share of all."""
FEW = 1 << 10
"""Pairs that there is room for at the beginning."""
ORDERED = {
    "<": kernel.IS_BELOW,
    "<=": kernel.IS_BELOW,
    ">": kernel.IS_ABOVE,
    ">=": kernel.IS_ABOVE,
}
_FLAGS = {
    "<": kernel.LESS,
    "<=": kernel.LESS | kernel.EQUAL,
    "=": kernel.EQUAL,
    "!=": kernel.LESS | kernel.GREATER,
    ">": kernel.GREATER,
    ">=": kernel.GREATER | kernel.EQUAL,
}


@dataclass(frozen=True)
class Asked:
    """What the letters of a template ask: of events alone, as tests against constants, and all else.

    ``literal`` are the letters without what asks constants; ``tests`` and ``others`` belong to the letters by place.
    """

    literal: tuple[Letter, ...]
    tests: tuple[tuple[Test, ...], ...]
    others: tuple[tuple[Expression, ...], ...]

    @classmethod
    def of(cls, template: Template, columns: EventColumns, table: QueryTable) -> Asked:
        """Split what the letters of a template ask."""
        literal, tests, others = [], [], []
        for letter in template.plan.letters:
            plain = tuple(c for c in letter.conditions if not asks_parameter(c))
            asking = [(c, _fitting(test_of(c), columns, table)) for c in letter.conditions if asks_parameter(c)]
            literal.append(Letter(letter.type, plain, letter.negated))
            tests.append(tuple(test for _, test in asking if test is not None))
            others.append(tuple(condition for condition, test in asking if test is None))
        return cls(tuple(literal), tuple(tests), tuple(others))

    @cached_property
    def owns(self) -> tuple[Expression, ...]:
        """What tests ask of events, each once."""
        return tuple(own for own, _ in self.letters_of)

    @cached_property
    def letters_of(self) -> tuple[tuple[Expression, int], ...]:
        """The same, with the letters that ask for it, as bits."""
        found: dict[Expression, int] = {}
        for letter, tests in enumerate(self.tests):
            for test in tests:
                found[test.own] = found.get(test.own, 0) | 1 << letter
        return tuple(found.items())


def _fitting(test: Test | None, columns: EventColumns, table: QueryTable) -> Test | None:
    """A test that words can decide; whole numbers and fractions are compared as columns are."""
    if test is None:
        return None
    own, constant = columns.kind(test.own), table.kinds[test.parameter]
    if own == constant and (own != "text" or test.op in ("=", "!=")):
        return test
    exact = 1 << 53
    if (own, constant) == ("float", "int") and (np.abs(table.values(test.parameter)) <= exact).all():
        return test
    return None


@dataclass(frozen=True)
class Constants:
    """The queries that there are: their rows, the constants of a test, and the kind of what a test asks of an event."""

    rows: Ints
    words: Callable[[Test], Ints]
    kind: Callable[[Expression], str]


@dataclass(frozen=True)
class Index:
    """The paths from events to queries, as ``kernels.pairs`` reads them.

    ``equal``: per letter that can begin a run the equality that it is looked up by, and the constants that there are;
    None where a letter has no such equality.
    """

    paths: Ints
    entries: Ints
    equal: tuple[tuple[Test, Ints], ...] | None

    @classmethod
    def of(cls, tests: Mapping[int, Sequence[Test]], owns: Sequence[Expression], of: Constants) -> Index:
        """Make the index.

        Parameters
        ----------
        tests : mapping of int to sequence of Test
            By letter, for the letters that can begin a run.
        owns : sequence of Expression
            What tests ask of events, in the order of their columns.
        of : Constants

        Complexity: O(queries x log queries) for each test that it uses.
        """
        parts: list[Ints] = []
        paths: list[int] = []
        equal: list[tuple[Test, Ints]] = []
        for letter, asked in tests.items():
            found = _indexed(asked, of)
            if not found:
                used = sum(map(len, parts))
                paths += [letter, -1, kernel.IS_ANY, used, 0, used, len(of.rows)]
                parts.append(of.rows)
            for test in found:
                words, used = of.words(test), sum(map(len, parts))
                table, entries = _hashed(words, of.rows) if test.op == "=" else _sorted(words, of.rows, test, of)
                kind, size = kernel.IS_EQUAL, len(table) // kernel.HASH_ENTRY
                if test.op != "=":
                    kind, size = ORDERED[test.op] | kernel.IS_FLOAT * (of.kind(test.own) == "float"), len(table)
                paths += [letter, owns.index(test.own), kind, used, size, used + len(table), len(entries)]
                parts += [table, entries]
                if test.op == "=":
                    equal.append((test, np.unique(words)))
        entries = np.concatenate([*parts, np.zeros(1, np.int64)])
        is_equal = len(equal) == len(tests)
        return cls(np.array(paths, np.int64), entries, tuple(equal) if is_equal else None)

    def with_more(self, words: Callable[[Test], Ints]) -> Index:
        """The same, with more constants in ``equal``; ``words`` gives those of a test."""
        if self.equal is None:
            return self
        more = tuple((test, _merged(known, words(test))) for test, known in self.equal)
        return replace(self, equal=more)


def is_among(values: Ints, known: Ints) -> Bools:
    """Which values are among some that are in order. Complexity: O(values x log known)."""
    if not len(known):
        return np.zeros(len(values), np.bool_)
    found: Bools = known[np.searchsorted(known, values).clip(max=len(known) - 1)] == values
    return found


def _merged(known: Ints, more: Ints) -> Ints:
    """Some values and others, which are in order, each once."""
    new = np.unique(more[~is_among(more, known)])
    return np.insert(known, np.searchsorted(known, new), new)


def _indexed(tests: Sequence[Test], of: Constants) -> list[Test]:
    """The tests that queries are looked up by: an equality, else all comparisons that have an order."""
    equal = [test for test in tests if test.op == "=" and of.kind(test.own) in ("int", "text")]
    return equal[:1] or [test for test in tests if test.op in ORDERED and of.kind(test.own) in ("int", "float")]


def _sorted(words: Ints, rows: Ints, test: Test, of: Constants) -> tuple[Ints, Ints]:
    """Thresholds in order, and whose they are; NaN, which no event passes, is last and is left out."""
    is_float = of.kind(test.own) == "float"
    values = words.view(np.float64) if is_float else words
    order = np.argsort(values, kind="stable")
    if is_float:
        order = order[: len(order) - int(np.isnan(values).sum())]
    return words[order], rows[order]


def _hashed(words: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """A hash table over distinct words, and the rows that each has: see ``kernels.pairs``."""
    order = np.argsort(words, kind="stable")
    values, first = np.unique(words[order], return_index=True)
    end = np.append(first[1:], len(order))
    size = 4
    while size < 2 * len(values) + 1:
        size *= 2
    table = np.zeros(size * kernel.HASH_ENTRY, np.int64)
    kernel.fill_hash(table, values, first, end)
    return table, rows[order]


class Pairing:
    """Finds pairs, batch by batch, and remembers which queries are live for which keys.

    Parameters
    ----------
    template : Template
    columns : EventColumns
        Of the events.
    texts : Texts
        Of the stream.
    table : QueryTable
    is_of_key : callable
        Tells whether an expression has one value for all events of a key.

    Attributes
    ----------
    version : int
        Of the table, as the index was made of.
    by_key : bool
        Whether one event of a key tells whether some query may begin with events of it.
    """

    def __init__(
        self,
        template: Template,
        columns: EventColumns,
        texts: Texts,
        table: QueryTable,
        is_of_key: Callable[[Expression], bool],
    ) -> None:
        self.template = template
        self.table = table
        self.asked = Asked.of(template, columns, table)
        self._columns = columns
        self._texts = texts
        self._is_of_key = is_of_key
        self.version = -1
        self._make_index()
        query, key, after, since = (np.full(64, -1, np.int64) for _ in range(4))
        finds, head = np.full(256, -1, np.int64), np.full(1, -1, np.int64)
        free, used = np.zeros(64, np.int64), np.zeros(2, np.int64)
        self._slots = kernel.Slots(query, key, after, since, finds, head, free, used)
        self._pairs = kernel.Pairs(np.zeros(FEW, np.int64), np.zeros(FEW, np.int64), np.zeros(FEW, np.uint64))

    # --- slots ------------------------------------------------------------------------------------------------

    @property
    def slots(self) -> int:
        """Slots so far."""
        return int(self._slots.used[0])

    @property
    def row_of(self) -> Ints:
        """Per slot the row of its query; below 0 where it is free."""
        return self._slots.query

    @property
    def key_of(self) -> Ints:
        """Per slot the slot of its key on the stream."""
        return self._slots.key

    def wanted(self, events: ByKey, own: Sequence[Ints]) -> Bools:
        """Per group of events whether a query is live for its key, or may begin with one of its events.

        Parameters
        ----------
        events : ByKey
        own : sequence of int64 arrays, shape (events,)
            What the equalities of the index ask of events: the same for all events of a key.
        """
        self._more_keys(int(events.key.max(initial=0)) + 1)
        found: Bools = self._slots.head[events.key] >= 0
        assert self.index.equal is not None, "all letters are looked up by equalities"
        for (_, constants), words in zip(self.index.equal, own, strict=True):
            found |= is_among(words[events.order[events.first[:-1]]], constants)
        return found

    def live(self) -> Ints:
        """The slots that are in use."""
        return np.flatnonzero(self._slots.query[: self.slots] >= 0)

    def free(self, slots: Ints) -> None:
        """Let others use some slots again."""
        keeps: Bools = self._slots.query[: self.slots] >= 0
        keeps[slots] = False
        kernel.rebuild(self._slots, keeps)

    def take_slots(self, query: Ints, key: Ints, keys: int) -> None:
        """Go on with these slots: per slot the row of its query, below 0 where it is free, and its key below ``keys``.

        Raises
        ------
        DataError
            ``ACEP-D040``: a slot belongs to no query, or to no key.
        """
        used = query >= 0
        is_one_of_keys = query.size == key.size and ((key[used] >= 0) & (key[used] < keys)).all()
        is_there = query[used] < self.table.room
        if not is_one_of_keys or not is_there.all() or not self.table.is_there[query[used]].all():
            raise damaged_part("the slots of queries and keys")
        while self._slots.query.size < query.size:
            self.more_slots()
        self._slots.used[0] = query.size
        self._slots.query[: query.size], self._slots.key[: query.size] = query, key
        self._slots.since[:] = 0
        self._more_keys(int(key[used].max(initial=0)) + 1)
        kernel.rebuild(self._slots, used)

    def order(self) -> dict[str, Ints]:
        """In which order slots come and are used again, as columns: a budget is spent in it."""
        slots, used = self._slots, self.slots
        return {
            "slot_next": np.where(slots.query[:used] >= 0, slots.next[:used], -1),
            "slot_free": slots.free[: int(slots.used[1])].copy(),
        }

    def take_order(self, after: Ints, free: Ints) -> None:
        """Go on in the order that ``order`` gave, after ``take_slots``.

        Raises
        ------
        DataError
            ``ACEP-D040``: it is no order of the slots that there are.
        """
        live, slots = self.live(), self._slots
        follows = after[live[after[live] >= 0]]
        is_one = np.zeros(self.slots, np.bool_)
        is_one[follows] = True
        first, goes_on = live[~is_one[live]], live[after[live] >= 0]
        keys = slots.key
        are_chains = np.unique(follows).size == follows.size and np.unique(keys[first]).size == first.size
        if not (are_chains and (slots.query[follows] >= 0).all() and (keys[follows] == keys[goes_on]).all()):
            raise damaged_part("the order of slots")
        beyond = np.append(after, -1)
        for _ in range(self.slots.bit_length()):  # twice as far each time: who goes in a circle does not come to an end
            beyond = np.append(beyond[beyond[:-1]], -1)
        if (beyond >= 0).any() or not np.array_equal(np.sort(free), np.flatnonzero(slots.query[: self.slots] < 0)):
            raise damaged_part("the order of slots")
        slots.next[: self.slots], slots.free[: free.size] = after, free
        slots.head[keys[first]] = first

    def more_slots(self) -> None:
        """Make room for twice as many slots."""
        old, size = self._slots, 2 * self._slots.query.size
        query, key, after, since = (extended(array, size, -1) for array in (old.query, old.key, old.next, old.since))
        table, free = np.full(4 * size, -1, np.int64), extended(old.free, size, 0)
        self._slots = kernel.Slots(query, key, after, since, table, old.head, free, old.used)
        kernel.rebuild(self._slots, self._slots.query[: self.slots] >= 0)

    def _more_keys(self, wanted: int) -> None:
        if wanted > self._slots.head.size:
            self._slots = self._slots._replace(head=extended(self._slots.head, 2 * wanted, -1))

    # --- the index --------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Take over the rows that have changed since the last call."""
        asked, new = Asked.of(self.template, self._columns, self.table), self.table.take_new()
        late = np.append(self._queries.late, new)
        too_many = len(late) > min(MOST_LATE, LATE_SHARE * self.table.queries)
        if asked != self.asked or self.table.room != self._queries.room or too_many:
            self.asked = asked
            self._make_index()
        else:
            self._take_in(new, late)
        self.version = self.table.version

    def _make_index(self) -> None:
        """Make the index and the words of the constants anew."""
        tests = [test for tests in self.asked.tests for test in tests]
        words = {column: self.table.words(column[0], self._texts, column[1]) for column in map(self._column, tests)}
        places = {column: place for place, column in enumerate(words)}
        flat = np.concatenate([*words.values(), np.zeros(0, np.int64)])
        rows = np.flatnonzero(self.table.is_there)
        constants = Constants(rows, lambda test: words[self._column(test)][rows], self._columns.kind)
        begins = {letter: self.asked.tests[letter] for letter in range(64) if self.template.begins >> letter & 1}
        self.index = Index.of(begins, self.asked.owns, constants)
        self.by_key = self.index.equal is not None and all(self._is_of_key(test.own) for test, _ in self.index.equal)
        paths, entries, none = self.index.paths, self.index.entries, np.zeros(0, np.int64)
        self._queries = kernel.Queries(
            flat, flat.view(np.float64), self.table.room, self.table.is_there, paths, entries, entries.view(np.float64),
            none,
        )  # fmt: skip
        first = np.cumsum([0, *map(len, self.asked.tests)])
        self._tests = first, np.array([self._test_words(test, places) for test in tests], np.int64).ravel()
        self._places = places

    def _take_in(self, new: Ints, late: Ints) -> None:
        """Take in a few new rows beside the index; those that left are in it still, and not there."""
        room = self.table.room
        constants = {column: self.table.words(column[0], self._texts, column[1], new) for column in self._places}
        for column, place in self._places.items():
            self._queries.words[place * room + new] = constants[column]
        self._queries = self._queries._replace(late=late)
        self.index = self.index.with_more(lambda test: constants[self._column(test)])

    def _column(self, test: Test) -> tuple[str, Kind]:
        """The constants of a test, and the kind that they are compared as."""
        is_float = self._columns.kind(test.own) == "float"
        return test.parameter, "float" if is_float else self.table.kinds[test.parameter]

    def _test_words(self, test: Test, places: dict[tuple[str, Kind], int]) -> list[int]:
        column = self._column(test)
        return [self.asked.owns.index(test.own), places[column], _FLAGS[test.op], int(column[1] == "float")]

    # --- batches ----------------------------------------------------------------------------------------------

    def find(self, events: KeyedEvents, at_once: int = AT_ONCE) -> Iterator[kernel.Pairs]:
        """The pairs of a batch, in parts; each slot is in one part, its events in order.

        Parameters
        ----------
        events : KeyedEvents
            With the letters without what asks constants.
        at_once : int
            Pairs of a part; more where one slot has more.
        """
        groups, letters = events.groups, self.letters_of(events)
        control = np.zeros(kernel.CONTROL, np.int64)
        while True:
            status = kernel.pair(control, groups, letters, self._queries, self._slots, self._pairs)
            if status == kernel.SLOTS_FULL:
                self.more_slots()
                continue
            used, size = int(control[kernel.USED]), self._pairs.at.size
            if status == kernel.OUT_FULL and size < at_once:
                self._more_pairs(min(at_once, 2 * size))
                continue
            if used:
                yield kernel.Pairs(self._pairs.at[:used], self._pairs.slot[:used], self._pairs.mask[:used])
            control[kernel.USED] = 0
            if status == kernel.DONE:
                return
            self._more_pairs(int(control[kernel.WANTED]))

    @property
    def records(self) -> tuple[kernel.Queries, kernel.Slots]:
        """The queries and the slots, as kernels read them."""
        return self._queries, self._slots

    def letters_of(self, events: KeyedEvents) -> kernel.Letters:
        """What is asked of events, as kernels read it."""
        self._more_keys(int(events.groups.key.max(initial=0)) + 1)
        columns, words = self.ask(events), events.words
        begins = np.uint64(self.template.begins)
        return kernel.Letters(
            events.literal, *self._tests, columns, words, words.view(np.float64), begins, self.by_key
        )

    def ask(self, events: KeyedEvents) -> Ints:
        """Where the columns of events stand that tests ask for; they are computed."""
        return events.columns([Asking(own, as_float=False, letters=letters) for own, letters in self.asked.letters_of])

    def asking(self, tests: Sequence[Test], words: Ints, queries: QueryTable) -> tuple[kernel.Letters, kernel.Queries]:
        """Some tests of a letter, as kernels read them, with the constants of the queries of a table.

        ``words``, shape (columns, events): what ``asked.owns`` are of some events.
        """
        columns = {column: place for place, column in enumerate(dict.fromkeys(map(self._column, tests)))}
        constants = [queries.words(name, self._texts, kind) for name, kind in columns]
        flat, none = np.concatenate([*constants, np.zeros(0, np.int64)]), np.zeros(0, np.int64)
        asked = np.array([self._test_words(test, columns) for test in tests], np.int64).ravel()
        literal, events, all_ = np.zeros(words.shape[1], np.uint64), words.ravel(), np.arange(len(words))
        floats = events.view(np.float64)
        letters = kernel.Letters(literal, none, asked, all_, events, floats, np.uint64(0), by_key=False)
        of_none = none, none, none.view(np.float64), none
        return letters, kernel.Queries(flat, flat.view(np.float64), queries.room, queries.is_there, *of_none)

    def _more_pairs(self, wanted: int) -> None:
        size = max(wanted, self._pairs.at.size)
        at, slot, mask = self._pairs
        more = np.zeros(size - mask.size, np.uint64)
        self._pairs = kernel.Pairs(extended(at, size), extended(slot, size), np.concatenate((mask, more)))
