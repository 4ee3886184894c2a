"""More queries that run on these very events: what did not come, what changed at once, what may be missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from acep_approx.arrays import Floats
from acep_approx.errors import AcepError
from acep_approx.events.columns import to_numpy
from acep_approx.profiling import formatting
from acep_approx.profiling.columns import plain_values
from acep_approx.profiling.first_query import (
    DENSE,
    RISING,
    Attempt,
    FirstQuery,
    KeyedEvents,
    ProfiledEvents,
    a_measure,
    key_codes,
    keyed,
    likely_keys,
    of_key,
    suggested,
    tried,
)
from acep_approx.query.builder import absent, event, seq
from acep_approx.query.clauses import QueryBuilder
from acep_approx.query.parser import parse
from acep_approx.query.printer import field_name, to_text
from acep_approx.query.shape import atoms
from acep_approx.query.syntax import Atom

MOST = 4
"""Queries beside the first one."""
WAYS = (0.99, 0.9, 0.5)
"""Shares of the distances of which one is the usual."""
LATE = 1.5
"""Times the usual distance, from which on a reading did not come."""
LONG = 2
"""Times the usual distance, within which the next one comes."""
HIGH = (0.99, 0.95, 0.9)
"""Shares of the values, or of the steps, of which one is large that is above."""


def more_queries(known: ProfiledEvents, first: FirstQuery, inputs: Sequence[str] | None) -> tuple[FirstQuery, ...]:
    """Queries beside the first one that have matches in some events, and no more than there are events."""
    found: list[FirstQuery] = []
    for attempts in _kinds(known, first):
        for attempt in attempts:
            try:
                made, matches, rows = tried(known, [attempt])
            except AcepError:  # such as keys of a type that cannot be one, times that are texts
                continue
            if 0 < matches <= rows:
                found.append(suggested(known, made, (matches, rows), inputs))
                break
        if len(found) == MOST:
            break
    return tuple(found)


def _kinds(known: ProfiledEvents, first: FirstQuery) -> Iterator[Iterator[Attempt]]:
    """Kinds of queries, each with several windows or limits, the most telling first."""
    if not first.text:
        return
    if known.type.best is not None:
        yield _with_one_missing(known, first)
        yield _not_followed(known, first)
        return
    readings = _Readings.of(known)
    if readings is not None and not readings.are_dense:  # else too many pairs of them are tried
        yield readings.not_come()
        yield readings.gaps()
        yield readings.jumps()
        yield readings.high()


# --- events with types --------------------------------------------------------------------------------------------


def _of_first(known: ProfiledEvents, first: FirstQuery, query: QueryBuilder, why: str) -> Attempt:
    """A query on the same columns as the first one."""
    syntax = parse(first.text)
    keys = [known.key.best if one.name == "key" else one.name for one in syntax.equivalences]
    options = {name: value for name, value in first.options.items() if name not in known.options}
    return Attempt(query, why, (known.type.best, *keys), options, first.rows, first.typical)


def _pieces(first: FirstQuery) -> tuple[list[Atom], list[str], str]:
    """The parts of the first query, its keys, and its window."""
    syntax = parse(first.text)
    return list(atoms(syntax.pattern)), [one.name for one in syntax.equivalences], to_text(syntax.window)


def _with_one_missing(known: ProfiledEvents, first: FirstQuery) -> Iterator[Attempt]:
    parts, keys, window = _pieces(first)
    if len(parts) < 3:
        return
    query = seq(*(event(part.type, part.variable) for part in parts)).within(window).errors(1).maximal()
    last, begin = parts[-1].variable, parts[0].variable
    query, why = query.by(*keys) if keys else query, "the same where one of the events is missing, too"
    if known.is_time:
        took = query.returning(took=f"{last}.ts - {begin}.ts")
        yield _of_first(known, first, took, f"{why}, and how long it took")
    yield _of_first(known, first, query, why)


def _not_followed(known: ProfiledEvents, first: FirstQuery) -> Iterator[Attempt]:
    parts, keys, window = _pieces(first)
    begin, end = parts[0], parts[-1]
    if begin.type == end.type:
        return
    query = seq(event(begin.type, "a"), absent(event(end.type, "n"))).within(window)
    query = query.by(*keys) if keys else query
    yield _of_first(known, first, query, f"{begin.type} that no {end.type} follows within {window}")


# --- readings, which have no types --------------------------------------------------------------------------------


class _Readings:
    """Events of the likeliest key, one after the other, and a number of theirs."""

    def __init__(self, known: ProfiledEvents, key: str | None, events: KeyedEvents) -> None:
        rows = min(RISING, known.table.num_rows)
        self._known, self._key, self._rows = known, key, rows
        is_next = events.keys[1:] == events.keys[:-1]
        self._events = events
        self._steps: Floats = np.diff(events.ticks)[is_next].astype(np.float64)
        self._measure = a_measure(known)
        self._values: Floats = np.zeros(0)
        self._changes: Floats = np.zeros(0)
        if self._measure is not None:
            column = plain_values(known.table.column(self._measure).slice(0, rows).combine_chunks())
            self._values = to_numpy(column.cast("float64").fill_null(float("nan")))
            order = np.lexsort((known.ticks[:rows], key_codes(known, key)[:rows]))
            codes = key_codes(known, key)[:rows][order]
            self._changes = np.diff(self._values[order])[codes[1:] == codes[:-1]]

    @classmethod
    def of(cls, known: ProfiledEvents) -> _Readings | None:
        """Those of the first key that has two events; None: there is none."""
        rows = min(RISING, known.table.num_rows)
        for key in likely_keys(known):
            events = KeyedEvents(known.ticks[:rows], np.zeros(rows, np.int64), key_codes(known, key)[:rows])
            if events.typical() is not None:
                return cls(known, key, events)
        return None

    def _attempt(self, query: QueryBuilder, why: str, *columns: str | None, strategy: str = "") -> Attempt:
        query, more = keyed(query, self._known, self._key)
        if strategy:
            query = query.strategy(strategy if self._key is not None else "strict_contiguity")
        why += of_key(self._key)
        return Attempt(query, why, (self._key, *columns), more, self._rows, "")

    def _window(self, ticks: float) -> str:
        return formatting.window(max(ticks, 1), is_time=self._known.is_time)

    @property
    def are_dense(self) -> bool:
        """Whether many readings lie within the usual distances."""
        return self._events.are_dense(3 * max(LONG * self._usual, 1), DENSE)

    @property
    def _usual(self) -> float:
        """Half of the readings come within this distance."""
        return float(np.median(self._steps))

    def _longer(self) -> Iterator[str]:
        """Lengths of time that some readings take to come, and most do not; none where all come in time."""
        least = [LATE * max(float(np.quantile(self._steps, share)), self._usual) for share in WAYS]
        some = [window for window in map(self._window, least) if self._ticks(window) < self._steps.max()]
        yield from dict.fromkeys(some)

    def _ticks(self, window: str) -> float:
        number, _, unit = window.partition(" ")
        return float(number) * dict(formatting.SCALE).get(unit, 1)

    def not_come(self) -> Iterator[Attempt]:
        """A reading that did not come in time."""
        for window in (*self._longer(), self._window(LATE * self._usual)):
            query = seq(event(None, "a"), absent(event(None, "n"))).within(window)
            yield self._attempt(query, f"no event came for {window} after one")

    def gaps(self) -> Iterator[Attempt]:
        """How long it took until the next one came."""
        most = self._window(float(self._steps.max()))
        for window in self._longer():
            query = seq(event(None, "a"), event(None, "b")).within(most).where(f"b.ts - a.ts > {window}")
            query = query.returning(since="a.ts", gap="b.ts - a.ts")
            yield self._attempt(query, f"the next event came more than {window} later", strategy="partition_contiguity")

    def jumps(self) -> Iterator[Attempt]:
        """A number that is much larger than in the event before."""
        present = self._changes[np.isfinite(self._changes)]
        if not len(present) or self._measure is None:
            return
        name = field_name(self._measure)
        for share in HIGH:
            step = _rounded(float(np.quantile(present, share)))
            if float(step) <= 0:
                return
            query = seq(event(None, "a"), event(None, "b")).within(self._window(LONG * self._usual))
            query = query.where(f"b.{name} - a.{name} >= {step}")
            why = f"{self._measure} is larger by {step} or more than in the event before"
            yield self._attempt(query, why, self._measure, strategy="partition_contiguity")

    def high(self) -> Iterator[Attempt]:
        """Three events with large numbers, of which one may be missing."""
        present = self._values[np.isfinite(self._values)]
        if not len(present) or self._measure is None:
            return
        for share in HIGH:
            limit = _rounded(float(np.quantile(present, share)))
            window = self._window(LONG * self._usual)
            query = seq(*(event(None, name) for name in "abc")).within(window)
            for name in "abc":
                query = query.where(f"{name}.{field_name(self._measure)} >= {limit}")
            why = f"{self._measure} is {limit} or more three times; one of the events may be missing"
            yield self._attempt(query.errors(1).maximal(), why, self._measure)


def _rounded(number: float) -> str:
    """A number of three digits, as people write it.

    Examples
    --------
    >>> _rounded(12345.6), _rounded(0.12345), _rounded(7.0)
    ('12300', '0.123', '7')
    """
    short = float(f"{number:.3g}")
    return str(int(short)) if short.is_integer() else f"{short:f}".rstrip("0")


