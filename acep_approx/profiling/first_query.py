"""A first query that runs on these very events: what most often follows what, with a window taken from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx.api.compile import compile_query
from acep_approx.arrays import Bools, Ints
from acep_approx.errors import DataError
from acep_approx.events.columns import decoded, encode_text, in_python, plain_type, text_codes
from acep_approx.events.roles import is_number
from acep_approx.profiling import formatting
from acep_approx.profiling.columns import plain_values
from acep_approx.profiling.roles import RoleFound
from acep_approx.query.builder import event, seq
from acep_approx.query.clauses import QueryBuilder
from acep_approx.query.parser import parse
from acep_approx.query.printer import field_name, to_text
from acep_approx.query.shape import atoms

ENOUGH = 3
"""Places at which a sequence must be found to be preferred to a shorter one."""
SHARE = 0.05
"""Of the places of the most frequent pair."""
RISING = 100_000
"""Events that a query without types is tried on: it lists what it counts."""
DENSE = 50
"""Events within a window; where there are more, too many pairs of them rise to be listed."""
MEANINGS = ("time", "key", "type", "unit", "sort", "time_format")
"""Arguments that say what columns mean; others say how files are read, and these events are read."""
ROLE_NAMES = ("ts", "key", "type")
SHARES = {0.75: "three quarters", 0.5: "half", 0.25: "a quarter", 0.05: "some"}
"""Of the places of a sequence that lie within the window."""


@dataclass(frozen=True)
class Follows:
    """Types that follow one another.

    Attributes
    ----------
    types : tuple of int
        Their codes.
    places : int
        At how many places they follow one another, with nothing of the key between them.
    spans : numpy.ndarray of int64
        From the first event to the last at each of these places, in ticks.
    """

    types: tuple[int, ...]
    places: int
    spans: Ints

    def within(self, share: float) -> int:
        """Ticks within which such a share of the places lie."""
        return int(np.quantile(self.spans, share, method="inverted_cdf"))


class KeyedEvents:
    """Events of each key in order of time, then of arrival.

    Parameters
    ----------
    ticks, types, keys : numpy.ndarray of int64, shape (n,)
        Codes of types and keys; -1: none, and such events are left out.
    """

    def __init__(self, ticks: Ints, types: Ints, keys: Ints) -> None:
        kept = np.flatnonzero((types >= 0) & (keys >= 0))
        order = kept[np.lexsort((ticks[kept], keys[kept]))]
        self.ticks, self.types, self.keys = ticks[order], types[order], keys[order]

    def typical(self) -> float | None:
        """The median distance from the event before of the same key; None where no key has two events."""
        steps = np.diff(self.ticks)[self.keys[1:] == self.keys[:-1]]
        return float(np.median(steps)) if len(steps) else None

    def are_dense(self, ticks: float, most: int) -> bool:
        """Whether somewhere more than ``most`` events of one key lie within so many ticks."""
        first, last = slice(0, max(len(self.keys) - most, 0)), slice(most, None)
        is_near = self.ticks[last] - self.ticks[first] <= ticks
        return bool((is_near & (self.keys[last] == self.keys[first])).any())

    def most_frequent(self) -> Follows | None:
        """The sequence for a first query: three different types if there are such, else what comes next.

        Events of a type that is followed by itself say little, so these come last.
        """
        pairs, triples = self._sequences(2), self._sequences(3)
        best = pairs[1].max(initial=0)
        least = min(best, max(ENOUGH, SHARE * best))
        kinds: tuple[tuple[tuple[Ints, Ints], Callable[[Ints], Bools], float], ...] = (
            (triples, lambda codes: (codes[0] != codes[1]) & (codes[1] != codes[2]) & (codes[0] != codes[2]), least),
            (triples, lambda codes: (codes[0] != codes[1]) & (codes[1] != codes[2]), least),
            (pairs, lambda codes: codes[0] != codes[1], 1),
            (pairs, lambda codes: codes[0] == codes[1], 1),
        )
        for (codes, counts), fits, enough in kinds:
            chosen = np.flatnonzero(fits(codes) & (counts >= enough))
            if len(chosen):
                best = chosen[np.argmax(counts[chosen])]
                types = tuple(int(code) for code in codes[:, best])
                starts = self._starts(len(types))
                for place, type_ in enumerate(types):
                    starts = starts[self.types[starts + place] == type_]
                spans = self.ticks[starts + len(types) - 1] - self.ticks[starts]
                return Follows(types, int(counts[best]), spans)
        return None

    def _starts(self, length: int) -> Ints:
        """Where events stand that are followed by others of their key."""
        return np.flatnonzero(self.keys[length - 1 :] == self.keys[: len(self.keys) - length + 1])

    def _sequences(self, length: int) -> tuple[Ints, Ints]:
        """The different sequences of some length, one a column, and at how many places each is found."""
        starts = self._starts(length)
        rows = np.stack([self.types[starts + i] for i in range(length)])
        width = int(self.types.max(initial=0)) + 1
        code = rows[0]
        for row in rows[1:]:
            code = code * width + row
        _, first, counts = np.unique(code, return_index=True, return_counts=True)
        return rows[:, first], counts


@dataclass(frozen=True)
class FirstQuery:
    """A query with matches in these events, or why there is none.

    Attributes
    ----------
    text : str
        The query; empty where there is none.
    why : str
        What was found that it asks for.
    matches : int
    rows : int
        Events it was run on.
    options : dict
        The arguments of ``Query.match`` that it needs.
    command : str
        How a shell runs it; empty where the events are no files.
    code : str
        How Python runs it.
    lacks : str
        Why there is no query.
    typical : str
        Half of the events follow the one before of their key within this distance; empty without a key.
    can_miss : bool
        Whether it still says something if one of its events is missing.
    """

    text: str = ""
    why: str = ""
    matches: int = 0
    rows: int = 0
    options: dict[str, Any] = field(default_factory=dict)
    command: str = ""
    code: str = ""
    lacks: str = ""
    typical: str = ""
    can_miss: bool = False


@dataclass(frozen=True)
class ProfiledEvents:
    """What a first query is made of.

    Attributes
    ----------
    table : pyarrow.Table
        The first events.
    ticks : numpy.ndarray of int64
        Their times.
    time, type, key : RoleFound
    is_time : bool
        Whether ticks are real time.
    options : dict
        The arguments of ``Query.match`` that are needed so far.
    """

    table: pa.Table
    ticks: Ints
    time: RoleFound
    type: RoleFound
    key: RoleFound
    is_time: bool
    options: dict[str, Any]


def first_query(known: ProfiledEvents, inputs: Sequence[str] | None) -> FirstQuery:
    """The first query of some events; ``inputs`` are their paths, if they are files."""
    if known.table.num_rows < 2:
        return FirstQuery(lacks="a pattern needs at least two events")
    for attempt in _attempts(known):
        try:
            made, matches, rows = tried(known, attempt)
        except DataError as error:  # such as keys of a type that cannot be one
            return FirstQuery(lacks=f"{error.message}; {error.hint or ''}".rstrip("; "))
        if matches:
            return suggested(known, made, (matches, rows), inputs)
    return FirstQuery(lacks="no two events follow one another in time, in the whole or of any key")


def suggested(
    known: ProfiledEvents, made: Attempt, found: tuple[int, int], inputs: Sequence[str] | None
) -> FirstQuery:
    """A query that was tried, with what runs it; ``found``: its matches, and the events that it was tried on."""
    text, options = str(made.query), known.options | made.options
    line = " ".join(text.split("\n"))
    text = line if to_text(parse(line)) == text else text  # a name in it may have several lines
    command = "" if inputs is None else formatting.command(text, inputs, options)
    code = formatting.call(text, inputs, options)
    can_miss = len(atoms(parse(text).pattern)) > 2
    return FirstQuery(text, made.why, *found, options, command, code, "", made.typical, can_miss)


def tried(known: ProfiledEvents, windows: list[Attempt]) -> tuple[Attempt, int, int]:
    """The widest window that does not find more matches than there are events, its matches, and events it is run on."""
    for made in windows:
        options = known.options | made.options
        meant = {name: options[name] for name in MEANINGS if name in options}
        names = dict.fromkeys([known.time.best, *made.columns])
        table = known.table.select([name for name in names if name is not None]).slice(0, made.rows)
        query = compile_query(str(made.query))
        matches = sum(query.match(table, **meant).count_by_errors().values())
        if matches <= table.num_rows:
            break
    return made, matches, table.num_rows


@dataclass(frozen=True)
class Attempt:
    """A query to try.

    Attributes
    ----------
    query : QueryBuilder
    why : str
        What it asks for.
    columns : tuple of str or None
        Those it names, beside the time.
    options : dict
        The arguments that it needs, beside those that are known.
    rows : int
        Events it is tried on: the first ones.
    typical : str
        As in ``FirstQuery``.
    """

    query: QueryBuilder
    why: str
    columns: tuple[str | None, ...]
    options: dict[str, Any]
    rows: int
    typical: str


def _attempts(known: ProfiledEvents) -> Iterator[list[Attempt]]:
    """Queries to try, the most telling first: with types and a key, with types alone, with numbers that rise.

    Each comes with several windows, the widest first.
    """
    keys = likely_keys(known)
    if known.type.best is not None:
        yield from _with_types(known, known.type.best, keys)
    yield from _without_types(known, keys)


def _with_types(known: ProfiledEvents, type_: str, keys: list[str | None]) -> Iterator[list[Attempt]]:
    codes, names = _codes(known.table, type_)
    options = {} if known.type.column else {"type": type_}
    for key in keys:
        events = KeyedEvents(known.ticks, codes, key_codes(known, key))
        found = events.most_frequent()
        if found is None:
            continue
        kinds = [names[code] for code in found.types]
        pattern = seq(*(event(kind, name) for kind, name in zip(kinds, "abc", strict=False)))
        times = f"{found.places:,} times" if found.places > 1 else "once"
        typical, rows, windows = _typical(events, key, known.is_time), known.table.num_rows, []
        for share, part in SHARES.items():
            span = found.within(share)
            why = f"{' -> '.join(kinds)} follow one another {times}{of_key(key)}"
            why += f"; {part} of these take no longer than {formatting.distance(span, is_time=known.is_time)}"
            query, more = keyed(pattern.within(formatting.window(max(span, 1), is_time=known.is_time)), known, key)
            windows.append(Attempt(query, why, (type_, key), options | more, rows, typical))
        yield windows


def likely_keys(known: ProfiledEvents) -> list[str | None]:
    """The columns that may be the key, the likeliest first, and at last none."""
    keys: list[str | None] = [known.key.column]
    if known.key.column is None:
        keys = [one.column for one in known.key.others if one.column != known.type.best]
    return [*keys, None]


def a_measure(known: ProfiledEvents) -> str | None:
    """The first column of numbers that plays no role."""
    taken = (known.time.best, known.key.best, known.type.best, *ROLE_NAMES)
    measures = (field.name for field in known.table.schema if is_number(plain_type(field.type)))
    return next((name for name in measures if name not in taken), None)


def _without_types(known: ProfiledEvents, keys: list[str | None]) -> Iterator[list[Attempt]]:
    """A number that rises, or else any two events."""
    number = a_measure(known)
    rows = min(RISING, known.table.num_rows)
    for key in keys:
        events = KeyedEvents(known.ticks[:rows], np.zeros(rows, np.int64), key_codes(known, key)[:rows])
        typical = events.typical()
        if typical is None:
            continue
        reach = max(2 * typical, 1)
        window = formatting.window(reach, is_time=known.is_time)
        measured = () if number is None or events.are_dense(3 * reach, DENSE) else (("abc", number), ("ab", number))
        for names, measure in (*measured, ("ab", None)):
            query = seq(*(event(None, name) for name in names)).within(window)
            for before, after in pairwise(names) if measure else ():
                query = query.where(f"{after}.{field_name(measure or '')} > {before}.{field_name(measure or '')}")
            query, more = keyed(query, known, key)
            why = (f"{measure} rises from event to event" if measure else "one event follows another") + of_key(key)
            yield [Attempt(query, why, (measure, key), more, rows, _typical(events, key, known.is_time))]


def key_codes(known: ProfiledEvents, key: str | None) -> Ints:
    """The key of each event as a code: the same for all where there is no key."""
    return np.zeros(known.table.num_rows, np.int64) if key is None else _codes(known.table, key)[0]


def keyed(query: QueryBuilder, known: ProfiledEvents, key: str | None) -> tuple[QueryBuilder, dict[str, Any]]:
    """The query split by a column, and the option that it needs."""
    if key is None:
        return query, {}
    if key == known.key.column or key in ROLE_NAMES:
        return query.by("key"), {} if key == known.key.column else {"key": key}
    return query.by(key), {}


def of_key(key: str | None) -> str:
    """Words for what is asked of the events of one key."""
    return "" if key is None else f" within one {key}"


def _typical(events: KeyedEvents, key: str | None, is_time: bool) -> str:
    typical = None if key is None else events.typical()
    return "" if typical is None else formatting.distance(typical, is_time=is_time)


def _codes(table: pa.Table, name: str) -> tuple[Ints, list[str]]:
    column = plain_values(pa.chunked_array([decoded(chunk) for chunk in table.column(name).chunks]).combine_chunks())
    coded = encode_text(column) if pa.types.is_string(column.type) else column.dictionary_encode()
    return text_codes(coded), [str(value) for value in in_python(coded.dictionary)]
