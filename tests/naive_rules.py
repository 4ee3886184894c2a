"""The oracle of active rules: one event at a time, tables that are dicts, matches by brute force. Tests only.

It shares nothing with the engine but the tree. What an event reads becomes columns of it (``naive_reads.py``); then
``naive.py`` says which matches it completes; then the actions run. The methods of ``Run`` are the points at which
``rule_mutants.py`` goes wrong.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from acep_approx.query.rules.syntax import RuleFile
from acep_approx.query.shape import atoms
from acep_approx.query.syntax import Read
from tests.naive import Binding, PartitionSearch, Path, partition_of
from tests.naive_conditions import Conditions
from tests.naive_expressions import OverflowOf64Bits, value_of
from tests.naive_reads import NUMBER, Key, Look, Reading, Store, ValuesAndReads, all_hold, copy_of, fresh
from tests.naive_selection import is_allowed
from tests.naive_writes import Failed, Outcome, Row, RuleMatch, Transaction, loaded

LAST = 2**62
"""Later than every time: when windows of events close that are open at the end."""


@dataclass(frozen=True)
class Waiting:
    """A match that waits for the end of its window, with the ways to read it; ``due`` is the time or the number."""

    bound: Binding
    ways: tuple[Path, ...]
    due: int


def run_rules(file: RuleFile, events: Iterable[Mapping[str, Any]], tables: Mapping[str, Sequence[Row]]) -> Outcome:
    """What comes of a stream whose tables begin with some rows (dicts with all columns)."""
    run = Run(file, tables)
    run.push(list(events))
    run.finish()
    return run.outcome


class Run:
    """A stream under way.

    ``rows`` are the events so far with their columns of reads, ``history`` is the store as each of them found it.
    """

    transaction = Transaction

    def __init__(self, file: RuleFile, tables: Mapping[str, Sequence[Row]]) -> None:
        self.file = file
        self.tables = {table.name: table for table in file.tables}
        store: Store = {table.name: loaded(table, tables.get(table.name, ())) for table in file.tables}
        self.outcome = Outcome(store, {rule.name: [] for rule in file.rules})
        self.readings = [Reading(rule, number) for number, rule in enumerate(file.rules)]
        self.rows: list[Row] = []
        self.history: list[Store] = []
        self.waiting: list[list[Waiting]] = [[] for _ in file.rules]
        self.listed: dict[tuple[int, Key], list[Binding]] = {}  # what was reported, per rule and partition

    # --- one event after the other ---

    def push(self, events: Sequence[Mapping[str, Any]]) -> None:
        """Some more events, as one batch: that plays no role here."""
        for event in events:
            if self.outcome.failure is None:
                self.close_windows(event["ts"])
            if self.outcome.failure is None:
                self.come(event)

    def finish(self) -> None:
        """The end of the stream."""
        if self.outcome.failure is None:
            self.close_windows(LAST + 1)

    def come(self, event: Mapping[str, Any]) -> None:
        """All that one event causes."""
        row = len(self.rows)
        self.history.append(self.found())
        self.rows.append({**event, NUMBER: row})
        for reading in self.readings:
            self.rows[row] |= reading.of_event(self.rows[row], self.as_of(row))
        groups = [(reading, self.completed(reading, row)) for reading in self.readings]
        self.transact(event["ts"], row, groups)
        self.close_windows_of_events(row)

    # --- reads ---

    def found(self) -> Store:
        """The store as an event finds it that comes now."""
        return copy_of(self.outcome.store)

    def held(self, store: Store, read: Read, key: Key) -> Any:
        """What a read finds in a store. NULL names no row; of a total table every other key has one, to be read."""
        table = self.tables[read.table]
        row = None if None in key else store[table.name].get(key)
        if read.column is None:
            return row is not None
        if row is None and table.is_total and None not in key:
            row = fresh(table)
        return None if row is None else (row | dict(zip(table.key, key, strict=True)))[read.column]

    def as_of(self, row: int) -> Look:
        """How an event reads: the store that it found."""
        return lambda read, key: self.held(self.history[row], read, key)

    def look_back(self, read: Read, key: Key) -> Any:
        """What a read of a match finds: the last part of its key is the event that says when."""
        return self.held(self.history[key[-1]], read, key[:-1])

    def look_now(self, read: Read, key: Key) -> Any:
        """What a read of WHEN finds: the store before the transaction."""
        return self.held(self.outcome.store, read, key)

    # --- matches ---

    def completed(self, reading: Reading, row: int) -> list[RuleMatch]:
        """The matches that an event completes; others of which it is the last event begin to wait."""
        conditions = Conditions(reading.query, self.rows)
        if not any(conditions.fits(atom, row) for atom in reading.positive):
            return []
        search = self.search(reading, row)
        if search is None:
            return []
        near = PartitionSearch(reading.query, self.rows, [one for one in search.part if search.span_fits(one, row)])
        ways: dict[Binding, list[Path]] = defaultdict(list)
        for path in near.paths():
            if path.bound[-1][0] == row and near.negations_hold(path._replace(gaps=path.gaps[:-1])):
                ways[near.identity(path)].append(path)
        found, window = [], int(reading.query.window.amount)
        for bound, paths in ways.items():
            errors, waits = min((path.err, bool(path.gaps[-1])) for path in paths)
            if waits if reading.query.selection.depends_on_order else reading.may_end_late:
                due = self.moment(search, bound[0][0]) + window
                self.waiting[reading.number].append(Waiting(bound, tuple(paths), due))
            else:
                found.append(RuleMatch(reading.rule.name, bound, errors, self.rows[row]["ts"], row))
        return self.reported(reading, found)

    def search(self, reading: Reading, row: int) -> PartitionSearch | None:
        """The partition of an event so far; None if it is in none."""
        part = partition_of(reading.query, self.rows, row)
        return None if part is None else PartitionSearch(reading.query, self.rows, part)

    def moment(self, search: PartitionSearch, row: int) -> int:
        """The time of an event, or its number, as its window counts."""
        is_count = search.query.window.unit == "events"
        return search.number[row] if is_count else int(self.rows[row]["ts"])

    def reported(self, reading: Reading, matches: list[RuleMatch]) -> list[RuleMatch]:
        """What late reads leave, and the clauses that go by the order of queries."""
        kept = []
        for match in sorted(matches, key=lambda match: self.place_in_queries(reading, match)):
            if not all_hold(reading.late, self.events_of(match), self.look_back):
                continue
            if reading.query.selection.depends_on_order:
                first = self.rows[match.bound[0][0]]
                part = (reading.number, tuple(first[one.name] for one in reading.query.equivalences))
                listed = self.listed.setdefault(part, [])
                if not is_allowed(reading.query.selection, self.rows, match.bound, listed):
                    continue
                listed.append(match.bound)
            kept.append(match)
        return kept

    def place_in_queries(self, reading: Reading, match: RuleMatch) -> tuple[Any, ...]:
        """The order of queries (docs/reference/language.md), for matches that are known at one time."""
        place = {"": 0} | {atom.variable: i for i, atom in enumerate(atoms(reading.query.pattern))}
        first, back = match.bound[0][0], [(-row, place[variable]) for row, variable in reversed(match.bound)]
        start = first if reading.query.window.unit == "events" else self.rows[first]["ts"]
        return match.errors, -start, match.bound[-1][0], back

    def place_in_transaction(self, reading: Reading, match: RuleMatch) -> tuple[Any, ...]:
        """The order of rules, for matches that are known at one time; they start at a time, whatever the window."""
        place = {"": 0} | {atom.variable: i for i, atom in enumerate(atoms(reading.query.pattern))}
        rows, variables = zip(*match.bound, strict=True)
        return match.errors, -self.rows[rows[0]]["ts"], rows, tuple(place[one] for one in variables)

    def events_of(self, match: RuleMatch) -> dict[str | None, list[Row]]:
        """The events of each variable."""
        events: dict[str | None, list[Row]] = {}
        for row, variable in match.bound:
            events.setdefault(variable, []).append(self.rows[row])
        return events

    # --- windows that close ---

    def close_windows(self, before: int) -> None:
        """The transactions of windows that have closed before a time, one after the other."""
        due: list[tuple[int, int, int, list[RuleMatch]]] = []
        for reading in self.readings:
            is_count, number = reading.query.window.unit == "events", reading.number
            if is_count and before <= LAST:  # what waits for a number of events is not due by time
                continue
            closed = [one for one in self.waiting[number] if is_count or one.due < before]
            self.waiting[number] = [one for one in self.waiting[number] if one not in closed]
            for tick, group in groupby(sorted(closed, key=lambda one: one.due), key=lambda one: one.due):
                time = self.rows[-1]["ts"] if is_count else tick
                matches = self.settled(reading, list(group), time)
                for first in {match.bound[0][0] for match in matches}:
                    of_first = [match for match in matches if match.bound[0][0] == first]
                    due.append((LAST if is_count else tick, first, number, of_first))
        for _, of_tick in groupby(sorted(due, key=lambda one: one[:3]), key=lambda one: one[0]):
            before = self.outcome.copied()
            for _, _, number, matches in of_tick:
                if self.outcome.failure is None:
                    self.transact(matches[0].time, None, [(self.readings[number], matches)])
            if self.outcome.failure is not None:  # all that windows of this tick did is undone
                before.failure, self.outcome = self.outcome.failure, before
                return

    def close_windows_of_events(self, row: int) -> None:
        """The transactions of windows of so many events of which this event was the last."""
        for reading in self.readings:
            if reading.query.window.unit != "events" or self.outcome.failure is not None:
                continue
            search = self.search(reading, row)
            if search is None:
                continue
            number, part = reading.number, set(search.part)
            closed = [o for o in self.waiting[number] if o.bound[0][0] in part and o.due == search.number[row]]
            self.waiting[number] = [one for one in self.waiting[number] if one not in closed]
            matches = self.settled(reading, closed, self.rows[row]["ts"])
            if matches:
                self.transact(matches[0].time, None, [(reading, matches)])

    def settled(self, reading: Reading, closed: Sequence[Waiting], time: int) -> list[RuleMatch]:
        """Which matches there are now that their windows have closed."""
        found = []
        for one in closed:
            search = self.search(reading, one.bound[0][0])
            assert search is not None
            errors = [path.err for path in one.ways if search.negations_hold(path)]
            if errors:
                found.append(RuleMatch(reading.rule.name, one.bound, min(errors), time, None))
        return self.reported(reading, found)

    # --- transactions ---

    def transact(self, time: int, row: int | None, groups: Sequence[tuple[Reading, list[RuleMatch]]]) -> None:
        """Report matches and do what their rules say; all of it or nothing."""
        before = self.outcome.copied()
        groups = [(reading, [self.with_values(reading, match) for match in matches]) for reading, matches in groups]
        for reading, matches in groups:
            self.outcome.matches[reading.rule.name] += self.in_order(reading, matches)
        transaction = self.transaction(self.tables, self.outcome, time, row)
        for reading, match in self.acting(groups):
            try:
                transaction.act(reading.rule, match, self.events_of(match))
            except (Failed, OverflowOf64Bits):
                self.outcome = before
                self.outcome.failure = (row, reading.rule.name)
                return

    def with_values(self, reading: Reading, match: RuleMatch) -> RuleMatch:
        """A match with what RETURN asks for, and whether WHEN lets it act."""
        events = self.events_of(match)
        values = ValuesAndReads(events, dict.fromkeys(events, 0), look=self.look_back)
        returned = tuple(value_of(output.value, values) for output in reading.outputs)
        return replace(match, fired=all_hold(reading.when, events, self.look_now), returned=returned)

    def in_order(self, reading: Reading, matches: Iterable[RuleMatch]) -> list[RuleMatch]:
        """The matches of a rule as they are listed, and act."""
        return sorted(matches, key=lambda match: self.place_in_transaction(reading, match))

    def acting(self, groups: Sequence[tuple[Reading, list[RuleMatch]]]) -> Iterator[tuple[Reading, RuleMatch]]:
        """The matches whose actions run, in order: all that fire, or the first one of each last event."""
        for reading, matches in groups:
            points = set()
            for match in self.in_order(reading, matches):
                if match.fired and not (reading.rule.each == "point" and match.bound[-1][0] in points):
                    points.add(match.bound[-1][0])
                    yield reading, match
