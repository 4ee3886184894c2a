"""Which queries of a set there are, what each publishes and reads, and on which level it runs.

A query is one entry, or several that feed one another; some cannot be in a set. Queries of a template that came
together are one entry: what they have in common stands there once. All is looked up in dicts, or by bisection: a query
comes or goes in a time that hardly depends on how many there are.

Each query has a number, by which its id and what it is a part of are found.
"""

from __future__ import annotations

import difflib
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from acep_approx.arrays import Ints
from acep_approx.errors import QueryError, UsageError
from acep_approx.matching.outputs.bind import Bind
from acep_approx.matching.outputs.kinds import KINDS, MATCHES
from acep_approx.planning.planner import Plan
from acep_approx.query.cel.syntax import INTERNAL
from acep_approx.query.shape import atoms
from acep_approx.query.syntax import Machine
from acep_approx.subscriptions.templates.literals import filled, plans_of, text_of
from acep_approx.subscriptions.templates.template import Shared

NUMBER = "query"
"""The column of results that says by its number whose they are: int64."""
FEW = 64
"""Places of queries that are gone which are not worth making the lists anew."""
Owner = TypeVar("Owner")


class Numbered(Generic[Owner]):
    """Ids and owners of numbers that come in rising order: three flat lists, as dicts take four times the room.

    Examples
    --------
    >>> known = Numbered()
    >>> known.add([3, 4, 9], ["a", "b", "c"], "mine")
    >>> known.id(9), known.pop(4), list(known)
    ('c', ('b', 'mine'), [(3, 'a', 'mine'), (9, 'c', 'mine')])
    """

    def __init__(self) -> None:
        self._numbers = array("q")
        self._ids: list[str | None] = []  # None: it is gone
        self._owners: list[Owner] = []
        self._gone = 0

    def add(self, numbers: Sequence[int], ids: Iterable[str], owner: Owner) -> None:
        """Take in numbers above all that there are."""
        self._numbers.extend(numbers)
        self._ids += ids
        self._owners += [owner] * len(numbers)

    @property
    def numbers(self) -> Ints:
        """All numbers, with some that are gone."""
        return np.array(self._numbers, np.int64)

    def _place(self, number: int) -> int:
        return bisect_left(self._numbers, number)

    def _is_at(self, number: int, place: int) -> bool:
        return place < len(self._numbers) and self._numbers[place] == number and self._ids[place] is not None

    def owner(self, number: int) -> Owner:
        """What a number is a part of. Complexity: O(log n)."""
        return self._owners[self._place(number)]

    def id(self, number: int) -> str | None:
        """The id of a number; None where it is gone. Complexity: O(log n)."""
        place = self._place(number)
        return self._ids[place] if self._is_at(number, place) else None

    def of(self, numbers: Ints) -> tuple[list[str | None], list[Owner]]:
        """The ids and the owners of numbers that are there."""
        places = np.searchsorted(np.asarray(self._numbers), numbers).tolist()
        # no pairs: thousands of them make Python look for garbage all the time
        return [self._ids[place] for place in places], [self._owners[place] for place in places]

    def pop(self, number: int) -> tuple[str, Owner]:
        """Forget a number; gives its id and owner. Complexity: O(log n), on average."""
        place = self._place(number)
        id_, owner = self._ids[place], self._owners[place]
        assert id_ is not None, "it is there"
        self._ids[place] = None
        self._gone += 1
        if self._gone > max(FEW, len(self._ids) // 2):
            stay = [place for place, id_ in enumerate(self._ids) if id_ is not None]
            self._numbers = array("q", [self._numbers[place] for place in stay])
            self._ids, self._owners = [self._ids[place] for place in stay], [self._owners[place] for place in stay]
            self._gone = 0
        return id_, owner

    def give(self, numbers: Iterable[int], before: Owner, after: Owner) -> int:
        """Let some numbers be parts of another owner, if they are there and have this one; gives how many did."""
        given = 0
        for number in numbers:
            place = self._place(number)
            if self._is_at(number, place) and self._owners[place] is before:
                self._owners[place] = after
                given += 1
        return given

    def __iter__(self) -> Iterator[tuple[int, str, Owner]]:
        every: Iterator[Any] = zip(self._numbers, self._ids, self._owners, strict=True)
        return (one for one in every if one[1] is not None) if self._gone else every


SHOWN = 5
"""Queries that a message names."""


def is_hidden(stream: str) -> bool:
    """Whether a stream is between two parts of one query: no text can name it."""
    return stream.startswith(INTERNAL)


@dataclass(slots=True, eq=False)
class Entry:
    """One query of a set, a part of one that feeds the rest of it, or queries of a template that came together.

    Parameters
    ----------
    number : int
        Rises in the order of adding. Of many: that which the first of them has, or had.
    id : str
        Of the query that was added; all of its parts have it. Of many: that of the first of them.
    plan : Plan
    text : str
        What it can be compiled of again.
    publish : str or None
        The stream that its results are.
    output : {"matches", "points", "counts"}
    is_shown : bool
        Whether its results are the user's.
    level : int
        1 more than that of any query whose stream it reads; 0 where it reads none.
    running : int
        How many of its queries take part in the batches; from the first on its level is fixed.
    feeders : int
        Parts of the same query that come before this one.
    part : tuple of int, optional
        Of a query in CEL: which of its automata it is, and what its hidden streams are told apart by.
    columns_of : dict of str to tuple of str, optional
        The columns of the streams that it reads, if it is in CEL, from its first event on.
    until : int, optional
        Of a query that was removed: the number that the next one got, or will get.
    shared : Shared, optional
        Of queries of a template: this, and the constants of those that wait. ``text`` is that of the template then.
    queries : int
        How many of them are in the set.
    horizon : str, optional
        How long its partial matches are kept inside a load budget, where it has no window.
    """

    number: int
    id: str
    plan: Plan
    text: str
    publish: str | None = None
    output: str = MATCHES
    is_shown: bool = True
    level: int = 0
    running: int = 0
    feeders: int = 0
    shared: Shared | None = None
    part: tuple[int, int] | None = None
    columns_of: dict[str, tuple[str, ...]] | None = None
    until: int | None = None
    queries: int = 0
    horizon: str | None = None

    @property
    def key(self) -> object:
        """The same for queries of templates that can be one entry."""
        return None if self.shared is None else self.shared.key

    def meets(self, other: Entry) -> bool:
        """Whether there is a time at which both are in the set."""
        return (self.until is None or other.number < self.until) and (
            other.until is None or self.number < other.until
        )

    @property
    def reads(self) -> frozenset[str]:
        """The types of events that it names."""
        return self.plan.reads

    @property
    def is_about_all(self) -> bool:
        """Whether events of types that it does not name matter to it: neighbours, numbers of events, ``ANY``."""
        if self.plan.cel is not None:
            return False
        is_counted = self.plan.is_count_window or self.plan.counted != "nothing"
        return is_counted or any(letter.type is None for letter in self.plan.letters)


class Graph:
    """The queries of a set, by number, by id, by what they publish and by what they read.

    Attributes
    ----------
    entries : dict of int to Entry
    ids : dict of str to int
        The number of each query: of its part that is shown, which is the last one.
    numbered : Numbered
        The id and the entry of each number.
    next_number, ids_given : int
        The number of the next query; how many ids were made up.
    publishers, readers : dict of str to dict of int to None
        Numbers of entries, by the name of a stream or of a type of events.
    bind : str, sequence of str, Wide or None
        What stands for events in results, as for ``Execution``.
    weights : dict of int to float
        What match points of queries count for, by number, where that is not 1.
    passed : frozenset of str
        Streams that queries of level 0 publish for another set; see ``stages.py``.
    is_fed : bool
        Whether another set runs the queries of level 0, and passes on what they publish.
    """

    bind: Bind = None
    passed: frozenset[str] = frozenset()
    is_fed = False

    def __init__(self) -> None:
        self.entries: dict[int, Entry] = {}
        self.ids: dict[str, int] = {}
        self.numbered: Numbered[Entry] = Numbered()
        self.weights: dict[int, float] = {}
        self.publishers: dict[str, dict[int, None]] = {}
        self.readers: dict[str, dict[int, None]] = {}
        self.next_number = 0
        self._level_of: dict[str, int] = {}
        self.ids_given = 0

    def free_id(self) -> str:
        """An id that no query has: "q1", "q2" and so on."""
        while True:
            self.ids_given += 1
            if (id_ := f"q{self.ids_given}") not in self.ids:
                return id_

    def refuse_taken(self, ids: Collection[str]) -> None:
        """Refuse ids that a query has, or two of these (``ACEP-U060``)."""
        seen: set[str] = set()
        for id_ in ids:
            if id_ in self.ids or id_ in seen:
                what = f"there is a query {id_!r} already"
                raise UsageError(what, code="ACEP-U060", hint="choose another id, or remove that one first")
            seen.add(id_)

    def known(self, id: str) -> range:  # noqa: A002  (what users call it)
        """The numbers of the parts of a query.

        Raises
        ------
        UsageError
            ``ACEP-U060``: there is no such query.
        """
        if id not in self.ids:
            near = difflib.get_close_matches(id, self.ids, 1) if len(self.ids) <= 10_000 else []
            hint = f"did you mean {near[0]!r}?" if near else "the ids are those that add() was given, or gave"
            raise UsageError(f"there is no query {id!r}", code="ACEP-U060", hint=hint)
        number = self.ids[id]
        return range(number - self.numbered.owner(number).feeders, number + 1)

    def add(self, entry: Entry) -> None:
        """Take in an entry; ``name`` says which queries it is.

        Raises
        ------
        UsageError
            ``ACEP-U061``: streams would feed one another in a circle; ``ACEP-U062``: others that run already read what
            it publishes.
        """
        entry.level = max((self._level_of.get(name, 0) for name in entry.reads), default=0)
        raised: dict[int, int] = {}
        if entry.publish is not None:
            self._refuse_circle(entry)
            raised = self._raised(entry)
        for number, level in raised.items():
            self.entries[number].level = level
            self._note_level(self.entries[number])
        self.put(entry)

    def put(self, entry: Entry) -> None:
        """Take in an entry whose level is known."""
        self.entries[entry.number] = entry
        for name in entry.reads:
            self.readers.setdefault(name, {})[entry.number] = None
        if entry.publish is not None:
            self.publishers.setdefault(entry.publish, {})[entry.number] = None
        self._note_level(entry)

    def name(self, entry: Entry, numbers: Sequence[int], ids: Collection[str]) -> None:
        """Let an entry have queries with numbers above all others."""
        self.numbered.add(numbers, ids, entry)
        self.ids.update(zip(ids, numbers, strict=True))
        entry.queries += len(numbers)
        self.next_number = max(self.next_number, numbers[-1] + 1)

    def give(self, numbers: Iterable[int], before: Entry, after: Entry) -> int:
        """Let queries be parts of another entry, those of some numbers that are there; gives how many did."""
        given = self.numbered.give(numbers, before, after)
        before.queries -= given
        after.queries += given
        if given and not before.queries:
            self._forget(before)
        return given

    def apart(self, entry: Entry) -> list[Entry]:
        """Let each query of a template that waits be an entry by itself: the constants stand in its plan and text."""
        assert entry.shared is not None, "it is of a template"
        numbers, constants = entry.shared.waiting()
        made = []
        for number, values in zip(numbers.tolist(), constants.to_pylist(), strict=True):
            syntax, id_ = filled(entry.shared.template.syntax, values), self.numbered.id(number)
            plan, part = plans_of(syntax, number)[-1], None if entry.plan.cel is None else (0, number)
            one = Entry(number, id_ or "", plan, text_of(syntax), entry.publish, entry.output, part=part)
            one.level, one.horizon = entry.level, entry.horizon
            made.append(one)
        for one in [one for one in made if self.give([one.number], entry, one)]:  # others leave in a later epoch
            self.put(one)
        return made

    def _note_level(self, entry: Entry) -> None:
        if entry.publish is not None:
            self._level_of[entry.publish] = max(self._level_of.get(entry.publish, 0), entry.level + 1)

    def _refuse_circle(self, entry: Entry) -> None:
        came_from: dict[str, str] = {}
        todo = [str(entry.publish)]
        while todo:
            name = todo.pop()
            if name in entry.reads:
                way = [name]
                while way[-1] != entry.publish:
                    way.append(came_from[way[-1]])
                shown = " -> ".join(one for one in [*way[::-1], str(entry.publish)] if not is_hidden(one))
                raise UsageError(
                    f"the query {entry.id!r} would read what it publishes: {shown}",
                    code="ACEP-U061",
                    hint="a stream can only be made of others; publish under another name",
                )
            for number in self.readers.get(name, ()):
                after = self.entries[number].publish
                if after is not None and after not in came_from and after != entry.publish:
                    came_from[after] = name
                    todo.append(after)

    def _raised(self, entry: Entry) -> dict[int, int]:
        """The new levels of queries that would read what a new one publishes."""
        raised: dict[int, int] = {}
        todo = [(str(entry.publish), entry.level + 1)]
        while todo:
            name, level = todo.pop()
            if level <= self._level_of.get(name, 0):
                continue
            for number in self.readers.get(name, ()):
                reader = self.entries[number]
                if level <= raised.get(number, reader.level):
                    continue
                if reader.running:
                    id_ = self.ids_of([number])[0]
                    raise UsageError(
                        f"{id_!r} reads {name!r} and runs already, before {entry.id!r} could publish it",
                        code="ACEP-U062",
                        hint=f"remove {id_!r} and add it again after this one, or publish under another name",
                    )
                raised[number] = level
                if reader.publish is not None:
                    todo.append((reader.publish, level + 1))
        return raised

    def removal(self, id: str, *, cascade: bool) -> list[str]:  # noqa: A002  (what users call it)
        """The ids that go where one goes: itself, and with ``cascade`` those that read what nobody else publishes.

        Raises
        ------
        UsageError
            ``ACEP-U060``: there is no such query; ``ACEP-U063``: others read it.
        """
        gone: dict[str, None] = {}
        todo = [id]
        while todo:
            one = todo.pop()
            if one in gone:
                continue
            gone[one] = None
            left = [reader for reader in self._left_without(self.known(one), gone) if reader not in gone]
            if left and not cascade:
                shown = ", ".join(map(repr, left[:SHOWN])) + (" and others" if len(left) > SHOWN else "")
                raise UsageError(
                    f"{one!r} cannot be removed: its stream is read by {shown}",
                    code="ACEP-U063",
                    hint="remove these first, or all at once: remove(id, cascade=True)",
                )
            todo += left
        return [*gone]

    def _left_without(self, numbers: Iterable[int], gone: dict[str, None]) -> list[str]:
        """The ids of queries that read what only these publish."""
        names = [self.numbered.owner(n).publish for n in numbers]
        going = Counter(self.numbered.owner(number) for id_ in gone for number in self.known(id_))
        left: dict[str, None] = {}
        for name in names:
            if name is None:
                continue
            publishers = [self.entries[number] for number in self.publishers[name]]
            if all(entry.queries <= going[entry] for entry in publishers):
                left.update(dict.fromkeys(self.ids_of(self.readers.get(name, ()))))
        return [*left]

    def remove(self, id: str) -> list[tuple[int, Entry]]:  # noqa: A002  (what users call it)
        """Forget a query; gives the numbers and entries of its parts."""
        found = [(number, self.numbered.pop(number)[1]) for number in self.known(id)]
        for number, _ in found:
            self.weights.pop(number, None)
        del self.ids[id]
        for _, entry in found:
            entry.queries -= 1
            if not entry.queries:
                entry.until = self.next_number
                self._forget(entry)
        return found

    def _forget(self, entry: Entry) -> None:
        del self.entries[entry.number]
        for name in entry.reads:
            _without(self.readers, name, entry.number)
        if entry.publish is not None:
            _without(self.publishers, entry.publish, entry.number)
            if entry.publish not in self.publishers:
                self._level_of.pop(entry.publish, None)

    def ids_of(self, numbers: Iterable[int]) -> list[str]:
        """The ids of the queries of some entries, each once, in the order of adding."""
        entries = [self.entries[number] for number in numbers]
        if all(entry.shared is None for entry in entries):
            return [*dict.fromkeys(entry.id for entry in entries)]
        wanted = {*entries}
        return [*dict.fromkeys(id_ for _, id_, entry in self.numbered if entry in wanted)]

    def ids_shown(self, numbers: Ints) -> dict[int, str | None]:
        """The ids of some queries by their numbers; None where the results are not the user's."""
        ids, entries = self.numbered.of(numbers)
        if not all(entry.is_shown for entry in {*entries}):
            ids = [id_ if entry.is_shown else None for id_, entry in zip(ids, entries, strict=True)]
        return dict(zip(numbers.tolist(), ids, strict=True))

    def shown(self, id: str) -> tuple[int, Entry]:  # noqa: A002  (what users call it)
        """The number and the entry of the part of a query whose results are shown."""
        number = self.known(id)[-1]
        return number, self.numbered.owner(number)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries.values())


def _without(table: dict[str, dict[int, None]], name: str, number: int) -> None:
    del table[name][number]
    if not table[name]:
        del table[name]


def entries_of(
    plans: Sequence[Plan],
    text: str,
    output: str,
    *,
    id: str,  # noqa: A002
    first: int,
    horizon: str | None = None,
) -> list[Entry]:
    """The parts of a query, the one whose results are shown last.

    A query that publishes, in a set whose output is not ``matches``, has one part more: the events of a stream are
    matches. So has one in CEL of which parts are streams of their own.

    Parameters
    ----------
    plans : sequence of Plan
        Of its automata; those before the last one feed it.
    text : str
    output : {"matches", "points", "counts"}
    id : str
    first : int
        The number of the first part.
    horizon : str, optional
        Of the query, if it has one automaton: of several, each waits for what others make of time without end.

    Raises
    ------
    UsageError, QueryError
        Those of ``check_plan``.
    """
    made: list[Entry] = []
    more: dict[str, Any] = {"horizon": horizon if len(plans) == 1 else None}
    for place, plan in enumerate(plans):
        check_plan(plan)
        publish, part = plan.query.publish, None if plan.cel is None else (place, first)
        is_last = place == len(plans) - 1
        if publish is not None and (not is_last or not KINDS[output].binds):
            number = first + len(made)
            made.append(
                Entry(number, id, plan, text, publish, MATCHES, is_shown=False, feeders=len(made), part=part, **more)
            )
            publish = None
        if is_last:
            made.append(
                Entry(first + len(made), id, plan, text, publish, output, feeders=len(made), part=part, **more)
            )
    return made


def check_plan(plan: Plan) -> None:
    """Refuse a query that cannot be in a set.

    Raises
    ------
    UsageError
        ``ACEP-U064``: an automaton written by hand; ``ACEP-U066``: a name is taken.
    QueryError
        ``ACEP-Q930``: it publishes what is known late.
    """
    query: Any = plan.query
    if isinstance(query.pattern, Machine):
        raise UsageError(
            "an automaton written by hand (PATTERN AUTOMATON) and a set of queries do not go together yet",
            code="ACEP-U064",
            hint="run it by itself: acep run QUERY INPUT (compile_query(text).matcher() in Python)",
        )
    ends_late = plan.registers is not None and plan.registers.has_late_ends
    if query.publish is not None and (ends_late or query.selection.maximal):
        what, instead = ("MAXIMAL", "MAXIMAL") if not ends_late else ("a negation at its end", "the negation")
        places = {name: {"start": start, "end": end} for name, (start, end) in query.places}
        raise QueryError(
            f"it cannot PUBLISH {query.publish}: {what} makes matches wait, so that they are known after the time that "
            "their events would have",
            code="ACEP-Q930",
            hint=f"leave PUBLISH out, or {instead}",
            text=query.text,
            **places.get("PUBLISH", {}),
        )
    if plan.cel is None:
        names = [atom.variable for atom in atoms(query.pattern)] if not query.is_regex else []
        taken = [*names, *(output.name for output in query.outputs), *(one.name for one in query.equivalences)]
        if NUMBER in taken:
            raise UsageError(
                f"the name {NUMBER!r} is taken: results of a set have a column {NUMBER!r} of their own",
                code="ACEP-U066",
                hint="choose another name for the variable, for the output of RETURN, or for the column of the key",
            )
